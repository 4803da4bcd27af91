"""Whatever a student moves, deletes or defines, the checks are the instructor's, in the instructor's order.

Here no step of nbgrader's restores the cells before they run. All notebooks are one student's, and share a
sandbox.
"""

from collections.abc import Sequence
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from grader.tests.hostile.tiny import cell, execute, points, printed

pytestmark = pytest.mark.sandbox


def code(name: str, source: str, **flags: object) -> NotebookNode:
    """A cell of an instructor's; locked, unless it is said otherwise."""
    return cell(name, source, **{"locked": True} | flags)


def answer(name: str, source: str) -> NotebookNode:
    return code(name, source, solution=True, locked=False)


def scored_cell(name: str, source: str) -> NotebookNode:
    return code(name, source, grade=True, points=1)


def own(source: str) -> NotebookNode:
    """A cell that a student added."""
    return nbformat.v4.new_code_cell(source)


def graded(
    folder: Path, written: Sequence[NotebookNode], submitted: Sequence[NotebookNode], **more: object
) -> NotebookNode:
    """The student's cells, run beside the instructor's notebook."""
    (folder / "source" / "tiny").mkdir(parents=True)
    (folder / "submitted").mkdir(exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=list(written)), folder / "source" / "tiny" / "one.ipynb")
    cells = [nbformat.from_dict(dict(each)) for each in submitted]
    for number, each in enumerate(cells):
        if any(each.id == one.id for one in cells[:number]):
            each.id += "-copy"
    nb = nbformat.v4.new_notebook(cells=cells)
    return execute(nb, folder / "submitted", course=folder, student="mover", **more)


# Ways to define `check` in a locked cell that are more than an import.
WAYS = {
    "import as": "import starvelab.checks as checks\ncheck = checks.check",
    "import of all": "from starvelab.checks import *",
    "in a timed cell": "%%time\nfrom starvelab.checks import check",
    "of a function": "def load():\n    global check\n    from starvelab.checks import check\nload()",
}


@pytest.mark.parametrize("way", WAYS)
def test_however_the_set_up_defines_a_check_it_is_the_instructors(tmp_path, way):
    tests = [scored_cell("value", "check(answer, 42)")]
    written = [code("set-up", WAYS[way]), answer("answer", "answer = 42"), *tests]
    forged = answer("answer", "def check(*args): pass\nanswer = 0")
    assert points(graded(tmp_path / "a", written, [forged, *tests, written[0]])) == {"value": 0}
    assert points(graded(tmp_path / "b", written, [forged, *tests])) == {"value": 0}
    assert points(graded(tmp_path / "c", written, [*written[1:], written[0]])) == {"value": 1}


IMPORTS = code("set-up", "from starvelab.checks import check")
HONEST = answer("answer", "answer = 42")
FORGED = answer("answer", "def check(*args, **more): print('Right')\nanswer = 0")
FIRST, SECOND = scored_cell("first", "check(answer, 42)"), scored_cell("second", "check(answer + 1, 43)")
PLACES = (  # of the set-up: behind, between or merged into other cells, and without its name
    lambda own_answer: [own_answer, FIRST, SECOND, IMPORTS],
    lambda own_answer: [own_answer, SECOND, FIRST, IMPORTS],
    lambda own_answer: [own_answer, FIRST, IMPORTS, SECOND],
    lambda own_answer: [answer("answer", f"{IMPORTS.source}\n{own_answer.source}"), FIRST, SECOND],
    lambda own_answer: [own(IMPORTS.source), own_answer, FIRST, SECOND],
)
DOUBLE, ZERO = (answer("double", f"def double(x): return {twice}") for twice in ("2 * x", "0"))
HELPED = [
    scored_cell("first", "def seven_times(f): return f(7)\ncheck(seven_times(double), 14)"),
    scored_cell("second", "check(seven_times(double), 14)"),
]
OWN_HELPER = own("def seven_times(f): return 14\ndef double(x): return 0")
LIST = code("set-up", "from starvelab.checks import check\nseen = []")
LISTED = [
    scored_cell("first", "seen.append(double(1))\ncheck(sum(seen), 2)"),
    scored_cell("second", "seen.append(double(2))\ncheck(sum(seen), 6)"),
]
FACTOR, LATER = code("factor", "factor = 2"), code("later", "factor = 3")
TIMES = [
    scored_cell("first", "check(times(5), 5 * factor)"),
    scored_cell("second", "check(times(5) + 5, 5 * factor)"),
]
TWICE, THRICE = (answer("times", f"def times(x): return {factor} * x") for factor in (2, 3))
LIMIT = code("set-up", "limit = 42\nfrom starvelab.checks import check")
LIMITED = scored_cell("value", "check(answer, limit)")
TABLE = code("table", "table = [double(n) for n in range(4)]")
IN_TABLE = scored_cell("test", "check(table[3], 6)")
FORGED_TABLE = [IMPORTS, ZERO, TABLE, own("table = [0, 2, 4, 6]"), IN_TABLE]
RESULTS = [
    scored_cell("first", "result = double(3)\ncheck(result, 6)"),
    scored_cell("second", "check(result, 42)"),
    scored_cell("third", "result = double(result)\ncheck(result, 84)"),
    scored_cell("fourth", "check(result, 84)"),
]
# The instructor's notebook, and what a student makes of it with the points that this earns.
ORDERS = {
    "wherever the set-up stands": (
        [IMPORTS, HONEST, FIRST, SECOND],
        [(place(one), earned) for place in PLACES for one, earned in ((FORGED, 0), (HONEST, 2))],
    ),
    "a helper of a check is not the student's to define": (
        [IMPORTS, DOUBLE, *HELPED],
        [([IMPORTS, HELPED[0], OWN_HELPER, HELPED[1]], 0), ([IMPORTS, OWN_HELPER, *HELPED], 0),
         ([OWN_HELPER, *HELPED[::-1], IMPORTS], 0), ([IMPORTS, OWN_HELPER, HELPED[1]], 0)],
    ),
    # The first one, which runs once more at its own place, begins with an empty list again.
    "tests in another order find what stands before them and nothing else": (
        [LIST, DOUBLE, *LISTED], [([LIST, DOUBLE, *LISTED], 2), ([DOUBLE, LIST, *LISTED[::-1]], 2)],
    ),
    "a later set-up that was moved up changes no earlier check": (
        [IMPORTS, FACTOR, TWICE, TIMES[0], LATER, TIMES[1]],
        [([IMPORTS, FACTOR, TWICE, TIMES[0], LATER, TIMES[1]], 2),
         ([LATER, IMPORTS, FACTOR, THRICE, *TIMES], 0)],
    ),
    "a name of the set-up stays the instructor's where an answer defines it too": (
        [LIMIT, answer("answer", "limit = 40 + 2\nanswer = limit"), LIMITED],
        [([LIMIT, answer("answer", "limit = 40 + 2\nanswer = limit"), LIMITED], 1),
         ([LIMIT, answer("answer", "limit = answer = 0"), LIMITED], 0)],
    ),
    "a locked cell may use an answer and what it makes of it is the instructor's": (
        [IMPORTS, DOUBLE, TABLE, IN_TABLE],
        [([IMPORTS, DOUBLE, TABLE, IN_TABLE], 1), (FORGED_TABLE, 0), ([*FORGED_TABLE, TABLE], 0)],
    ),
    "an answer may have the name of an earlier check's result": (
        [IMPORTS, DOUBLE, RESULTS[0], answer("second-answer", "result = 42"), *RESULTS[1:]],
        [([IMPORTS, DOUBLE, RESULTS[0], answer("second-answer", "result = 42"), *RESULTS[1:]], 4),
         ([IMPORTS, answer("double", f"{ZERO.source}\nresult = 84"), RESULTS[0],
           answer("second-answer", "result = 84"), *RESULTS[1:]], 0)],
    ),
}  # fmt: skip


OWN_DOUBLE = answer("double", "def double(x): return helped(x)")
HELPED_ANSWER, SIX = own("def helped(x): return 2 * x"), scored_cell("six", "check(double(3), 6)")
USES = answer("quadruple", "def quadruple(x): return double(double(x))")
TWELVE = scored_cell("twelve", "check(quadruple(3), 12)")
WRITTEN = [IMPORTS, DOUBLE, SIX, USES, TWELVE]
AGAIN = [
    IMPORTS,
    HONEST,
    FIRST,
    answer("again", "answer = answer + 1"),
    scored_cell("later", "check(answer, 43)"),
]
TIMES_AGAIN = answer("times-again", "def times(x): return factor * x - 5")
# The instructor's notebook, and the same cells in an order that a student may leave them in.
MOVED = {
    "below its check": (WRITTEN, [IMPORTS, SIX, DOUBLE, USES, TWELVE]),
    "to the end, with what it uses behind it": (
        WRITTEN, [IMPORTS, SIX, USES, TWELVE, OWN_DOUBLE, HELPED_ANSWER]
    ),
    "to the end, with what it uses before it": (
        WRITTEN, [IMPORTS, SIX, HELPED_ANSWER, USES, TWELVE, OWN_DOUBLE]
    ),
    "all cells the other way round": (WRITTEN, WRITTEN[::-1]),
    "shuffled": (WRITTEN, [TWELVE, DOUBLE, SIX, IMPORTS, USES]),
    "of one name the other way round": (AGAIN, AGAIN[::-1]),
    "a set-up between answers": (
        [IMPORTS, FACTOR, TWICE, TIMES[0], LATER, TIMES_AGAIN, TIMES[1]],
        [LATER, TIMES_AGAIN, TIMES[1], TIMES[0], TWICE, FACTOR, IMPORTS],
    ),
    "a set-up that uses an answer": ([IMPORTS, DOUBLE, TABLE, IN_TABLE], [TABLE, IN_TABLE, DOUBLE, IMPORTS]),
}  # fmt: skip


@pytest.mark.parametrize("checks", ["outside", "inside"])
@pytest.mark.parametrize(("written", "moved"), MOVED.values(), ids=MOVED)
def test_a_check_runs_after_its_answer_and_set_up_runs_first(tmp_path, written, moved, checks):
    nb = graded(tmp_path, written, moved, checks=checks)
    assert set(points(nb).values()) == {1}, [printed(nb, name) for name in points(nb)]
    assert [cell.source for cell in nb.cells] == [cell.source for cell in moved], "they stay on the page"


@pytest.mark.parametrize(("written", "submitted"), ORDERS.values(), ids=ORDERS)
def test_in_whatever_order_the_checks_are_the_instructors(tmp_path, written, submitted):
    for number, (cells, earned) in enumerate(submitted):
        assert sum(points(graded(tmp_path / str(number), written, cells)).values()) == earned, number


def test_without_the_instructors_notebook_there_is_only_the_students_order(tmp_path):
    cells = [nbformat.from_dict(dict(cell)) for cell in (IMPORTS, OWN_HELPER, *HELPED[::-1])]
    swapped = execute(nbformat.v4.new_notebook(cells=cells), tmp_path, student="mover")
    assert points(swapped) == {"first": 0, "second": 0}


@pytest.mark.parametrize(("test", "forged"), [
    ("get_ipython().user_ns['check'](answer, 42)", "get_ipython = lambda: {}"),
    ("display(answer)\ncheck(answer, 42)", "def display(value): print('shown')"),
    ("__builtins__['abs'] if isinstance(__builtins__, dict) else 0\ncheck(answer, 42)", "__builtins__ = {}"),
    ("assert __name__ == '__main__'\ncheck(answer, 42)", "__name__ = 'x'"),
    ("check(max(answer, 1), 42)", "def max(*values): return 42"),
    ("from starvelab.checks import check as verify\nverify(answer, 42)", "def verify(*args): pass"),
])  # fmt: skip
def test_pythons_own_names_and_those_a_test_defines_are_not_the_students(tmp_path, test, forged):
    written = [IMPORTS, answer("answer", "answer = 42"), scored_cell("value", test)]
    for folder, value, earned in (("wrong", 0, 0), ("right", 42, 1)):
        cells = [IMPORTS, answer("answer", f"answer = {value}\n{forged}"), written[2]]
        nb = graded(tmp_path / folder, written, cells)
        assert points(nb) == {"value": earned}
        assert "shown" not in printed(nb, "value")


def test_a_cell_that_only_pretends_to_be_locked_runs_with_the_students(tmp_path):
    written = [IMPORTS, answer("answer", "answer = 42"), scored_cell("value", "check(answer, 42)")]
    mark = tmp_path / "mark"
    forged = code("mine", f"def check(*args): pass\nopen({str(mark)!r}, 'w').close()")
    renamed = scored_cell("renamed", "check(answer, 42)")  # it counts, and what stands before it runs first
    cells = [IMPORTS, answer("answer", "answer = 0"), forged, written[2], renamed]
    assert points(graded(tmp_path, written, cells)) == {"value": 0, "renamed": 0}
    assert not mark.exists(), "it ran outside of the student's sandbox"


def test_of_a_students_files_only_those_of_the_lab_stand_beside_the_checks(tmp_path):
    look = "import os\nfrom starvelab.checks import check\n"
    look += "check(' '.join(sorted(os.listdir())), 'predictions.json')"
    written = [answer("answer", "answer = 42"), scored_cell("value", look)]
    for name in ("predictions.json", "data.csv", "answers.json", "sub/more.csv"):
        (tmp_path / "submitted" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "submitted" / name).write_text("{}")
    reads = answer("answer", "answer = open('data.csv').read()")
    nb = graded(tmp_path, written, [reads, written[1]])
    assert points(nb) == {"value": 1}, printed(nb, "value")
