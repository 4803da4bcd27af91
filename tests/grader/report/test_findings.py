"""What a graded class shows, worked out by hand."""

from __future__ import annotations

import pytest

from starvelab.prediction_file import Prediction
from starvelab_grader.batch.records import GradedSubmission
from starvelab_grader.report import findings
from starvelab_grader.report.charts import frontier_chart
from starvelab_grader.report.findings import (
    by_confidence,
    by_question,
    designs,
    distribution,
    for_a_person,
    items,
    mistakes,
)
from starvelab_grader.submissions import SubmissionWarning
from starvelab_grader.submissions.reference import ReferenceCell


def cell(name: str, points: float = 0.0) -> ReferenceCell:
    return ReferenceCell(
        name=name,
        cell_type="code",
        source="",
        released="",
        checksum="",
        locked=bool(points),
        grade=bool(points),
        solution=not points,
        points=points,
    )


CELLS = {
    "one": [cell("a"), cell("a-test", 4), cell("b"), cell("helper"), cell("b-test", 2)],
    "two": [cell("c"), cell("c-test", 1)],
}


def record(student: str, a: float, b: float, c: float, **more) -> GradedSubmission:
    grades = {"one": {"a-test": (a, False), "b-test": (b, False)}, "two": {"c-test": (c, False)}}
    usual = {"assignment": "x", "written": "", "at": "", "starvelab": ""}
    return GradedSubmission(
        student=student, nbgrader="", mode="", seconds=1.0, grades=grades, **usual, **more
    )


CLASS = [
    record("ada", 4, 2, 1),
    record("bob", 2, 0, 1, comments={"one": {"helper": "No response."}}),
    record("cem", 0, 0, 1),
    record("dee", 0, 1, 1, rejected=["two"]),
]


def test_difficulty_is_the_mean_share_and_counts_are_counts():
    a, b, c = items(CLASS, CELLS)
    assert (a.notebook, a.cell, a.points) == ("one", "a-test", 4)
    assert (a.difficulty, a.full, a.none, a.tried) == (pytest.approx((1 + 0.5 + 0 + 0) / 4), 1, 2, 4)
    assert (b.difficulty, b.full, b.none, b.tried) == (pytest.approx((1 + 0 + 0 + 0.5) / 4), 1, 1, 3)
    assert (c.tried, c.full) == (3, 4)


def test_discrimination_is_the_correlation_with_the_other_points():
    """Shares of a are 1, .5, 0, 0; the rest is 3, 1, 1, 2: r = 0.875 / sqrt(0.6875 * 2.75)."""
    a, _, c = items(CLASS, CELLS)
    assert a.discrimination == pytest.approx(0.875 / (0.6875 * 2.75) ** 0.5)
    assert c.discrimination is None, "all have the same"


def test_a_class_of_one_or_none_has_no_correlation():
    assert [one.discrimination for one in items(CLASS[:1], CELLS)] == [None] * 3
    assert [one.difficulty for one in items([], CELLS)] == [0.0] * 3


def test_answers_belong_to_the_test_that_follows():
    assert [findings.answers_to(CELLS["one"], test) for test in (CELLS["one"][1], CELLS["one"][4])] == [
        ["a"],
        ["b", "helper"],
    ]


def test_mistakes_are_counted_the_commonest_first():
    made = [
        record("ada", 0, 0, 0, mistakes={"one": {"a-test": ["bits", "sum"]}}),
        record("bob", 0, 0, 0, mistakes={"one": {"a-test": ["sum"]}}),
    ]
    assert [(one.cell, one.message, one.students) for one in mistakes(made)] == [
        ("a-test", "sum", 2),
        ("a-test", "bits", 1),
    ]


def test_on_the_frontier_is_whose_design_nobody_beats_in_both():
    made = [("ada", 40.0, 0.95), ("bob", 36.0, 0.91), ("cem", 50.0, 0.93), ("dee", 36.0, 0.9)]
    made.append(("eve", 60.0, 1.0))
    assert [(one.student, one.on_frontier) for one in designs(made)] == [
        ("bob", True),
        ("dee", False),
        ("ada", True),
        ("cem", False),
        ("eve", True),
    ]
    assert designs([]) == []
    figure = frontier_chart(designs(made))
    assert "3 of 5 designs are on the frontier: 36 USD at 91 %, 40 USD at 95 %" in figure._repr_html_()


def predicted(key: str, confidence: float | None, hit: bool | None) -> Prediction:
    shown = None if hit is None else "2026-11-21"
    return Prediction(key=key, answer="x", locked_at="", confidence=confidence, hit=hit, revealed_at=shown)


def test_calibration_takes_predictions_that_were_rated_and_shown():
    told = [
        predicted("a", 0.6, True),
        predicted("a", 0.7, False),
        predicted("b", 1.0, True),
        predicted("b", None, True),
        predicted("c", 0.5, None),
    ]
    questions = by_question(told)
    assert [(one.what, one.number) for one in questions] == [("a", 2), ("b", 1)]
    assert (questions[0].sure, questions[0].right) == (pytest.approx(0.65), 0.5)
    assert [(one.what, one.number, one.right) for one in by_confidence(told)] == [
        ("60% to 80%", 2, 0.5),
        ("80% to 100%", 1, 1.0),
    ]


def test_no_number_in_a_file_stops_the_report():
    told = [predicted("a", 1.5, True), predicted("a", -1, True), predicted("a", 1, True)]
    assert [(one.number, one.sure) for one in by_question(told)] == [(1, 1.0)]
    assert [one.number for one in by_confidence(told)] == [1]


def test_keys_that_a_student_made_up_do_not_fill_the_report():
    told = [predicted(f"k{at:04d}", 0.5, True) for at in range(1000)]
    told += [predicted("wall" * 1000, 0.5, True)] * 2
    questions = by_question(told)
    assert len(questions) == findings.MAX_QUESTIONS
    assert questions[-1].what == "wall" * 20


def test_the_distribution_counts_each_student_once():
    found = distribution(CLASS, CELLS, bins=7)
    assert (found.possible, found.mean, found.median) == (7, pytest.approx((7 + 3 + 1 + 2) / 4), 2.5)
    assert [(low, students) for low, _, students in found.bins] == [
        (0, 0), (1, 1), (2, 1), (3, 1), (4, 0), (5, 0), (6, 1),
    ]  # fmt: skip
    assert distribution([], CELLS) is None


def test_only_what_a_person_should_see_is_listed():
    warnings = {"one": [SubmissionWarning("copied"), SubmissionWarning("damaged", person=True)]}
    assert for_a_person([record("ada", 0, 0, 0, warnings=warnings)]) == [("ada", "one", "damaged")]
