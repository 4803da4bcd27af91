"""Release, submission, autograde, feedback, export: right marks, nothing hidden shown, no script alive.

An author of notebooks adds nothing here: a round is made of the notebooks and of their wrong answers.
"""

import csv
import json
import os
import re

import pytest

from grader.tests.a_round import BLANK, WALKTHROUGH
from tests.assignments import ASSIGNMENTS
from tests.notebooks.ledger import TOTAL

# The round counts for the first test that asks for it.
pytestmark = [pytest.mark.long, pytest.mark.sandbox, pytest.mark.timeout(1200)]

each_round = pytest.mark.parametrize("finished", ASSIGNMENTS, indirect=True)
of_the_walkthrough = pytest.mark.parametrize("finished", [WALKTHROUGH], indirect=True)


@each_round
def test_each_test_cell_gives_the_points_it_should_and_nothing_fails_or_changes_the_repository(finished):
    grades = finished.grades()
    assert {name: grades[name][0] for name in finished.expected} == finished.expected
    with (finished.course / "grades.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert float(row["score"]) == pytest.approx(sum(finished.expected.values()))
    assert float(row["max_score"]) == TOTAL[finished.assignment]
    for printed in finished.printed.values():
        assert "ERROR" not in printed
        assert "failed" not in printed
    # In labs/ it has released the same bytes that stood there.
    assert finished.files() == finished.before


@of_the_walkthrough
def test_an_essay_waits_for_a_person_and_a_blank_one_does_not(finished):
    grades = finished.grades()
    assert (grades["explain-wall"], grades[BLANK]) == ((None, True), (0, False))


@each_round
def test_predictions_that_were_locked_at_home_are_those_that_were_graded(finished):
    submitted, graded = (
        json.loads((finished.folder(step) / "predictions.json").read_text(encoding="utf-8"))
        for step in ("submitted", "autograded")
    )
    asked = {key for notebook in finished.predicted for key in notebook.questions()}
    assert submitted.keys() == asked <= graded.keys()
    for key, record in submitted.items():
        assert graded[key]["locked_at"] == record["locked_at"]
        assert graded[key]["answer"] == record["answer"]


@pytest.mark.parametrize("finished", ["find-the-bottleneck"], indirect=True)
def test_no_pipeline_runs_live_while_grading(finished):
    assert "STARVELAB_CLOCK" not in os.environ
    for path in finished.folder("autograded").glob("*.ipynb"):
        printed = path.read_text(encoding="utf-8")
        assert not re.search(r"Running .* for about|Diagnosing .*: about", printed), path.name


@each_round
def test_a_page_shows_the_message_that_names_the_mistake_and_no_line_of_a_hidden_test(finished):
    assert len(finished.shown) == len(finished.notebooks)
    for one in finished.exercises:
        text = finished.shown[one.notebook]
        hidden = lines_of(one.full) - lines_of(one.visible)
        assert not [line for line in hidden if line in text], one.name
        if (answer := finished.mistakes.get(one.test_id)) is not None:
            assert (answer.named or answer.named_by_hidden or "") in text, one.name


def lines_of(source: str) -> set[str]:
    """Those that say anything: a closing bracket stands everywhere."""
    return {line.strip() for line in source.splitlines() if re.search(r"\w", line)}


@of_the_walkthrough
def test_an_error_that_a_hidden_test_brings_out_is_shown_where_the_student_made_it(finished):
    """The frame that shows the hidden check is left out, and the others stay."""
    text = finished.pages["05_worker_fix"].get_text()
    assert "ValueError: max() " in text
    assert "----> 4     if max(speedups) < target:" in text
    assert "workers_for(9, [])" not in text


@of_the_walkthrough
def test_no_page_holds_a_live_script(finished):
    assert finished.pages.keys() == {notebook.name for notebook in finished.notebooks}
    for notebook, page in finished.pages.items():
        for script in page.find_all("script"):
            assert "mathjax" in f"{script.get('src')} {script.get('type')}", notebook
            assert "alert" not in script.text, notebook
        assert not page.find_all(["iframe", "object", "embed", "svg", "form"]), notebook
        for tag in page.find_all(True):
            assert not [name for name in tag.attrs if name.startswith("on")], (notebook, tag)
            assert not str(tag.get("href", "")).lower().startswith(("javascript:", "data:")), (notebook, tag)


@of_the_walkthrough
def test_a_page_shows_what_is_worth_reading_and_no_markup_as_text(finished):
    wall = finished.pages["03_cpu_wall"]
    text = wall.get_text()
    assert "The workers set the step." in text
    assert finished.pages["05_worker_fix"].find("table"), "tables are shown as tables"
    assert wall.find("details"), "hints stay folded"
    for markup in ("<table", "<img", "<details", "<div", "base64,"):
        assert markup not in text
