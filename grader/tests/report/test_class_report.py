"""The report of a class: tables that can be counted, pictures that can be read aloud, nothing alive."""

import csv
import json
import re
import shutil
from contextlib import suppress

import nbformat
import pytest
from bs4 import BeautifulSoup
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_notebook

from grader.tests.a_course import TINY, Course
from grader.tests.in_process import run_here
from starvelab_grader.autograde.execution import MODES
from starvelab_grader.autograde.task import GradingResult
from starvelab_grader.batch.gradebook import Marks
from starvelab_grader.commands.grade import GradeApp
from starvelab_grader.lms.collecting import collect_download
from starvelab_grader.report import class_report
from starvelab_grader.report.pages import PageJob, make_pages
from starvelab_grader.submissions.reading import UnreadableNotebookError, read_notebook, restore
from starvelab_grader.submissions.reference import GradedNotebook

pytestmark = pytest.mark.usefixtures("one_sandbox")
TABLES = [
    "calibration", "distribution", "graded", "items", "look_at", "mistakes", "questions", "same",
    "should_come",
]  # fmt: skip


def locked(key: str, confidence: float, hit: bool) -> dict:
    moment = "2026-11-21T12:00:00+00:00"
    fields = {"key": key, "answer": "x", "locked_at": moment, "revealed_at": moment}
    return fields | {"confidence": confidence, "hit": hit}


@pytest.fixture(scope="module")
def reported(released_course, tmp_path_factory):
    """A class of four, and where its report stands."""
    course = released_course.copy(tmp_path_factory.mktemp("reported"))
    remark = "  # what a strange exercise, my neighbour and me needed an hour, and coffee, to see it\n"
    copied = "def double(x):\n    return x ** 2" + remark * 6
    predictions = json.dumps({"wall": locked("wall", 0.9, True), "drive": locked("drive", 0.9, False)})
    course.hand_in("ada", course.solved() | {"predictions.json": predictions})
    course.hand_in("bob", course.solved(double=copied + "# Script, alert 1: script."))
    course.hand_in("=cmd", course.solved(double=copied + "\n# <script>alert(1)</script>"))
    course.hand_in("dee", {"one.ipynb": "<html>"})
    course.printed = run_here(course, GradeApp(), TINY, "--report").stdout
    return course, course.folder / "course" / "report" / TINY


def table(reported, name: str) -> list[dict[str, str]]:
    with (reported[1] / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_command_says_where_it_is_and_who_needs_a_person(reported):
    assert f"The report: {reported[1] / 'report.html'}" in reported[0].printed
    line = "dee: ask again for one, two. one: `one.ipynb` is a web page"
    assert f"A person should look at these, the worst first:\n  {line}" in reported[0].printed
    assert sorted(path.stem for path in reported[1].glob("*.csv")) == TABLES


def test_each_table_counts_what_the_class_did(reported):
    double, *_ = table(reported, "items")
    assert (double["exercise"], double["points"], double["tried"]) == ("One: double", "2.0", "3")
    assert (double["all points"], double["none"], double["difficulty"]) == ("1", "2", "0.25")
    assert float(double["discrimination"]) == pytest.approx(1 / 3, abs=1e-3)
    (mistake,) = table(reported, "mistakes")
    assert list(mistake.values()) == ["2", "50 %", "one", "One: double", "That is the square."]
    assert table(reported, "calibration") == [
        {"confidence": "80 % to 100 %", "predictions": "2", "sure on average": "0.9", "came true": "0.5"}
    ]
    assert [row["prediction"] for row in table(reported, "questions")] == ["drive", "wall"]
    graded = table(reported, "graded")
    assert [row["points by test"] for row in graded] == ["4.0", "6.0", "4.0", "0"]
    assert {row["mode"] for row in graded} == {"sandboxed", "not run"}


def test_who_needs_a_person_and_who_wrote_the_same_is_listed(reported):
    (odd,) = table(reported, "look_at")
    assert (odd["student"], odd["what to do"]) == ("dee", "ask again for one, two")
    # All three have submitted the same second notebook, of right answers.
    (pair,) = table(reported, "same")
    assert (pair["students"], pair["where"]) == ("'=cmd, bob", "one.ipynb"), "no formula"
    assert "my neighbour and me needed an hour" in pair["how it begins"]
    (lost,) = table(reported, "should_come")
    assert (lost["student"], lost["points by test"]) == ("dee", "0.0")
    assert lost["what to talk about"].startswith("One: double; One: halve; ")


def test_the_page_can_be_read_by_anybody_and_runs_nothing(reported):
    page = BeautifulSoup((reported[1] / "report.html").read_text(encoding="utf-8"), "html.parser")
    assert not page.find_all(["script", "iframe", "form"])
    assert page.find("meta", attrs={"name": "viewport"})
    assert page.html["lang"] == "en"
    points, exercises, of_the_lab = page.find_all("svg")
    for one in (points, exercises, of_the_lab):
        assert one["role"] == "img"
        assert one.find_parent("figure").find("figcaption").text
        assert one.find_next("table"), "the same as a table"
    assert points["aria-label"].startswith("Histogram of the points of 4 students in 10 classes. Mean 3.5, ")
    assert "Hardest: One: double (25 % of the points)." in exercises["aria-label"]
    assert len(points.find_all("rect")) == 10
    # The legend has a bar and a mark as well.
    assert [len(exercises.find_all(class_=name)) for name in ("bar", "mark")] == [4, 4]
    assert of_the_lab.find("desc").text == "80 % to 100 % sure: 50 % of 2 came true."
    said = of_the_lab.find_parent("figure").find("figcaption").text
    assert said == "Of 2 predictions 50 % came true, and their students were 90 % sure on average."
    assert [one.text for one in page.find_all("h2")] == [
        "For a person to look at", "Points", "Exercises", "Mistakes", "Who should come", "Predictions",
        "Predictions by question", "The same", "Submissions",
    ]  # fmt: skip
    assert list(class_report._ticks(64)) == [0, 10, 20, 30, 40, 50, 60]


def saved(course: Course, student: str) -> None:
    """Write the record of a submission as if it had been graded, without running a cell of it."""
    classroom, submission = course.classroom(), course.handed_in(student)
    result = GradingResult(student, warnings=submission.warnings, mode=MODES[0])
    for name, cells in course.definition.cells.items():
        nb = new_notebook()
        with suppress(UnreadableNotebookError):
            nb, more = read_notebook(submission.notebooks.get(name, b"{}"))
            result.warnings.setdefault(name, []).extend(more)
        result.warnings.setdefault(name, []).extend(restore(nb, cells))
        result.files[f"{name}.ipynb"] = nbformat.writes(nb).encode()
        result.grades[name] = {cell.name: (0.0, False) for cell in cells if cell.grade}
    result.files |= submission.files
    classroom.records.save(result, submission, {name: {} for name in course.definition.cells})


def report_of(course: Course, not_graded: dict[str, str] | None = None) -> dict[str, class_report.Section]:
    """The sections of a report that was also written."""
    parts = class_report.sections(course.classroom(), {}, not_graded or {})
    class_report.write(course.folder / "report", "A report", parts)
    return {part.name: part for part in parts}


def test_who_is_left_out_of_the_report_is_named(course):
    for student in ("ada", "bob", "cem"):
        course.hand_in(student, course.solved())
        saved(course, student)
    record = course.classroom().records
    edited = record.notebooks("bob") / "one.ipynb"
    edited.chmod(0o644)
    edited.write_text(edited.read_text() + "\n")
    (record.folder / "cem.json").write_text("{")
    found = report_of(course, {"dee": "The submission could not be read"})
    left_out = "This report leaves the submission out: the graded notebooks are not those of its record."
    assert found["look_at"].rows == [
        ["bob", "grade it again", f"{left_out} Grade it again."],
        ["cem", "grade it again", f"{left_out} Grade it again."],
        ["dee", "grade it again", "The submission could not be read"],
    ]
    assert [row[0] for row in found["graded"].rows] == ["ada"]


def odd_json(value: object) -> str:
    """JSON in which texts between two signs stand as they are: Python writes no such numbers."""
    text = re.sub(r'"§(.*?)§"', r"\1", json.dumps(value, ensure_ascii=False))
    return text.replace(r"\\ud800", r"\ud800")


SURROGATE = "\\ud800"  # as JSON has it
TEXTS = [SURROGATE, "\0", "a\r\nb\rc", "=1+1", "x" * 30_000, "<script>", "\N{PILE OF POO}" * 90]
NUMBERS = ["1e400", "NaN", "9" * 10_000, "9" * 4000, "-0.0", "true", "[" * 5000 + "]" * 5000]
ODD_TEXT = st.sampled_from(TEXTS) | st.text(max_size=12)
ODD = ODD_TEXT | st.sampled_from(NUMBERS).map("§{}§".format)
WHOLE_PREDICTION = locked("", 0.5, hit=True)
ODD_PREDICTIONS = st.dictionaries(
    ODD_TEXT,
    st.dictionaries(st.sampled_from([*WHOLE_PREDICTION, "choices"]), ODD).map(WHOLE_PREDICTION.__or__),
    max_size=3,
)
ODD_CELL = st.builds(
    lambda kind, source, name, more: {
        "cell_type": kind, "source": source, "id": name, "attachments": {name: {"image/png": more}},
        "metadata": {"nbgrader": {"grade_id": name}, "x": more},
    },
    st.sampled_from(["code", "markdown", "raw", "x"]), ODD, ODD_TEXT, ODD,
)  # fmt: skip


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(
    cells=st.lists(ODD_CELL, min_size=1, max_size=4),
    version=st.just(4) | st.integers(1, 5) | ODD,
    predictions=ODD_PREDICTIONS,
    name=st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=30),
)
@example(cells=[], version=4, predictions={SURROGATE: WHOLE_PREDICTION}, name="x")
@example(cells=[], version=SURROGATE, predictions={}, name="one.ipynb.")
def test_whatever_one_student_submits_all_others_are_in_the_tables_and_have_a_page(
    class_of_one, cells, version, predictions, name
):
    course = class_of_one
    notebook = odd_json({"nbformat": version, "metadata": {"x": version}, "cells": cells})
    files = {"one.ipynb": notebook, "predictions.json": odd_json(predictions), f"data/{name}": "x"}
    files[f"{name}.ipynb"] = notebook
    download = course.folder / "download"
    shutil.rmtree(download / "odd", ignore_errors=True)
    for inner, content in files.items():
        path = download / "odd" / inner
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):  # what no file system takes
            path.write_text(content, encoding="utf-8")
    collected = collect_download(download, course.submitted("ada").parents[1], TINY)
    assert collected.unchanged == ["ada"]
    saved(course, "odd")
    found = report_of(course)
    assert [row[0] for row in found["graded"].rows] == ["ada", "odd"]
    assert "ada" not in [row[0] for row in found["look_at"].rows]
    folder = course.classroom().records.notebooks("odd")
    notebooks = [
        GradedNotebook(one, one, cells, {cell.name: cell.name for cell in cells})
        for one, cells in course.definition.cells.items()
    ]
    pages = make_pages(PageJob("odd", "odd", TINY, folder, notebooks, Marks(), "0"))
    assert all(page.encode() for page in pages.values())


@pytest.fixture(scope="module")
def class_of_one(released_course, tmp_path_factory):
    """A course with the honest submission of one student, collected and graded without being run."""
    course = released_course.copy(tmp_path_factory.mktemp("odd") / "course")
    for name, nb in course.solved().items():
        (course.folder / "download" / "ada").mkdir(parents=True, exist_ok=True)
        nbformat.write(nb, course.folder / "download" / "ada" / f"{name}.ipynb")
    collect_download(course.folder / "download", course.submitted("ada").parents[1], TINY)
    once = course.classroom()
    course.classroom = lambda: once  # which takes most of a second
    saved(course, "ada")
    return course
