"""The structure of a notebook that was handed in: read, and mended by the instructor's cells.

What an instructor wrote is the truth, what a student wrote is kept. Nothing else of the file survives, so
that no metadata and no flag of a student's reaches nbgrader.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from ...errors import StarvelabError
from ..sandbox.codec import storable

MOST_CELLS = 2000
CELL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
MAKE = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}


class UnreadableNotebookError(StarvelabError, ValueError):
    """A file that was handed in is no notebook that could be graded; the message is for the student."""


@dataclass(frozen=True)
class Remark:
    """Something about a hand-in that its student, or a person who grades it, should know.

    Attributes
    ----------
    text : str
    person : bool
        Whether an instructor should look at the hand-in.
    """

    text: str
    person: bool = False


@dataclass(frozen=True)
class TrueCell:
    """A cell of the instructor's, as the gradebook keeps it.

    Attributes
    ----------
    name : str
        Its grade_id.
    cell_type, source, checksum : str
    released : str
        The source that students were given: without hidden tests.
    locked, grade, solution, task : bool
    points : float
    """

    name: str
    cell_type: str
    source: str
    released: str
    checksum: str
    locked: bool
    grade: bool
    solution: bool
    task: bool = False
    points: float = 0.0

    def metadata(self) -> dict[str, Any]:
        """What nbgrader wants to find in the cell."""
        told = {
            "grade": self.grade,
            "grade_id": self.name,
            "locked": self.locked,
            "solution": self.solution,
            "task": self.task,
            "cell_type": self.cell_type,
            "checksum": self.checksum,
            "schema_version": 3,
        }
        return told | ({"points": self.points} if self.grade or self.task else {})

    @property
    def is_check_side(self) -> bool:
        """Whether it is the instructor's to run: a test, or locked code such as a set-up."""
        return self.cell_type == "code" and not self.solution and (self.grade or self.locked)

    @property
    def answered(self) -> bool:
        """Whether a student is to write in it."""
        return self.solution and not self.locked


# --- reading ----------------------------------------------------------------------------------------------


def read(content: bytes) -> tuple[NotebookNode, list[Remark]]:
    """A notebook made of the sources of a file's cells, of their types, and of their names.

    Raises
    ------
    UnreadableNotebookError
        In the words of a sentence that begins with the name of the file.
    """
    told, remarks = _json(content)
    if not isinstance(told, dict):
        raise UnreadableNotebookError("is no notebook: it holds no cells.")
    major = told.get("nbformat", 4)
    if not isinstance(major, int) or major > 4:
        raise UnreadableNotebookError(
            f"is in format {str(major)[:20]}, which is newer than this grader knows. "
            "Save it with JupyterLab and hand it in again."
        )
    if major < 4:
        try:
            told = nbformat.reads(json.dumps(told), as_version=4)
        # A damaged old notebook can fail anywhere in the conversion.
        except Exception as error:
            raise UnreadableNotebookError(
                f"is in the old format {major} and could not be converted. "
                "Open and save it in JupyterLab, and hand it in again."
            ) from error
        remarks.append(Remark("It was in an old format, and was converted."))
    cells = told.get("cells")
    if not isinstance(cells, list):
        raise UnreadableNotebookError("is no notebook: it holds no cells.")
    if len(cells) > MOST_CELLS:
        raise UnreadableNotebookError(f"has {len(cells)} cells, and at most {MOST_CELLS} are read.")
    made = [cell for cell in map(_clean, cells) if cell is not None]
    if len(made) < len(cells):
        lost = len(cells) - len(made)
        remarks.append(Remark(f"{lost} of its cells were damaged beyond reading.", person=True))
    return new_notebook(cells=_with_ids(made)), remarks


def _json(content: bytes) -> tuple[Any, list[Remark]]:
    remarks = []
    if not content.strip(b" \t\r\n\0"):
        raise UnreadableNotebookError("is empty.")
    try:
        text = content.decode(json.detect_encoding(content))
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
        remarks.append(Remark("Its letters were not in UTF-8: some may have come out wrong.", person=True))
    text = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    try:
        return json.loads(text), remarks
    except RecursionError as error:
        raise UnreadableNotebookError("is nested deeper than any notebook is.") from error
    except ValueError as error:
        raise UnreadableNotebookError(_why_no_json(text, error)) from error


def _why_no_json(text: str, error: ValueError) -> str:
    if re.search(r"^(<{7}|>{7}) ", text, re.MULTILINE):
        return "holds the marks of a merge that was not resolved (lines that begin with <<<<<<<)."
    if text.lstrip()[:1] == "<":
        return "is a web page and no notebook. Download the notebook itself, as .ipynb."
    if text.lstrip()[:1] not in ("{", "["):
        return "is no notebook, whatever its name says. Hand in the .ipynb file that JupyterLab saved."
    line = getattr(error, "lineno", None)
    where = f" (line {line})" if line else ""
    return f"is damaged{where}: perhaps it was cut off. Open it in JupyterLab to see, and hand it in again."


def _clean(cell: Any) -> NotebookNode | None:
    """A cell made anew, of its type, its source, its name and the pictures in its text."""
    if not isinstance(cell, dict) or not isinstance(cell.get("cell_type"), str):
        return None
    if cell["cell_type"] not in MAKE:
        return None
    source = cell.get("source", "")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        return None
    made = MAKE[cell["cell_type"]](storable(source))
    name, given = _name_in(cell), cell.get("id")
    made.id = given if isinstance(given, str) and CELL_ID.fullmatch(given) else ""
    if name is not None:
        made.metadata["nbgrader"] = {"grade_id": name}
    if made.cell_type == "markdown" and (pictures := _attachments(cell)):
        made.attachments = pictures
    return made


def _name_in(cell: Any) -> str | None:
    metadata = cell.get("metadata")
    told = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    name = told.get("grade_id") if isinstance(told, dict) else None
    return name if isinstance(name, str) else None


def _attachments(cell: Any) -> dict[str, dict[str, str]]:
    """Pictures that were pasted into a text."""
    given = cell.get("attachments")
    return {
        storable(name): {kind: data for kind, data in each.items() if isinstance(data, str)}
        for name, each in (given.items() if isinstance(given, dict) else ())
        if isinstance(each, dict) and all(re.fullmatch(r"image/[\w.+-]+", kind) for kind in each)
    }


def _with_ids(cells: list[NotebookNode]) -> list[NotebookNode]:
    """The same cells, each with an id of its own."""
    taken: set[str] = set()
    for number, cell in enumerate(cells):
        if not cell.id or cell.id in taken:
            cell.id = f"cell-{number}"
            while cell.id in taken:
                cell.id += "-"
        taken.add(cell.id)
    return cells


# --- mending ----------------------------------------------------------------------------------------------


def mend(nb: NotebookNode, truth: Sequence[TrueCell]) -> list[Remark]:
    """Put the instructor's cells back into a notebook, in place, and keep the student's answers.

    Parameters
    ----------
    nb : NotebookNode
        As `read` gives it.
    truth : sequence of TrueCell
        In the order of the notebook.

    Returns
    -------
    list of Remark
        What was mended that the student, or a person, should know.
    """
    by_name = {cell.name: cell for cell in truth}
    _recognise(nb.cells, truth)
    remarks = _keep_one_of_each(nb, by_name)
    changed = []
    for number, cell in enumerate(nb.cells):
        true = by_name.get(_name_in(cell))
        if true is None:
            cell.metadata.pop("nbgrader", None)
            continue
        if not true.answered and cell.source not in (true.source, true.released):
            changed.append(true.name)
        source = cell.source if true.answered else true.source
        nb.cells[number] = _made(true, source, cell)
    if changed:
        names = ", ".join(changed)
        remarks.append(Remark(f"Cells that are not for changing were changed, and put back: {names}."))
    remarks += _changed_order(nb, truth)
    remarks += _put_back(nb, truth)
    _with_ids(nb.cells)
    return remarks


def _made(true: TrueCell, source: str, cell: NotebookNode | None = None) -> NotebookNode:
    made = MAKE[true.cell_type](source, id=cell.id if cell else true.name)
    made.metadata["nbgrader"] = true.metadata()
    if true.locked:
        made.metadata |= {"deletable": False, "editable": False}
    if cell and "attachments" in cell and made.cell_type == "markdown":
        made.attachments = cell.attachments
    return made


def _recognise(cells: Iterable[NotebookNode], truth: Sequence[TrueCell]) -> None:
    """Name cells that have lost their name: by the id, which some editors leave, or by what they hold."""
    names = {cell.name for cell in truth}
    # Two cells with the same text are no help.
    texts = Counter(cell.released.strip() for cell in truth if not cell.answered)
    by_text = {cell.released.strip(): cell.name for cell in truth if texts[cell.released.strip()] == 1}
    named = {_name_in(cell) for cell in cells}
    for cell in cells:
        if _name_in(cell) in names:
            continue
        name = cell.id if cell.id in names else by_text.get(cell.source.strip())
        if name and name not in named:
            cell.metadata["nbgrader"] = {"grade_id": name}
            named.add(name)


def _keep_one_of_each(nb: NotebookNode, by_name: dict[str, TrueCell]) -> list[Remark]:
    """Of copies of a cell, leave its name to one.

    Of an answer the last one counts that is not as it was given out, as it does when all cells are run. What
    stands before it stays, as any cell of a student's; untouched copies go, since they would undo the answer.
    """
    remarks = []
    found: dict[str, list[NotebookNode]] = {}
    for cell in nb.cells:
        if (name := _name_in(cell)) in by_name:
            found.setdefault(name, []).append(cell)
    gone = set()
    for name, copies in found.items():
        if len(copies) == 1:
            continue
        true = by_name[name]
        written = [cell for cell in copies if cell.source.strip() != true.released.strip()]
        kept = (written or copies)[-1] if true.answered else copies[0]
        for cell in copies:
            if cell is kept:
                continue
            del cell.metadata["nbgrader"]
            if not true.answered or cell not in written:
                gone.add(id(cell))
        differ = true.answered and len({cell.source.strip() for cell in written}) > 1
        which = ": the last one that you changed counts" if differ else ""
        remarks.append(Remark(f"Cell {name} was there {len(copies)} times{which}.", person=differ))
    nb.cells = [cell for cell in nb.cells if id(cell) not in gone]
    return remarks


def _changed_order(nb: NotebookNode, truth: Sequence[TrueCell]) -> list[Remark]:
    """Say which cells stand elsewhere. They stay there; the checks keep to the instructor's order."""
    number = {cell.name: i for i, cell in enumerate(truth)}
    found = [name for cell in nb.cells if (name := _name_in(cell)) in number]
    # The longest run of cells in the right order has stayed, whatever stands among them has moved. `runs`
    # holds the best run that ends with each cell so far.
    runs: list[list[str]] = []
    for name in found:
        fitting = [run for run in runs if number[run[-1]] < number[name]]
        runs.append([*max(fitting, key=len, default=[]), name])
    stayed = max(runs, key=len, default=[])
    moved = [name for name in found if name not in stayed]
    if not moved:
        return []
    by_name = {cell.name: cell for cell in truth}
    locked_code = any(by_name[name].locked and by_name[name].cell_type == "code" for name in moved)
    text = "Cells were moved: {}. The checks ran in the order in which they were given out."
    return [Remark(text.format(", ".join(moved)), person=locked_code)]


def _put_back(nb: NotebookNode, truth: Sequence[TrueCell]) -> list[Remark]:
    """Insert missing cells of the instructor's, each behind the one that it came after.

    An answer is not put back: what it was given out with would undo an answer that stands in another cell.
    """
    missing, behind = [], -1
    for true in truth:
        at = next((i for i, cell in enumerate(nb.cells) if _name_in(cell) == true.name), None)
        if at is not None:
            behind = max(behind, at)
        elif not (true.solution and not true.grade):
            behind += 1
            nb.cells.insert(behind, _made(true, true.source))
            missing.append(true.name)
    if not missing:
        return []
    texts = {true.name for true in truth if true.answered}
    # What a student wrote may stand in another cell, and only a person can tell.
    person = bool(texts.intersection(missing))
    return [Remark(f"Cells that were missing were put back: {', '.join(missing)}.", person)]
