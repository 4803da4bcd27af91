"""Simulated devices read their parameters, reject what they cannot mean, and keep the time."""

import threading
from math import inf

import numpy as np
import pytest

from doctor.tests.loops import Clock
from starvelab.measure import devices
from starvelab.measure.devices import (
    CONNECTIONS,
    StorageClock,
    VirtualAccelerator,
    VirtualLink,
    VirtualRun,
    VirtualStorage,
)


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(devices, "time", made)
    return made


def ms(device, name):
    """A column of the passages, in milliseconds since the first asking."""
    return [round(1e3 * (getattr(one, name) - 100), 6) for one in device.passages]


def device(clock, *, step=0.02, in_flight=2, link=None):
    return VirtualRun(VirtualAccelerator(step, in_flight=in_flight), link)


BATCH = np.zeros(1000, np.uint8)


BESIDE, IN_TURN = (VirtualLink(1000 / 0.030001, overlapped=beside) for beside in (True, False))


@pytest.mark.parametrize(("options", "free", "copies", "ends"), [
    # When the loop is free again, when copies begin, and when steps end [ms]: of steps of 20 ms.
    ({"in_flight": 1}, 60, [0, 20, 40], [20, 40, 60]),
    ({"in_flight": 2}, 40, [0, 0, 20], [20, 40, 60]),
    ({"in_flight": inf}, 0, [0, 0, 0], [20, 40, 60]),
    # Copies of 30 ms wait for the link only, or for the step before, too.
    ({"in_flight": inf, "link": BESIDE}, 0, [0, 30, 60], [50, 80, 110]),
    ({"in_flight": inf, "link": IN_TURN}, 0, [0, 50, 100], [50, 100, 150]),
])  # fmt: skip
def test_a_loop_waits_for_steps_and_steps_for_copies(clock, options, free, copies, ends):
    gpu = device(clock, **options)
    for _ in range(3):
        gpu.take(BATCH)
    assert clock.now == pytest.approx(100 + free / 1e3)
    assert ms(gpu, "copy_start") == pytest.approx(copies, abs=0.01)
    assert ms(gpu, "step_end") == pytest.approx(ends, abs=0.01)
    assert gpu.now() == pytest.approx(100 + ends[-1] / 1e3, abs=1e-5)
    gpu.finish()
    assert clock.now == gpu.now()


def test_a_batch_on_the_device_is_not_copied(clock):
    gpu = device(clock, link=BESIDE)
    gpu.take(BATCH, resident=True)
    assert ms(gpu, "step_start") == [0]


def storage(clock, **figures):
    return StorageClock(VirtualStorage(**figures), np.zeros(CONNECTIONS + 8), threading.Lock())


@pytest.mark.parametrize(("cached", "read_in_ten"), [(0, 10), (0.5, 5), (0.9, 1), (1, 0)])
def test_memory_spares_the_storage_exactly_its_share_of_the_reads(clock, cached, read_in_ten):
    read = storage(clock, bandwidth=1e6, latency=0.05, cached_fraction=cached)
    for _ in range(10):
        read(1000)
    assert clock.now == pytest.approx(100 + read_in_ten * 0.051)


@pytest.mark.parametrize(("figures", "done"), [
    # When each of three reads of 5000 bytes that begin together would be done [ms].
    ({"latency": 0.05}, [55, 60, 65]),
    ({"latency": 0.05, "connections": 2}, [55, 60, 110]),
    ({"latency": 0.05, "connections": 1}, [55, 110, 165]),
    ({"latency": 0.05, "request_bandwidth": 1e5, "connections": 1}, [100, 200, 300]),
    ({"read_rate": 50}, [20, 40, 60]),
])  # fmt: skip
def test_requests_wait_side_by_side_as_far_as_there_are_connections(clock, monkeypatch, figures, done):
    read, waits = storage(clock, bandwidth=1e6, **figures), []
    monkeypatch.setattr(devices, "sleep_until", lambda deadline: waits.append(1e3 * (deadline - 100)))
    for _ in range(3):
        read(5000)
    assert waits == pytest.approx(done)


def test_no_storage_costs_no_time(clock):
    StorageClock(None)(10**12)
    assert clock.now == 100
