"""Each exercise refuses plausible mistakes, names them, gives no answer away, and accepts what is right.

An author gives each exercise at least three wrong answers and one that is right in an odd way, in
notebooks/ASSIGNMENT/NN_name.toml; notebooks/exercises.py says how. Each mistake that a check names
needs an answer that makes it. A test cell gives partial credit by ending in a plain float; then some wrong
answer says what it `earns`.
"""

import ast
import contextlib
import inspect
import io
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
import pytest
from nbgrader.utils import determine_grade

from starvelab import Pipeline, runtime
from starvelab.lesson import checks
from starvelab.lesson.widgets.endings import ending_of
from starvelab.units import Quantity, format_number, format_quantity
from tests.assignments import ASSIGNMENTS, NOTEBOOKS, Notebook, notebooks_of
from tests.notebooks.exercises import Answer, Exercise, exercises, graded_cells
from tests.notebooks.ledger import ledger, path_of

pytestmark = pytest.mark.long

ALL = [exercise for assignment in ASSIGNMENTS for exercise in exercises(assignment)]


def case(exercise: Exercise, *answer: Answer) -> Any:
    """An exercise, or one of its answers, as a parameter."""
    return pytest.param(exercise, *answer, id=": ".join([exercise.name, *(one.what for one in answer)]))


EACH = [case(one) for one in ALL]
WRONG = [case(one, answer) for one in ALL for answer in one.wrong]
RIGHT = [case(one, answer) for one in ALL for answer in one.right]


@pytest.fixture(scope="module", autouse=True)
def _what_answers_simulate_is_simulated_once() -> Iterator[None]:
    """Many answers simulate the same pipelines, and each time a run comes out the same."""
    kept: dict[Any, Any] = {}
    simulate = Pipeline.simulate

    def once(pipeline: Pipeline, **options: Any) -> Any:
        try:
            key = pipeline, *sorted(options.items())
            return kept[key] if key in kept else kept.setdefault(key, simulate(pipeline, **options))
        except TypeError:  # several values, or something that is none
            return simulate(pipeline, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pipeline, "simulate", once)
        yield


@cache
def set_up(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(source, names)
    return names


def run_cell(source: str, names: dict[str, Any]) -> nbformat.NotebookNode:
    """Run a code cell as a kernel does: what it prints, the error that ends it, the value at its end."""
    body = ast.parse(source).body
    last = ast.Expression(body.pop().value) if body and isinstance(body[-1], ast.Expr) else None
    outputs, printed, warned = [], io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(warned):
        try:
            exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
            value = None if last is None else eval(compile(last, "<cell>", "eval"), names)
        except Exception as error:
            outputs.append(
                nbformat.v4.new_output("error", ename=type(error).__name__, evalue=str(error), traceback=[])
            )
            value = None
    if value is not None:
        outputs.append(nbformat.v4.new_output("execute_result", data={"text/plain": repr(value)}))
    for name, stream in (("stderr", warned), ("stdout", printed)):
        if stream.getvalue():
            outputs.insert(0, nbformat.v4.new_output("stream", name=name, text=stream.getvalue()))
    return nbformat.v4.new_code_cell(source, outputs=outputs)


@dataclass(frozen=True)
class Outcome:
    """A test cell with its outputs, and what its checks refused: what they said, and what was right."""

    cell: nbformat.NotebookNode
    refused: list[tuple[str, Any]]


@cache
def tried(exercise: Exercise, answer: str, test: str) -> Outcome:
    """Run set-up, answer and test in a fresh namespace."""
    refused: list[tuple[str, Any]] = []

    def listen(value: Any, right: Any, **options: Any) -> None:
        try:
            checks.check(value, right, **options)
        except checks.WrongAnswer as error:
            refused.append((str(error), right))
            raise

    # Predictions stay in a folder of their own.
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        names = set_up(exercise.setup) | {"check": listen}
        with runtime.use(runtime.GRADING):
            run_cell(answer, names)
            return Outcome(run_cell(test, names), refused)


def score(exercise: Exercise, cell: nbformat.NotebookNode) -> float:
    """The points that nbgrader gives for a test cell with these outputs."""
    cell.metadata["nbgrader"] = {"grade": True, "solution": False, "points": exercise.points, "grade_id": "x"}
    return determine_grade(cell)[0]


def said(cell: nbformat.NotebookNode) -> str:
    """What a learner reads below a test cell."""
    return "\n".join(one.text if "text" in one else one.get("evalue", "") for one in cell.outputs)


# --- the assignment ---------------------------------------------------------------------------------------


def marked(notebook: Notebook) -> list[nbformat.NotebookNode]:
    """The cells of a notebook that give points."""
    return [cell for cell in graded_cells(notebook.released).values() if cell.metadata.nbgrader.grade]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=str)
def test_the_points_of_a_notebook_sum_to_what_its_file_says(notebook):
    points = {cell.id: cell.metadata.nbgrader.points for cell in marked(notebook)}
    assert sum(points.values()) == ledger(notebook).get("points"), f"{path_of(notebook)} against {points}"


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_each_test_cell_is_an_exercise_and_a_person_reads_one_cell_or_more(assignment):
    cells = [cell for notebook in notebooks_of(assignment) for cell in marked(notebook)]
    assert [cell.id for cell in cells if cell.cell_type == "code"] == [
        exercise.test_id for exercise in exercises(assignment)
    ]
    assert any(cell.cell_type == "markdown" for cell in cells), f"{assignment} has no cell with role essay"


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_an_id_names_one_cell_of_the_assignment(assignment):
    ids = [name for notebook in notebooks_of(assignment) for name in graded_cells(notebook.released)]
    assert sorted(ids) == sorted(set(ids))


def test_each_exercise_of_an_assignment_is_tried_with_three_wrong_answers_and_a_right_one():
    for exercise in ALL:
        answers = (*exercise.wrong, *exercise.right)
        where = f"tests/notebooks/{exercise.assignment}/{exercise.notebook}.toml: {exercise.answer_id}"
        assert len(exercise.wrong) >= 3, f"{where}.wrong has {len(exercise.wrong)}, and needs three or more"
        assert exercise.right, f"{where}.right has none, and needs one or more"
        assert len({answer.source for answer in answers}) == len(answers), where


# --- what is right ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("exercise", EACH)
def test_the_solution_earns_every_point_and_nothing_goes_to_stderr(exercise):
    cell = tried(exercise, exercise.solution, exercise.full).cell
    assert score(exercise, cell) == exercise.points, said(cell)
    assert not [output for output in cell.outputs if output.get("name") == "stderr"]


@pytest.mark.parametrize(("exercise", "answer"), RIGHT)
def test_a_right_answer_in_an_odd_way_earns_every_point(exercise, answer):
    cell = tried(exercise, answer.source, exercise.full).cell
    assert score(exercise, cell) == exercise.points, said(cell)


# --- what is not ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exercise", EACH)
def test_an_untouched_stub_earns_nothing_and_is_told_so(exercise):
    cell = tried(exercise, exercise.stub, exercise.full).cell
    assert score(exercise, cell) == 0
    assert re.search(r"not (answered|filled in|written) yet|0 of \d", said(cell), re.IGNORECASE)


@pytest.mark.parametrize(("exercise", "answer"), WRONG)
def test_a_wrong_answer_loses_its_points_and_the_mistake_is_named_and_nothing_given_away(exercise, answer):
    run = tried(exercise, answer.source, exercise.full)
    assert score(exercise, run.cell) == answer.earns < exercise.points
    # What only the hidden check sees it names.
    assert (answer.named_by_hidden or "") in said(run.cell)
    for message, right in run.refused:
        found = re.findall(r"'\w+'|\d[\d.]*(?<!\.)(?: [A-Za-z/]+)?", message)
        assert forms(right).isdisjoint([*found, *(text.split()[0] for text in found)]), message
    cell = tried(exercise, answer.source, exercise.visible).cell
    if answer.named is None:
        assert score(exercise, cell) == score(
            exercise, tried(exercise, exercise.solution, exercise.visible).cell
        ), f"it can be named: {said(cell)}"
    else:
        assert answer.named in said(cell)
        assert score(exercise, cell) < exercise.points


# Arguments that make no difference, and why.
NEED_NOT_BE_USED = {
    "idle_share": ["asked", "received"],  # which of four times matter is what is asked
    "my_script": ["width", "height"],  # of a repaired script all that is checked comes after the crop
}


@pytest.mark.parametrize("exercise", EACH)
def test_an_answer_that_takes_an_argument_for_a_constant_loses_points(exercise, tmp_path, monkeypatch):
    """Each argument in turn keeps the value that the visible check passes first."""
    monkeypatch.chdir(tmp_path)  # some answers write files where they run
    names = set_up(exercise.setup) | {"check": checks.check}
    run_cell(exercise.solution, names)
    for called in defined_in(exercise.solution):
        answer, alone = names[called], NEED_NOT_BE_USED.get(called, [])
        for position, name in enumerate(inspect.signature(answer).parameters):
            with runtime.use(runtime.GRADING):
                cell = run_cell(exercise.full, names | {called: frozen(answer, position)})
            assert (score(exercise, cell) == exercise.points) == (name in alone), f"{called} without {name}"


def frozen(answer: Callable[..., Any], position: int) -> Callable[..., Any]:
    """The same function, one of whose arguments keeps the first value that it is given."""
    first: list[Any] = []

    def call(*given: Any) -> Any:
        first[:] = first or [given[position]]
        return answer(*given[:position], *first, *given[position + 1 :])

    return call


def defined_in(source: str) -> list[str]:
    """The names of the functions of a cell."""
    return [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]


def forms(right: Any) -> set[str]:
    """How a message would print this value. 0 and 1 bound every share, and are no secret."""
    if isinstance(right, str):
        return {repr(right)}
    if isinstance(right, Quantity):
        return {format_quantity(right)}
    if right in (None, 0, 1):
        return set()
    return {format_number(right), format_number(right, 8)}


@pytest.mark.parametrize("exercise", EACH)
def test_each_mistake_that_a_check_can_name_is_made_by_somebody(exercise):
    """A message that no answer brings up hides behind another with the same value, or names nothing real."""
    calls = [node for node in ast.walk(ast.parse(exercise.full)) if isinstance(node, ast.Call)]
    messages = [
        key.value
        for call in calls
        for keyword in call.keywords
        if keyword.arg == "mistakes"
        for key in keyword.value.keys
    ]
    heard = "\n".join(said(tried(exercise, answer.source, exercise.full).cell) for answer in exercise.wrong)
    unheard = [message for message in messages if message not in heard]
    file = f"tests/notebooks/{exercise.assignment}/{exercise.notebook}.toml"
    assert not unheard, f"in {file} no [[{exercise.answer_id}.wrong]] brings up {unheard}"
    assert all(message[0].isupper() and message[-1] in ".?!" for message in messages)


# --- the end that somebody hears who learns alone ---------------------------------------------------------


@pytest.mark.parametrize("exercise", [one for one in EACH if "BEGIN HIDDEN" in one.values[0].full])
def test_an_ending_accepts_what_is_right_and_rejects_what_hidden_checks_do(exercise, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def silent(source: str) -> float:
        """The points that only hidden checks give: all, where there are no parts."""
        tests = (exercise.full, exercise.visible)
        full, visible = (score(exercise, tried(exercise, source, one).cell) for one in tests)
        return round(full - visible, 2) if "Credit(" in exercise.full else full

    def heard(source: str, seed: int) -> float:
        names = dict(set_up(exercise.setup))
        run_cell(source, names)
        points, check = ending_of(exercise.answer_id, names[defined_in(exercise.solution)[0]])
        credit = checks.Credit(points)
        assert points == silent(exercise.solution)
        with redirect_stdout(io.StringIO()):
            check(credit, names[defined_in(exercise.solution)[0]], Random(seed))
        return round(credit.earned, 2)

    for seed, answer in enumerate((exercise.solution, *(one.source for one in exercise.right))):
        assert heard(answer, seed) == silent(answer)
    for answer in exercise.wrong:
        # It draws cases of all kinds, so it may also reject what a visible check names.
        assert heard(answer.source, 0) <= silent(answer.source), answer.what
