"""Release, submission, autograde, feedback, export: right marks, nothing hidden shown, no script alive.

An author of notebooks adds nothing here: a round is made of the notebooks and of their wrong answers.
"""

from __future__ import annotations

import json
import os
import re

import pytest

from tests.assignments import ASSIGNMENTS, TOTAL
from tests.grader.a_round import BLANK, ESSAYS, MISTAKEN, NOISY, PREDICTED, STUDENTS, WALKTHROUGH

# The round counts for the first test that asks for it.
pytestmark = [
    pytest.mark.grading,
    pytest.mark.timeout(1200),
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"),  # of nbgrader's own queries
]

each_round = pytest.mark.parametrize("finished", ASSIGNMENTS, indirect=True)
each_submission = pytest.mark.parametrize(
    ("finished", "student"),
    [(assignment, student) for assignment in ASSIGNMENTS for student in STUDENTS[assignment]],
    indirect=["finished"],
)
of_the_walkthrough = pytest.mark.parametrize("finished", [WALKTHROUGH], indirect=True)


# --- marks ------------------------------------------------------------------------------------------------


@each_round
def test_the_round_changes_nothing_in_the_repository(finished):
    assert finished.files() == finished.before


@each_round
def test_every_submission_is_graded_and_nothing_failed(finished):
    students = set(STUDENTS[finished.assignment])
    assert set(finished.expected) == students
    assert set(finished.exported()) == students
    for printed in finished.printed.values():
        assert "ERROR" not in printed
        assert "failed" not in printed


@each_submission
def test_each_test_cell_gives_the_points_it_should(finished, student):
    assert finished.scores(student) == finished.expected[student]


@each_submission
def test_the_exported_score_is_the_sum_of_what_was_earned(finished, student):
    row = finished.exported()[student]
    earned = sum(finished.expected[student].values()) + sum(finished.marks.get(student, {}).values())
    assert float(row["score"]) == float(row["raw_score"]) == pytest.approx(earned)


@of_the_walkthrough
def test_the_most_that_can_be_earned_is_the_total(finished):
    essays = sum(points for _, points in finished.essays.values())
    assert sum(finished.scores(NOISY).values()) + essays == TOTAL[WALKTHROUGH]
    assert {float(row["max_score"]) for row in finished.exported().values()} == {TOTAL[WALKTHROUGH]}


# --- essays and predictions -------------------------------------------------------------------------------


@of_the_walkthrough
def test_an_essay_waits_for_a_person_and_a_blank_one_does_not(finished):
    grades = finished.grades(MISTAKEN)
    assert {name: grades[name] for name in ESSAYS} == {
        name: (0, None, False) if name == BLANK else (None, None, True) for name in ESSAYS
    }


@each_round
def test_points_that_a_person_gave_count(finished):
    for student, marks in finished.marks.items():
        for essay, points in marks.items():
            assert finished.grades(student)[essay] == (None, points, False)


@each_round
def test_predictions_that_were_locked_at_home_are_those_that_were_graded(finished):
    def at(step: str) -> dict:
        student = PREDICTED[finished.assignment]
        path = finished.course / step / student / finished.assignment / "predictions.json"
        return json.loads(path.read_text(encoding="utf-8"))

    submitted, graded = at("submitted"), at("autograded")
    asked = {key for notebook in finished.notebooks for key in notebook.questions()}
    assert submitted.keys() == graded.keys() == asked
    for key, record in submitted.items():
        assert graded[key]["locked_at"] == record["locked_at"]
        assert graded[key]["answer"] == record["answer"]


@of_the_walkthrough
def test_what_students_leave_beside_their_notebooks_shadows_no_module(finished):
    graded = finished.course / "autograded" / NOISY / WALKTHROUGH
    assert (graded / "notes.txt").exists()
    assert not (graded / "math.py").exists()
    assert not (graded / "scratch.ipynb").exists()


@pytest.mark.parametrize("finished", ["find-the-bottleneck"], indirect=True)
def test_no_pipeline_runs_live_while_grading(finished):
    for path in (finished.course / "autograded" / MISTAKEN / finished.assignment).glob("*.ipynb"):
        printed = path.read_text(encoding="utf-8")
        assert "STARVELAB_CLOCK" not in os.environ
        assert not re.search(r"Running .* for about|Diagnosing .*: about", printed), path.name


# --- feedback ---------------------------------------------------------------------------------------------


@each_round
def test_no_page_shows_a_line_of_a_hidden_test(finished):
    for (student, notebook), page in finished.pages.items():
        text = page.get_text()
        for one in finished.exercises:
            if one.notebook == notebook:
                hidden = lines_of(one.full) - lines_of(one.visible)
                assert not [line for line in hidden if line in text], (student, one.name)


def lines_of(source: str) -> set[str]:
    """Those that say anything: a closing bracket stands everywhere."""
    return {line.strip() for line in source.splitlines() if re.search(r"\w", line)}


@each_round
def test_a_page_shows_the_message_that_names_the_mistake(finished):
    for (student, notebook), page in finished.pages.items():
        text = page.get_text()
        for one in finished.exercises:
            answer = finished.mistakes.get(one.test_id)
            if student == MISTAKEN and one.notebook == notebook and answer is not None:
                message = answer.named or answer.named_by_hidden or ""
                assert message in text, (student, one.name)


@of_the_walkthrough
def test_an_error_that_a_hidden_test_brings_out_is_shown_where_the_student_made_it(finished):
    """The frame that shows the hidden check is left out, and the others stay."""
    text = finished.pages[MISTAKEN, "05_worker_fix"].get_text()
    assert "ValueError: max() " in text
    assert "----> 4     if max(speedups) < target:" in text
    assert "workers_for(9, [])" not in text


@each_round
def test_no_page_holds_a_live_script(finished):
    for (student, notebook), page in finished.pages.items():
        where = f"{notebook} of {student}"
        for script in page.find_all("script"):
            assert "mathjax" in f"{script.get('src')} {script.get('type')}", where
            assert "alert" not in script.text, where
        assert not page.find_all(["iframe", "object", "embed", "svg", "form"]), where
        for tag in page.find_all(True):
            assert not [name for name in tag.attrs if name.startswith("on")], (where, tag)
            assert not str(tag.get("href", "")).lower().startswith(("javascript:", "data:")), (where, tag)


@of_the_walkthrough
def test_a_page_shows_what_is_worth_reading_and_no_markup_as_text(finished):
    wall = finished.pages[NOISY, "03_cpu_wall"]
    text = wall.get_text()
    assert "The workers set the step." in text
    assert "Name the resource." in text
    assert "Score: 4.0 / 6.0" in text
    assert finished.pages[NOISY, "05_worker_fix"].find("table"), "tables are shown as tables"
    assert wall.find("details"), "hints stay folded"
    for markup in ("<table", "<img", "<details", "<div", "base64,"):
        assert markup not in text
