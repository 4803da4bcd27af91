"""A measurement shows its values, and how far they can be trusted."""

import dataclasses

import psutil
import pytest

from starvelab import Q_
from starvelab.measure import SimulatedClock, comparison_row, disturbance
from starvelab.measure.devices import VirtualAccelerator
from starvelab.measure.quality import LoadMeter, Quality
from starvelab.measure.session import run
from tests.measure.scenes import described

MEASURED = run(
    described(device=VirtualAccelerator(0.064)), clock=SimulatedClock({"decode": "5 ms", "transform": "3 ms"})
)


def test_a_measurement_shows_its_values():
    assert repr(MEASURED).splitlines() == [
        "250 img/s simulated (threads loader, 2 workers), the GPU is busy 50.0 %.",
        "quantity                           value",
        "----------------------  ----------------",
        "throughput                     250 img/s",
        "95 % interval           250 to 250 img/s",
        "time between batches              128 ms",
        "GPU busy                          50.0 %",
        "GPU waits                         50.0 %",
        "loop waits in next()              75.0 %",
        "decode, each sample                 5 ms",
        "transform, each sample              3 ms",
    ]
    assert MEASURED._repr_html_().count("<tr>") == 9
    assert (MEASURED.period, MEASURED.step_time) == (Q_(128, "ms"), Q_(64, "ms"))
    assert MEASURED.loader == "threads loader, 2 workers"
    assert MEASURED.source == MEASURED.trace.source == "simulated"


def test_a_row_compares_with_the_base_and_says_what_disturbed_it():
    assert disturbance(MEASURED, MEASURED) == ""
    said = "other programs used 40 % of the cores"
    interval = (Q_("190 img/s"), Q_("210 img/s"))
    seen = dataclasses.replace(
        MEASURED, quality=Quality(0.4, 0.0, 9), throughput=Q_("500 img/s"), interval=interval
    )
    assert seen.summary.endswith(f" Not to be trusted: {said}.")
    assert comparison_row("two", seen, MEASURED) == ["two", Q_("500 img/s"), "190 to 210", "2.00x"]
    assert disturbance(MEASURED, seen) == said


@pytest.mark.parametrize(("made", "reason"), [
    (Quality(0.20, 0.25, 3), ""),
    (Quality(0.21, 0.0, 5), "other programs used 21 % of the cores"),
    (Quality(0.0, 0.26, 5), "the windows differ by 26 %"),
    (Quality(0.0, 0.0, 2), "there were only 2 windows"),
    (Quality(0.5, 0.5, 5), "other programs used 50 % of the cores and the windows differ by 50 %"),
])  # fmt: skip
def test_each_doubt_is_said(made, reason):
    assert made.reason == reason


@pytest.mark.parametrize(("wall", "busy", "ours", "load"), [
    # Of 20 core seconds 14 were busy, 8 of them with our work.
    (10.0, 14.0, {1: 8.0}, 0.3),
    # A worker that started meanwhile counts as ours.
    (10.0, 14.0, {1: 8.0, 2: 6.0}, 0),
    # Rounding of the counters makes no negative load, and no time is none.
    (1.0, 0.5, {1: 0.51}, 0),
    (0.0, 0.0, {1: 0.0}, 0),
])  # fmt: skip
def test_background_load_is_what_others_use_of_our_cores(monkeypatch, wall, busy, ours, load):
    counters = iter([(0.0, 0.0, {1: 0.0}), (wall, busy, ours)])
    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda process: [0, 1], raising=False)
    monkeypatch.setattr(LoadMeter, "_counters", lambda meter: next(counters))
    assert LoadMeter().background_load() == pytest.approx(load)


def test_the_real_counters_can_be_read():
    meter = LoadMeter()
    assert 0 <= meter.background_load() <= 1
    assert psutil.Process().pid in meter._counters()[2]


def test_a_worker_that_ended_meanwhile_is_left_out(monkeypatch):
    class Gone:
        pid = 7

        def cpu_times(self):
            raise psutil.NoSuchProcess(7)

    meter = LoadMeter()
    monkeypatch.setattr(meter.process.__class__, "children", lambda process, recursive: [Gone()])
    assert 7 not in meter._counters()[2]
