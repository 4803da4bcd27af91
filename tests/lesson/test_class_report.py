"""What the report of a class shows of the lab's own, worked out by hand."""

import pytest

from starvelab.lesson.calibration import by_confidence, draw_calibration
from starvelab.lesson.class_report import MAX_QUESTIONS, by_question
from starvelab.lesson.outcomes import Outcomes
from starvelab.prediction_file import Prediction


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
