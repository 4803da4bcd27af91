"""A disturbed run is repeated once, the calmer one counts, and what disturbed it is said."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from starvelab import Q_
from starvelab.measure import undisturbed as runs
from starvelab.measure.quality import Quality

QUIET, BUSY, BUSIER = Quality(0.0, 0.01, 8), Quality(0.4, 0.01, 8), Quality(0.6, 0.01, 8)


@dataclass
class Measured:
    """What the module reads of a measurement."""

    quality: Quality
    throughput: object = Q_("200 img/s")
    interval: tuple = (Q_("190 img/s"), Q_("210 img/s"))


def test_the_first_reason_is_said_and_quiet_runs_have_none():
    assert runs.disturbance(Measured(QUIET), Measured(QUIET)) == ""
    assert runs.disturbance(Measured(QUIET), Measured(BUSY)) == "other programs used 40% of the cores"


@pytest.mark.parametrize(
    ("made", "kept", "said"),
    [
        ([QUIET], QUIET, ""),
        ([BUSY, QUIET], QUIET, "Something disturbed that run, so it runs once more.\n"),
        ([BUSY, BUSIER], BUSY, "Something disturbed that run, so it runs once more.\n"),
    ],
)
def test_a_disturbed_run_is_repeated_once(monkeypatch, capsys, made, kept, said):
    left = [Measured(quality) for quality in made]
    monkeypatch.setattr(runs, "run", lambda pipe, seconds: left.pop(0))
    assert runs.run_undisturbed("pipe").quality is kept
    assert left == []
    assert capsys.readouterr().out == said


def test_a_row_compares_with_the_base_and_says_what_disturbed_it():
    base = Measured(QUIET, Q_("100 img/s"))
    assert runs.comparison_row("two", Measured(BUSY), base) == [
        "two",
        Q_("200 img/s"),
        "190 to 210",
        "2.00x",
        "other programs used 40% of the cores",
    ]
