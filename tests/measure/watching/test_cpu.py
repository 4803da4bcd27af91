"""The CPU time of those who prepare batches, with a process that works and one that sleeps."""

from __future__ import annotations

import os
import types

from starvelab.measure.watching import cpu
from starvelab.measure.watching.cpu import PrepareCpu


def source(*numbers):
    return types.SimpleNamespace(_workers=[types.SimpleNamespace(pid=number) for number in numbers])


def test_each_look_counts_since_the_one_before(monkeypatch):
    spent = iter([10.0, 10.75, 11.5])
    monkeypatch.setattr(cpu, "_waited_for_a_core", lambda number: 0.0)
    monkeypatch.setattr(cpu, "time", types.SimpleNamespace(perf_counter=iter([100.0, 101.0, 102.0]).__next__))
    worker = types.SimpleNamespace(cpu_times=lambda: types.SimpleNamespace(user=next(spent), system=0.0))
    monkeypatch.setattr("psutil.Process", lambda number: worker)
    found = PrepareCpu()
    found.look(source(1))
    assert found.share is None
    found.look(source(1))
    found.look(source(1))
    assert found.share == 0.75


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
