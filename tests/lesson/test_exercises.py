"""The exercises of a notebook are read from its file, and the notebook is found by the cells that ran."""

import json
import linecache
import os
from math import inf

import pytest

from starvelab import Q_
from starvelab.lesson.exercises import Exercise, find_notebook, read_exercises, read_questions


def cell(source, kind="code", **nbgrader):
    return {"cell_type": kind, "source": source, "metadata": {"nbgrader": nbgrader} if nbgrader else {}}


def write(path, *cells):
    path.write_text(json.dumps({"cells": list(cells)}), encoding="utf-8")
    return path


def defined(source, name):
    """The function of a cell, as a kernel has it."""
    cell = f"<cell {hash(source)}>"
    linecache.cache[cell] = len(source), None, source.splitlines(keepends=True), cell
    names = {"Q_": Q_}
    exec(compile(source, cell, "exec"), names)
    return names[name]


CREDIT = "credit = Credit(6)\ncredit.part(2, 'a', f)\ncredit.part(1.5, 'b', f)\ncredit.total()"


def test_titles_points_and_explanations_are_read(tmp_path):
    path = write(
        tmp_path / "a.ipynb",
        cell("# 1. A notebook\n\n## Exercise 1.1: double it (2 points)", "markdown"),
        cell(["def double(x):\n", "    pass"], solution=True, grade=False, grade_id="double"),
        cell("check(double(1), 2)", grade=True, points=2),
        cell("## Exercise 1.2: in parts (6 points, in parts)", "markdown"),
        cell(CREDIT, grade=True, points=6),
        cell("### Exercise 1.3: why (1 point, read by a person)", "markdown"),
        cell("# Because\n", "markdown", grade=True, solution=True, points=1),
        cell("Your answer here.", "markdown", grade=True, solution=True, points=1),
    )
    exercises, double = read_exercises(path), "def double(x):\n    pass"
    assert exercises == (
        Exercise("Exercise 1.1: double it", 2, "check(double(1), 2)", answer_id="double", answer=double),
        Exercise("Exercise 1.2: in parts", 6, CREDIT, answer_id="double", answer=double),
        Exercise("Exercise 1.3: why", 1, "# Because\n", is_essay=True, is_written=True),
        Exercise("Exercise 1.3: why", 1, "Your answer here.", is_essay=True),
    )
    assert [one.visible_points for one in exercises[:2]] == [2, 3.5]
    assert exercises[0].name == "Exercise 1.1: double it."
    assert Exercise("How many?", 1, "").name == "How many?"


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"cells": [1, null]}', '{"cells": 3}', "\udcff"], ids=ascii
)
def test_of_a_broken_file_there_are_no_exercises(tmp_path, content):
    path = tmp_path / "broken.ipynb"
    path.write_text(content, encoding="utf-8", errors="surrogateescape")
    assert read_exercises(path) == ()
    assert find_notebook(tmp_path, ["a"]) is None


def test_the_notebook_that_runs_is_the_one_with_most_of_its_cells_and_of_copies_the_newest(tmp_path):
    other = write(tmp_path / "other.ipynb", cell("import a"), cell("b"))
    mine = write(tmp_path / "mine.ipynb", cell("import a"), cell("c"))
    assert find_notebook(tmp_path, ["import a", "c", "typed elsewhere"]) == mine
    assert find_notebook(tmp_path, ["import a", "b"]) == other
    copy = write(tmp_path / "copy.ipynb", cell("import a"), cell("c"))
    os.utime(copy, (1, 1))
    assert find_notebook(tmp_path, ["c"]) == mine
    os.utime(mine, (0, 0))
    assert find_notebook(tmp_path, ["c"]) == copy
    assert find_notebook(tmp_path, ["d"]) is None


def test_questions_are_read_with_what_can_be_answered(tmp_path):
    path = write(
        tmp_path / "a.ipynb",
        cell('predict("batch", between=(1, None), whole=True,\n        question="Which "\n  "batch?")'),
        cell("x = 1\nfor key in y:\n    predict(key, 1)"),
        cell('measure.predict("other", question="?")\npredict("answered", 3)'),
        cell('predict("computed", question=f"{x}")'),
        cell('%time predict("magic", question="?")'),
        cell('predict("text", question="?")', "markdown"),
        cell("predict('wall', choices=['CPU', 'GPU'], question='Which?', confidence=0.5)"),
        cell('predict("batch", question="Once more?")'),
    )
    assert read_questions(path, tmp_path / "missing.ipynb") == {
        "batch": {"question": "Which batch?", "between": (1, None), "whole": True},
        "wall": {"question": "Which?", "choices": ["CPU", "GPU"]},
    }
    assert read_questions() == {}


def test_an_exercise_is_done_when_its_visible_check_gives_all_that_it_can():
    done = [Exercise("", 2, "check(1)").is_done(earned) for earned in (inf, 2.0, 1.5, 0.0, None)]
    assert done == [True, True, False, False, False]
