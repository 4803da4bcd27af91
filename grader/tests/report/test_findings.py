"""A graded class in numbers, calculated by hand."""

from dataclasses import replace

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from starvelab_grader.autograde.losses import NOT_INSTALLED
from starvelab_grader.batch.records import GradedSubmission
from starvelab_grader.report.findings import (
    distribution,
    items,
    missing_packages,
    mistakes,
    should_come,
    texts_by_exercise,
    to_look_at,
)
from starvelab_grader.submissions import SubmissionWarning
from starvelab_grader.submissions.reference import ReferenceCell, graded_by


def cell(name: str, points: float = 0.0, *, essay: bool = False) -> ReferenceCell:
    """An answer, or what is graded: a test or an essay."""
    graded, answer = bool(points), essay or not points
    return ReferenceCell(name, "code", "", "", "", not answer, graded, answer, points=points)


USUAL = dict.fromkeys(("assignment", "written", "at", "grader", "nbgrader", "mode"), "x")
CELLS = {
    "one": [cell("a"), cell("a-test", 4), cell("b"), cell("helper"), cell("b-test", 2)],
    "two": [cell("c"), cell("c-test", 1)],
}


def record(student: str, a: float = 0, b: float = 0, c: float = 0, **more) -> GradedSubmission:
    grades = {"one": {"a-test": (a, False), "b-test": (b, False)}, "two": {"c-test": (c, False)}}
    return GradedSubmission(student=student, seconds=1.0, grades=grades, **USUAL, **more)


CLASS = [
    record("ada", 4, 2, 1),
    record("bob", 2, 0, 1, comments={"one": {"helper": "No response."}}),
    record("cem", 0, 0, 1),
    record("dee", 0, 1, 1, rejected=["two"]),
]


def test_difficulty_is_the_mean_share_and_discrimination_the_correlation_with_the_other_points():
    """Shares of a are 1, .5, 0, 0; the rest is 3, 1, 1, 2: r = 0.875 / sqrt(0.6875 * 2.75)."""
    a, b, c = items(CLASS, CELLS)
    assert (a.notebook, a.cell, a.points) == ("one", "a-test", 4)
    assert (a.difficulty, a.full, a.none, a.tried) == (pytest.approx((1 + 0.5 + 0 + 0) / 4), 1, 2, 4)
    assert (b.difficulty, b.full, b.none, b.tried) == (pytest.approx((1 + 0 + 0 + 0.5) / 4), 1, 1, 3)
    assert (c.tried, c.full) == (3, 4)
    assert a.discrimination == pytest.approx(0.875 / (0.6875 * 2.75) ** 0.5)
    assert c.discrimination is None, "all have the same"
    assert [one.discrimination for one in items(CLASS[:1], CELLS)] == [None] * 3, "of one there is none"
    assert [one.difficulty for one in items([], CELLS)] == [0.0] * 3


def test_answers_behind_a_task_belong_to_it_unless_a_test_follows():
    def task(name):
        return replace(cell(name), solution=False, task=True, locked=True, points=1.0)

    words = replace(cell("words", essay=True), grade=True)  # an essay without points of its own
    cells = [cell("before"), task("plot"), cell("draw"), words, cell("more"), cell("essay", 1, essay=True)]
    cells += [task("fit"), cell("fitted"), cell("fitted-test", 1), task("last"), cell("end")]
    of_tasks = {"draw": "plot", "words": "plot", "more": "plot", "essay": "essay"}
    assert graded_by(cells) == of_tasks | {"fitted": "fitted-test", "end": "last"}


def test_mistakes_are_counted_the_commonest_first():
    made = [
        record(student, notes={"one": {"a-test": {"mistake": messages}}})
        for student, messages in (("ada", ["bits", "sum"]), ("bob", ["sum"]))
    ]
    expected = [("one", "a-test", "sum", ["ada", "bob"]), ("one", "a-test", "bits", ["ada"])]
    assert mistakes(made) == expected


def test_who_should_come_has_less_than_half_the_fewest_first():
    nothing = [("one", "a-test", []), ("one", "b-test", [])]
    expected = [("cem", 1, nothing), ("dee", 2, nothing[:1]), ("bob", 3, nothing[1:])]
    assert should_come(CLASS, CELLS) == expected
    eve = record("eve", c=1, notes={"one": {"b-test": {"mistake": ["That is the square."]}}})
    assert should_come([eve], CELLS)[0][2] == [nothing[0], ("one", "b-test", ["That is the square."])]


def test_the_distribution_counts_each_student_once():
    found = distribution(CLASS, CELLS, bins=7)
    assert (found.possible, found.mean, found.median) == (7, pytest.approx((7 + 3 + 1 + 2) / 4), 2.5)
    assert [(low, students) for low, _, students in found.bins] == [
        (0, 0), (1, 1), (2, 1), (3, 1), (4, 0), (5, 0), (6, 1),
    ]  # fmt: skip
    assert distribution([], CELLS) is None


def test_what_a_student_wrote_is_changed_answers_by_exercise_and_new_cells():
    written = {"a": "x", "helper": "y", "b": "z", "test": "t", "why": "w", "c": "stub "}
    named = [
        new_code_cell(source, metadata={"nbgrader": {"grade_id": name}}) for name, source in written.items()
    ]
    nb = new_notebook(cells=[*named, new_code_cell("own"), new_code_cell("shown to all")])
    reference = [cell("a"), cell("a-test", 1), cell("helper"), cell("b"), cell("test", 1)]
    reference += [cell("why", 1, essay=True), cell("c")]
    assert texts_by_exercise(nb, reference, {"stub", "shown to all"}, "own cells") == {
        "a-test": "x", "test": "y\nz", "why": "w", "own cells": "own",
    }  # fmt: skip


def remarked(student: str, *remarks: str, rejected=(), notebook="one") -> GradedSubmission:
    warnings = [SubmissionWarning("Nothing to do."), *(SubmissionWarning(text, True) for text in remarks)]
    more = {"warnings": {notebook: warnings}, "rejected": list(rejected)}
    return GradedSubmission(student, **more, **USUAL)


REMARKED = [
    remarked("ada"),
    remarked("bob", "Its text was not in UTF-8."),
    remarked("cem", "`one.ipynb` is empty.", rejected=["one"]),
    remarked("dee", "It is damaged.", "There are several files.", "It took long.", notebook="two"),
]


def test_each_student_has_one_line_the_worst_first():
    assert list(map(str, to_look_at(REMARKED))) == [
        "cem: ask again for one. one: `one.ipynb` is empty.",
        "dee: look into two. two: It is damaged. And 2 more.",
        "bob: look into one. one: Its text was not in UTF-8.",
    ]


def test_what_is_said_of_every_notebook_is_said_once():
    names = [f"{number:02}_x" for number in range(1, 21)]
    text = "`{}.ipynb` was not submitted, so its exercises earn no points."
    warnings = {name: [SubmissionWarning(text.format(name), True)] for name in names}
    warnings["01_x"].insert(0, SubmissionWarning("`all.rar` could not be unpacked.", True))
    (one,) = to_look_at([GradedSubmission("eve", warnings=warnings, rejected=names, **USUAL)])
    assert one.to_do == "ask again for 01_x and 19 more notebooks"
    assert one.remarks == (
        "01_x: `all.rar` could not be unpacked.",
        "01_x and 19 more notebooks: It was not submitted, so its exercises earn no points.",
    )


def test_what_the_grader_lacks_is_counted_the_commonest_first():
    lacks = {"pandas": ("ada", "bob", "cem"), "scipy": ("bob",), "numba": ("ada",)}
    students = [
        remarked(student, *(NOT_INSTALLED.format(name) for name, who in lacks.items() if student in who))
        for student in ("ada", "bob", "cem", "dee")
    ]
    assert list(missing_packages(students).items()) == [
        ("pandas", ["ada", "bob", "cem"]), ("numba", ["ada"]), ("scipy", ["bob"]),
    ]  # fmt: skip
