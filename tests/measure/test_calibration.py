"""A calibration measures one worker, and how several of them get in each other's way."""

from __future__ import annotations

import time

import numpy as np
import pytest

from starvelab import Q_, InputError, UnknownNameError
from starvelab.measure import (
    SimulatedClock,
    Transform,
    VirtualAccelerator,
    VirtualLink,
    VirtualStorage,
    calibrate,
    run,
)

from .scenes import CALIBRATION, pipeline


def test_a_worker_of_known_time_is_measured_as_such(tmp_path):
    def sleepy(raw):
        time.sleep(0.005)
        return np.zeros((3, 4, 4), np.uint8)

    pipe = pipeline(
        tmp_path, transforms=[Transform("sleepy", sleepy)], accelerator=VirtualAccelerator(step_time="1 s")
    )
    found = calibrate(pipe, seconds="0.3 s", contention=0.1, progress=False)
    # A sleep is never shorter than asked; how much longer is up to the machine.
    assert found.cpu_time >= Q_(5, "ms")
    assert found.stage_times["sleepy"] >= Q_(5, "ms")
    assert sum(t.m_as("ms") for t in found.stage_times.values()) == pytest.approx(
        found.cpu_time.m_as("ms"), rel=0.3
    )
    assert (found.loader, found.batch_size, found.transfer_size) == ("threads", 4, Q_(48, "B"))
    assert found.contention == 0.1


def test_devices_are_left_out_of_the_measuring(tmp_path):
    slow = VirtualStorage(bandwidth="1 B/s")  # a thousand seconds for each sample
    link = VirtualLink(bandwidth="1 B/s")
    pipe = pipeline(tmp_path, workers=0, storage=slow, link=link)
    found = calibrate(pipe, seconds="0.05 s", progress=False)
    assert found.cpu_time < Q_(1, "s")
    assert found.contention == 0  # the training loop is alone


def test_contention_is_taken_from_as_many_workers_as_there_are_cores(tmp_path, monkeypatch):
    from starvelab.measure import calibration

    asked = []

    def running(pipe, **options):
        asked.append(pipe.workers)
        fast = pipe.replace(accelerator=VirtualAccelerator(step_time="0.01 ms"))
        # One takes 4 ms a batch, four take 8 each: a speed-up of 2.
        return run(fast, clock=SimulatedClock({"decode": "1 ms" if pipe.workers == 1 else "2 ms"}))

    monkeypatch.setattr(calibration, "run", running)
    monkeypatch.setattr(calibration, "usable_cores", lambda physical: 4)
    found = calibrate(pipeline(tmp_path), progress=False)
    assert asked == [1, 4]
    # 4 / (1 + 3 c) = 2.
    assert found.contention == pytest.approx(1 / 3)
    assert found.cpu_time.m_as("ms") == pytest.approx(1)
    assert found.handover_time.m_as("ms") == pytest.approx(0, abs=1e-6)
    assert found.jitter == pytest.approx(0, abs=1e-9)


def test_what_is_given_is_checked_before_anything_runs(tmp_path):
    with pytest.raises(InputError, match="seconds needs a unit, got the bare int 2"):
        calibrate(pipeline(tmp_path), seconds=2)
    with pytest.raises(InputError, match="contention must be finite and not negative, got -1"):
        calibrate(pipeline(tmp_path), contention=-1)


def test_a_calibration_can_borrow_a_value():
    assert CALIBRATION.replace(contention=0.2).contention == 0.2
    with pytest.raises(UnknownNameError, match=r"A calibration has no field 'contension'\. Did you mean"):
        CALIBRATION.replace(contension=0.2)


def test_a_calibration_shows_its_values():
    assert repr(CALIBRATION).splitlines()[0] == "One worker (threads) prepares 1000 img/s."
    assert [row[0] for row in CALIBRATION.rows] == [
        "CPU time of a sample",
        "  read",
        "  blank",
        "handing over a batch of 4",
        "physical cores",
        "contention",
        "variation from batch to batch",
    ]
