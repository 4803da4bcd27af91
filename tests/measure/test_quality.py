"""How far a measurement can be trusted, and why not."""

from __future__ import annotations

import psutil
import pytest

from starvelab.measure import quality
from starvelab.measure.quality import LoadMeter, Quality, interval, variation


def test_a_quiet_steady_run_is_trusted():
    assert Quality(0.20, 0.25, 3).trustworthy
    assert Quality(0.0, 0.0, 10).reason == ""


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (Quality(0.21, 0.0, 5), "other programs used 21% of the cores"),
        (Quality(0.0, 0.26, 5), "the windows differ by 26%"),
        (Quality(0.0, 0.0, 2), "there were only 2 windows"),
        (Quality(0.5, 0.5, 5), "other programs used 50% of the cores and the windows differ by 50%"),
    ],
)
def test_each_doubt_is_said(made, reason):
    assert made.reason == reason
    assert not made.trustworthy


def test_an_interval_is_1_96_standard_errors_to_either_side():
    # Deviation 1, four values: 0.98 to either side... of 2, 3, 3, 4 it is 0.8165 / 2 x 1.96 = 0.8.
    assert interval([2, 3, 3, 4]) == pytest.approx((3 - 0.8002, 3 + 0.8002), rel=1e-4)
    assert interval([5]) == (5, 5)


def test_variation_is_deviation_over_mean():
    assert variation([1, 3]) == pytest.approx(2**0.5 / 2)
    assert variation([7]) == 0


class Counters:
    """Processor counters that a test sets: seconds that the cores were busy, and that we used."""

    def __init__(self, monkeypatch):
        self.wall, self.busy, self.ours = 0.0, 0.0, {1: 0.0}
        monkeypatch.setattr(quality.time, "monotonic", lambda: self.wall)
        monkeypatch.setattr(quality, "_busy", lambda process: self.busy)
        monkeypatch.setattr(quality, "_our_cores", lambda process: [0, 1])
        monkeypatch.setattr(LoadMeter, "_own", lambda meter: dict(self.ours))


@pytest.fixture
def counters(monkeypatch):
    return Counters(monkeypatch)


def test_background_load_is_what_others_use_of_our_cores(counters):
    meter = LoadMeter()
    counters.wall, counters.busy, counters.ours = 10.0, 14.0, {1: 8.0}
    # Of 20 core seconds 14 were busy, 8 of them with our work.
    assert meter.background_load() == pytest.approx(0.3)


def test_a_worker_that_started_meanwhile_counts_as_ours(counters):
    meter = LoadMeter()
    counters.wall, counters.busy, counters.ours = 10.0, 14.0, {1: 8.0, 2: 6.0}
    assert meter.background_load() == 0


def test_rounding_of_the_counters_makes_no_negative_load(counters):
    meter = LoadMeter()
    counters.wall, counters.busy, counters.ours = 1.0, 0.5, {1: 0.51}
    assert meter.background_load() == 0


def test_no_time_is_no_load(counters):
    assert LoadMeter().background_load() == 0


def test_the_real_counters_can_be_read():
    meter = LoadMeter()
    assert 0 <= meter.background_load() <= 1
    assert psutil.Process().pid in meter._own()


def test_a_worker_that_ended_meanwhile_is_left_out(monkeypatch):
    class Gone:
        pid = 7

        def cpu_times(self):
            raise psutil.NoSuchProcess(7)

    meter = LoadMeter()
    monkeypatch.setattr(meter.process.__class__, "children", lambda process, recursive: [Gone()])
    assert 7 not in meter._own()
