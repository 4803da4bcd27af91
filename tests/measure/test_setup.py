"""A pipeline's parts become the setup of a run, and what no run can do is rejected."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from starvelab import (
    PUBLISHED,
    TUTORIAL,
    Accelerator,
    Cache,
    Drive,
    Hardware,
    InputError,
    Link,
    Models,
    Pipeline,
    Requests,
    Samples,
    Storage,
    Workers,
)
from starvelab.measure import photo_transforms, photos
from starvelab.measure.devices import VirtualStorage
from starvelab.measure.setup import NO_STEP, setup_of

from .scenes import tiny_samples, zeros


@pytest.fixture
def tiny(tmp_path):
    return Samples(source=tiny_samples(tmp_path), transforms=[zeros()])


def test_photos_are_prepared_as_is_usual_unless_it_is_said_otherwise():
    setup = setup_of(Pipeline(dataset=Samples(source=photos("100 KB")), batch_size=32, workers=2))
    assert (setup.samples.name, setup.workers, setup.kind) == ("about 100 KB", 2, "threads")
    assert setup.layout.shape == (32, 3, 224, 224)
    assert setup.layout.size == 32 * 3 * 224 * 224 * 4
    assert setup.layout.dtype == np.float32
    sent = Samples(source=photos("100 KB"), transforms=photo_transforms(send="uint8"))
    assert setup_of(Pipeline(dataset=sent, batch_size=32)).layout.size == 32 * 3 * 224 * 224


def test_each_part_is_what_it_says(tiny):
    setup = setup_of(
        Pipeline(dataset=tiny, batch_size=4, workers=Workers(3, kind="processes", prefetch=5, in_order=False),
            storage=Drive("200 MB/s", count=2, requests=Requests("3 ms"), cache=Cache(0.25)),
            link=Link("4 GB/s", pinned=False, overlaps=False),
            hardware=Accelerator(rate="64 ms", in_flight=inf)),
    )  # fmt: skip
    assert (setup.batch_size, setup.workers, setup.kind) == (4, 3, "processes")
    assert (setup.prefetch, setup.in_order, setup.pinned) == (5, False, False)
    assert setup.storage.bandwidth == pytest.approx(400e6)
    assert (setup.storage.latency, setup.storage.cached_fraction) == (0.003, 0.25)
    assert setup.link.bandwidth == pytest.approx(4e9)
    assert not setup.link.overlapped
    assert setup.device.step_time == pytest.approx(0.064)
    assert setup.device.in_flight == inf
    assert str(setup) == "tiny images with 3 workers (processes)"
    assert str(setup.replace(workers=0)) == "tiny images in the training loop itself"


def test_entries_of_the_catalogue_become_simulated_devices(tiny):
    described = Pipeline(
        model=Models.ResNet50, hardware=Hardware.Cloud.A100, storage=Storage.NVMe_Gen4, batch_size=256,
        dataset=tiny,
    )  # fmt: skip
    setup = setup_of(described)
    assert setup.storage.bandwidth == described.reads.bandwidth
    assert setup.device.step_time == pytest.approx(described.solve().resource_times["accelerator"].m_as("s"))


def test_a_wait_alone_takes_no_time_for_bytes(tiny):
    storage = setup_of(
        Pipeline(dataset=tiny, storage=Drive(requests=Requests("3 ms")), hardware="1 ms")
    ).storage
    assert storage.latency == 0.003
    assert storage.bandwidth == inf


def test_an_object_store_of_a_run_has_its_latency_and_as_many_connections_as_are_allowed(tiny):
    store = Pipeline(
        dataset=tiny, storage=Storage.S3_connection, hardware="1 ms", workers=8, assumptions=PUBLISHED
    )
    for most, each, connections in ((6400, 1, inf), (8, 1, inf), (4, 1, 4), (8, 2, 8)):
        allowed = Storage.S3_connection.replace(parallel_requests=most)
        opened = setup_of(store.replace({"storage.requests.open": each}, storage=allowed)).storage
        assert opened == VirtualStorage(
            12.5e9, 0.1, request_bandwidth=85e6, read_rate=5500, connections=connections, open=each
        )
    packed = setup_of(store.replace({"storage.requests.samples": 4})).storage
    assert (packed.latency, packed.read_rate) == (0.025, 22_000)
    hidden = setup_of(store.replace(assumptions=TUTORIAL)).storage
    assert (hidden.latency, hidden.request_bandwidth) == (0, inf)
    # One arm seeks for one request at a time, in the order that it likes.
    disk = setup_of(store.replace(storage=Storage.HDD)).storage
    assert (disk.latency, disk.connections) == (0.007, 1)


def test_without_an_accelerator_a_loader_is_measured_alone(tiny):
    alone = Pipeline(dataset=tiny)
    assert setup_of(alone).device is NO_STEP
    assert not setup_of(alone).step_known
    with pytest.raises(InputError, match="The accelerator's time comes from model and hardware"):
        alone.solve()


def test_a_device_trains_in_place_of_a_simulated_accelerator(tiny):
    assert setup_of(Pipeline(dataset=tiny, hardware=Accelerator(device=print))).device is print
