"""The models turn a calibration into a forecast, which a measurement is compared with."""

from __future__ import annotations

from math import inf

import pytest

from starvelab import InputError
from starvelab.measure import (
    CudaDevice,
    SimulatedClock,
    VirtualAccelerator,
    VirtualLink,
    VirtualStorage,
    compare,
    predict,
    run,
)

from .scenes import CALIBRATION, pipeline


def ms(forecast):
    """Time between batches of 4 by the model and by the simulation [ms]."""
    return tuple(4e3 / each.throughput.m_as("img/s") for each in (forecast, forecast.simulated))


def test_two_workers_on_two_cores_halve_the_time(tmp_path):
    # (4 + 0.4) / 2, far above a step of 0.1 ms.
    pipe = pipeline(tmp_path, accelerator=VirtualAccelerator(step_time="0.1 ms"))
    forecast = predict(CALIBRATION, pipe)
    assert ms(forecast) == pytest.approx((2.2, 2.2))
    assert forecast.bottleneck == "CPU"
    assert forecast.utilization + forecast.stall == pytest.approx(1)
    # No faster with more workers than cores.
    assert ms(predict(CALIBRATION, pipe.replace(workers=8))) == pytest.approx((2.2, 2.2))


def test_contention_costs_the_second_worker(tmp_path):
    pipe = pipeline(tmp_path, accelerator=VirtualAccelerator(step_time="0.1 ms"))
    # Two reach 2 / 1.5 times the rate of one: 4.4 x 1.5 / 2.
    forecast = predict(CALIBRATION.replace(contention=0.5), pipe)
    assert forecast.simulated.throughput.m_as("img/s") == pytest.approx(4e3 / 3.3)
    assert ms(forecast)[0] == pytest.approx(3.3)


def test_an_accelerator_that_binds_sets_the_forecast(tmp_path):
    forecast = predict(CALIBRATION, pipeline(tmp_path, accelerator=VirtualAccelerator(step_time="5 ms")))
    assert ms(forecast) == pytest.approx((5, 5))
    assert forecast.utilization == pytest.approx(1)
    assert forecast.summary == "800 img/s predicted: the accelerator binds."


def test_a_larger_batch_takes_longer_to_hand_over(tmp_path):
    pipe = pipeline(tmp_path, batch_size=8, accelerator=VirtualAccelerator(step_time="0.1 ms"))
    assert 8e3 / predict(CALIBRATION, pipe).throughput.m_as("img/s") == pytest.approx((8 + 0.8) / 2)


def test_latency_keeps_a_worker(tmp_path):
    slow = VirtualStorage(bandwidth="10 GB/s", latency="3 ms")
    pipe = pipeline(tmp_path, storage=slow, accelerator=VirtualAccelerator(step_time="0.1 ms"))
    # (4 + 0.4 + 4 x 3) / 2.
    assert ms(predict(CALIBRATION, pipe)) == pytest.approx((8.2, 8.2), rel=1e-3)


def test_a_storage_that_binds_sets_the_forecast(tmp_path):
    # Four of 1000 bytes in 40 ms; eight workers leave it no pause.
    slow = VirtualStorage(bandwidth="100 KB/s")
    pipe = pipeline(tmp_path, storage=slow, workers=8)
    assert ms(predict(CALIBRATION, pipe)) == pytest.approx((40, 40), rel=1e-3)


def test_memory_that_serves_three_of_four_reads_takes_a_quarter_of_the_storages_time(tmp_path):
    # As above, 10 ms instead of 40; which reads they are is left to chance in the simulation.
    slow = VirtualStorage(bandwidth="100 KB/s", cached_fraction=0.75)
    pipe = pipeline(tmp_path, storage=slow, workers=8, accelerator=VirtualAccelerator(step_time="0.1 ms"))
    rates, simulated = ms(predict(CALIBRATION, pipe))
    assert rates == pytest.approx(10, rel=1e-3)
    assert simulated == pytest.approx(10, rel=0.05)


@pytest.mark.parametrize(
    ("overlapped", "in_flight", "period"), [(True, 2, 40), (False, 2, 45), (True, 1, 45), (True, inf, 40)]
)
def test_a_copy_runs_beside_the_step_or_adds_to_it(tmp_path, overlapped, in_flight, period):
    pipe = pipeline(
        tmp_path,
        link=VirtualLink(bandwidth="4.8 KB/s", overlapped=overlapped),  # 4 x 48 bytes in 40 ms
        accelerator=VirtualAccelerator(step_time="5 ms", in_flight=in_flight),
    )
    assert ms(predict(CALIBRATION, pipe)) == pytest.approx((period, period), rel=1e-3)


@pytest.mark.parametrize(("in_flight", "period"), [(1, 9.4), (2, 5)])
def test_a_loop_that_prepares_itself_waits_or_not(tmp_path, in_flight, period):
    accelerator = VirtualAccelerator(step_time="5 ms", in_flight=in_flight)
    forecast = predict(CALIBRATION, pipeline(tmp_path, workers=0, accelerator=accelerator))
    assert ms(forecast) == pytest.approx((period, period))


def test_a_forecast_needs_the_time_of_a_step(tmp_path):
    with pytest.raises(InputError) as caught:
        predict(CALIBRATION, pipeline(tmp_path, accelerator=CudaDevice()))
    assert str(caught.value) == (
        "A model needs the time of a step, got CudaDevice(precision='amp', in_flight=2, "
        "overlapped=True, device=0). Measure it, and pass accelerator=VirtualAccelerator(step_time=...)."
    )


def test_a_measurement_and_a_forecast_stand_side_by_side(tmp_path):
    pipe = pipeline(tmp_path, accelerator=VirtualAccelerator(step_time="5 ms"))
    record = run(pipe, clock=SimulatedClock({"decode": "5 ms"}))  # 10 ms a batch
    found = compare(record, predict(CALIBRATION, pipe))
    assert found.error == pytest.approx(1)
    assert found.simulated_error == pytest.approx(1)
    assert found.summary == "400 img/s measured, 800 img/s predicted (+100.0%)."
    assert [row[0] for row in found.rows] == ["throughput", "off by", "accelerator busy", "accelerator waits"]
    assert found.rows[2][1:] == ["50.0 %", "100.0 %", "100.0 %"]
    assert "measured" in repr(found)
    assert "simulation" in predict(CALIBRATION, pipe)._repr_html_()
