"""A notebook read from a student's file: nothing of it is kept but the types, sources and names of its cells.

So no metadata and no flag of a student's reaches nbgrader.
"""

from __future__ import annotations

import json
import re

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from ..errors import GraderError
from ..text import enumerated, shown, storable
from . import SubmissionWarning

MAX_CELLS = 2000
CELL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
NEW_CELL = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}


class UnreadableNotebookError(GraderError, ValueError):
    """A submitted file is no notebook that could be graded; the message is for the student."""


def read_notebook(content: bytes) -> tuple[NotebookNode, list[SubmissionWarning]]:
    """Return a new notebook with the sources, types and names of the cells in a file.

    An `UnreadableNotebookError` says in a sentence that begins with the name of the file why there is none.
    """
    data, warnings = _json(content)
    if not isinstance(data, dict):
        raise UnreadableNotebookError("is no notebook: it holds no cells.")
    major = data.get("nbformat", 4)
    if not isinstance(major, int) or major > 4:
        raise UnreadableNotebookError(
            f"is in format {shown(str(major))[:20]}, which is newer than this grader can read. "
            "Save it with JupyterLab and submit it again."
        )
    if major < 4:
        try:
            data = nbformat.reads(json.dumps(data), as_version=4)
        # A damaged old notebook can fail anywhere in the conversion.
        except Exception as error:
            raise UnreadableNotebookError(
                f"is in the old format {major} and could not be converted. "
                "Open and save it in JupyterLab, and submit it again."
            ) from error
        warnings.append(SubmissionWarning("It was in an old format, and was converted."))
    if not isinstance(cells := data.get("cells"), list):
        raise UnreadableNotebookError("is no notebook: it holds no cells.")
    if len(cells) > MAX_CELLS:
        raise UnreadableNotebookError(
            f"has {len(cells)} cells, and {MAX_CELLS} are allowed. Delete cells, and submit it again."
        )
    left_out: list[str] = []
    clean = [new for cell in cells if (new := _clean(cell, left_out)) is not None]
    if lost := len(cells) - len(clean):
        text = f"{lost} of its cells were damaged and could not be read."
        warnings.append(SubmissionWarning(text, person=True))
    if left_out:
        text = f"What is attached to its texts and is no picture was left out: {enumerated(left_out)}."
        warnings.append(SubmissionWarning(text))
    return new_notebook(cells=with_ids(clean)), warnings


def _json(content: bytes) -> tuple[object, list[SubmissionWarning]]:
    warnings: list[SubmissionWarning] = []
    if not content.strip(b" \t\r\n\0"):
        raise UnreadableNotebookError("is empty.")
    try:
        text = content.decode(json.detect_encoding(content))
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
        text_warning = "Its text was not in UTF-8: some characters may be wrong."
        warnings.append(SubmissionWarning(text_warning, person=True))
    text = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    try:
        return json.loads(text), warnings
    except RecursionError as error:
        raise UnreadableNotebookError("is nested more deeply than any notebook is.") from error
    except ValueError as error:
        raise UnreadableNotebookError(_why_no_json(text, error)) from error


def _why_no_json(text: str, error: ValueError) -> str:
    if re.search(r"^(<{7}|>{7}) ", text, re.MULTILINE):
        return (
            "holds a merge conflict that was not resolved (lines that begin with <<<<<<<). "
            "Resolve it, and submit the notebook again."
        )
    if text.lstrip()[:1] == "<":
        return "is a web page and no notebook. Download the notebook itself, as .ipynb, and submit that."
    if text.lstrip()[:1] not in ("{", "["):
        return "is no notebook, whatever its name is. Submit the .ipynb file that JupyterLab saved."
    line = getattr(error, "lineno", None)
    where = f" (line {line})" if line else ""
    return f"is damaged{where}: perhaps a part of it is missing. Open it in JupyterLab, and submit it again."


def _clean(cell: object, left_out: list[str]) -> NotebookNode | None:
    """A new cell with the type, the source, the name and the pictures of this one.

    The names of attachments that are no pictures are added to `left_out`.
    """
    if not isinstance(cell, dict) or str(cell.get("cell_type")) not in NEW_CELL:
        return None
    source = cell.get("source", "")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        return None
    # Lines end as in Python itself, whatever system the notebook was saved on.
    new: NotebookNode = NEW_CELL[cell["cell_type"]](re.sub(r"\r\n?", "\n", storable(source)))
    given = cell.get("id")
    new.id = given if isinstance(given, str) and CELL_ID.fullmatch(given) else ""
    if (name := name_in(cell)) is not None:
        new.metadata["nbgrader"] = {"grade_id": name}
    if new.cell_type == "markdown" and (pictures := _attachments(cell, left_out)):
        new.attachments = pictures
    return new


def name_in(cell: dict[str, object]) -> str | None:
    """The grade_id of a cell of any notebook, also of one with damaged metadata."""
    metadata = cell.get("metadata")
    flags = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    name = flags.get("grade_id") if isinstance(flags, dict) else None
    return name if isinstance(name, str) else None


def _attachments(cell: dict[str, object], left_out: list[str]) -> dict[str, dict[str, str]]:
    """Pictures that were pasted into a text."""
    given = cell.get("attachments")
    pictures = {}
    for name, each in given.items() if isinstance(given, dict) else ():
        if isinstance(each, dict) and all(_is_picture(*one) for one in each.items()):
            pictures[storable(name)] = each
        else:
            left_out.append(name)
    return pictures


def _is_picture(kind: str, data: object) -> bool:
    return bool(re.fullmatch(r"image/[A-Za-z0-9.+-]+", kind)) and isinstance(data, str) and data.isascii()


def with_ids(cells: list[NotebookNode]) -> list[NotebookNode]:
    """The same cells, each with an id of its own."""
    taken: set[str] = set()
    for number, cell in enumerate(cells):
        if not cell.id or cell.id in taken:
            cell.id = f"cell-{number}"
            while cell.id in taken:
                cell.id += "-"
        taken.add(cell.id)
    return cells
