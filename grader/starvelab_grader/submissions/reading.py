"""A notebook read from a student's file, and restored: the instructor's cells put back, the answers kept.

Nothing of the file is kept but the types, sources and names of its cells: no metadata and no flag of a
student's reaches nbgrader.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

import nbformat
from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_notebook

from ..errors import GraderError
from ..text import enumerated, shown, storable
from . import SubmissionWarning, Warnings
from .reference import ReferenceCell, graded_by, name_of, names_defined, names_in_order

ByName: TypeAlias = Mapping[str | None, ReferenceCell]
MAX_NOTEBOOK = 20_000_000  # bytes
MAX_CELLS = 2000
MAX_TEXT = 5_000_000  # characters of all cells, which may hold a picture
MAX_VALUES = 3_000_000  # of JSON, which takes a hundred bytes of memory for each
MAX_OLD_VALUES = 50_000  # of a notebook in an old format, beside its outputs: nbformat converts it slowly
# One that does not end is matched as well: else it would be searched from each of its quotation marks on.
_TEXT = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
JSON_TEXT = re.compile(_TEXT, re.DOTALL)
# In a text of JSON each quotation mark has a backslash before it, so this is a name.
OUTPUTS = re.compile(r'(?<!\\)"outputs"\s*+:\s*+\[')
TO_BRACKET = re.compile(rf'(?:[^\[\]{{}}"]++|{_TEXT})*+([\[\]{{}}])', re.DOTALL)
CONFLICT = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)
CELL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
# What a new cell of each type has besides what all have.
CELL_TYPES: dict[str, dict[str, object]] = {
    "code": {"execution_count": None, "outputs": []}, "markdown": {}, "raw": {}
}  # fmt: skip


class UnreadableNotebookError(GraderError, ValueError):
    """A submitted file is no notebook that could be graded; the message is for the student."""


def read_notebook(content: bytes) -> tuple[NotebookNode, list[SubmissionWarning]]:
    """Return a new notebook with the sources, types and names of the cells in a file."""
    warnings = Warnings()
    if len(content) > MAX_NOTEBOOK:
        problem = f"is larger than {MAX_NOTEBOOK / 1e6:g} MB."
        raise UnreadableNotebookError(f"{problem} Clear its outputs, save it and submit it again.")
    text = text_of(content, warnings)
    data = _json(text)
    major = data.get("nbformat", 4) if isinstance(data, dict) else 4
    if not isinstance(major, int) or major > 4:
        raise UnreadableNotebookError(
            f"is in format {shown(str(major))[:20]}, which is newer than this grader can read. "
            "Save it with JupyterLab and submit it again."
        )
    if major < 4:
        text = _with_few_values(without_outputs(text), MAX_OLD_VALUES)
        try:
            data = nbformat.reads(text, as_version=4)
        # A damaged old notebook can fail anywhere in the conversion.
        except Exception as error:
            raise UnreadableNotebookError(
                f"is in the old format {major} and could not be converted. "
                "Open and save it in JupyterLab, and submit it again."
            ) from error
        warnings.add("It was in an old format, and was converted.")
    cells = data.get("cells") if isinstance(data, dict) else None
    if not isinstance(cells, list):
        raise UnreadableNotebookError("is not a notebook: it has no cells.")
    if len(cells) > MAX_CELLS:
        problem = f"has {len(cells)} cells, and {MAX_CELLS} are allowed."
        raise UnreadableNotebookError(f"{problem} Delete cells, and submit it again.")
    left_out: list[str] = []
    clean = [new for cell in cells if (new := _clean(cell, left_out)) is not None]
    if (length := sum(len(cell.source) for cell in clean)) > MAX_TEXT:
        problem = f"has cells with {length} characters, and {MAX_TEXT} are allowed."
        raise UnreadableNotebookError(f"{problem} Delete some, and submit it again.")
    if lost := len(cells) - len(clean):
        warnings.add(f"{lost} of its cells were damaged and could not be read.", person=True)
    if left_out:
        warnings.add(f"Attachments to its texts other than pictures were left out: {enumerated(left_out)}.")
    return new_notebook(cells=with_ids(clean)), warnings


def text_of(content: bytes, warnings: Warnings) -> str:
    """Return the text of a file, and warn where its encoding is not known; or UnreadableNotebookError."""
    if not content.strip(b" \t\r\n\0"):
        raise UnreadableNotebookError("is empty.")
    try:
        text = content.decode(json.detect_encoding(content))
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
        warnings.add("Its text was not in UTF-8: some characters may be wrong.", person=True)
    return text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")


def _json(text: str) -> object:
    text = _with_few_values(text, MAX_VALUES)
    try:
        return json.loads(text)
    except RecursionError as error:
        raise UnreadableNotebookError("is nested more deeply than any notebook is.") from error
    except ValueError as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        if CONFLICT.search(text):
            problem = "holds a merge conflict that was not resolved (lines that begin with <<<<<<<)."
            remedy = "Resolve it, and submit the notebook again."
        elif text.lstrip()[:1] == "<":
            problem = "is a web page, not a notebook."
            remedy = "Download the notebook itself, as .ipynb, and submit that."
        elif text.lstrip()[:1] not in ("{", "["):
            problem = "is no notebook, whatever its name is."
            remedy = "Submit the .ipynb file that JupyterLab saved."
        else:
            problem = f"is damaged{where}: perhaps a part of it is missing."
            remedy = "Open it in JupyterLab, and submit it again."
        raise UnreadableNotebookError(f"{problem} {remedy}") from error


def _with_few_values(text: str, most: int) -> str:
    """Return JSON without its outputs if it has too many values with them; or UnreadableNotebookError."""
    if _values_in(text) > most and _values_in(text := without_outputs(text)) > most:
        raise UnreadableNotebookError(
            f"holds more than {most} values. Clear its outputs, save it and submit it again."
        )
    return text


def _values_in(text: str) -> int:
    """Return how many values JSON has at most, without reading it."""
    without_texts = JSON_TEXT.sub("", text)
    return sum(map(without_texts.count, ",[{"))


def without_outputs(text: str) -> str:
    """Return a notebook without its outputs, which are made anew, or as it is where they do not end.

    It is not read as JSON, whose values would take a hundred bytes of memory each.
    """
    kept, at, brackets_left = list[str](), 0, MAX_VALUES
    while begin := OUTPUTS.search(text, at):
        kept.append(text[at : begin.end()])
        at, depth = begin.end(), 1
        while depth:
            bracket = TO_BRACKET.match(text, at)
            brackets_left -= 1
            if bracket is None or brackets_left < 0:
                return text
            at, depth = bracket.end(), depth + (1 if bracket[1] in "[{" else -1)
        at -= 1  # the last one stays
    return "".join([*kept, text[at:]])


def _clean(cell: object, left_out: list[str]) -> NotebookNode | None:
    """Return a new cell with what counts of this one; `left_out` gets attachments that are no pictures."""
    if not isinstance(cell, dict) or str(cell.get("cell_type")) not in CELL_TYPES:
        return None
    source = cell.get("source", "")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        return None
    # Lines end as in Python itself, whatever system the notebook was saved on.
    given = cell.get("id")
    cell_id = given if isinstance(given, str) and CELL_ID.fullmatch(given) else ""
    new = _new_cell(cell["cell_type"], re.sub(r"\r\n?", "\n", storable(source)), cell_id)
    metadata = cell.get("metadata")
    flags = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    if isinstance(flags, dict) and isinstance(flags.get("grade_id"), str):
        new.metadata["nbgrader"] = {"grade_id": flags["grade_id"]}
    attached = cell.get("attachments")
    if new.cell_type == "markdown" and isinstance(attached, dict):
        pictures = {name: each for name, each in attached.items() if _are_pictures(each)}
        left_out += [name for name in attached if name not in pictures]
        if pictures:
            new.attachments = {storable(name): each for name, each in pictures.items()}
    return new


def _new_cell(cell_type: str, source: str, cell_id: str = "") -> NotebookNode:
    """Return a cell; without an id it gets one by `with_ids`."""
    # nbformat's own functions validate each cell; the notebook as a whole is validated where it is written.
    values = {"cell_type": cell_type, "id": cell_id, "metadata": {}, "source": source}
    new: NotebookNode = from_dict(CELL_TYPES[cell_type] | values)
    return new


def _are_pictures(attached: object) -> bool:
    return isinstance(attached, dict) and all(
        re.fullmatch(r"image/[A-Za-z0-9.+-]+", kind) and isinstance(data, str) and data.isascii()
        for kind, data in attached.items()
    )


def with_ids(cells: list[NotebookNode]) -> list[NotebookNode]:
    """Return the same cells, each with an id of its own."""
    taken: set[str] = set()
    for number, cell in enumerate(cells):
        if not cell.id or cell.id in taken:
            cell.id = f"cell-{number}"
            while cell.id in taken:
                cell.id += "-"
        taken.add(cell.id)
    return cells


def restore(
    nb: NotebookNode, reference: Sequence[ReferenceCell], outline: Sequence[str] = (),
    defines: Mapping[str, set[str]] | None = None,
) -> list[SubmissionWarning]:  # fmt: skip
    """Put the instructor's cells back into a notebook, in place, and keep the student's answers.

    The notebook is as `read_notebook` gives it, the reference in the order of the instructor's. The outline
    is all of that: the name of each cell, or the text of one that has none; and the solution of an answer
    defines names. What was restored that the student, or a person, should know is returned.
    """
    by_name: ByName = {cell.name: cell for cell in reference}
    _recognize(nb.cells, reference)
    warnings = _find_answers(nb, by_name, defines or {})
    warnings += _find_essays(nb, by_name, outline or [cell.name for cell in reference])
    warnings += _keep_one_of_each(nb, by_name)
    changed, cells, unanswered = [], list[NotebookNode](), _unanswered(nb, reference)
    lost = {cell.name for cell in reference if cell.answered}.difference(map(name_of, nb.cells))
    for cell in nb.cells:
        original = by_name.get(name_of(cell))
        if original is None:
            cell.metadata.pop("nbgrader", None)
            cells.append(cell)
            continue
        words, released = _words(cell.source), _words(original.released)
        source = cell.source if original.answered else original.source
        if original.answered and words == released:
            source = original.released  # which nbgrader tells by every character from an answer
        if not original.answered and words not in (_words(original.source), released):
            changed.append(original.name)
            if (lost or original.name in unanswered) and cell.cell_type == original.cell_type:
                cells.append(_new_cell(cell.cell_type, cell.source))  # which may be, or hold, the answer
        cells.append(_restored_cell(original, source, cell))
    nb.cells = cells
    text = "Cells hold a merge conflict that was not resolved: {}. Keep one side, and delete the marks."
    conflicts = [name_of(cell) or cell.id for cell in nb.cells if CONFLICT.search(cell.source)]
    warnings += _about(conflicts, text, person=True)
    text = "Cells that students must not change were changed, and have been restored: {}."
    warnings += _about(changed, text, person=bool(lost) or not unanswered.isdisjoint(changed))
    warnings += _changed_order(nb, reference)
    warnings += _put_back(nb, reference)
    with_ids(nb.cells)
    return warnings


def _unanswered(nb: NotebookNode, reference: Sequence[ReferenceCell]) -> set[str]:
    """Return what is graded for answers of which none is there, or only as it was given out."""
    released, graded = {cell.name: _words(cell.released) for cell in reference}, graded_by(reference)
    named = ((str(name_of(cell)), _words(cell.source)) for cell in nb.cells)
    return {*graded.values()} - {graded.get(name) for name, words in named if words != released.get(name)}


def _about(names: Sequence[str], text: str, *, person: bool = False) -> list[SubmissionWarning]:
    """Return a warning that names cells; none where there are none."""
    return [SubmissionWarning(text.format(", ".join(names)), person)] if names else []


def _words(text: str) -> str:
    """Return a text for comparing: editors change the ends of lines, tabs, and empty lines at the end."""
    return " ".join(text.split())


def _restored_cell(original: ReferenceCell, source: str, cell: NotebookNode | None = None) -> NotebookNode:
    new = _new_cell(original.cell_type, source, cell.id if cell else original.name)
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
    named = set(map(name_of, cells))
    for cell in cells:
        name = cell.id if cell.id in names else by_text.get(_words(cell.source))
        if name and name not in named and name_of(cell) not in names:
            cell.metadata["nbgrader"] = {"grade_id": name}
            named.add(name)


def _find_answers(
    nb: NotebookNode, by_name: ByName, defines: Mapping[str, set[str]]
) -> list[SubmissionWarning]:
    """Name the one cell that defines what an answer is to define, whose own cell is gone or as given out."""
    found = []
    others = [cell for cell in nb.cells if cell.cell_type == "code" and name_of(cell) not in by_name]
    defined = [(cell, names_defined(cell.source)) for cell in others]
    for name in (each for each in defines if each in by_name):
        open_texts = ("", _words(by_name[name].released))
        if any(name_of(cell) == name and _words(cell.source) not in open_texts for cell in nb.cells):
            continue
        cells = [cell for cell, names in defined if defines[name] and defines[name] <= names]
        if len(cells) == 1 and name_of(cells[0]) not in by_name:
            cells[0].metadata["nbgrader"] = {"grade_id": name}
            found.append(name)
    return _about(found, "Answers were in other cells, and were found by the names that they define: {}.")


def _find_essays(nb: NotebookNode, by_name: ByName, outline: Sequence[str]) -> list[SubmissionWarning]:
    """Name the cells of essays that have lost their names, by the cells between which they stand."""
    essays = {cell.name for cell in by_name.values() if cell.grade and cell.answered}
    lost = essays.difference(map(name_of, nb.cells))
    if not lost:
        return []
    theirs = [name if (name := name_of(cell)) in by_name else _words(cell.source) for cell in nb.cells]
    ours = [one if one in by_name else _words(one) for one in outline]
    found, joined = [], set()
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        names = [name for name in outline[i1:i2] if name in lost]
        if kind == "equal" or not names:
            continue
        kinds = {by_name[name].cell_type for name in names}
        others = (cell for cell in nb.cells[j1:j2] if cell.source.strip() and name_of(cell) not in by_name)
        cells = [cell for cell in others if cell.cell_type in kinds]
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
    """Return the first of some cells, with the texts and pictures of all."""
    cells[0].source = "\n\n".join(dict.fromkeys(cell.source.strip() for cell in cells))
    pictures = {name: each for cell in cells for name, each in cell.get("attachments", {}).items()}
    if pictures:
        cells[0].attachments = pictures
    return cells[0]


def _keep_one_of_each(nb: NotebookNode, by_name: ByName) -> list[SubmissionWarning]:
    """Let one of several copies of a cell have the name: of an answer, the last one that was changed."""
    # As it counts when all cells are run. Unchanged copies are deleted: they would undo the answer.
    warnings, dropped = Warnings(), set()
    for name, original in by_name.items():
        copies = [cell for cell in nb.cells if name_of(cell) == name]
        if len(copies) < 2:
            continue
        written = [cell for cell in copies if _words(cell.source) != _words(original.released)]
        differ = original.answered and len({cell.source.strip() for cell in written}) > 1
        is_text = original.answered and original.cell_type == "markdown"
        kept = (written or copies)[-1] if original.answered else copies[0]
        which = ": the last one that you changed counts" if differ else ""
        if differ and is_text:
            kept, which = _join(written), ": your texts in them were joined"
        for cell in copies:
            if cell is not kept:
                del cell.metadata["nbgrader"]
                if not original.answered or is_text or cell not in written:
                    dropped.add(id(cell))
        warnings.add(f"Cell {name} was in the notebook {len(copies)} times{which}.", person=differ)
    nb.cells = [cell for cell in nb.cells if id(cell) not in dropped]
    return warnings


def _changed_order(nb: NotebookNode, reference: Sequence[ReferenceCell]) -> list[SubmissionWarning]:
    """Warn of cells that were moved. They stay where they are, and run as `run_order` says."""
    number = {cell.name: i for i, cell in enumerate(reference)}
    order = [name for name in names_in_order(nb.cells) if name in number]
    # The longest run of cells in the right order has stayed, and every other cell was moved. `runs` holds the
    # best run that ends with each cell so far.
    runs: list[list[str]] = []
    for name in order:
        fitting = [run for run in runs if number[run[-1]] < number[name]]
        runs.append([*max(fitting, key=len, default=[]), name])
    stayed = max(runs, key=len, default=[])
    moved = [name for name in order if name not in stayed]
    return _about(moved, "Cells were moved: {}. Set-ups ran first, and each check after its answer.")


def _put_back(nb: NotebookNode, reference: Sequence[ReferenceCell]) -> list[SubmissionWarning]:
    """Insert missing cells of the instructor's, each after the cell that it followed."""
    # A missing answer is not put back: the code that was given out would undo an answer in another cell.
    missing, behind = [], -1
    for original in reference:
        names = list(map(name_of, nb.cells))
        if original.name in names:
            behind = max(behind, names.index(original.name))
        elif not (original.solution and not original.grade):
            behind += 1
            nb.cells.insert(behind, _restored_cell(original, original.source))
            missing.append(original.name)
    # The student may have answered in another cell, which only a person can see.
    person = any(original.answered and original.name in missing for original in reference)
    return _about(missing, "Cells were missing, and have been put back: {}.", person=person)
