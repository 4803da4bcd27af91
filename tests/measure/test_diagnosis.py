"""A diagnosis names the part that costs most, and says when it is not sure."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import Q_, Pipeline
from starvelab.measure import PARTS, SimulatedClock, Transform, diagnose, diagnosis, disturbance
from starvelab.measure.devices import VirtualAccelerator, VirtualLink, VirtualStorage
from starvelab.measure.diagnosis import _conclude, climb_ladder
from starvelab.measure.ladder import CACHED, Ladder
from starvelab.measure.quality import Quality
from starvelab.measure.setup import setup_of

from .patience import patiently
from .scenes import described, pipeline

pytestmark = pytest.mark.programs

# Steps a second that an article measured on an A10G (batches of 256, four workers); docs of `diagnose`.
ARTICLE = {
    "nothing": "0.89 / s", "raw sample": "1.72 / s", "processed sample": "3.23 / s", "host batch": "3.33 / s",
    "device batch": "3.45 / s",
}  # fmt: skip
ENDS = {"nothing": "100 ms", "device batch": "30 ms"}


def ladder(*levels, rounds=8, noise=0.0, load=0.0, spread=0.0, rungs=None):
    """Periods around those levels [ms], half of them above and half below."""
    sign = np.resize([1.0, -1.0], rounds)
    blocks = tuple(level + noise * sign for level in levels)
    return Ladder(rungs or tuple(range(len(levels))), blocks, Quality(load, spread, rounds), 8.0)


def found(*levels, **options):
    return _conclude(ladder(*levels, **options), "measured")


def test_the_article_s_table_names_reading_before_decoding_and_transforming():
    finding = diagnose(ARTICLE)
    assert (finding.bottleneck, finding.runner_up) == ("read", "decode + transform")
    # 1/0.89 - 1/1.72 and 1/1.72 - 1/3.23 of a second.
    assert finding.evidence["read"].m_as("ms") == pytest.approx(542.2, abs=0.05)
    assert finding.evidence["decode + transform"].m_as("ms") == pytest.approx(271.8, abs=0.05)
    assert finding.stall == pytest.approx(1 - 0.89 / 3.45)
    assert finding.verdict == "highly input-bound"
    assert finding.confident
    assert finding.source == "manual"


def test_times_and_rates_say_the_same():
    times = {name: Q_(1e3 / float(rate.split()[0]), "ms") for name, rate in ARTICLE.items()}
    assert diagnose(times).evidence["read"].m_as("ms") == pytest.approx(
        diagnose(ARTICLE).evidence["read"].m_as("ms")
    )
    assert diagnose(ENDS).bottleneck == "read + decode + transform + collate + copy"


@given(st.lists(st.floats(0, 1e3), min_size=6, max_size=6))
def test_whatever_was_measured_the_largest_drop_is_named(times):
    periods = np.sort(times)[::-1] + 1.0
    finding = diagnose({name: Q_(float(ms), "ms") for name, ms in zip(CACHED, periods, strict=True)})
    drops = periods[:-1] - periods[1:]
    assert 0 <= finding.stall <= 1
    if finding.stall >= 0.05:
        assert finding.evidence[finding.bottleneck].m_as("ms") == pytest.approx(drops.max())
    else:
        assert finding.bottleneck == "compute"
    assert list(finding.evidence) == list(PARTS)
    total = sum(ms.m_as("ms") for ms in finding.evidence.values())
    assert total == pytest.approx(periods[0])


@pytest.mark.parametrize(("levels", "options", "verdict", "bottleneck", "runner_up"), [
    ((100, 95, 50, 30, 30, 28), {}, "highly input-bound", "decode", "transform"),
    ((31, 30, 30, 30, 30, 30), {}, "not input-bound", "compute", "read"),
    ((32, 30, 30, 30, 30, 30), {}, "moderately input-bound", "read", ""),
    ((37, 30, 30, 30, 30, 30), {}, "moderately input-bound", "read", ""),
    ((38, 30, 30, 30, 30, 30), {}, "highly input-bound", "read", ""),
    # A runner-up within the noise is none; a rung that came out slower counts as nothing.
    ((100, 40, 39, 30, 30, 30), {"noise": 3.0}, "highly input-bound", "read", "transform"),
    ((100, 32, 31, 30, 30, 30), {"noise": 3.0}, "highly input-bound", "read", ""),
    ((100, 104, 40, 30, 30, 30), {}, "highly input-bound", "decode", "transform"),
])  # fmt: skip
def test_the_bottleneck_is_the_largest_drop_and_computing_under_five_per_cent(
    levels, options, verdict, bottleneck, runner_up
):
    finding = found(*levels, **options)
    assert (finding.verdict, finding.bottleneck, finding.runner_up) == (verdict, bottleneck, runner_up)
    assert min(finding.evidence.values()) >= Q_(0, "ms")


TIE = "read and decode cost the same within the noise"
LOAD = "other programs used 40 % of the cores"
FEW = "only {} rounds fitted into 8 s, so give it a longer budget or smaller batches"
CLEAR, LEADING = (630, 40, 30, 30, 30, 30), (100, 40, 30, 30, 30, 30)


@pytest.mark.parametrize(("levels", "options", "reason"), [
    # A tie counts within the noise, and where something starves.
    ((100, 70, 40, 30, 30, 30), {"noise": 3.0}, TIE),
    ((100, 69, 40, 30, 30, 30), {"noise": 0.1}, ""),
    (LEADING, {"noise": 3.0}, ""),
    ((31, 30.5, 30, 30, 30, 30), {"noise": 1.0}, ""),
    # Few rounds count unless a part leads many times, or nothing starves in any of them.
    (LEADING, {"rounds": 3}, FEW.format(3)),
    (LEADING, {"rounds": 4}, ""),
    (CLEAR, {"rounds": 2}, ""),
    (CLEAR, {"rounds": 2, "noise": 4.0, "spread": 0.5}, ""),  # its standard error is not small
    ((30.5, 30, 30, 30, 30, 30), {"rounds": 2}, ""),
    ((31, 30, 30, 30, 30, 30), {"rounds": 2, "noise": 1.0}, f"there were only 2 windows; {FEW.format(2)}"),
    # A busy core slows the workers, so that an accelerator seems to starve that would not alone. Alone,
    # CLEAR would read for 630 x 0.6 / 2 ms at least, which is still far more than a step takes.
    (LEADING, {"load": 0.4}, LOAD),
    ((45, 31, 30, 30, 30, 30), {"load": 0.4}, LOAD),
    (CLEAR, {"load": 0.4}, ""),
    # With so little left of the cores, transforming might lead if it were alone.
    ((630, 80, 80, 30, 30, 30), {"load": 0.85}, "other programs used 85 % of the cores"),
    ((100, 70, 40, 30, 30, 30), {"noise": 3.0, "rounds": 2, "spread": 0.5},
     f"the windows differ by 50 % and there were only 2 windows; {FEW.format(2)}; {TIE}"),
])  # fmt: skip
def test_each_doubt_is_said_and_no_other(levels, options, reason):
    finding = found(*levels, **options)
    assert finding.reason == reason
    assert finding.confident == (not reason)
    assert finding.summary.endswith(f" Not certain: {reason}." if reason else ".")
    # A tie, and few rounds, are no disturbance: the finding stays evidence.
    assert disturbance(finding) == (reason if "other programs" in reason else "")


def test_a_lead_of_many_times_needs_few_rounds():
    uneven = ladder(630, 40, 30, 30, 30, 30, rounds=2)
    uneven.periods[0][:] = 400, 860
    assert _conclude(uneven, "measured").confident
    # Where one of its rounds brought nothing, two are too few.
    uneven.periods[0][:] = 45, 1215
    assert _conclude(uneven, "measured").reason.startswith(
        "there were only 2 windows; only 2 rounds fitted into 8 s, so give it a longer budget or smaller"
    )
    assert _conclude(ladder(100, 70, 40, 30, 30, 30, rounds=2), "simulated").confident


def test_an_outlier_moves_a_median_little():
    climbed = ladder(100, 40, 30, 30, 30, 30)
    climbed.periods[5][0] = 900
    assert _conclude(climbed, "measured").stall == pytest.approx(0.7)


def test_rungs_that_are_left_out_join_their_parts():
    finding = found(100, 60, 30, 30, rungs=(0, 3, 4, 5))
    assert list(finding.evidence) == ["read + decode + transform", "collate", "copy", "compute"]


def test_the_error_of_a_median_is_that_of_its_deviation():
    # Median deviation 2, eight blocks: 1.25 x 1.48 x 2 / sqrt(8).
    assert ladder(50, noise=2.0).errors[0] == pytest.approx(1.308, abs=1e-3)
    assert ladder(50, noise=2.0).medians[0] == 50


def test_levers_are_those_of_the_bottleneck(tmp_path):
    assert all("decode" in lever.parts for lever in found(100, 95, 50, 30, 30, 28).levers)
    together = found(100, 60, 30, 30, rungs=(0, 3, 4, 5)).levers
    assert len(set(together)) == len(together)
    assert {part for lever in together[:3] for part in lever.parts} >= {"read", "decode", "transform"}
    assert "threads instead of processes" in {lever.name for lever in found(*[100] * 4, 30, 30).levers}
    threads = _conclude(ladder(*[100] * 4, 30, 30), "measured", pipeline(tmp_path))
    assert "threads instead of processes" not in {lever.name for lever in threads.levers}


def test_a_finding_shows_its_evidence():
    finding = found(100, 95, 50, 30, 30, 28)
    assert finding.summary == (
        "The GPU waits 72.0 % of the time: highly input-bound. The largest step of the ladder is "
        "decode, which adds 45 ms to each batch; next comes transform."
    )
    assert finding.note.startswith("To try: ")
    assert repr(finding).endswith(finding.note)
    assert [row[0] for row in finding.rows] == list(PARTS)
    assert [row[-2] for row in finding.rows] == list(CACHED)
    assert "costs" not in finding.headers, "nothing is known of them"
    assert "decode" in repr(finding)
    assert "<table><caption>The GPU waits 72.0 %" in finding._repr_html_()
    said = "not input-bound. It computes for 30 ms of each batch, and nothing starves it."
    assert said in found(31, 30, 30, 30, 30, 30).summary


def test_costs_stand_beside_what_is_added_and_say_which_part_costs_most():
    pipe = described(batch_size=32, workers=2, device=VirtualAccelerator(0.05))
    clock = SimulatedClock({"read": "1 ms", "decode": "4 ms", "transform": "5 ms"})
    finding = climb_ladder(pipe, clock=clock)
    # Two workers share 32 images, and the accelerator hides 50 ms of what the transforms cost.
    assert {part: cost.m_as("ms") for part, cost in finding.costs.items()} == pytest.approx(
        {"read": 16, "decode": 64, "transform": 80}
    )
    assert (finding.bottleneck, finding.stage) == ("decode", "")
    assert finding.summary.endswith(
        " The part that costs most is transform: 80 ms of a batch, which the GPU hides in part."
    )
    assert [row[1] for row in finding.rows][3:] == ["", "", ""], "nothing is known of these"


@pytest.mark.parametrize(("costs", "step", "saved"), [
    # Decoding adds most, 64 of 160 ms, and the transforms save most.
    ({"read": 1, "decode": 4, "transform": 5}, 50, {"read": 16, "decode": 64, "transform": 80}),
    # Once the accelerator binds, no repair saves more.
    ({"read": 1, "decode": 4, "transform": 5}, 100, {"read": 16, "decode": 60, "transform": 60}),
    ({"decode": 4, "transform": 5}, 200, {}),
])  # fmt: skip
def test_a_part_that_is_repaired_alone_saves_what_it_costs_until_the_accelerator_binds(costs, step, saved):
    pipe = described(batch_size=32, workers=2, device=VirtualAccelerator(step / 1000))
    finding = climb_ladder(pipe, clock=SimulatedClock({part: f"{ms} ms" for part, ms in costs.items()}))
    assert {part: time.m_as("ms") for part, time in finding.repaired_alone.items()} == pytest.approx(saved)
    assert {row[0]: row[2] for row in finding.rows if row[2]} == finding.repaired_alone
    # What the ladder says of a part that is repaired alone is what happens.
    for part, time in finding.repaired_alone.items():
        without = SimulatedClock({other: f"{ms} ms" for other, ms in costs.items() if other != part})
        faster = climb_ladder(pipe, clock=without).periods["nothing"]
        assert (finding.periods["nothing"] - faster).m_as("ms") == pytest.approx(time.m_as("ms"))


BEHIND_A_DRIVE = Pipeline(hardware="30 ms", batch_size=32, workers=2, storage="10 MB/s")


def test_where_a_shared_drive_binds_no_repair_of_the_workers_is_promised():
    pipe = setup_of(BEHIND_A_DRIVE, needs_samples=False)
    finding = climb_ladder(pipe, clock=SimulatedClock({"decode": "4 ms"}, sample_size="100 KB"))
    assert (finding.repaired_alone, finding.bottleneck) == ({}, "read")


def test_the_accelerator_hides_no_more_than_it_computes():
    # Reading costs 27.6 ms and shows 1 ms, beside an accelerator of 6 ms: that cannot be what hides the rest.
    finding = replace(
        found(50, 49, 20, 10, 8, 6), costs={"read": Q_("27.6 ms"), "decode": Q_("25 ms")}, bottleneck="decode"
    )
    assert finding.summary.endswith(
        " The part that costs most is read: 27.6 ms of a batch, of which the ladder shows 1 ms."
    )


def test_a_simulated_storage_is_no_cost_of_the_clock():
    pipe = setup_of(BEHIND_A_DRIVE, needs_samples=False)
    clock = SimulatedClock({"read": "1 ms", "decode": "4 ms"}, sample_size="100 KB")
    assert list(climb_ladder(pipe, clock=clock).costs) == ["decode"]


def test_the_stage_that_costs_most_is_called_by_its_own_name():
    def same(value):
        return value

    pipe = described(
        batch_size=4,
        workers=2,
        transforms=[Transform("open", same, part="decode"), Transform("ask", same), Transform("crop", same)],
    )
    seconds = {"read": 0.001, "open": 0.002, "ask": 0.012, "crop": 0.001, "collate": 0.0005}
    finding = _conclude(replace(ladder(60, 58, 54, 20, 20, 10), stage_seconds=seconds), "measured", pipe)
    assert (finding.bottleneck, finding.stage) == ("transform", "ask")
    assert finding.costs["transform"].m_as("ms") == pytest.approx(13 * 4 / 2)
    assert " Most of it is 'ask'." in finding.summary


@pytest.mark.parametrize(("part", "changes"), [
    ("read", {"kind": "processes", "workers": 1, "storage": VirtualStorage(1e09, latency=0.01)}),
    pytest.param(
        "copy", {"kind": "torch", "link": VirtualLink(6400)},  # 30 ms for a batch
        marks=pytest.mark.needs("torch"),
    ),
    ("compute", {"device": VirtualAccelerator(0.04)}),
])  # fmt: skip
def test_a_slow_part_of_a_live_pipeline_is_found(tmp_path, nothing_stays, part, changes):
    pipe = pipeline(tmp_path, **changes)
    finding = patiently(
        lambda: climb_ladder(pipe, budget="1 s", progress=False), lambda found: found.bottleneck == part
    )
    assert (finding.bottleneck, finding.source) == (part, "measured")
    assert finding.verdict == ("not input-bound" if part == "compute" else "highly input-bound")


def test_a_budget_grows_only_where_none_is_given(tmp_path, monkeypatch, capsys):
    asked = []

    def profiled(pipe, *, seconds, longest, **rest):
        asked.append((seconds, longest))
        return ladder(100, 40, 30, 30, 30, 30)

    monkeypatch.setattr(diagnosis, "profile", profiled)
    climb_ladder(pipeline(tmp_path))
    climb_ladder(pipeline(tmp_path), budget="2 s")
    assert asked == [(8.0, 60.0), (2.0, 2.0)]
    assert (ladder(630, 40, 30).clear, ladder(31, 30, 20).clear) == (True, False)
    first, second = capsys.readouterr().out.splitlines()
    said = "Diagnosing tiny images with 2 workers (threads): about "
    assert (first, second) == (f"{said}8 s, up to 60 s if it is slow.", f"{said}2 s.")
