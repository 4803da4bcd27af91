"""The autograded exercises of an assignment, each with the answers that its checks must refuse or accept.

A notebook's file of TOML (ledger.py) holds, under the id of an answer cell, any number of ``wrong`` and
``right`` answers:

``mistake`` or ``way``
    What the learner did, in words.
``body`` or ``cell``
    What replaces the two lines of the stub, or the whole cell.
``named``
    What the visible check says of a wrong answer, or a part of it. Without it only the hidden check can tell:
    then ``named_by_hidden`` may have what that one says.
``earns``
    Points that a wrong answer keeps, where an exercise gives partial credit; 0 unless given.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import indent

from nbformat import NotebookNode

from tests.assignments import notebooks_of, read
from tests.notebooks.ledger import answers, path_of

STUB = "raise NotImplementedError("
KEYS = {"mistake", "way", "body", "cell", "named", "named_by_hidden", "earns"}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a learner writes into an answer cell: the whole cell, and what the two checks say of a mistake."""

    what: str
    source: str
    named: str | None = None
    named_by_hidden: str | None = None
    earns: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """An answer cell, the test cell after it, and what may be answered.

    The stub is the answer cell as released; visible and full are the test cell as released, and with its
    hidden checks.
    """

    assignment: str
    notebook: str
    answer_id: str
    test_id: str
    setup: str
    stub: str
    solution: str
    visible: str
    full: str
    points: float
    wrong: tuple[Answer, ...]
    right: tuple[Answer, ...]

    @property
    def name(self) -> str:
        """What tests call it."""
        return f"{self.notebook} {self.answer_id}"


def graded_cells(path: Path) -> dict[str, NotebookNode]:
    """Cells of a notebook that nbgrader knows, by their `grade_id`."""
    cells = read(path).cells
    return {cell.metadata.nbgrader.grade_id: cell for cell in cells if "nbgrader" in cell.metadata}


@cache
def exercises(assignment: str) -> tuple[Exercise, ...]:
    """All autograded exercises, in the order in which a learner meets them."""
    found: list[Exercise] = []
    for notebook in notebooks_of(assignment):
        released = graded_cells(notebook.released)
        authored = graded_cells(notebook.solution)
        unread = answers(notebook)
        setup, answer_id = "", ""
        for cell_id, cell in released.items():
            if cell.cell_type != "code":
                continue
            if not cell.metadata.nbgrader.grade:
                if cell.metadata.nbgrader.solution:
                    answer_id = cell_id
                else:
                    setup += cell.source + "\n"
                continue
            given = unread.pop(answer_id, {})
            points = float(cell.metadata.nbgrader.points)
            stub = released[answer_id].source
            found.append(
                Exercise(assignment=assignment, notebook=notebook.name, answer_id=answer_id, test_id=cell_id,
                    setup=setup, stub=stub, solution=authored[answer_id].source, visible=cell.source,
                    full=authored[cell_id].source, points=points,
                    wrong=tuple(_answer(one, stub) for one in given.get("wrong", [])),
                    right=tuple(_answer(one, stub, points) for one in given.get("right", []))),
            )  # fmt: skip
        if unread:
            raise ValueError(f"{path_of(notebook)} answers {', '.join(unread)}, and no such cell is there.")
    return tuple(found)


def _answer(given: dict, stub: str, points: float = 0.0) -> Answer:
    if given.keys() - KEYS:
        raise ValueError(f"An answer takes {', '.join(sorted(KEYS))}. Got {given}.")
    return Answer(
        what=given.get("mistake") or given["way"],
        source=given["cell"].strip() if "cell" in given else _fill(stub, given["body"].strip()),
        named=given.get("named"),
        named_by_hidden=given.get("named_by_hidden"),
        earns=float(given.get("earns", points)),
    )


def _fill(stub: str, body: str) -> str:
    """The answer cell with `body` in the place of the two lines that the student is asked to replace."""
    lines = stub.splitlines()
    last = next(n for n, line in enumerate(lines) if line.strip().startswith(STUB))
    margin = lines[last][: len(lines[last]) - len(lines[last].lstrip())]
    return "\n".join([*lines[: last - 1], indent(body, margin), *lines[last + 1 :]])
