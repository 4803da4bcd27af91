"""Whatever a student moves, deletes or defines, the checks are the instructor's, in the instructor's order.

Here no step of nbgrader's restores the cells before they run. All notebooks are one student's, and share a
sandbox.
"""

from collections.abc import Sequence
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from tests.hostile.tiny import MOST, NOTHING, RIGHT, SET_UP, cell, execute, notebook, points, printed

OWN_CHECKS = """
def check(*args, **more): print("Right")
class Credit:
    def __init__(self, points): self.points = points
    def part(self, *args): pass
    def total(self): return 3.0
def double(x): return 0
answer = 0
"""


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
    (folder / "submitted").mkdir()
    nbformat.write(nbformat.v4.new_notebook(cells=list(written)), folder / "source" / "tiny" / "one.ipynb")
    cells = [nbformat.from_dict(dict(each)) for each in submitted]
    for number, each in enumerate(cells):
        if any(each.id == one.id for one in cells[:number]):
            each.id += "-copy"
    nb = nbformat.v4.new_notebook(cells=cells)
    return execute(nb, folder / "submitted", course=folder, student="mover", **more)


# --- the set-up cell ----------------------------------------------------------------------------------------

MOVES = {
    "behind the tests": lambda set_up, own_answer, *tests: [own_answer, *tests, set_up],
    "between the tests": lambda set_up, own_answer, first, *tests: [own_answer, first, set_up, *tests],
    "deleted": lambda set_up, own_answer, *tests: [own_answer, *tests],
    "without its name": lambda set_up, own_answer, *tests: [own(SET_UP), own_answer, *tests],
    "merged into the answer": lambda set_up, own_answer, *tests: [
        answer("answer", f"{SET_UP}\n{own_answer.source}"),
        *tests,
    ],
    "behind tests in another order": lambda set_up, own_answer, *tests: [own_answer, *tests[::-1], set_up],
}


@pytest.mark.parametrize("move", MOVES)
def test_wherever_the_set_up_stands_the_checks_are_the_instructors(tmp_path, move):
    for own_answer, earned in ((OWN_CHECKS, NOTHING), (RIGHT, MOST)):
        cells = MOVES[move](*notebook(own_answer).cells)
        if move != "deleted" or earned == NOTHING:
            folder = tmp_path / str(sum(earned.values()))
            assert points(graded(folder, notebook(RIGHT).cells, cells)) == earned


def test_without_the_instructors_notebook_a_moved_set_up_gains_nothing_either(tmp_path):
    nb = notebook(OWN_CHECKS)
    nb.cells.append(nb.cells.pop(0))
    assert points(execute(nb, tmp_path, student="mover")) == NOTHING


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


# --- the order of the rest ----------------------------------------------------------------------------------

IMPORTS = code("set-up", "from starvelab.checks import check")


def test_a_helper_of_a_check_is_not_the_students_to_define(tmp_path):
    tests = [
        scored_cell("first", "def seven_times(f): return f(7)\ncheck(seven_times(double), 14)"),
        scored_cell("second", "check(seven_times(double), 14)"),
    ]
    written = [IMPORTS, answer("double", "def double(x): return 2 * x"), *tests]
    forged = own("def seven_times(f): return 14\ndef double(x): return 0")
    for folder, cells in (
        ("between", [IMPORTS, tests[0], forged, tests[1]]),
        ("before", [IMPORTS, forged, *tests]),
        ("swapped", [forged, tests[1], tests[0], IMPORTS]),
        ("gone", [IMPORTS, forged, tests[1]]),
    ):
        assert sum(points(graded(tmp_path / folder, written, cells)).values()) == 0
    # Without the instructor's notebook there is only the student's order.
    cells = [nbformat.from_dict(dict(cell)) for cell in (IMPORTS, forged, *tests[::-1])]
    swapped = execute(nbformat.v4.new_notebook(cells=cells), tmp_path, student="mover")
    assert points(swapped) == {"first": 0, "second": 0}


def test_tests_in_another_order_find_what_stands_before_them_and_nothing_else(tmp_path):
    """The first one, which runs once more at its own place, begins with an empty list again."""
    set_up = code("set-up", "from starvelab.checks import check\nseen = []")
    tests = [
        scored_cell("first", "seen.append(double(1))\ncheck(sum(seen), 2)"),
        scored_cell("second", "seen.append(double(2))\ncheck(sum(seen), 6)"),
    ]
    written = [set_up, answer("double", "def double(x): return 2 * x"), *tests]
    for folder, cells in (("as-given", written), ("swapped", [*written[1::-1], tests[1], tests[0]])):
        assert points(graded(tmp_path / folder, written, cells)) == {"first": 1, "second": 1}


def test_a_later_set_up_that_was_moved_up_changes_no_earlier_check(tmp_path):
    later = code("later", "factor = 3")
    tests = [
        scored_cell("first", "check(times(5), 5 * factor)"),
        scored_cell("second", "check(times(5) + 5, 5 * factor)"),
    ]
    written = [
        IMPORTS,
        code("factor", "factor = 2"),
        answer("times", "def times(x): return 2 * x"),
        tests[0],
        later,
        tests[1],
    ]
    tripled = answer("times", "def times(x): return 3 * x")
    assert points(graded(tmp_path / "a", written, written)) == {"first": 1, "second": 1}
    moved = [later, *written[:2], tripled, *tests]
    assert points(graded(tmp_path / "b", written, moved)) == {"first": 0, "second": 0}


def test_a_name_of_the_set_up_stays_the_instructors_where_an_answer_defines_it_too(tmp_path):
    set_up = code("set-up", "limit = 42\nfrom starvelab.checks import check")
    test = scored_cell("value", "check(answer, limit)")
    written = [set_up, answer("answer", "limit = 40 + 2\nanswer = limit"), test]
    assert points(graded(tmp_path / "a", written, written)) == {"value": 1}
    forged = answer("answer", "limit = answer = 0")
    assert points(graded(tmp_path / "b", written, [set_up, forged, test])) == {"value": 0}


def test_a_locked_cell_may_use_an_answer_and_what_it_makes_of_it_is_the_instructors(tmp_path):
    table = code("table", "table = [double(n) for n in range(4)]")
    test = scored_cell("test", "check(table[3], 6)")
    written = [IMPORTS, answer("double", "def double(x): return 2 * x"), table, test]
    assert points(graded(tmp_path / "a", written, written)) == {"test": 1}
    forged = [IMPORTS, answer("double", "def double(x): return 0"), table, own("table = [0, 2, 4, 6]"), test]
    assert points(graded(tmp_path / "b", written, forged)) == {"test": 0}
    assert points(graded(tmp_path / "c", written, [*forged, table])) == {"test": 0}


def test_an_answer_may_have_the_name_of_an_earlier_checks_result(tmp_path):
    written = [
        IMPORTS,
        answer("double", "def double(x): return 2 * x"),
        scored_cell("first", "result = double(3)\ncheck(result, 6)"),
        answer("second-answer", "result = 42"),
        scored_cell("second", "check(result, 42)"),
        scored_cell("third", "result = double(result)\ncheck(result, 84)"),
        scored_cell("fourth", "check(result, 84)"),
    ]
    assert points(graded(tmp_path / "a", written, written)) == dict.fromkeys(
        ("first", "second", "third", "fourth"), 1
    )
    forged = [*written[:1], answer("double", "def double(x): return 0\nresult = 84"), *written[2:]]
    forged[3] = answer("second-answer", "result = 84")
    assert sum(points(graded(tmp_path / "b", written, forged)).values()) == 0


@pytest.mark.parametrize(
    ("test", "forged"),
    [
        ("get_ipython().user_ns['check'](answer, 42)", "get_ipython = lambda: {}"),
        ("display(answer)\ncheck(answer, 42)", "def display(value): print('shown')"),
        (
            "__builtins__['abs'] if isinstance(__builtins__, dict) else 0\ncheck(answer, 42)",
            "__builtins__ = {}",
        ),
        ("assert __name__ == '__main__'\ncheck(answer, 42)", "__name__ = 'x'"),
        ("check(max(answer, 1), 42)", "def max(*values): return 42"),
        ("from starvelab.checks import check as verify\nverify(answer, 42)", "def verify(*args): pass"),
        ("checks = __import__('starvelab.checks').checks\nchecks.check(answer, 42)", "checks = 1"),
    ],
)
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
