"""What may have cost a student a notebook without its being wrong: for a person to look at."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from nbformat import NotebookNode

from ..submissions.notebooks import Remark, TrueCell
from .execution import ENDED_PYTHON

# What the grader writes below a cell, and what an instructor reads of it.
ENDED = "The submitted code "


def outputs_only(content: bytes, cells: Iterable[TrueCell]) -> list[Remark]:
    """A remark where answers are empty, or as they were given out, and have outputs all the same.

    Parameters
    ----------
    content : bytes
        A notebook that can be read.
    cells : iterable of TrueCell
        The instructor's.
    """
    answers = {
        cell.name: cell.released.strip() for cell in cells if cell.answered and cell.cell_type == "code"
    }
    open_cells, written = [], False
    for cell in _code_cells(content):
        name = _at(cell, "metadata", "nbgrader", "grade_id")
        if isinstance(name, str) and name in answers:
            source = cell.get("source", "")
            text = "".join(source) if _is_lines(source) else source if isinstance(source, str) else ""
            if text.strip() not in ("", answers[name]):
                written = True
            elif any(_at(one, "output_type") != "error" for one in _list(cell.get("outputs"))):
                open_cells.append(name)
    if written or not open_cells:
        return []
    names = ", ".join(open_cells)
    return [
        Remark(f"Nothing is left of the answers but outputs, below {names}: were they lost?", person=True)
    ]


def cost_of_running(nb: NotebookNode) -> list[Remark]:
    """Remarks on a graded notebook whose cells took too long, or ended Python."""
    late, ended, stopped = [], [], ""
    for cell in nb.cells:
        name = _at(cell, "metadata", "nbgrader", "grade_id") or cell.id
        for output in cell.get("outputs", []):
            text = f"{output.get('text', '')}"
            if output.get("ename") == "CellTimeoutError":
                late.append(name)
            elif output.get("ename") == "SystemExit" or text.startswith(ENDED_PYTHON):
                ended.append(name)
            elif text.startswith(ENDED) and not stopped:
                stopped = text.splitlines()[0]
    remarks = []
    if late:
        remarks.append(f"Cells took longer than they may: {', '.join(late)}.")
    if ended:
        remarks.append(f"Cells ended Python: {', '.join(ended)}.")
    if stopped:
        remarks.append(f"{stopped} What stands behind it was not run.")
    return [Remark(text, person=True) for text in remarks]


def _code_cells(content: bytes) -> list[dict[str, Any]]:
    try:
        told = json.loads(content)
    except (ValueError, RecursionError):  # an odd encoding: then this is not looked at
        return []
    cells = _list(told.get("cells")) if isinstance(told, dict) else []
    return [cell for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_lines(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(line, str) for line in value)


def _at(value: Any, *names: str) -> Any:
    """What stands in tables within tables; None where one of them is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
