"""The report of a class: tables that can be counted, pictures that can be read aloud, nothing alive."""

from __future__ import annotations

import csv
import json
from types import SimpleNamespace

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_notebook

from starvelab.grading.autograde.execution import RESULT
from starvelab.grading.commands.grade import GradeApp
from starvelab.grading.report import class_report
from starvelab.grading.report.findings import designs
from starvelab.grading.text import escape_csv_formulas
from tests.grading.a_course import TINY
from tests.grading.in_process import run_here

pytestmark = pytest.mark.grading
TABLES = ["calibration", "distribution", "graded", "items", "look_at", "mistakes", "questions", "similar"]


def locked(key: str, confidence: float, hit: bool) -> dict:
    moment = "2026-11-21T12:00:00+00:00"
    return {
        "key": key,
        "answer": "x",
        "locked_at": moment,
        "confidence": confidence,
        "hit": hit,
        "revealed_at": moment,
    }


@pytest.fixture(scope="module")
def reported(released_course, tmp_path_factory):
    """A class of four, and where its report stands."""
    course = released_course.copy(tmp_path_factory.mktemp("reported"))
    square = "def double(x):\n    return x ** 2"
    copied = (
        square
        + "  # what a strange exercise, my neighbour and me needed an hour, and coffee, to see it\n" * 3
    )
    predictions = json.dumps({"wall": locked("wall", 0.9, True), "drive": locked("drive", 0.9, False)})
    course.hand_in("ada", course.solved() | {"predictions.json": predictions})
    course.hand_in("bob", course.solved(double=copied))
    course.hand_in("=cmd", course.solved(double=copied + "\n# <script>alert(1)</script>"))
    course.hand_in("dee", {"one.ipynb": "<html>"})
    course.printed = run_here(course, GradeApp(), TINY, "--report").stdout
    return course, course.folder / "course" / "report" / TINY


def table(reported, name: str) -> list[dict[str, str]]:
    with (reported[1] / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_command_says_where_it_is_and_who_needs_a_person(reported):
    assert f"The report: {reported[1] / 'report.html'}" in reported[0].printed
    assert "A person should look at these:\n  dee: `one.ipynb` is a web page" in reported[0].printed
    assert sorted(path.stem for path in reported[1].glob("*.csv")) == TABLES


def test_items_count_what_everybody_earned(reported):
    double, halve, value = table(reported, "items")
    assert (double["exercise"], double["points"], double["tried"]) == ("double-test", "2.0", "3")
    assert (double["all points"], double["none"], double["difficulty"]) == ("1", "2", "0.25")
    assert (halve["difficulty"], value["difficulty"]) == ("0.75", "0.75")
    assert float(double["discrimination"]) == pytest.approx(1 / 3, abs=1e-3)


def test_mistakes_and_predictions_are_counted(reported):
    assert table(reported, "mistakes") == [
        {"students": "2", "notebook": "one", "exercise": "double-test", "mistake": "That is the square."}
    ]
    assert table(reported, "calibration") == [
        {"confidence": "80% to 100%", "predictions": "2", "sure on average": "0.9", "came true": "0.5"}
    ]
    assert [row["prediction"] for row in table(reported, "questions")] == ["drive", "wall"]


def test_who_needs_a_person_and_who_wrote_the_same_is_listed(reported):
    odd = table(reported, "look_at")
    assert [(one["student"], one["notebook"]) for one in odd] == [("dee", "one"), ("dee", "two")]
    *twins, pair = table(reported, "similar")
    assert [(twin["student"], twin["and"], twin["the longest passage"]) for twin in twins] == [
        ("'=cmd", "ada", "two"),
        ("'=cmd", "bob", "two"),
    ], "all three have handed in the same second notebook"
    assert (pair["student"], pair["and"]) == ("'=cmd", "bob"), "no name is a formula"
    assert pair["where"] == "double-test"
    assert "my neighbour and me needed an hour" in pair["the longest passage"]


def test_what_was_graded_when_and_how_is_listed(reported):
    rows = table(reported, "graded")
    assert [row["points by test"] for row in rows] == ["4.0", "6.0", "4.0", "0"]
    assert {row["mode"] for row in rows} == {"sandboxed", "not run"}


def test_the_page_can_be_read_by_anybody_and_runs_nothing(reported):
    page = BeautifulSoup((reported[1] / "report.html").read_text(encoding="utf-8"), "html.parser")
    assert not page.find_all(["script", "iframe", "form"])
    assert page.find("meta", attrs={"name": "viewport"})
    assert page.html["lang"] == "en"
    pictures = page.find_all("img")
    assert len(pictures) == 3
    for one in pictures:
        assert len(one["alt"]) > 60
        assert one["src"].startswith("data:image/png;base64,iVBOR")
        assert one.find_parent("figure").find("table"), "the same as a table"
        assert one.find_parent("figure").find("figcaption").text
    assert "Mean 3.5, median 4.0 of 6 points." in pictures[0]["alt"]
    assert "Hardest: double-test (25 % of the points)." in pictures[1]["alt"]
    assert "Of 2 predictions 50 % came true, and their students were 90 % sure" in pictures[2]["alt"]
    assert [one.text for one in page.find_all("h2")] == [
        "For a person to look at",
        "Points",
        "Exercises",
        "Mistakes",
        "Predictions",
        "Predictions by question",
        "Nearly the same",
        "Submissions",
    ]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1"])
def test_no_text_becomes_a_formula(text):
    assert escape_csv_formulas(text) == f"'{text}"
    assert (escape_csv_formulas("a=1"), escape_csv_formulas(-1.5), escape_csv_formulas(None)) == (
        "a=1",
        -1.5,
        None,
    )


def test_designs_are_read_from_the_graded_notebooks(tmp_path):
    graded = new_notebook(metadata={RESULT: {"designs": {"my-design-test": [36.0, 0.95]}}})
    for name, nb in (("one", graded), ("two", new_notebook())):
        nbformat.write(nb, tmp_path / f"{name}.ipynb")
    records, record = SimpleNamespace(notebooks=lambda _: tmp_path), SimpleNamespace(student="ada")
    assert class_report._designs_of(records, record, ["one", "two"]) == [("ada", 36.0, 0.95)]
    section = class_report._designs(designs([("ada", 36.0, 0.95)]), {"ada": "Ada L"})
    assert section.rows == [["Ada L", 36.0, 0.95, "yes"]]
    assert "1 of 1 designs are on the frontier" in section.html()
