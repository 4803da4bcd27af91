"""The CPU time of those who prepare batches, with a process that works and one that sleeps."""

from __future__ import annotations

import os
import types

import pytest

from starvelab.jobs import cpu
from starvelab.jobs.cpu import PrepareCpu
from starvelab.jobs.times import LoopTimes


def source(*numbers):
    return types.SimpleNamespace(_workers=[types.SimpleNamespace(pid=number) for number in numbers])


def test_each_look_counts_since_the_one_before(monkeypatch):
    spent = iter([10.0, 10.75, 11.5])
    monkeypatch.setattr(cpu, "_waited_for_a_core", lambda number: 0.0)
    clocks = types.SimpleNamespace(
        perf_counter=iter([100.0, 101.0, 102.0]).__next__, process_time=iter([5.0, 5.25, 5.5]).__next__
    )
    monkeypatch.setattr(cpu, "time", clocks)
    worker = types.SimpleNamespace(cpu_times=lambda: types.SimpleNamespace(user=next(spent), system=0.0))
    monkeypatch.setattr("psutil.Process", lambda number: worker)
    found, workers = PrepareCpu(), source(1)
    found.look(workers)
    assert (found.share, found.loop_share) == (None, None)
    found.look(workers)
    found.look(workers)
    assert (found.share, found.loop_share, found.queued_share) == (0.75, 0.25, 0.0)


def test_waiting_for_a_core_counts_as_work_and_apart():
    found = PrepareCpu()
    found.add(0.5, 1.0, queued=0.25)
    assert (found.share, found.queued_share) == (0.75, 0.25)


def test_what_a_loop_without_workers_prepares_is_not_its_own_work(monkeypatch):
    monkeypatch.setattr(PrepareCpu, "loop_share", 0.75)
    times = LoopTimes(batch_size=1, workers=0)
    for _ in range(10):
        times.waits.add(0.06, 0.04)
        times.cpu.add(0.05, 0.06)
    assert times.finding().loop_cpu == pytest.approx(0.25)


def test_new_workers_begin_anew(monkeypatch):
    found = PrepareCpu()
    found.look(source(os.getpid()))
    found.look(source(os.getpid(), os.getpid()))
    assert found.share is None


def test_workers_that_have_ended_and_loaders_without_any_do_no_harm():
    found = PrepareCpu()
    for one in (source(2**22 + 1), source(), object()):
        found.look(one)
    assert found.share is None
    assert cpu._waited_for_a_core(2**22 + 1) == 0.0
