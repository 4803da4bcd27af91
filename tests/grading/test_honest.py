"""Honest answers get exactly what they deserve, and what stock nbgrader gives wherever that is right."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from benchmarks.grading import STOCK
from tests.grading.a_course import MOST, TINY, Course

pytestmark = [pytest.mark.grading, pytest.mark.timeout(1200)]

ALL = {"double-test": 2.0, "halve-test": 3.0, "value-test": 1.0}
RIGHT = {
    "double": "def double(x):\n    return 2 * x",
    "halve": "def halve(x):\n    return x / 2",
    "value": "answer = 42",
}
ANSWERS = tomllib.loads((Path(__file__).parent / "honest.toml").read_text(encoding="utf-8"))
# What is done to the whole hand-in, besides answering all.
HABITS = (
    "extra-cells",
    "extra-files",
    "data-of-their-own",
    "copied-cell",
    "deleted-test",
    "deleted-prose",
    "outputs-kept",
)
# Under stock nbgrader a copied cell stops the class, a deleted test waits for ever, and a file that is called
# like a module stops the kernel.
NOT_STOCK = {"copied-cell", "deleted-test", "extra-files"}


def practise(course: Course, habit: str) -> None:
    """Hand in right answers as somebody of that habit does."""
    solved = course.solved()
    cells = solved["one"].cells
    at = next(number for number, cell in enumerate(cells) if cell.id == "double")
    files: dict = {}
    if habit == "extra-cells":
        cells[0:0] = [new_code_cell("1 / 0"), new_code_cell("x = 5\nx")]
    elif habit == "extra-files":
        files = {"notes.txt": "x", "math.py": "raise SystemExit", "sub/two.txt": "x", "numpy.py": "x = 1"}
    elif habit == "data-of-their-own":
        files = {"data/factor.txt": "2"}
        cells[
            at
        ].source = "factor = int(open('data/factor.txt').read())\ndef double(x):\n    return factor * x"
    elif habit == "copied-cell":
        copy = nbformat.from_dict(dict(cells[at]) | {"id": "copy"})
        cells.insert(at + 1, copy)
    elif habit == "deleted-test":
        solved["one"].cells = [cell for cell in cells if cell.id != "halve-test"]
    elif habit == "deleted-prose":
        solved["one"].cells = [cell for cell in cells if "nbgrader" in cell.metadata]
    elif habit == "outputs-kept":
        for cell in cells:
            if cell.cell_type == "code":
                cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="Right.\n" * 1000)]
                cell.execution_count = 7
    course.hand_in(habit, solved | files)


@pytest.fixture(scope="module")
def marks(released_course, tmp_path_factory):
    """Points of everybody, from `starvelab grade` and from stock nbgrader."""
    course = released_course.copy(tmp_path_factory.mktemp("honest"))
    for name, told in ANSWERS.items():
        given = RIGHT | {cell: told[cell] for cell in RIGHT if cell in told}
        blank = {key for key, text in given.items() if not text}
        course.hand_in(name, course.solved(**{k: v for k, v in given.items() if k not in blank}))
        if blank:
            solved, released = course.solved(**given), course.released()
            for key, nb in solved.items():
                for cell, old in zip(nb.cells, released[key].cells, strict=True):
                    if cell.id in blank:
                        cell.source = old.source
            course.hand_in(name, solved)
    for habit in HABITS:
        practise(course, habit)
    ours = course.copy(tmp_path_factory.mktemp("ours"))
    ours.run("starvelab", "grade", TINY)
    for habit in NOT_STOCK:
        shutil.rmtree(course.submitted(habit).parent)
    stock = [f"--Autograde.autograde_preprocessors={name}" for name in STOCK]
    sanitize = ("ClearOutput", "DeduplicateIds", "OverwriteKernelspec", "OverwriteCells", "CheckCellMetadata")
    stock += [f"--Autograde.sanitize_preprocessors=nbgrader.preprocessors.{name}" for name in sanitize]
    stock += ["--Execute.timeout=60", "--Execute.shutdown_kernel=immediate", "--IgnorePattern.enabled=False"]
    course.run("nbgrader", "autograde", TINY, *stock)
    return ours.scores(), course.scores()


def of(marks, name):
    return {cell: points for cell, points in marks[name].items() if cell in MOST}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_honest_answer_gets_what_it_deserves(marks, name):
    assert of(marks[0], name) == ALL | ANSWERS[name].get("earns", {})


@pytest.mark.parametrize("name", ANSWERS)
def test_stock_nbgrader_gives_the_same_but_where_it_is_known_to_be_wrong(marks, name):
    assert of(marks[1], name) == ALL | ANSWERS[name].get("earns", {}) | ANSWERS[name].get("stock", {})


@pytest.mark.parametrize("habit", HABITS)
def test_no_habit_costs_a_point(marks, habit):
    assert of(marks[0], habit) == ALL


@pytest.mark.parametrize("habit", sorted(set(HABITS) - NOT_STOCK))
def test_nor_does_it_under_stock_nbgrader(marks, habit):
    assert of(marks[1], habit) == ALL
