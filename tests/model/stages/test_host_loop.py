"""The loop's own time: the accelerator idles in it."""

from __future__ import annotations

import pytest

from starvelab import Accelerator, InputError, Pipeline

LOOP = Pipeline(
    hardware=Accelerator(rate="1000 img/s", host_time="1 ms"), batch_size=4, workers="100000 img/s"
)


def test_1_ms_of_the_loop_beside_4_ms_of_work_leaves_the_accelerator_busy_80_percent():
    step = LOOP.solve()
    assert step.step_time.m_as("ms") == pytest.approx(5)
    assert step.utilization == pytest.approx(0.8)
    assert step.stage_times["host time"].m_as("ms") == pytest.approx(1)
    said = "In each step the training loop takes 1 ms, so the accelerator is busy 80.0 % of it."
    assert said in LOOP.explain()
    # Work of the accelerator itself still counts as busy.
    assert LOOP.solve({"hardware.host_time": None, "hardware.step_overhead": "1 ms"}).utilization == 1


def test_the_loop_takes_no_negative_time():
    with pytest.raises(
        InputError, match=r"^Accelerator.host_time must be finite and not negative, got -1 ms\."
    ):
        LOOP.replace({"hardware.host_time": "-1 ms"})
