"""What a graded class shows, worked out by hand."""

from __future__ import annotations

import pytest

from starvelab_grader.batch.records import GradedSubmission
from starvelab_grader.report import findings
from starvelab_grader.report.findings import (
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
    usual = {"assignment": "x", "written": "", "at": "", "grader": ""}
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
    assert findings.graded_by(CELLS["one"]) == {"a": "a-test", "b": "b-test", "helper": "b-test"}


def test_mistakes_are_counted_the_commonest_first():
    made = [
        record("ada", 0, 0, 0, notes={"one": {"a-test": {"mistake": ["bits", "sum"]}}}),
        record("bob", 0, 0, 0, notes={"one": {"a-test": {"mistake": ["sum"]}}}),
    ]
    assert mistakes(made) == [(2, "one", "a-test", "sum"), (1, "one", "a-test", "bits")]


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
