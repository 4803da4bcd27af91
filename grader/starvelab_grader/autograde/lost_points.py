"""What may have cost a student points although the answers were right: warnings for a person."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from nbformat import NotebookNode
from nbgrader.utils import determine_grade

from ..submissions import SubmissionWarning
from ..submissions.reference import ReferenceCell, is_test
from .execution import RESULT
from .notebook_run import ENDED, ENDED_PYTHON


def outputs_only(content: bytes, cells: Iterable[ReferenceCell]) -> list[SubmissionWarning]:
    """A warning where answers are empty, or as they were given out, and have outputs all the same.

    Parameters
    ----------
    content : bytes
        A notebook that can be read.
    cells : iterable of ReferenceCell
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
            lines = source if isinstance(source, list) else [source]
            text = "".join(line for line in lines if isinstance(line, str))
            if text.strip() not in ("", answers[name]):
                written = True
            elif any(_at(one, "output_type") != "error" for one in _list(cell.get("outputs"))):
                open_cells.append(name)
    if written or not open_cells:
        return []
    names = ", ".join(open_cells)
    return [
        SubmissionWarning(
            f"The answers are empty and have outputs, below {names}: were they lost?", person=True
        )
    ]


def cost_of_running(nb: NotebookNode) -> list[SubmissionWarning]:
    """Warnings about a graded notebook whose cells took too long, or ended Python."""
    late: list[str] = []
    ended: list[str] = []
    stopped: dict[str, None] = {}  # in their order
    for cell in nb.cells:
        name = str(_at(cell, "metadata", "nbgrader", "grade_id") or cell.id)
        for output in cell.get("outputs", []):
            text = f"{output.get('text', '')}"
            if output.get("ename") == "CellTimeoutError":
                late.append(name)
            elif output.get("ename") == "SystemExit" or text.startswith(ENDED_PYTHON):
                ended.append(name)
            elif text.startswith(ENDED):
                stopped[text.splitlines()[0]] = None
    warnings = []
    if late:
        warnings.append(f"Cells took longer than they may: {', '.join(late)}.")
    if ended:
        warnings.append(f"Cells ended Python: {', '.join(ended)}.")
    for line in stopped:
        runs_on = line.startswith(f"{ENDED}had to be ended")
        warnings.append(line if runs_on else f"{line} The cells after it were not run.")
    lost = [cell.source for cell in nb.cells if is_test(cell) and _lost_points(cell)]
    for name, why in nb.metadata.get(RESULT, {}).get("unreadable", {}).items():
        if any(re.search(rf"\b{re.escape(name)}\b", source) for source in lost):
            warnings.append(f"No check could read `{name}`, since {why}. Was the answer right?")
    return [SubmissionWarning(text, person=True) for text in warnings]


def _lost_points(cell: NotebookNode) -> bool:
    earned, most = determine_grade(cell)
    return bool(earned is not None and earned < most)


def _code_cells(content: bytes) -> list[dict[str, object]]:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):  # text in an unusual encoding is not looked at
        return []
    cells = _list(data.get("cells")) if isinstance(data, dict) else []
    return [cell for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"]


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _at(value: object, *names: str) -> object:
    """A value of a dict within dicts; None where one of them is no dict."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
