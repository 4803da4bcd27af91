"""Which notebooks each assignment has, and how tests read them.

A notebook is there once `python solutions/build.py` has derived it; an assignment without a notebook is not
tested at all, and what holds of a whole assignment is tested when none of its notebooks is missing.

What an author of a notebook adds, beside the script in solutions/ASSIGNMENT/:

- its name below, if it is new;
- tests/notebooks/ASSIGNMENT/NN_name.toml: its points, what learners answer, and an account of each number and
  each cause in its prose (see tests/notebooks/ledger.py).

What a notebook must hold stands in tests/test_notebooks.py.
"""

import ast
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from starvelab.widgets import predict

REPOSITORY = Path(__file__).resolve().parents[1]

EXPECTED = {
    "starving-the-gpu": [
        "01_compute_baseline", "02_storage_check", "03_cpu_wall", "04_batch_sweep", "05_worker_fix",
        "06_your_turn", "07_gpu_decoding", "08_object_storage",
    ],
    "find-the-bottleneck": [
        "01_measure_your_machine", "02_who_waits", "03_caching_ladder", "04_published_ladder",
        "05_pull_the_levers", "06_less_work", "07_reality_check", "08_unseen_measurements", "09_your_own_job",
    ],
    "master-the-loader": [
        "01_write_the_loader", "02_design_and_repair",
        "03_beyond_images",
    ],
}  # fmt: skip


@dataclass(frozen=True)
class Notebook:
    """A notebook of an assignment, as the instructor has it."""

    assignment: str
    name: str

    def __str__(self) -> str:
        return f"{self.assignment}/{self.name}"

    @property
    def script(self) -> Path:
        """What its author writes."""
        return REPOSITORY / "solutions" / self.assignment / f"{self.name}.py"

    @property
    def solution(self) -> Path:
        """The instructor's notebook."""
        return self.script.with_suffix(".ipynb")

    @property
    def released(self) -> Path:
        """The student's notebook."""
        return REPOSITORY / "labs" / self.assignment / f"{self.name}.ipynb"

    @property
    def cells(self) -> list[NotebookNode]:
        """The instructor's cells."""
        return read(self.solution).cells

    @property
    def markdown(self) -> str:
        """The text of its markdown cells."""
        return "\n\n".join(cell.source for cell in self.cells if cell.cell_type == "markdown")

    def calls(self, function: str) -> list[tuple[int, ast.Call]]:
        """Every call of a function, with the position of its cell."""
        found = []
        for position, cell in enumerate(self.cells):
            if cell.cell_type == "code":
                nodes = (node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call))
                found += [(position, node) for node in nodes if getattr(node.func, "id", None) == function]
        return found

    def questions(self) -> dict[str, tuple[int, dict[str, Any]]]:
        """The predictions it asks for: where, and what is asked."""
        asked = ((position, given(call)) for position, call in self.calls("predict"))
        return {one["key"]: (position, one) for position, one in asked if "question" in one}

    def lock_predictions(self, folder: Path) -> None:
        """Answer all it asks in `folder`, before it is run there: the first choice, or 10."""
        with chdir(folder):
            for key, (_, asked) in self.questions().items():
                answer = asked["choices"][0] if "choices" in asked else 10
                predict(key, answer, **{name: asked[name] for name in asked if name != "key"})


@cache
def read(path: Path) -> NotebookNode:
    """The notebook in a file of the build, which is valid: to look takes ten times as long as to read."""
    return nbformat.v4.reads(path.read_text(encoding="utf-8"))


def given(call: ast.Call) -> dict[str, Any]:
    """The arguments of a call that are written out, the first under the name "key"."""
    written = {arg.arg: arg.value for arg in call.keywords} | dict(zip(["key"], call.args, strict=False))
    found = {}
    for name, value in written.items():
        try:
            found[name] = ast.literal_eval(value)
        except ValueError:
            continue
    return found


NOTEBOOKS = [
    Notebook(assignment, path.stem)
    for assignment in EXPECTED
    for path in sorted((REPOSITORY / "solutions" / assignment).glob("*.ipynb"))
]
ASSIGNMENTS = list(dict.fromkeys(notebook.assignment for notebook in NOTEBOOKS))


def notebooks_of(assignment: str) -> list[Notebook]:
    """The notebooks of an assignment, in the order in which a learner meets them."""
    return [notebook for notebook in NOTEBOOKS if notebook.assignment == assignment]
