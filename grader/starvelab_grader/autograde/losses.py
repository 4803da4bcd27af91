"""What may have cost points although the answers were right: a person is told, and decides."""

import re
from collections.abc import Iterable

from nbformat import NotebookNode
from nbgrader.utils import determine_grade

from ..submissions import SubmissionWarning
from ..submissions.reference import (
    ReferenceCell,
    defined,
    graded_by,
    is_check_side,
    is_test,
    name_of,
    names_defined,
)
from ..text import IMPORT, shown
from .execution import RESULT
from .notebook_run import ENDED, ENDED_PYTHON, UNFINISHED

# What costs the points of a cell, by the error of one of its outputs.
COSTS = {
    "CellTimeoutError": "Cells exceeded their time limit",
    "SystemExit": "Cells ended Python",
    UNFINISHED: "Checks did not end with these answers",
}
NO_MODULE = re.compile(r"No module named '(\w{1,50})")
NOT_INSTALLED = "The grader has no package `{}`, which your cells import."


def cost_of_running(nb: NotebookNode) -> list[SubmissionWarning]:
    """Warn of a notebook whose cells took too long, or ended Python, or whose answers no check could read."""
    cells: dict[str, list[str]] = {one: [] for one in (*COSTS.values(), "")}  # by what happened
    stopped = dict[str, None]()  # in their order
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            text = f"{output.get('text', '')}"
            error = "SystemExit" if text.startswith(ENDED_PYTHON) else output.get("ename")
            cells[COSTS.get(error, "")].append(name_of(cell) or cell.id)
            if text.startswith(ENDED) and error != "SystemExit":
                stopped[text.splitlines()[0]] = None
    warnings = [f"{what}: {', '.join(each)}." for what, each in cells.items() if what and each]
    for line in stopped:
        runs_on = line.startswith(f"{ENDED}had to be ended")
        warnings.append(line if runs_on else f"{line} The cells after it were not run.")
    run = nb.metadata.get(RESULT, {})
    scores = [(cell, *determine_grade(cell)) for cell in filter(is_test, nb.cells)]
    lost = [cell for cell, earned, most in scores if earned is not None and earned < most]
    warnings += [NOT_INSTALLED.format(name) for name in _missing_packages(nb)] if lost else []
    for name, why in run.get("unreadable", {}).items():
        if any(re.search(rf"\b{re.escape(name)}\b", cell.source) for cell in lost):
            warnings.append(f"No check could read `{name}`, since {why}. Was the answer right?")
    return [SubmissionWarning(text, person=True) for text in warnings]


def _missing_packages(nb: NotebookNode) -> list[str]:
    """Return the packages that cells import, by their source, and that were not found."""
    cells = [cell for cell in nb.cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    texts = (f"{output.get('evalue', '')}\n{output.get('text', '')}" for output in outputs)
    missing = dict.fromkeys(name for text in texts for name in NO_MODULE.findall(text))
    written = "\n".join(cell.source for cell in cells if not is_check_side(cell))
    imported = set(IMPORT.findall(written))
    return [name for name in missing if name in imported]


def answered_elsewhere(nb: NotebookNode, reference: Iterable[ReferenceCell]) -> list[SubmissionWarning]:
    """Warn where an empty answer lost points, and another cell of the student's defines its names."""
    reference, warnings = list(reference), list[SubmissionWarning]()
    cells = {name: cell for cell in nb.cells if (name := name_of(cell))}
    answers = {cell.name: cell for cell in reference if cell.answered and cell.cell_type == "code"}
    defines = {name: defined([cell.source], imports=False) for name, cell in answers.items()}
    theirs = [cell for cell in nb.cells if cell.cell_type == "code" and not is_check_side(cell)]
    # By cell, the names that the student defines there, and the instructor does not.
    added = [(cell, names_defined(cell.source) - defines.get(name_of(cell) or "", set())) for cell in theirs]
    for name, test in graded_by(reference).items():
        earned, most = determine_grade(cells[test]) if test in cells else (None, None)
        if name not in answers or earned is None or earned >= most:
            continue
        if name in cells and cells[name].source.strip() != answers[name].released.strip():
            continue
        places = [cell for cell, names in added if names & defines[name]]
        if places:
            # Nobody sees the id of a cell that has no name.
            begins = [name_of(cell) or f"`{shown(' '.join(cell.source.split()))}`" for cell in places]
            text = f"{name} has no answer in its cell. It may be in another cell: {', '.join(begins)}."
            warnings.append(SubmissionWarning(text, person=True))
    return warnings
