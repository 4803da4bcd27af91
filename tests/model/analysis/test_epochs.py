"""A cold first epoch and warm later ones."""

from __future__ import annotations

import pytest

from starvelab import InputError, MissingValueError, Pipeline, epochs
from tests.cases import KITS, WALL

# 100 GB of samples; storage binds at 500 a second unless memory serves more than half of the reads.
PIPE = Pipeline(
    accelerator_rate="1000 img/s",
    cpu_throughput="1000 img/s",
    sample_size="100 KB",
    storage="50 MB/s",
    batch_size=100,
)
MILLION = {"samples": 1_000_000}


def test_the_first_epoch_is_cold_and_the_later_ones_are_warm():
    found = epochs(PIPE, memory="100 GB", **MILLION)
    assert (found.held, found.cached_fraction) == (1, 1)
    assert (found.first.bottleneck, found.later.bottleneck) == ("storage", "accelerator")
    # 2000 s for the first, 1000 s for each of nine others.
    assert found.time(1).m_as("s") == pytest.approx(2000)
    assert found.time(10).m_as("s") == pytest.approx(11_000)


def test_a_page_cache_that_holds_35_percent_reads_86_percent_again():
    found = epochs(PIPE, memory="35 GB", **MILLION)
    assert found.held == pytest.approx(0.35)
    assert found.cached_fraction == pytest.approx(0.138, abs=5e-4)
    assert found.time(2).m_as("s") == pytest.approx(2000 * (2 - found.cached_fraction))


def test_a_cache_that_keeps_what_it_has_reads_65_percent_again():
    found = epochs(PIPE, memory="35 GB", evicts=False, **MILLION)
    assert found.cached_fraction == found.held
    assert found.time(2).m_as("s") == pytest.approx(2000 * 1.65)
    assert found.note == ""


def test_what_the_pipeline_says_of_its_cache_does_not_matter():
    assert repr(epochs(PIPE.replace(cached_fraction=0.9), memory="35 GB", **MILLION)) == repr(
        epochs(PIPE, memory="35 GB", **MILLION)
    )


def test_the_samples_and_their_size_are_those_of_the_data_set():
    # 168 volumes of 146.6 MB.
    assert epochs(KITS, memory="10 GB").held == pytest.approx(10e9 / (168 * 146.6e6))


def test_epochs_read_as_a_table():
    assert repr(epochs(PIPE, memory="35 GB", **MILLION)).splitlines() == [
        "35.0 % of the data fits into memory, which serves 13.8 % of the reads from the second epoch on",
        "epoch            time    read from storage    accelerator busy  bottleneck",
        "----------  ---------  -------------------  ------------------  ------------",
        "the first   33.33 min               100 GB              50.0 %  storage",
        "each later  28.73 min              86.2 GB              58.0 %  storage",
        "The page cache evicts samples before they are read again. One that keeps what it has would serve "
        "35.0 %: pass evicts=False.",
    ]
    assert epochs(PIPE, memory="1 TB", **MILLION).summary == (
        "All data fits into memory, and only the first epoch reads it from storage"
    )


@pytest.mark.parametrize(
    ("error", "pipeline", "arguments", "expected"),
    [
        (
            InputError,
            WALL,
            {"memory": "1 GB"},
            "epochs looks at reads from a drive, got a pipeline without storage. "
            "Pass storage=Storage.NVMe_Gen4.",
        ),
        (
            MissingValueError,
            PIPE,
            {"memory": "1 GB"},
            "epochs needs the samples of an epoch, and the pipeline names no data set of a known size. "
            "Pass samples=1_281_167, or dataset=Datasets.ImageNet to the pipeline.",
        ),
        (
            InputError,
            PIPE,
            {"memory": "0 GB", **MILLION},
            "memory must be finite and positive, got 0 GB. Check the value and its sign.",
        ),
        (
            InputError,
            PIPE.replace(batch_size=[1, 2]),
            {"memory": "1 GB", **MILLION},
            "epochs looks at one point, got several values of batch_size. Pass one value of each.",
        ),
    ],
)
def test_what_has_no_epochs_is_rejected(error, pipeline, arguments, expected):
    with pytest.raises(error) as caught:
        epochs(pipeline, **arguments)
    assert str(caught.value) == expected
