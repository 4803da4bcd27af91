"""A calibration takes the measure of a worker, and the models turn it into a forecast."""

from __future__ import annotations

import json
import time
from math import inf

import numpy as np
import pytest

from starvelab import Q_, InputError, UnknownNameError
from starvelab.measure import (
    Calibration,
    CudaAccelerator,
    SimulatedClock,
    Transform,
    VirtualAccelerator,
    VirtualLink,
    VirtualStorage,
    calibrate,
    compare,
    predict,
    run,
)

from .scenes import pipeline

# 1 ms a sample, 4 ms a batch of 4.
MADE = Calibration(
    loader="threads", batch_size=4, cpu_time=Q_(1, "ms"), handover_time=Q_(0.4, "ms"),
    stage_times={"read": Q_(0.2, "ms"), "blank": Q_(0.8, "ms")}, sent_size=Q_(48, "B"), cores=2,
    contention=0.0, jitter=0.0, machine={"cores": 2},
)  # fmt: skip


def ms(forecast):
    """Time between batches of 4 by the model and by the simulation [ms]."""
    return tuple(4e3 / each.throughput.m_as("img/s") for each in (forecast, forecast.simulated))


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
    assert (found.loader, found.batch_size, found.sent_size) == ("threads", 4, Q_(48, "B"))
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
        fast = pipe.but(accelerator=VirtualAccelerator(step_time="0.01 ms"))
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


def test_a_calibration_comes_back_as_it_was(tmp_path):
    MADE.save(tmp_path / "calibration.json")
    assert Calibration.load(tmp_path / "calibration.json") == MADE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "A calibration is a JSON file, and "),
        ('{"format": "starvelab record 1"}', "A calibration begins with the format "),
        ('{"format": "starvelab calibration 1"}', " is a damaged calibration: "),
    ],
)
def test_another_or_a_damaged_file_is_refused(tmp_path, text, said):
    file = tmp_path / "calibration.json"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        Calibration.load(file)
    assert said in str(caught.value)


def test_a_damaged_figure_is_refused(tmp_path):
    MADE.save(tmp_path / "calibration.json")
    content = json.loads((tmp_path / "calibration.json").read_text())
    content["cpu_time"]["unit"] = "bananas"
    (tmp_path / "calibration.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"is a damaged calibration: .*bananas is unknown"):
        Calibration.load(tmp_path / "calibration.json")


def test_a_calibration_can_borrow_a_figure():
    assert MADE.but(contention=0.2).contention == 0.2
    with pytest.raises(UnknownNameError, match=r"A calibration has no field 'contension'\. Did you mean"):
        MADE.but(contension=0.2)


def test_a_calibration_shows_its_figures():
    assert repr(MADE).splitlines()[0] == "One worker (threads) prepares 1000 img/s."
    assert [row[0] for row in MADE.rows] == [
        "CPU time of a sample",
        "  read",
        "  blank",
        "handing over a batch of 4",
        "physical cores",
        "contention",
        "variation from batch to batch",
    ]


def test_two_workers_on_two_cores_halve_the_time(tmp_path):
    # (4 + 0.4) / 2, far above a step of 0.1 ms.
    pipe = pipeline(tmp_path, accelerator=VirtualAccelerator(step_time="0.1 ms"))
    forecast = predict(MADE, pipe)
    assert ms(forecast) == pytest.approx((2.2, 2.2))
    assert forecast.binding == "CPU"
    assert forecast.utilization + forecast.stall == pytest.approx(1)
    # No faster with more workers than cores.
    assert ms(predict(MADE, pipe.but(workers=8))) == pytest.approx((2.2, 2.2))


def test_contention_costs_the_second_worker(tmp_path):
    pipe = pipeline(tmp_path, accelerator=VirtualAccelerator(step_time="0.1 ms"))
    # Two reach 2 / 1.5 times the rate of one: 4.4 x 1.5 / 2.
    forecast = predict(MADE.but(contention=0.5), pipe)
    assert forecast.simulated.throughput.m_as("img/s") == pytest.approx(4e3 / 3.3)
    assert ms(forecast)[0] == pytest.approx(3.3)


def test_an_accelerator_that_binds_sets_the_forecast(tmp_path):
    forecast = predict(MADE, pipeline(tmp_path, accelerator=VirtualAccelerator(step_time="5 ms")))
    assert ms(forecast) == pytest.approx((5, 5))
    assert forecast.utilization == pytest.approx(1)
    assert forecast.summary == "800 img/s predicted: the accelerator binds."


def test_a_larger_batch_takes_longer_to_hand_over(tmp_path):
    pipe = pipeline(tmp_path, batch_size=8, accelerator=VirtualAccelerator(step_time="0.1 ms"))
    assert 8e3 / predict(MADE, pipe).throughput.m_as("img/s") == pytest.approx((8 + 0.8) / 2)


def test_latency_keeps_a_worker(tmp_path):
    slow = VirtualStorage(bandwidth="10 GB/s", latency="3 ms")
    pipe = pipeline(tmp_path, storage=slow, accelerator=VirtualAccelerator(step_time="0.1 ms"))
    # (4 + 0.4 + 4 x 3) / 2.
    assert ms(predict(MADE, pipe)) == pytest.approx((8.2, 8.2), rel=1e-3)


def test_a_storage_that_binds_sets_the_forecast(tmp_path):
    # Four of 1000 bytes in 40 ms; eight workers leave it no pause.
    slow = VirtualStorage(bandwidth="100 KB/s")
    pipe = pipeline(tmp_path, storage=slow, workers=8)
    assert ms(predict(MADE, pipe)) == pytest.approx((40, 40), rel=1e-3)


@pytest.mark.parametrize(
    ("overlapped", "in_flight", "period"), [(True, 2, 40), (False, 2, 45), (True, 1, 45), (True, inf, 40)]
)
def test_a_copy_runs_beside_the_step_or_adds_to_it(tmp_path, overlapped, in_flight, period):
    pipe = pipeline(
        tmp_path,
        link=VirtualLink(bandwidth="4.8 KB/s", overlapped=overlapped),  # 4 x 48 bytes in 40 ms
        accelerator=VirtualAccelerator(step_time="5 ms", in_flight=in_flight),
    )
    assert ms(predict(MADE, pipe)) == pytest.approx((period, period), rel=1e-3)


@pytest.mark.parametrize(("in_flight", "period"), [(1, 9.4), (2, 5)])
def test_a_loop_that_prepares_itself_waits_or_not(tmp_path, in_flight, period):
    accelerator = VirtualAccelerator(step_time="5 ms", in_flight=in_flight)
    forecast = predict(MADE, pipeline(tmp_path, workers=0, accelerator=accelerator))
    assert ms(forecast) == pytest.approx((period, period))


def test_a_forecast_needs_the_time_of_a_step(tmp_path):
    with pytest.raises(InputError) as caught:
        predict(MADE, pipeline(tmp_path, accelerator=CudaAccelerator()))
    assert str(caught.value) == (
        "predict needs the time of a step, got CudaAccelerator. "
        "Measure it, and pass a VirtualAccelerator with that step_time."
    )


def test_a_measurement_and_a_forecast_stand_side_by_side(tmp_path):
    pipe = pipeline(tmp_path, accelerator=VirtualAccelerator(step_time="5 ms"))
    record = run(pipe, clock=SimulatedClock({"decode": "5 ms"}))  # 10 ms a batch
    found = compare(record, predict(MADE, pipe))
    assert found.error == pytest.approx(1)
    assert found.simulated_error == pytest.approx(1)
    assert found.summary == "400 img/s measured, 800 img/s predicted (+100.0%)."
    assert [row[0] for row in found.rows] == ["throughput", "off by", "accelerator busy", "accelerator waits"]
    assert found.rows[2][1:] == ["50.0 %", "100.0 %", "100.0 %"]
    assert "measured" in repr(found)
    assert "simulation" in predict(MADE, pipe)._repr_html_()
