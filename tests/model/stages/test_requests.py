"""A worker's own time: what it waits for requests, and who divides it."""

import pytest

from starvelab import PUBLISHED, Q_, TUTORIAL, Cache, Drive, Pipeline, Requests, Samples, Storage

# Tigris, docs/overview/benchmarks/model-training (2026): a ViT on images of 115 KB, each of them an object.
# One worker prepares 12 a second, and four of them the GPU's 138 once all is in memory. These two give the
# worker's CPU time and its wait; that 16 workers reached 134 is predicted.
PHOTOS = Samples(size="115 KB", cpu_time=Q_(4 / 138, "s"))
BYTES = Q_(115e3 / 85e6, "s")  # at what one request reaches
LATENCY = Q_(1 / 12 - 4 / 138, "s") - BYTES
VIT = Pipeline(
    hardware="138 img/s", batch_size=64, dataset=PHOTOS, workers=16,
    assumptions=PUBLISHED.replace(crowding=0),
    storage=Drive(Storage.S3_connection, requests=Requests(LATENCY)),
)  # fmt: skip
WALL = VIT.replace(hardware="1e6 img/s")


def connections(number):
    """An object store that serves so many requests at a time."""
    return Storage.S3_connection.replace(parallel_requests=number)


def images(pipeline, changes=None, **fields):
    return pipeline.solve(changes, **fields).throughput.m_as("img/s")


def test_workers_divide_what_they_wait_for_and_cores_do_not():
    # (l + S / R + cpu) / workers.
    for workers in (1, 4, 16, 64):
        assert images(WALL, workers=workers) == pytest.approx(12 * workers)
    # On one core the CPU time adds, and the waits of all workers lie side by side.
    assert images(WALL, {"workers.cores": 1}, workers=64) < 1.4 * 138 / 4


@pytest.mark.parametrize(("changes", "wait"), [
    ({}, LATENCY + BYTES),
    ({"storage.requests.open": 4}, (LATENCY + BYTES) / 4),
    ({"storage.requests.samples": 36}, LATENCY / 36 + BYTES),
    ({"storage.cache.share": 0.75}, (LATENCY + BYTES) / 4),
    # What the store serves at a time limits what a worker can have open.
    ({"storage.requests.open": 4, "storage.of": connections(2)}, (LATENCY + BYTES) / 2),
])  # fmt: skip
def test_a_worker_waits_for_the_latency_and_the_bytes_of_its_requests(changes, wait):
    took = WALL.solve(changes, workers=1).resource_times["CPU"] / 64
    assert took.m_as("ms") == pytest.approx((wait + Q_(4 / 138, "s")).m_as("ms"))


def test_there_are_as_many_requests_under_way_as_workers_have_open_or_as_the_store_serves():
    few = WALL.replace(storage=connections(8), workers=64)
    assert few.solve().bottleneck == "storage"
    assert images(few) == pytest.approx(8 / (LATENCY + BYTES).m_as("s"))
    assert few.solve(workers=4).bottleneck == "CPU"
    # The network divides bytes, and a prefix requests.
    wide = WALL.replace({"dataset.size": "100 MB"}, workers=10**6)
    assert images(wide) == pytest.approx(12.5e9 / 100e6)
    assert images(WALL, {"dataset.size": "1 KB"}, workers=10**6) == pytest.approx(5500)


def test_the_walkthrough_hides_what_is_not_given():
    hidden = WALL.replace(assumptions=TUTORIAL)
    assert hidden.replace(storage=Drive(Storage.S3_connection)).numbers["read_wait"] is None
    assert hidden.numbers["read_wait"] == pytest.approx((LATENCY + BYTES).m_as("s"))
    assert hidden.replace({"storage.requests.open": 10**9}).numbers["read_wait"] < 1e-9


def test_workers_of_which_only_the_rate_is_known_open_as_many_requests_as_are_named():
    supplied = VIT.replace(
        storage=Drive(Storage.S3_connection), dataset=Samples(size="115 KB"), workers="1000 img/s"
    )
    assert images(supplied) == 138
    one = 1 / (0.1 + BYTES.m_as("s"))
    assert images(supplied, {"storage.requests.open": 4}) == pytest.approx(4 * one)
    said = "Nobody knows how many requests are open, so their latency is left out: pass Requests(open=...)."
    assert said in supplied.solve().note
    assert said not in supplied.solve({"storage.requests.open": 4}).note
    assert said not in supplied.solve(storage=Storage.NVMe_Gen4).note  # one at a time would do


def test_a_result_says_on_how_many_requests_it_rests():
    slow = WALL.replace(storage=Drive(Storage.S3_connection))
    said = (
        "Each request reads one sample, a file of its own: for packed samples pass Requests(samples=...). "
        "Each worker has one request open: for more pass Requests(open=...)."
    )
    assert said in slow.solve().note
    assert (
        "Each request" not in VIT.replace(storage=Drive(Storage.S3_connection, cache=Cache(1))).solve().note
    )
    assert "Each worker" not in slow.solve({"storage.requests.open": 2}).note


def test_a_file_on_a_network_file_system_is_opened_read_and_closed():
    # Three round trips of 0.25 ms, of which a shard of 36 takes three as well.
    small = Pipeline(hardware="1e6 img/s", storage=Storage.NFS_10GbE, workers=1, assumptions=PUBLISHED)
    assert small.numbers["read_wait"] == pytest.approx(0.75e-3)
    assert small.replace({"storage.requests.samples": 36}).numbers["read_wait"] == pytest.approx(0.75e-3 / 36)
    limited = small.replace(
        {"storage.of": Storage.NFS_10GbE.replace(request_rate="3000 Hz")}, workers="1e6 img/s"
    )
    assert images(limited) == pytest.approx(1000)


def test_a_mount_of_an_object_store_is_as_fast_as_was_measured():
    # 30 jobs that read files of 128 KiB one by one: 9948 files a second.
    files = Pipeline(
        hardware="1e6 img/s", dataset=Samples(size="128 KiB", cpu_time="0.001 us"), storage=Storage.GCS_FUSE,
        workers=30, assumptions=PUBLISHED.replace(crowding=0),
    )  # fmt: skip
    assert images(files) == pytest.approx(9948, rel=0.005)


def test_a_drive_in_front_of_an_object_store_is_cold_once():
    # A local NVMe drive that keeps what was read: the second epoch waits for no request.
    found = WALL.epochs(memory="2 TB", samples=100_000, evicts=False)
    assert (found.held, found.cached_fraction) == (1, 1)
    assert found.first.throughput.m_as("img/s") == pytest.approx(12 * 16)
    assert found.later.throughput.m_as("img/s") > 12 * 16
    half = WALL.epochs(memory="5.75 GB", samples=100_000, evicts=False)
    assert half.first.throughput < half.later.throughput < found.later.throughput
