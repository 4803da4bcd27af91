"""The CPU time of those who prepare batches, with a process that works and one that sleeps."""

from __future__ import annotations

import os
import types

import pytest

from starvelab.jobs import usage
from starvelab.jobs.recorder import Recorder
from starvelab.jobs.usage import ProcessUse


def source(*numbers):
    return types.SimpleNamespace(_workers=[types.SimpleNamespace(pid=number) for number in numbers])


def test_each_look_counts_since_the_one_before(monkeypatch):
    spent = iter([10.0, 10.75, 11.5])
    monkeypatch.setattr(usage, "_waited_for_a_core", lambda numbers: 0.0)
    clocks = types.SimpleNamespace(
        perf_counter=iter([100.0, 101.0, 102.0]).__next__, process_time=iter([5.0, 5.25, 5.5]).__next__
    )
    monkeypatch.setattr(usage, "time", clocks)
    memory = iter([3_000_000, 5_000_000, 4_000_000])
    worker = types.SimpleNamespace(
        cpu_times=lambda: types.SimpleNamespace(user=next(spent), system=0.0),
        memory_info=lambda: types.SimpleNamespace(rss=next(memory)),
    )
    monkeypatch.setattr("psutil.Process", lambda number: worker)
    found, workers = ProcessUse(), source(1)
    found.look(workers)
    assert (found.share, found.loop_share) == (None, None)
    found.look(workers)
    found.look(workers)
    assert (found.share, found.loop_share, found.queued_share) == (0.75, 0.25, 0.0)
    assert found.memory == 5_000_000


def test_waiting_for_a_core_counts_as_work_and_apart():
    found = ProcessUse()
    found.add(0.5, 1.0, queued=0.25)
    assert (found.share, found.queued_share) == (0.75, 0.25)


def test_what_a_loop_without_workers_prepares_is_not_its_own_work(monkeypatch):
    monkeypatch.setattr(ProcessUse, "loop_share", 0.75)
    times = Recorder(batch_size=1, workers=0)
    times.replay(None, [0.06] * 10, [0.04] * 10)
    times.use.add(0.5, 0.6)
    assert times.finding().loop_cpu == pytest.approx(0.25)


def test_new_workers_begin_anew(monkeypatch):
    found = ProcessUse()
    found.look(source(os.getpid()))
    found.look(source(os.getpid(), os.getpid()))
    assert found.share is None


def test_workers_that_have_ended_and_loaders_without_any_do_no_harm():
    found = ProcessUse()
    for one in (source(2**22 + 1), source(), object()):
        found.look(one)
    assert found.share is None
    assert usage._waited_for_a_core((2**22 + 1,)) is None
