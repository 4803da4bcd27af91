"""nbgrader's *Validate* in released notebooks: it passes right answers, and no notebook without answers."""

from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from jupyter_client import KernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbgrader.preprocessors import Execute
from nbgrader.validator import Validator

from starvelab import runtime
from starvelab.checks import Credit
from starvelab.lesson.checks import WrongAnswer
from tests.assignments import NOTEBOOKS, Notebook
from tests.notebook_runs import BEGIN_ANEW, WHAT_IT_KEPT, kernel

pytestmark = [pytest.mark.long, pytest.mark.programs]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelManager]:
    with kernel(tmp_path_factory.mktemp("kernel")) as started:
        yield started


def answered(notebook: Notebook) -> NotebookNode:
    """The student's notebook with the instructor's answers, without cells that no check may need."""
    released = nbformat.read(notebook.released, as_version=4)
    released.cells = [cell for cell in released.cells if "nbgrader" in cell.metadata]
    answers = {cell.id: cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("solution")}
    for cell in released.cells:
        if cell.id in answers:
            cell.source = answers[cell.id].source
    return released


def validated(notebook: NotebookNode, folder: Path, kernel: KernelManager) -> dict[str, list[dict[str, str]]]:
    """What nbgrader's validator says of a notebook, which runs in a kernel that has started."""

    class ExecuteHere(Execute):
        def preprocess(self, nb: NotebookNode, resources: dict, km: object = None) -> tuple:
            environment = runtime.Runtime(clock="simulated", is_validating=True).environment()
            begin = BEGIN_ANEW.format(folder=str(folder), environment=environment, forget=WHAT_IT_KEPT)
            nb.cells.insert(0, nbformat.v4.new_code_cell(begin))
            client = NotebookClient(nb, timeout=300, startup_timeout=300, allow_errors=True, km=kernel)
            client.execute()
            client.kc.stop_channels()
            assert nb.cells.pop(0).outputs == []
            return nb, resources

    path = folder / "notebook.ipynb"
    nbformat.write(notebook, path)
    validator = Validator()
    validator.preprocessors = [ExecuteHere]
    return validator.validate(str(path))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=str)
def test_a_released_notebook_with_the_instructors_answers_is_valid(notebook, started, tmp_path):
    notebook.lock_predictions(tmp_path)
    failed = validated(answered(notebook), tmp_path, started).get("failed", [])
    assert [(cell["source"], cell["raw_error"]) for cell in failed] == []


def test_a_released_notebook_without_answers_is_not_valid(started, tmp_path):
    released = nbformat.read(NOTEBOOKS[0].released, as_version=4)
    tests = [cell for cell in released.cells if cell.metadata.get("nbgrader", {}).get("points")]
    assert len(validated(released, tmp_path, started)["failed"]) == len(tests)


def fail() -> None:
    raise WrongAnswer("no")


VALIDATING = runtime.Runtime(is_validating=True)


@pytest.mark.parametrize(("who", "share", "total"), [
    (runtime.Runtime(), 1.0, 2.0), (runtime.GRADING, 1.0, 2.0),
    (VALIDATING, 1.0, 3.0), (VALIDATING, 0.98, 1.98), (VALIDATING, 0.0, 1.0),
])  # fmt: skip
def test_validate_alone_gives_points_of_hidden_parts_and_only_where_every_part_is_right(who, share, total):
    with runtime.use(who):
        credit = Credit(3)
        credit.part(1, "dividing", lambda: None)
        credit.share(1, "how near", lambda: share)
        assert credit.total() == total
        credit.part(0.5, "halving", fail)
        assert credit.total() == 1 + share


def test_validate_has_nothing_to_say_where_all_parts_are_hidden():
    with runtime.use(VALIDATING):
        assert repr(Credit(3).total()) == "3.0"
