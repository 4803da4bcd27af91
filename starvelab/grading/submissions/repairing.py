"""A student's notebook, restored: the instructor's cells are put back, and the answers are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from nbformat import NotebookNode

from .reading import NEW_CELL, name_in, with_ids
from .reference_cell import ReferenceCell
from .warnings import SubmissionWarning


def restore(nb: NotebookNode, reference: Sequence[ReferenceCell]) -> list[SubmissionWarning]:
    """Put the instructor's cells back into a notebook, in place, and keep the student's answers.

    Parameters
    ----------
    nb : NotebookNode
        As `read_notebook` gives it.
    reference : sequence of ReferenceCell
        In the order of the notebook.

    Returns
    -------
    list of SubmissionWarning
        What was restored that the student, or a person, should know.
    """
    by_name = {cell.name: cell for cell in reference}
    _recognize(nb.cells, reference)
    warnings = _keep_one_of_each(nb, by_name)
    changed = []
    for number, cell in enumerate(nb.cells):
        name = name_in(cell)
        if name is None or name not in by_name:
            cell.metadata.pop("nbgrader", None)
            continue
        original = by_name[name]
        if not original.answered and cell.source not in (original.source, original.released):
            changed.append(original.name)
        source = cell.source if original.answered else original.source
        nb.cells[number] = _restored_cell(original, source, cell)
    if changed:
        names = ", ".join(changed)
        text = f"Cells that students must not change were changed, and have been restored: {names}."
        warnings.append(SubmissionWarning(text))
    warnings += _changed_order(nb, reference)
    warnings += _put_back(nb, reference)
    with_ids(nb.cells)
    return warnings


def _restored_cell(original: ReferenceCell, source: str, cell: NotebookNode | None = None) -> NotebookNode:
    new: NotebookNode = NEW_CELL[original.cell_type](source, id=cell.id if cell else original.name)
    new.metadata["nbgrader"] = original.metadata()
    if original.locked:
        new.metadata |= {"deletable": False, "editable": False}
    if cell and "attachments" in cell and new.cell_type == "markdown":
        new.attachments = cell.attachments
    return new


def _recognize(cells: Iterable[NotebookNode], reference: Sequence[ReferenceCell]) -> None:
    """Name cells that have lost their name: by the id, which some editors leave, or by what they hold."""
    names = {cell.name for cell in reference}
    # Two cells with the same text are no help.
    texts = Counter(cell.released.strip() for cell in reference if not cell.answered)
    by_text = {cell.released.strip(): cell.name for cell in reference if texts[cell.released.strip()] == 1}
    named = {name_in(cell) for cell in cells}
    for cell in cells:
        if name_in(cell) in names:
            continue
        name = cell.id if cell.id in names else by_text.get(cell.source.strip())
        if name and name not in named:
            cell.metadata["nbgrader"] = {"grade_id": name}
            named.add(name)


def _keep_one_of_each(nb: NotebookNode, by_name: dict[str, ReferenceCell]) -> list[SubmissionWarning]:
    """Of several copies of a cell, let one have the name.

    Of the copies of an answer, the last one that was changed counts, as it does when all cells are run.
    Changed copies before it stay as cells of the student's own. Unchanged copies are deleted: they would undo
    the answer.
    """
    warnings = []
    copies_of: dict[str, list[NotebookNode]] = {}
    for cell in nb.cells:
        name = name_in(cell)
        if name is not None and name in by_name:
            copies_of.setdefault(name, []).append(cell)
    dropped = set()
    for name, copies in copies_of.items():
        if len(copies) == 1:
            continue
        original = by_name[name]
        written = [cell for cell in copies if cell.source.strip() != original.released.strip()]
        kept = (written or copies)[-1] if original.answered else copies[0]
        for cell in copies:
            if cell is kept:
                continue
            del cell.metadata["nbgrader"]
            if not original.answered or cell not in written:
                dropped.add(id(cell))
        differ = original.answered and len({cell.source.strip() for cell in written}) > 1
        which = ": the last one that you changed counts" if differ else ""
        text = f"Cell {name} was in the notebook {len(copies)} times{which}."
        warnings.append(SubmissionWarning(text, person=differ))
    nb.cells = [cell for cell in nb.cells if id(cell) not in dropped]
    return warnings


def _changed_order(nb: NotebookNode, reference: Sequence[ReferenceCell]) -> list[SubmissionWarning]:
    """Warn of cells that were moved. They stay where they are; the checks run in the instructor's order."""
    number = {cell.name: i for i, cell in enumerate(reference)}
    order = [name for cell in nb.cells if (name := name_in(cell)) is not None and name in number]
    # The longest run of cells in the right order has stayed, and every other cell was moved. `runs` holds the
    # best run that ends with each cell so far.
    runs: list[list[str]] = []
    for name in order:
        fitting = [run for run in runs if number[run[-1]] < number[name]]
        runs.append([*max(fitting, key=len, default=[]), name])
    stayed = max(runs, key=len, default=[])
    moved = [name for name in order if name not in stayed]
    if not moved:
        return []
    by_name = {cell.name: cell for cell in reference}
    locked_code = any(by_name[name].locked and by_name[name].cell_type == "code" for name in moved)
    text = f"Cells were moved: {', '.join(moved)}. The checks ran in the original order."
    return [SubmissionWarning(text, person=locked_code)]


def _put_back(nb: NotebookNode, reference: Sequence[ReferenceCell]) -> list[SubmissionWarning]:
    """Insert missing cells of the instructor's, each after the cell that it followed.

    A missing answer is not put back: the code that was given out would undo an answer in another cell.
    """
    missing, behind = [], -1
    for original in reference:
        at = next((i for i, cell in enumerate(nb.cells) if name_in(cell) == original.name), None)
        if at is not None:
            behind = max(behind, at)
        elif not (original.solution and not original.grade):
            behind += 1
            nb.cells.insert(behind, _restored_cell(original, original.source))
            missing.append(original.name)
    if not missing:
        return []
    texts = {original.name for original in reference if original.answered}
    # The student may have answered in another cell, which only a person can see.
    person = bool(texts.intersection(missing))
    return [SubmissionWarning(f"Cells were missing, and have been put back: {', '.join(missing)}.", person)]
