"""Release, hand-in, autograde, feedback, export: right marks, nothing hidden shown, no script alive."""

from __future__ import annotations

import json

import pytest
from a_round import ALL, ASSIGNMENT, ESSAYS, MARKS, MISTAKEN, PREDICTIONS
from bs4 import BeautifulSoup

# The round counts for the first test that asks for it.
pytestmark = [pytest.mark.grading, pytest.mark.timeout(1200)]

STUDENTS = ["perfect", "perfect-without-predictions-file", "half", "blank", "honest-noise", *MISTAKEN]
NOTEBOOKS = sorted({one.notebook for one in ALL})
ON_ESSAYS = 10
BY_TEST = 90


# --- marks ------------------------------------------------------------------------------------------------


def test_the_round_changes_nothing_in_the_repository(finished):
    assert finished.files() == finished.before


def test_every_submission_is_graded_and_nothing_failed(finished):
    assert set(finished.expected) == set(STUDENTS)
    assert set(finished.exported()) == set(STUDENTS)
    for printed in finished.printed.values():
        assert "ERROR" not in printed
        assert "failed" not in printed


@pytest.mark.parametrize("student", STUDENTS)
def test_each_test_cell_gives_the_points_it_should(finished, student):
    assert finished.scores(student) == finished.expected[student]


@pytest.mark.parametrize("student", STUDENTS)
def test_the_exported_score_is_the_sum_of_what_was_earned(finished, student):
    row = finished.exported()[student]
    earned = sum(finished.expected[student].values()) + sum(MARKS.get(student, ()))
    assert float(row["score"]) == float(row["raw_score"]) == pytest.approx(earned)
    assert float(row["max_score"]) == BY_TEST + ON_ESSAYS


@pytest.mark.parametrize(
    ("student", "score"),
    [("perfect", 100), ("perfect-without-predictions-file", BY_TEST), ("blank", 0), ("honest-noise", 95.5)],
)
def test_the_scores_that_a_reader_can_check_by_heart(finished, student, score):
    assert float(finished.exported()[student]["score"]) == score


def test_the_half_that_was_solved_is_the_half_that_counts(finished):
    solved = [one for one in ALL[::2] if one.answer_id != "without-widgets"]
    half_of_the_predictions = 1.5
    expected = sum(one.points for one in solved) + half_of_the_predictions
    assert float(finished.exported()["half"]["score"]) == expected


def test_every_wrong_answer_was_handed_in_and_lost_its_points_and_only_those(finished):
    tried = [answer.source for wrong in finished.mistakes.values() for answer in wrong.values()]
    assert sorted(tried) == sorted(answer.source for one in ALL for answer in one.wrong)
    for student, wrong in finished.mistakes.items():
        scores = finished.scores(student)
        lost = {one.test_id: one.points - scores[one.test_id] for one in ALL}
        assert {test_id for test_id, points in lost.items() if points} == wrong.keys()
        assert 0 < len(wrong) < len(ALL)


# --- essays and predictions -------------------------------------------------------------------------------


def test_an_essay_waits_for_a_person_and_a_blank_one_does_not(finished):
    for essay in ESSAYS:
        assert finished.grades("perfect-without-predictions-file")[essay] == (None, None, True)
        assert finished.grades("blank")[essay] == (0, None, False)
        assert finished.grades("half")[essay] == (0, None, False)


def test_points_that_a_person_gave_count(finished):
    for student, marks in MARKS.items():
        for essay, points in zip(ESSAYS, marks, strict=True):
            assert finished.grades(student)[essay] == (None, points, False)


def test_predictions_that_were_locked_at_home_are_those_that_were_graded(finished):
    def at(step: str) -> dict:
        path = finished.course / step / "perfect" / ASSIGNMENT / "predictions.json"
        return json.loads(path.read_text(encoding="utf-8"))

    submitted, graded = at("submitted"), at("autograded")
    assert submitted.keys() == graded.keys() == PREDICTIONS.keys()
    for key, record in submitted.items():
        assert graded[key]["locked_at"] == record["locked_at"]
        assert graded[key]["answer"] == record["answer"] == PREDICTIONS[key]


def test_what_students_leave_beside_their_notebooks_shadows_no_module(finished):
    graded = finished.course / "autograded" / "honest-noise" / ASSIGNMENT
    assert (graded / "notes.txt").exists()
    assert not (graded / "math.py").exists()
    assert not (graded / "scratch.ipynb").exists()


# --- feedback ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(finished) -> dict[tuple[str, str], BeautifulSoup]:
    """Every feedback page, by student and notebook."""
    return {
        (student, notebook): BeautifulSoup(finished.page(student, notebook), "html.parser")
        for student in STUDENTS
        for notebook in NOTEBOOKS
    }


def test_no_page_shows_a_line_of_a_hidden_test(pages):
    for (student, notebook), page in pages.items():
        text = page.get_text()
        for one in ALL:
            if one.notebook == notebook:
                hidden = lines_of(one.full) - lines_of(one.visible)
                assert not [line for line in hidden if line in text], (student, one.name)


def lines_of(source: str) -> set[str]:
    return {line.strip() for line in source.splitlines()}


def test_a_page_shows_the_message_that_names_the_mistake(finished, pages):
    for (student, notebook), page in pages.items():
        text = page.get_text()
        for one in ALL:
            answer = finished.mistakes.get(student, {}).get(one.test_id)
            if one.notebook == notebook and answer is not None:
                message = answer.named or answer.named_by_hidden or ""
                assert message in text, (student, one.name)


def test_an_error_that_a_hidden_test_brings_out_is_shown_where_the_student_made_it(finished, pages):
    """The frame that shows the hidden test is left out, and the others stay."""
    fragile = next(
        answer for one in ALL for answer in one.wrong if "if max(speedups) < target" in answer.source
    )
    student = next(student for student, wrong in finished.mistakes.items() if fragile in wrong.values())
    text = pages[student, "05_worker_fix"].get_text()
    assert "ValueError: max() " in text
    assert "----> 3     if max(speedups) < target:" in text
    assert "workers_for(9, [])" not in text


def test_no_page_holds_a_live_script(pages):
    for (student, notebook), page in pages.items():
        where = f"{notebook} of {student}"
        for script in page.find_all("script"):
            assert "mathjax" in f"{script.get('src')} {script.get('type')}", where
            assert "alert" not in script.text, where
        assert not page.find_all(["iframe", "object", "embed", "svg", "form"]), where
        for tag in page.find_all(True):
            assert not [name for name in tag.attrs if name.startswith("on")], (where, tag)
            assert not str(tag.get("href", "")).lower().startswith(("javascript:", "data:")), (where, tag)


def test_a_page_shows_what_is_worth_reading_and_no_markup_as_text(pages):
    wall = pages["honest-noise", "03_cpu_wall"]
    text = wall.get_text()
    assert "The workers set the step." in text
    assert "Name the resource." in text
    assert "Score: 4.0 / 6.0" in text
    assert wall.find("table"), "tables are shown as tables"
    assert wall.find("details"), "hints stay folded"
    for markup in ("<table", "<img", "<details", "<div", "base64,"):
        assert markup not in text
