"""What a student submitted: the notebooks that were asked for, and the files beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.utils import parse_utc

from starvelab.prediction_file import FILE_NAME as PREDICTIONS
from starvelab.prediction_file import parse as parse_predictions

from ..fingerprints import fingerprint
from ..text import enumerated, shown
from .archives import FoundFile, SubmissionReader
from .matching import (
    MAX_NOTEBOOK,
    TIMESTAMP,
    cells_named_in,
    files_beside,
    files_by_notebook,
    is_of_another_assignment,
    normalized,
    several_files,
)
from .warnings import SubmissionWarning


@dataclass
class Submission:
    """A submission, read.

    Attributes
    ----------
    student, assignment : str
    notebooks : dict of str to bytes
        By the name of the notebook that was asked for.
    rejected : dict of str to SubmissionWarning
        Notebooks that are missing or cannot be read, and why, in words for the student.
    warnings : dict of str to list of SubmissionWarning
        By notebook; those about the submission as a whole stand under the first.
    files : dict of str to bytes
        What was submitted beside the notebooks.
    timestamp : str or None
        When it was submitted, as whoever collected it wrote beside it.
    to_grade : frozenset of str or None
        The notebooks to grade; None for all. Those that were graded before stay as they are.
    shown_warnings : frozenset of str
        Warnings that stand in notebooks which stay as they are.
    """

    student: str
    assignment: str
    notebooks: dict[str, bytes] = field(default_factory=dict)
    rejected: dict[str, SubmissionWarning] = field(default_factory=dict)
    warnings: dict[str, list[SubmissionWarning]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    timestamp: str | None = None
    to_grade: frozenset[str] | None = None
    shown_warnings: frozenset[str] = frozenset()

    def fingerprints(self) -> dict[str, str]:
        """By notebook that was asked for, the same for the same content, and for no other.

        The files beside the notebooks count for each of them, since each may read them.
        """
        beside = fingerprint(self.files, self.student, self.assignment)
        fingerprints = {}
        for name in sorted({*self.notebooks, *self.rejected}):
            notebook = {"": self.notebooks[name]} if name in self.notebooks else {}
            warnings = [*self.warnings.get(name, []), *filter(None, [self.rejected.get(name)])]
            texts = [(warning.text, warning.person) for warning in warnings]
            fingerprints[name] = fingerprint(notebook, name, beside, texts)
        return fingerprints


def read_submission(folder: Path, student: str, assignment: str, asked: Mapping[str, set[str]]) -> Submission:
    """Read what stands in the folder of a submission.

    Parameters
    ----------
    folder : Path
    student, assignment : str
    asked : mapping of str to set of str
        The notebooks that are asked for, each with the names of its cells.
    """
    reader = SubmissionReader()
    files = list(reader.files(folder))
    submission = Submission(student, assignment)
    by_notebook = files_by_notebook(files, asked)
    for name, cells in asked.items():
        if not by_notebook[name]:
            all_cells = set().union(*asked.values())
            submission.rejected[name] = _why_missing(name, reader, files, all_cells)
            continue
        chosen, *others = by_notebook[name]
        submission.warnings[name] = _warnings_about(name, chosen, others, cells)
        if len(chosen.content) > MAX_NOTEBOOK:
            text = (
                f"`{shown(chosen.path.name)}` is larger than {MAX_NOTEBOOK / 1e6:g} MB. "
                "Clear its outputs, save it and submit it again."
            )
            submission.rejected[name] = SubmissionWarning(text, person=True)
            continue
        submission.notebooks[name] = chosen.content
    submission.files, more = files_beside(files, by_notebook.values())
    general = [*reader.warnings, *more]
    if reader.tools:
        names = enumerated(list(reader.tools))
        text = f"Hidden files and folders, and those that tools make, were left out: {names}."
        general.append(SubmissionWarning(text))
    if PREDICTIONS in submission.files:
        general += _warnings_about_predictions(submission.files[PREDICTIONS])
    if TIMESTAMP in submission.files:
        submission.timestamp, more = _parse_timestamp(submission.files.pop(TIMESTAMP))
        general += more
    if general:
        first = next(iter(asked))
        submission.warnings[first] = [*general, *submission.warnings.get(first, [])]
    return submission


def _warnings_about(
    name: str, chosen: FoundFile, others: Sequence[FoundFile], cells: set[str]
) -> list[SubmissionWarning]:
    """Warnings about the file that counts as a notebook."""
    warnings = []
    file_name = shown(chosen.path.name)
    if chosen.path.name != f"{name}.ipynb":
        warnings.append(SubmissionWarning(f"The file of this notebook is called `{file_name}`."))
    if different := [other for other in others if other.content != chosen.content]:
        warnings.append(several_files("this notebook", chosen, different))
    if is_of_another_assignment(chosen.content, cells):
        text = f"`{file_name}` holds no cell of this notebook: it may be of another assignment."
        warnings.append(SubmissionWarning(text, person=True))
    return warnings


def _parse_timestamp(content: bytes) -> tuple[str | None, list[SubmissionWarning]]:
    text = content[:100].decode("utf-8", "replace").strip()
    if not text:
        return None, []
    try:
        return str(parse_utc(text).isoformat()), []
    # A year that no calendar has, or a time zone of a thousand hours: each fails in its own way.
    except Exception:
        return None, [SubmissionWarning(f"`{TIMESTAMP}` holds no time: `{shown(text)}`.", person=True)]


def _warnings_about_predictions(content: bytes) -> list[SubmissionWarning]:
    problem = parse_predictions(content).problem
    if problem is None:
        return []
    text = f"Predictions cannot be read, or not all of them: {shown(problem)}"
    return [SubmissionWarning(text, person=True)]


def _why_missing(
    name: str, reader: SubmissionReader, files: Sequence[FoundFile], known_cells: set[str]
) -> SubmissionWarning:
    if name in reader.links:
        text = f"`{name}.ipynb` was submitted as a link, and not as a file. Submit the file itself."
        return SubmissionWarning(text, person=True)
    text = f"`{name}.ipynb` was not submitted, so its exercises earn no points."
    stem = normalized(name)
    if alike := [file.path.name for file in files if stem in normalized(file.path.name)]:
        text += f" `{shown(alike[0])}` is not the notebook itself. Submit the notebook, as .ipynb."
    elif other := [file.path.name for file in files if cells_named_in(file.content) - known_cells]:
        text += f" `{shown(other[0])}` is of another assignment."
    return SubmissionWarning(text, person=True)
