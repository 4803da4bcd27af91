"""What the report of a class shows of the lab's own, worked out by hand."""

from types import SimpleNamespace

import pytest

from starvelab.lesson.calibration import by_confidence, draw_calibration
from starvelab.lesson.class_report import MAX_QUESTIONS, by_question, designs, frontier_chart, sections
from starvelab.lesson.outcomes import Outcomes
from starvelab.prediction_file import Prediction


def test_on_the_frontier_is_whose_design_nobody_beats_in_both():
    made = [("ada", 40.0, 0.95), ("bob", 36.0, 0.91), ("cem", 50.0, 0.93), ("dee", 36.0, 0.9)]
    made.append(("eve", 60.0, 1.0))
    assert [(one.student, one.on_frontier) for one in designs(made)] == [
        ("bob", True), ("dee", False), ("ada", True), ("cem", False), ("eve", True),
    ]  # fmt: skip
    assert designs([]) == []
    figure = frontier_chart(designs(made))
    assert "3 of 5 designs are on the frontier: 36 USD at 91 %, 40 USD at 95 %" in figure._repr_html_()


def predicted(key: str, confidence: float | None, hit: bool | None) -> Prediction:
    shown = None if hit is None else "2026-11-21"
    return Prediction(key=key, answer="x", locked_at="", confidence=confidence, hit=hit, revealed_at=shown)


def test_calibration_takes_predictions_that_were_rated_and_shown():
    told = [
        predicted("a", 0.6, True), predicted("a", 0.7, False), predicted("b", 1.0, True),
        predicted("b", None, True), predicted("c", 0.5, None),
    ]  # fmt: skip
    picture = draw_calibration(by_confidence(Outcomes(tuple(told)).rated))
    assert "60 % to 80 % sure: 50 % of 2 came true; 80 % to 100 % sure: 100 % of 1 came true" in picture
    questions = by_question(told)
    assert [(one.what, one.number) for one in questions] == [("a", 2), ("b", 1)]
    assert (questions[0].sure, questions[0].right) == (pytest.approx(0.65), 0.5)
    assert [(one.what, one.number, one.right) for one in by_confidence(Outcomes(tuple(told)).rated)] == [
        ("60 % to 80 %", 2, 0.5),
        ("80 % to 100 %", 1, 1.0),
    ]


def test_no_number_in_a_file_stops_the_report_and_no_keys_fill_it():
    told = [predicted("a", 1.5, True), predicted("a", -1, True), predicted("a", 1, True)]
    assert [(one.number, one.sure) for one in by_question(told)] == [(1, 1.0)]
    assert [one.number for one in by_confidence(Outcomes(tuple(told)).rated)] == [1]
    made_up = [predicted(f"k{at:04d}", 0.5, True) for at in range(1000)]
    questions = by_question([*made_up, *[predicted("wall" * 1000, 0.5, True)] * 2])
    assert (len(questions), questions[-1].what) == (MAX_QUESTIONS, "wall" * 20)


def test_designs_are_what_the_checks_noted_last(tmp_path):
    notes = {"two": {"my-design-test": {"design": [[50.0, 0.5], [36.0, 0.95]]}, "x-test": {"mistake": ["x"]}}}
    *_, section = sections([SimpleNamespace(name="Ada L", folder=tmp_path, notes=notes)])
    assert (section["name"], section["rows"]) == ("designs", [["Ada L", 36.0, 0.95, "yes"]])
    assert "1 of 1 designs are on the frontier" in section["figure"]
