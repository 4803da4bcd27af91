"""A cold first epoch and warm later ones, and what is lost between them."""

from math import inf

import pytest

from starvelab import PUBLISHED, Q_, Drive, InputError, MissingValueError, Pipeline, Samples
from starvelab.tables import cell
from tests.cases import KITS, WALL
from tests.rejected import message, not_positive

# 100 GB of samples; storage binds at 500 a second unless memory serves more than half of the reads.
PIPE = Pipeline(
    hardware="1000 img/s", workers="1000 img/s", dataset=Samples(size="100 KB"), storage="50 MB/s",
    batch_size=100,
)  # fmt: skip
PREPARED = PIPE.replace({"dataset.cpu_time": "4 ms"}, storage=None, workers=8)
MILLION = {"samples": 1_000_000}


def test_the_first_epoch_is_cold_and_the_later_ones_are_warm():
    found = PIPE.epochs(memory="100 GB", **MILLION)
    assert (found.held, found.cached_fraction) == (1, 1)
    assert (found.first.bottleneck, found.later.bottleneck) == ("storage", "accelerator")
    # 2000 s for the first, and 0.1 s to prepare its last batch; 1000 s for each of nine others.
    assert found.time(1).m_as("s") == pytest.approx(2000.1)
    assert found.time(10).m_as("s") == pytest.approx(11_000.1)


def test_a_page_cache_that_holds_35_percent_reads_86_percent_again_and_one_that_keeps_what_it_has_65():
    found = PIPE.epochs(memory="35 GB", **MILLION)
    assert found.held == pytest.approx(0.35)
    assert found.cached_fraction == pytest.approx(0.138, abs=5e-4)
    assert found.time(2).m_as("s") == pytest.approx(2000 * (2 - found.cached_fraction) + 0.2)
    # What the pipeline says of its cache does not matter.
    assert repr(PIPE.replace({"storage.cache.share": 0.9}).epochs(memory="35 GB", **MILLION)) == repr(found)
    keeps = PIPE.epochs(memory="35 GB", evicts=False, **MILLION)
    assert (keeps.cached_fraction, keeps.note) == (keeps.held, "")
    assert keeps.time(2).m_as("s") == pytest.approx(2000 * 1.65 + 0.2)


def test_the_samples_and_their_size_are_those_of_the_data_set():
    # 168 volumes of 146.6 MB.
    assert KITS.epochs(memory="10 GB").held == pytest.approx(10e9 / (168 * 146.6e6))


# A batch of one sample of 1 MB, which a worker prepares in 30 ms.
SHORT = Pipeline(
    batch_size=1, hardware="20 ms", dataset=Samples(cpu_time="30 ms", size="1 MB", transfer="1 MB"), workers=4
)


@pytest.mark.parametrize("batches", [1, 2, 61, 128, 333])
@pytest.mark.parametrize("changes", [
    {},
    {"hardware": "3 ms", "workers.handover.way": "1 ms"},
    {"hardware.in_flight": 1, "workers.handover.loop": "5 ms", "workers.start_up": "50 ms"},
    {"hardware.in_flight": inf, "workers": 7, "workers.start_up": "400 ms", "workers.persistent": True},
    {"hardware.in_flight": 3, "workers": 8, "link": "0.04 GB/s"},
    # Reads ahead of the workers, which hold 64 ms and 9 ms of the drive: less was said to be lost.
    {"hardware": "3 ms", "dataset.cpu_time": "64 ms", "workers": 8, "storage": "0.1 GB/s"},
    {"workers.prefetch": 1, "storage": "0.1 GB/s"},
    {"workers.prefetch": 3, "workers.handover.loop": "25 ms", "storage": Drive("0.2 GB/s", read_ahead=False)},
], ids=str)  # fmt: skip
def test_an_epoch_takes_as_long_as_batch_by_batch(changes, batches):
    pipeline = SHORT.replace(changes)
    found = pipeline.epochs(samples=batches)
    run = pipeline.simulate(batches=4 * batches, replicas=1, warm_up=0, epoch_batches=batches)
    ends = run.trace().step_end
    simulated = (ends[-1] - ends[2 * batches - 1]) / 2
    assert (found.time(2) - found.time(1)).m_as("ms") == pytest.approx(simulated)


def test_workers_that_are_kept_start_once():
    kept, anew = (
        PREPARED.replace({"workers.start_up": "2 s", "workers.persistent": kept}).epochs(samples=100_000)
        for kept in (True, False)
    )
    # A worker has the first batch after 400 ms, of which the accelerator computes 100 ms on the one before.
    assert kept.boundary.m_as("ms") == pytest.approx(300)
    assert anew.boundary.m_as("ms") == kept.first_boundary.m_as("ms") == pytest.approx(2300)
    assert kept.time(90).m_as("s") == pytest.approx(90 * 100 + 90 * 0.3 + 2)
    assert anew.summary == "Between two epochs 2.3 s are lost, as nothing is prepared then"
    # 2.3 s of each 102.3 s.
    assert [*map(cell, anew.rows[1])] == ["each later", "1.705 min", "2.3 s", "97.8 %", "GPU"]
    assert "read from the drive" not in anew.headers


def test_an_epoch_of_less_than_a_batch_is_one_batch_of_what_there_is():
    # It is prepared while the accelerator computes on the one before.
    ten = PREPARED.replace(hardware="20 ms").epochs(samples=10)
    assert ten.time(1).m_as("ms") == pytest.approx(10 * 4)
    shared = PREPARED.replace({"hardware.count": 4, "dataset.cpu_time": "1 ms"}, workers=4)
    assert shared.epochs(samples=10).first.batch_size == 3


def test_workers_without_a_batch_take_nobodys_core():
    # Four batches in an epoch, each 400 ms of a core, and four cores or more.
    crowd = PREPARED.replace({"workers.cores": 4}, workers=4)
    few = crowd.epochs(samples=400)
    many = crowd.replace(workers=4096).epochs(samples=400)
    assert many.boundary == few.boundary
    assert few.time(1).m_as("ms") == pytest.approx(400 + 300)
    assert cell(few.rows[0][1]) == "0.7 s"


def test_a_pool_prepares_its_first_batch_together():
    fed = PREPARED.replace(assumptions=PUBLISHED)
    found = fed.replace({"workers.kind": "pool"}).epochs(samples=100_000)
    assert found.boundary.m_as("ms") < 60 < fed.epochs(samples=100_000).boundary.m_as("ms")


def test_without_workers_nothing_is_lost_and_none_has_to_start():
    alone = PREPARED.replace({"workers.start_up": "2 s"}, workers=0)
    assert alone.epochs(samples=1000).boundary.m_as("s") == 0


def test_a_loop_that_prepares_nothing_ahead_loses_what_its_workers_take_to_start():
    assert WALL.replace({"workers.start_up": "2 s"}, overlap=False).epochs(samples=1000).boundary == Q_("2 s")


def test_a_share_in_memory_counts_where_no_memory_is_given():
    half = PIPE.replace({"storage.cache.share": 0.5}).epochs(samples=1_000_000)
    assert half.cached_fraction == 0.5
    assert half.time(1).m_as("s") == pytest.approx(1000.1)


@pytest.mark.parametrize(("error", "pipeline", "arguments", "expected"), [
    (
        InputError,
        WALL,
        {"memory": "1 GB"},
        "The page cache serves reads from a drive, got a pipeline without storage. "
        "Pass storage=Storage.NVMe_Gen4, or no memory.",
    ),
    (
        MissingValueError,
        PIPE,
        {"memory": "1 GB"},
        "epochs needs the samples of an epoch, and the pipeline names no data set of a known size. "
        "Pass samples=1_281_167, or dataset=Datasets.ImageNet to the pipeline.",
    ),
    (InputError, PIPE, *not_positive(memory="0 GB", **MILLION)),
])  # fmt: skip
def test_what_has_no_epochs_is_rejected(error, pipeline, arguments, expected):
    assert message(error, Pipeline.epochs, pipeline, **arguments) == expected
