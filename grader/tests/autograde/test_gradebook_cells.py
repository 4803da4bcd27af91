"""An assignment that changes while students have marks in it."""

import json

import pytest
from nbformat.v4 import new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from traitlets.config import Config

from starvelab_grader.autograde.definition import reference_cells, replace_assignment
from starvelab_grader.batch.gradebook import merge
from starvelab_grader.batch.records import GradedSubmission
from starvelab_grader.submissions.reading import restore

Cells = dict[str, dict[str, float]]
BEFORE: Cells = {"one": {"easy": 2, "hard": 5, "essay": 6}, "two": {"last": 3}}


@pytest.fixture
def gradebook(tmp_path):
    """Makes a gradebook of an assignment `lab`, by points of its cells."""
    opened = []

    def make(name: str, notebooks: Cells) -> Gradebook:
        book = Gradebook(f"sqlite:///{tmp_path / name}")
        opened.append(book)
        book.add_assignment("lab")
        for notebook, cells in notebooks.items():
            book.add_notebook(notebook, "lab", kernelspec="{}")
            for cell, most in cells.items():
                book.add_grade_cell(cell, notebook, "lab", max_score=most, cell_type="markdown")
                book.add_solution_cell(cell, notebook, "lab")
                book.add_source_cell(cell, notebook, "lab", source=f"{cell} {most}", cell_type="markdown")
        return book

    yield make
    for book in opened:
        book.close()


@pytest.fixture
def marked(gradebook):
    """One student, with points by test and by hand everywhere."""
    book = gradebook("marked.db", BEFORE)
    book.add_student("ada")
    book.add_submission("lab", "ada")
    for notebook, cells in BEFORE.items():
        for cell, most in cells.items():
            grade = book.find_grade(cell, notebook, "lab", "ada")
            grade.auto_score, grade.needs_manual_grade = most - 1, False
    book.find_grade("essay", "one", "lab", "ada").manual_score = 5
    book.find_comment("essay", "one", "lab", "ada").manual_comment = "Well said."
    book.db.commit()
    return book


def record(grades: dict[str, dict], **more: object) -> GradedSubmission:
    """Of Ada, who was graded with these points."""
    texts = dict.fromkeys(("written", "at", "grader", "nbgrader", "mode"), "")
    return GradedSubmission("ada", assignment="lab", seconds=1.0, grades=grades, **texts, **more)


def score(book: Gradebook) -> tuple[float, float]:
    book.db.expire_all()
    submission = book.find_submission("lab", "ada")
    return submission.score, submission.max_score


def test_what_stays_keeps_its_marks(marked, gradebook, tmp_path):
    assert score(marked) == (12, 16)
    replaced = replace_assignment(gradebook("new.db", BEFORE), marked, "lab", tmp_path / "dropped")
    assert score(marked) == (12, 16)
    assert (replaced.dropped, replaced.points, replaced.marks_file) == ([], {}, None)


def test_an_exercise_that_is_dropped_takes_its_marks_along_into_a_file(marked, gradebook, tmp_path):
    new = gradebook("new.db", {"one": {"easy": 2, "hard": 5}, "two": {"last": 3}})
    replaced = replace_assignment(new, marked, "lab", tmp_path / "dropped")
    assert score(marked) == (7, 10)
    assert replaced.dropped == ["one/essay"]
    assert json.loads(replaced.marks_file.read_text()) == [
        {"student": "ada", "notebook": "one", "cell": "essay", "manual_score": 5.0},
        {"student": "ada", "notebook": "one", "cell": "essay", "manual_comment": "Well said."},
    ]


def test_a_notebook_can_be_dropped_and_another_added(marked, gradebook, tmp_path):
    new = gradebook("new.db", {"one": BEFORE["one"], "three": {"new": 4}})
    replaced = replace_assignment(new, marked, "lab", tmp_path / "dropped")
    assert score(marked) == (10, 17)
    assert (replaced.dropped, replaced.marks_file) == (["two/last"], None)
    added = marked.find_grade("new", "three", "lab", "ada")
    assert (added.auto_score, added.needs_manual_grade) == (None, True)
    assert marked.find_comment("new", "three", "lab", "ada").manual_comment is None
    marked.add_student("bob")
    assert len(marked.add_submission("lab", "bob").notebooks) == 2


def test_other_points_and_no_points_at_all(marked, gradebook, tmp_path):
    """A mark by hand above the new maximum waits for its person; where nothing can be earned it goes."""
    new = gradebook("new.db", {"one": {"easy": 20, "hard": 5, "essay": 4}, "two": {"last": 3}})
    replaced = replace_assignment(new, marked, "lab", tmp_path / "dropped")
    assert replaced.points == {"one/easy": (2, 20), "one/essay": (6, 4)}
    assert replaced.to_mark_again == 1
    assert marked.find_grade("essay", "one", "lab", "ada").needs_manual_grade
    assert marked.find_source_cell("easy", "one", "lab").source == "easy 20"
    nothing = gradebook("nothing.db", {"one": {"easy": 20, "hard": 5, "essay": 0}, "two": {"last": 3}})
    replaced = replace_assignment(nothing, marked, "lab", tmp_path / "dropped")
    essay = marked.find_grade("essay", "one", "lab", "ada")
    assert (essay.manual_score, essay.needs_manual_grade) == (None, False)
    assert [one["manual_score"] for one in replaced.marks] == [5]
    merge(marked, record({"one": {"essay": (None, True), "hard": (4.0, False)}}), Config())
    assert not marked.find_grade("essay", "one", "lab", "ada").needs_manual_grade, "nobody has to mark it"


def test_a_mark_waits_again_only_for_another_notebook_of_its_own(marked):
    grades = {"one": {"essay": (None, True)}, "two": {"last": (1.0, False)}}
    for resubmitted, waits in (([], False), (["two"], False), (["one"], True)):
        merge(marked, record(grades, resubmitted=resubmitted), Config())
        essay = marked.find_grade("essay", "one", "lab", "ada")
        assert (essay.manual_score, essay.needs_manual_grade) == (5, waits)


def test_what_earns_points_in_a_task_is_no_part_of_what_students_have(gradebook):
    text = "Draw.\n\n### BEGIN MARK SCHEME\n- 1 point: a plot.\n### END MARK SCHEME"
    book = gradebook("task.db", {"one": {}})
    book.add_task_cell("draw", "one", "lab", max_score=3, cell_type="markdown")
    book.add_source_cell("draw", "one", "lab", source=text, cell_type="markdown", locked=True)
    (cell,) = reference_cells(book, "one", "lab")
    given_out = new_markdown_cell("Draw.", metadata={"nbgrader": {"grade_id": "draw"}})
    assert restore(new_notebook(cells=[given_out]), [cell]) == [], "nobody has changed it"
    assert cell.released.strip() == "Draw.", "which is what a feedback page shows"


def test_points_beside_a_test_wait_again_once_the_test_gives_others(marked):
    hard = marked.find_grade("hard", "one", "lab", "ada")
    hard.manual_score = 4.5
    for by_test, waits in ((4.0, False), (5.0, True)):  # a check that was mended
        merge(marked, record({"one": {"hard": (by_test, False)}}), Config())
        assert (hard.auto_score, hard.score, hard.needs_manual_grade) == (by_test, 4.5, waits)


def test_what_fails_half_way_changes_nothing(marked, gradebook, tmp_path, monkeypatch):
    monkeypatch.setattr("starvelab_grader.autograde.definition._replace_cells", lambda *_: 1 / 0)
    new = gradebook("new.db", {"one": {"easy": 1}})
    with pytest.raises(ZeroDivisionError):
        replace_assignment(new, marked, "lab", tmp_path / "dropped")
    assert score(marked) == (12, 16)
    assert len(marked.find_assignment("lab").notebooks) == 2
