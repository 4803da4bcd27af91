"""Reading: what a drive supplies, how long a batch takes, and what is said of a drive nobody knows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import (
    PUBLISHED,
    Q_,
    TUTORIAL,
    Cache,
    DataModel,
    Drive,
    Hardware,
    MissingValueError,
    Pipeline,
    Requests,
    Samples,
    Storage,
)
from starvelab.model.stages.data import hit_share
from tests.rejected import message
from tests.strategies import bandwidths, pipelines, sample_sizes, stores

FAST = Pipeline(hardware="1e9 img/s", workers="1e9 img/s")
REMEDY = 'Pass storage=Storage.NVMe_Gen4 or bandwidth=Q_("7 GB/s").'


def refused(error, **arguments):
    return message(error, DataModel().solve, **{"workload_data_rate": Q_("1 GB/s"), **arguments})


def seconds(batch, size, source, assumptions=TUTORIAL):
    pipe = Pipeline(hardware="1 img/s", dataset=Samples(size=size), storage=source, assumptions=assumptions)
    return pipe.costs()["read"].at(batch)


def test_a_demand_beyond_the_drive_stalls_and_one_within_or_equal_to_it_does_not():
    for demand, utilization, stalled in (
        ("10.9 GB/s", 10.9 / 7, True),
        ("2 GB/s", 2 / 7, False),
        ("0 GB/s", 0, False),
    ):
        check = DataModel().solve(workload_data_rate=demand, hardware=Hardware.Cloud.A100)
        assert check.supply_bw == Q_("7 GB/s")
        assert check.utilization == pytest.approx(utilization)
        assert check.is_stalled is stalled
    assert not DataModel().solve(workload_data_rate=Q_(3 * 0.1, "GB/s"), bandwidth="0.3 GB/s").is_stalled
    check = DataModel().solve(workload_data_rate=Q_("1000 img/s") * Q_("500 KB"), storage="1 GB/s")
    assert check.utilization == pytest.approx(0.5)
    check = DataModel().solve(workload_data_rate=Q_([1, 7, 8], "GB/s"), storage=Storage.NVMe_Gen4)
    assert check.is_stalled.tolist() == [False, False, True]
    assert check.utilization.shape == (3,)


def test_the_drive_may_be_named_in_four_ways_and_what_is_named_more_closely_goes_first():
    for named in (
        {"hardware": Hardware.Cloud.A100},
        {"hardware": Hardware.Cloud.T4, "storage": Storage.NVMe_Gen4},
        {"hardware": Hardware.Cloud.T4, "storage": "7 GB/s"},
        {"hardware": Hardware.Cloud.A100, "storage": "1 GB/s", "bandwidth": "7 GB/s"},
    ):
        check = DataModel().solve(workload_data_rate="3.5 GB/s", **named)
        assert (check.supply_bw, check.utilization) == (Q_("7 GB/s"), pytest.approx(0.5))


def test_a_missing_drive_is_refused_with_what_to_pass():
    assert refused(MissingValueError, hardware=Hardware.Cloud.T4) == (
        f"DataModel needs a storage bandwidth, and NVIDIA T4 lists none. {REMEDY}"
    )
    assert refused(MissingValueError) == (
        f"DataModel needs a storage bandwidth, and neither hardware nor storage was named. {REMEDY}"
    )


@given(st.integers(1, 4096), sample_sizes, bandwidths)
def test_reading_takes_the_bytes_over_the_bandwidth(batch, size, bandwidth):
    assert seconds(batch, size, bandwidth) == pytest.approx(batch * size.m_as("GB") / bandwidth.m_as("GB/s"))


def test_where_requests_hide_their_latency_the_bandwidth_binds_and_otherwise_what_is_served_at_a_time():
    transfer = 114.66e3 / 180e6
    assert seconds(1, "114.66 KB", Storage.HDD) == pytest.approx(transfer)
    assert seconds(1, "114.66 KB", Storage.HDD, PUBLISHED) == pytest.approx(7e-3 + transfer)
    # A bandwidth and a host's drive have no latency to hide.
    for drive in ("7 GB/s", Hardware.Cloud.A100):
        assert seconds(8, "7 MB", drive, PUBLISHED) == pytest.approx(8e-3)


def images_a_second(storage, assumptions=PUBLISHED, **drive):
    return FAST.solve(storage=Drive(storage, **drive), assumptions=assumptions).throughput.m_as("img/s")


def test_one_spindle_seeks_for_every_request_however_many_wait():
    assert 75 <= images_a_second(Storage.HDD) <= 200
    assert images_a_second(Storage.HDD, count=4) == pytest.approx(4 * images_a_second(Storage.HDD))
    # A seek is spared for each sample in memory, and of large reads there are few.
    warm = images_a_second(Storage.HDD, cache=Cache(0.75))
    assert warm == pytest.approx(4 * images_a_second(Storage.HDD))
    packed = images_a_second(Storage.HDD, requests=Requests(samples=1000))
    assert packed == pytest.approx(180e6 / 114.66e3, rel=0.02)


def test_one_connection_to_an_object_store_waits_for_every_answer():
    # 100 ms until the first byte, and 115 KB at 85 MB/s.
    alone = pytest.approx(1 / (0.1 + 114.66e3 / 85e6))
    assert images_a_second(Storage.S3_connection, requests=Requests(open=1)) == alone
    assert images_a_second(Storage.S3_connection.replace(parallel_requests=1)) == alone


@pytest.mark.parametrize(
    "drive", [drive for drive in Storage if drive.get("request_latency")], ids=lambda d: d.path
)
def test_twice_as_many_drives_serve_twice_as_much_however_many_there_are(drive):
    # The last are 6,400 connections.
    for count in (1, 32, 3200):
        once = images_a_second(drive, count=count)
        assert images_a_second(drive, count=2 * count) == pytest.approx(2 * once)


def test_one_hard_disk_ranges_from_the_slowest_report_of_small_files_to_the_fastest():
    # 68 and 93 files of ImageNet in two reports, 15 to 50 MB/s in a paper.
    off = 1 + PUBLISHED.model_error
    ends = FAST.solve(storage=Storage.HDD, assumptions=PUBLISHED).ranges.throughput
    low, high = ends[0].m_as("img/s") * off, ends[1].m_as("img/s") / off
    assert low == pytest.approx(68, rel=0.01)
    assert 0.85 * 50e6 / 114.66e3 < high < 50e6 / 114.66e3


def test_a_volume_serves_so_many_requests_a_second_however_small_and_also_where_latency_is_hidden():
    for assumed in (PUBLISHED, TUTORIAL):
        small = FAST.solve({"dataset.size": "4 KB"}, storage=Storage.EBS_gp3, assumptions=assumed)
        assert small.throughput.m_as("img/s") == pytest.approx(3000)


def test_the_drive_delivers_what_memory_does_not_serve():
    step = FAST.solve(dataset=Samples(size="100 KB"), storage=Drive("0.5 GB/s", cache=Cache(0.35)))
    assert step.throughput.m_as("img/s") * 100e3 == pytest.approx(1e9 / (0.65 / 0.5))
    assert step.actual_demand.m_as("GB/s") == pytest.approx(0.5)


def test_what_is_in_memory_altogether_takes_no_time_of_the_drive():
    pipe = Pipeline(hardware="1000 img/s", workers="500 img/s", storage=Storage.HDD)
    assert pipe.solve().bottleneck == "storage"
    warm = pipe.solve({"storage.cache.share": 1})
    assert warm.resource_times["storage"].m_as("ms") == 0
    assert (warm.bottleneck, warm.utilization) == ("CPU", pytest.approx(0.5))


@given(pipelines(storage=stores), st.lists(st.floats(0, 1), min_size=2, max_size=5).map(sorted))
def test_more_of_the_data_in_memory_never_lowers_the_throughput(pipe, shares):
    throughput = pipe.solve({"storage.cache.share": shares}).throughput.m_as("img/s")
    assert (np.diff(throughput) >= -1e-9 * throughput[1:]).all()
    assert throughput[0] >= pipe.solve({"storage.cache": None}).throughput.m_as("img/s") * (1 - 1e-9)


def simulated_hits(held, samples=1000, epochs=10):
    """The share of hits of a cache that evicts at random, read in a new order in each epoch."""
    random = np.random.default_rng(1)
    slots = list(range(int(held * samples)))  # what lies in each slot
    where = {sample: slot for slot, sample in enumerate(slots)}
    hits = 0
    for epoch in range(epochs + 2):
        for sample in random.permutation(samples).tolist():
            if sample in where:
                hits += epoch >= 2  # the first epochs still show what it began with
            else:
                slot = int(random.integers(len(slots)))
                del where[slots[slot]]
                slots[slot], where[sample] = sample, slot
    return hits / samples / epochs


@pytest.mark.parametrize("held", [0.35, 0.9])
def test_it_is_what_a_simulated_cache_serves(held):
    assert hit_share(held) == pytest.approx(simulated_hits(held), abs=0.015)


def test_the_share_belongs_to_what_is_held():
    # Measured: Mohan et al., PVLDB 14(5), 2021.
    assert 1 - hit_share(0.35) == pytest.approx(0.85, abs=0.015)
    # s = 2: h = ((1 - exp(-2)) / 2)^2 = 0.18691 and c = (1 - h) / 2 = 0.40654.
    assert hit_share(0.40654) == pytest.approx(0.18691, abs=1e-5)
    assert hit_share(1.0) == 1.0
    assert hit_share([1.0, 3.0]).tolist() == [1.0, 1.0]
