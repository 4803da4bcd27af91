"""Events on a GPU's stream, with a simulated GPU in their place: never run on a real one."""

from __future__ import annotations

import sys
import types

import pytest

from starvelab.jobs import watch
from starvelab.measure.training_step import cuda_in_use
from tests.jobs.loops import Loader


class SimulatedCuda:
    """`torch.cuda` as far as `watch` uses it: a stream that works on its own, in the time of a clock."""

    def __init__(self, clock):
        self.clock, self.busy_until, self.made = clock, clock.now, 0
        cuda = self

        class Event:
            def __init__(self, enable_timing=False):
                assert enable_timing
                cuda.made += 1
                self.done = None

            def record(self, stream=None):
                assert stream == "stream of device 0"
                self.done = max(clock.now, cuda.busy_until)

            def query(self):
                return clock.now >= self.done

            def elapsed_time(self, end):
                assert self.query(), "this event is not done yet"
                assert end.query(), "this event is not done yet"
                return 1e3 * (end.done - self.done)

        self.Event = Event

    def is_initialized(self):
        return True

    def current_device(self):
        return 0

    def current_stream(self, device):
        return f"stream of device {device}"

    def work(self, seconds):
        """Order work, which begins when all that was ordered before is done."""
        self.busy_until = max(self.clock.now, self.busy_until) + seconds

    def synchronize(self):
        self.clock.now = max(self.clock.now, self.busy_until)


def test_a_loop_that_waits_ahead_of_a_busy_gpu_starves_nobody(clock):
    cuda = SimulatedCuda(clock)
    watched = watch(Loader(clock, 0.08, 60), progress=False, cuda=cuda)
    for _ in watched:
        cuda.work(0.1)  # the loop only orders it, and asks for the next batch at once
        clock.sleep(0.001)
    cuda.synchronize()
    result = watched.result
    assert result.host_wait > 0.9
    assert result.stall == pytest.approx(0, abs=1e-9)
    assert result.verdict == "not input-bound"
    assert "The GPU waits 0.0 % of the time for data" in result.summary
    assert "the training loop 98.8 %." in result.summary


def test_what_the_gpu_waits_within_the_waits_is_the_stall(clock):
    cuda = SimulatedCuda(clock)
    watched = watch(Loader(clock, 0.1, 60), progress=False, cuda=cuda)
    for _ in watched:
        cuda.work(0.06)
        clock.sleep(0.001)
    assert watched.result.stall == pytest.approx((0.101 - 0.06) / 0.101, rel=0.01)
    assert watched.result.verdict == "highly input-bound"


def test_a_gpu_that_waits_for_launches_is_not_starved(clock):
    cuda = SimulatedCuda(clock)
    watched = watch(Loader(clock, 0.001, 60), progress=False, cuda=cuda)
    for _ in watched:
        for _ in range(10):  # ten small kernels: each is done before the next is ordered
            clock.sleep(0.01)
            cuda.work(0.002)
    assert watched.result.stall < 0.05
    assert watched.result.verdict == "not input-bound"


def test_a_first_batch_counts_neither_on_the_gpu(clock):
    cuda = SimulatedCuda(clock)
    watched = watch(Loader(clock, 0.001, 20, first=50), progress=False, cuda=cuda)
    for _ in range(2):
        for _ in watched:
            cuda.work(0.099)
            cuda.synchronize()
    assert watched.result.stall == pytest.approx(0.01, rel=0.01)
    assert watched.result.counted == 36


def test_an_evaluation_is_left_out_by_the_times_of_the_gpu(clock):
    cuda = SimulatedCuda(clock)
    watched = watch(Loader(clock, 0.05, 60), progress=False, cuda=cuda)
    for number in watched:
        cuda.work(0.05)
        cuda.synchronize()
        if number == 30:
            cuda.work(60)
            cuda.synchronize()
    assert watched.result.stall == pytest.approx(0.5)
    assert watched.result.interruptions == 1


def test_reading_the_loss_once_in_a_while_is_no_interruption(clock):
    cuda = SimulatedCuda(clock)
    watched = watch(Loader(clock, 0.001, 101), progress=False, cuda=cuda)
    for number in watched:
        cuda.work(0.1)
        if number % 50 == 49:
            cuda.synchronize()
    cuda.synchronize()
    assert watched.result.interruptions == 0
    assert watched.result.verdict == "not input-bound"


def test_events_are_used_again(clock):
    cuda = SimulatedCuda(clock)
    watched = watch(Loader(clock, 0.1, 200), progress=False, cuda=cuda)
    for _ in watched:
        cuda.work(0.05)
    assert cuda.made <= 6


def test_cuda_is_found_as_soon_as_the_program_works_with_it(clock, monkeypatch):
    cuda = SimulatedCuda(clock)
    cuda.is_initialized = lambda: cuda.made_use_of
    cuda.made_use_of = False
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))
    assert cuda_in_use() is None
    watched = watch(Loader(clock, 0.1, 40), progress=False)
    for _ in watched:
        cuda.made_use_of = True
        cuda.work(0.1)
    assert watched.result.stall is not None


def test_a_gpu_that_was_never_timed_leaves_a_wait_open(clock, monkeypatch):
    watched = watch(Loader(clock, 0.1, 40), progress=False)
    for _ in watched:
        clock.sleep(0.1)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=SimulatedCuda(clock)))
    assert watched.result.verdict == "cannot tell"
    assert "the loop may run ahead of the GPU, which was not timed" in watched.result.summary
