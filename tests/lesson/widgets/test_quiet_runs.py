"""Whoever's measurement was disturbed may choose a recorded quiet run, which then is the answer."""

from __future__ import annotations

from datetime import date

import pytest

from starvelab import Q_
from starvelab.lesson.widgets import _reveal
from starvelab.lesson.widgets._reveal import QuietRun, QuietRunOffer, recorded_run
from starvelab.lesson.widgets.store import PredictionStore
from starvelab.widgets import predict, predictions, reveal
from tests.assignments import NOTEBOOKS, given

QUIET = QuietRun(value=104.0, unit="%", machine="2 physical cores, x86_64, Linux", date=date(2026, 11, 22))
ORIGIN = "Measured on a quiet machine (2 physical cores, x86_64, Linux) on 2026-11-22."


def offer(answer, quiet=QUIET) -> QuietRunOffer:
    predict("past-cores", answer, unit="%", between=(0, None))
    return QuietRunOffer(PredictionStore().read().predictions["past-cores"], quiet, PredictionStore())


@pytest.mark.parametrize(("answer", "hit", "word"), [(100, True, "Hit."), (150, False, "Miss.")])
def test_one_click_makes_the_recorded_run_the_answer(answer, hit, word):
    box = offer(answer)
    assert predictions()["past-cores"]["truth"] is None, "nothing is chosen for the learner"
    box.button.click()
    stored = predictions()["past-cores"]
    assert (stored["truth"], stored["hit"]) == (104.0, hit)
    assert word in box.message.value
    assert "The answer is 104.0 %." in box.message.value
    assert ORIGIN in box.message.value
    assert box.button.disabled


def test_an_answer_that_was_revealed_meanwhile_stays():
    box = offer(150)
    reveal("past-cores", 140)
    box.button.click()
    assert predictions()["past-cores"]["truth"] == 140
    assert "The cell now gives 104.0 %; the score card keeps the answer that" in box.message.value


def test_a_problem_is_shown_in_the_widget():
    box = offer(150, QuietRun(value=1.0, unit="GB", machine="m", date=QUIET.date))
    box.button.click()
    assert "must be convertible to %, got 1 GB" in box.message.value
    assert not box.button.disabled


def test_a_disturbed_measurement_comes_with_the_offer_and_a_quiet_one_without(shown, monkeypatch):
    monkeypatch.setattr(_reveal, "recorded_run", {"past-cores": QUIET}.get)
    predict("past-cores", 150, unit="%", between=(0, None))
    predict("other", 1)
    reveal("past-cores", 61, disturbed="other programs took 40 %", then=lambda: "the table")
    assert shown[1:] == ["[A recorded quiet run]", "the table"]
    reveal("other", 2, disturbed="other programs took 40 %")
    assert len(shown) == 4, "of this one no run was recorded"
    reveal("past-cores", 140)
    reveal("past-cores", 61, disturbed="other programs took 40 %")
    assert "[A recorded quiet run]" not in shown[4:]


def test_a_record_is_read_with_its_unit(tmp_path):
    record = tmp_path / "record.toml"
    record.write_text(
        '[a]\nvalue = 104.0\nunit = "%"\nmachine = "2 physical cores, x86_64, Linux"\ndate = 2026-11-22\n'
        '[b]\nvalue = 0.98\nunit = ""\nmachine = "m"\ndate = 2026-11-22\n'
    )
    assert recorded_run("a", record) == QUIET
    assert recorded_run("a", record).truth == Q_("104 %")
    assert recorded_run("b", record).truth == 0.98
    assert recorded_run("c", record) is None


# Nobody can record a run of what a learner brings.
OWN_DATASET = "my-repair"


def test_a_quiet_run_is_recorded_of_each_measurement_that_can_be_disturbed():
    asked = [(notebook, given(call)["key"]) for notebook in NOTEBOOKS for call in disturbed_in(notebook)]
    assert asked
    for notebook, key in asked:
        if key == OWN_DATASET:
            continue
        _, question = notebook.questions()[key]
        assert recorded_run(key).unit == question.get("unit", ""), (
            f"python -m benchmarks.quiet_runs for {key}"
        )


def disturbed_in(notebook):
    return [call for _, call in notebook.calls("reveal") if "disturbed" in {one.arg for one in call.keywords}]
