"""A student's notebook, restored: the instructor's cells are put back, and the answers are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher

from nbformat import NotebookNode

from . import SubmissionWarning
from .reading import NEW_CELL, name_in, with_ids
from .reference import ReferenceCell


def restore(
    nb: NotebookNode, reference: Sequence[ReferenceCell], outline: Sequence[str] = ()
) -> list[SubmissionWarning]:
    """Put the instructor's cells back into a notebook, in place, and keep the student's answers.

    The notebook is as `read_notebook` gives it, the reference in the order of the instructor's. The outline
    is all of that: the name of each cell, or the text of one that has none. What was restored that the
    student, or a person, should know is returned.
    """
    by_name = {cell.name: cell for cell in reference}
    _recognize(nb.cells, reference)
    warnings = _find_essays(nb, by_name, outline or list(by_name))
    warnings += _keep_one_of_each(nb, by_name)
    warnings += _take_apart(nb, by_name)
    changed = []
    for number, cell in enumerate(nb.cells):
        name = name_in(cell)
        if name is None or name not in by_name:
            cell.metadata.pop("nbgrader", None)
            continue
        original = by_name[name]
        as_released = _words(cell.source) in (_words(original.source), _words(original.released))
        if not original.answered and not as_released:
            changed.append(original.name)
        source = cell.source if original.answered else original.source
        if original.answered and _words(source) == _words(original.released):
            source = original.released  # which nbgrader tells by every character from an answer
        nb.cells[number] = _restored_cell(original, source, cell)
    # What stood there may have been the answer.
    lost = {cell.name for cell in reference if cell.answered}.difference(map(name_in, nb.cells))
    text = "Cells that students must not change were changed, and have been restored: {}."
    warnings += _about(changed, text, person=bool(lost))
    warnings += _changed_order(nb, reference)
    warnings += _put_back(nb, reference)
    with_ids(nb.cells)
    return warnings


def _about(names: Sequence[str], text: str, *, person: bool = False) -> list[SubmissionWarning]:
    """A warning that names cells; none where there are none."""
    return [SubmissionWarning(text.format(", ".join(names)), person)] if names else []


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
    texts = Counter(_words(cell.released) for cell in reference if not cell.answered)
    by_text = {_words(cell.released): cell.name for cell in reference if texts[_words(cell.released)] == 1}
    named = {name_in(cell) for cell in cells}
    for cell in cells:
        if name_in(cell) in names:
            continue
        name = cell.id if cell.id in names else by_text.get(_words(cell.source))
        if name and name not in named:
            cell.metadata["nbgrader"] = {"grade_id": name}
            named.add(name)


def _words(text: str) -> str:
    """A text for comparing: editors change the ends of lines, tabs, and empty lines at the end."""
    return " ".join(text.split())


def _find_essays(
    nb: NotebookNode, by_name: Mapping[str, ReferenceCell], outline: Sequence[str]
) -> list[SubmissionWarning]:
    """Name the cells of essays that have lost their names, by the cells between which they stand."""
    there = {name_in(cell) for cell in nb.cells}
    lost = {name for name, cell in by_name.items() if cell.grade and cell.answered and name not in there}
    if not lost:
        return []
    theirs = [name if (name := name_in(cell)) in by_name else _words(cell.source) for cell in nb.cells]
    ours = [one if one in by_name else _words(one) for one in outline]
    found, joined = [], set()
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        names = [name for name in outline[i1:i2] if name in lost]
        if kind == "equal" or not names:
            continue
        kinds = {by_name[name].cell_type for name in names}
        cells = [
            cell
            for cell in nb.cells[j1:j2]
            if cell.cell_type in kinds and cell.source.strip() and name_in(cell) not in by_name
        ]
        if len(names) == 1 and len(cells) > 1 and kinds == {"markdown"}:
            joined |= {id(cell) for cell in cells[1:]}
            cells = [_join(cells)]
        if len(names) == len(cells):
            for name, cell in zip(names, cells, strict=True):
                cell.metadata["nbgrader"] = {"grade_id": name}
            found += names
    nb.cells = [cell for cell in nb.cells if id(cell) not in joined]
    return _about(found, "Cells had lost their names, and were found by their places: {}.")


def _join(cells: Sequence[NotebookNode]) -> NotebookNode:
    """The first of some cells, with the texts and pictures of all."""
    cells[0].source = "\n\n".join(dict.fromkeys(cell.source.strip() for cell in cells))
    pictures = {name: each for cell in cells for name, each in cell.get("attachments", {}).items()}
    if pictures:
        cells[0].attachments = pictures
    return cells[0]


def _take_apart(nb: NotebookNode, by_name: Mapping[str, ReferenceCell]) -> list[SubmissionWarning]:
    """Keep what stands before or behind a locked cell's own text: somebody has merged it with an answer."""
    cells, merged = [], []
    for cell in nb.cells:
        original = by_name.get(name_in(cell) or "")
        whole = f"\n{cell.source.strip()}\n"
        own = f"\n{original.released.strip()}\n" if original and not original.answered else "\n"
        parts = [part.strip("\n") for part in whole.split(own, 1)] if own.strip() and own in whole else []
        if original and _words(cell.source) == _words(original.source):
            parts = []  # an instructor's own cell, with its hidden tests
        cells.append(cell)
        if original and any(parts) and cell.cell_type == original.cell_type:
            merged.append(original.name)
            cell.source = original.released
            before, behind = ([NEW_CELL[cell.cell_type](part)] if part else [] for part in parts)
            for new in (*before, *behind):
                new.id = ""  # which `with_ids` gives it
            cells[-1:] = [*before, cell, *behind]
    nb.cells = cells
    return _about(merged, "Cells were merged into locked ones, and have been taken apart: {}.")


def _keep_one_of_each(nb: NotebookNode, by_name: dict[str, ReferenceCell]) -> list[SubmissionWarning]:
    """Of several copies of a cell, let one have the name.

    Of the copies of an answer, the last one that was changed counts, as it does when all cells are run.
    Changed copies before it stay as cells of the student's own. Unchanged copies are deleted: they would undo
    the answer.
    """
    warnings = []
    dropped = set()
    for name, original in by_name.items():
        copies = [cell for cell in nb.cells if name_in(cell) == name]
        if len(copies) < 2:
            continue
        written = [cell for cell in copies if _words(cell.source) != _words(original.released)]
        differ = original.answered and len({cell.source.strip() for cell in written}) > 1
        is_text = original.answered and original.cell_type == "markdown"
        kept = (written or copies)[-1] if original.answered else copies[0]
        which = ": the last one that you changed counts" if differ else ""
        if differ and is_text:
            kept, which = _join(written), ": what you wrote in them stands together"
        for cell in copies:
            if cell is kept:
                continue
            del cell.metadata["nbgrader"]
            if not original.answered or is_text or cell not in written:
                dropped.add(id(cell))
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
    is_code = any(cell.name in moved and cell.locked and cell.cell_type == "code" for cell in reference)
    return _about(moved, "Cells were moved: {}. The checks ran in the original order.", person=is_code)


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
    # The student may have answered in another cell, which only a person can see.
    person = any(original.answered and original.name in missing for original in reference)
    return _about(missing, "Cells were missing, and have been put back: {}.", person=person)
