"""Simulated devices read their parameters, reject what they cannot mean, and keep the time."""

from __future__ import annotations

import threading
import time
from math import inf

import numpy as np
import pytest

from starvelab import InputError
from starvelab.measure import devices
from starvelab.measure.devices import (
    StorageClock,
    VirtualAccelerator,
    VirtualLink,
    VirtualRun,
    VirtualStorage,
    sleep_until,
)


class Time:
    """A clock that moves only by sleeping."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    made = Time()
    monkeypatch.setattr(devices, "time", made)
    return made


def ms(device, name):
    """A column of the passages, in milliseconds since the first asking."""
    return [round(1e3 * (getattr(one, name) - 100), 6) for one in device.passages]


def device(clock, *, step=0.02, in_flight=2, link=None):
    return VirtualRun(VirtualAccelerator(step, in_flight=in_flight), link)


BATCH = np.zeros(1000, np.uint8)


@pytest.mark.parametrize("steps", [0.5, 1.5])
def test_steps_in_flight_are_whole(steps):
    with pytest.raises(InputError) as caught:
        VirtualAccelerator(0.001, in_flight=steps)
    assert str(caught.value) == (
        f"in_flight must be a whole number from 1, or math.inf, got {steps}. "
        "Pass 1 for a loop that waits for each step."
    )
    with pytest.raises(InputError, match="in_flight must be finite and positive, got 0"):
        VirtualAccelerator(0.001, in_flight=0)


def test_a_loop_that_waits_for_each_step_is_free_when_it_is_done(clock):
    gpu = device(clock, in_flight=1)
    gpu.take(BATCH)
    assert clock.now == pytest.approx(100.020)


def test_a_loop_one_step_ahead_waits_for_the_step_before(clock):
    gpu = device(clock)
    gpu.take(BATCH)
    assert clock.now == 100
    gpu.take(BATCH)
    assert clock.now == pytest.approx(100.020)
    assert ms(gpu, "step_end") == [20, 40]


def test_a_loop_that_never_waits_orders_any_number_of_steps(clock):
    gpu = device(clock, in_flight=inf)
    for _ in range(50):
        gpu.take(BATCH)
    assert clock.now == 100
    assert gpu.now() == pytest.approx(101)
    gpu.finish()
    assert clock.now == pytest.approx(101)


def test_copies_beside_the_computation_wait_for_the_link_only(clock):
    gpu = device(clock, link=VirtualLink(1000 / 0.030001), in_flight=inf)
    for _ in range(3):
        gpu.take(BATCH)
    # Copies 0 to 30, 30 to 60, 60 to 90 (and a microsecond for the bytes), each step after its copy.
    assert ms(gpu, "step_end") == pytest.approx([50, 80, 110], abs=0.01)


def test_copies_in_turn_wait_for_the_step_before(clock):
    link = VirtualLink(1000 / 0.030001, overlapped=False)
    gpu = device(clock, link=link, in_flight=inf)
    for _ in range(3):
        gpu.take(BATCH)
    assert ms(gpu, "copy_start") == pytest.approx([0, 50, 100], abs=0.01)
    assert ms(gpu, "step_end") == pytest.approx([50, 100, 150], abs=0.01)


def test_a_batch_on_the_device_is_not_copied(clock):
    gpu = device(clock, link=VirtualLink(1000 / 0.030001))
    gpu.take(BATCH, resident=True)
    assert ms(gpu, "step_start") == [0]


def test_a_kept_batch_outlives_the_slot_it_stood_in(clock):
    slot = np.ones(3)
    kept = device(clock).keep(slot)
    slot[:] = 0
    assert kept.tolist() == [1, 1, 1]
    assert device(clock).keep("a tensor") == "a tensor"


def storage(clock, **figures):
    return StorageClock(VirtualStorage(**figures), np.zeros(1), threading.Lock())


def test_reads_take_turns_at_a_shared_storage(clock):
    read = storage(clock, bandwidth=1e6)
    read(5000)
    assert clock.now == pytest.approx(100.005)
    clock.now = 100.001  # another worker asked meanwhile
    read(5000)
    assert clock.now == pytest.approx(100.010)


def test_latencies_run_side_by_side(clock):
    read = storage(clock, bandwidth=1e6, latency=0.05)
    read(1000)
    assert clock.now == pytest.approx(100.051)
    clock.now = 100.001
    read(1000)
    assert clock.now == pytest.approx(100.052)


@pytest.mark.parametrize(("cached", "read_in_ten"), [(0, 10), (0.5, 5), (0.9, 1), (1, 0)])
def test_memory_spares_the_storage_exactly_its_share_of_the_reads(clock, cached, read_in_ten):
    read = storage(clock, bandwidth=1e6, latency=0.05, cached_fraction=cached)
    for _ in range(10):
        read(1000)
    assert clock.now == pytest.approx(100 + read_in_ten * 0.051)


def test_no_storage_costs_no_time(clock):
    StorageClock(None)(10**12)
    assert clock.now == 100


def test_a_moment_that_has_passed_is_not_waited_for():
    before = time.monotonic()
    sleep_until(before - 5)
    sleep_until(before + 0.01)
    assert time.monotonic() >= before + 0.01
