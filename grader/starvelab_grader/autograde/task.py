"""One submission, which goes through nbgrader's steps in whatever process runs this, without a gradebook."""

import errno
import io
import json
import logging
import time
import traceback
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution
from traitlets.config import Config

from ..files import read_files, scratch_folder, write_files
from ..sandbox.process import Runners
from ..submissions import SubmissionWarning
from ..submissions.reading import UnreadableNotebookError, read_notebook
from ..submissions.reference import name_of
from ..submissions.submission import Submission
from ..text import enumerated
from .definition import Definition
from .execution import MODES, REJECTED, RESULT, WARNINGS, IsolatedExecute, add_warnings
from .exercises import Exercise, exercises_of
from .losses import answered_elsewhere, cost_of_running
from .nbgrader_private import NO_RESPONSE, environment_with, steps_of

# In its own course every student has the same name: no character of it can mislead a path.
STUDENT = "student"
IMPOSSIBLE_NAME = {errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL}
MAX_LOG = 4000  # characters


@dataclass
class Graded:
    """What a submission earns and what is said of it: by notebook, and by cell where dicts are nested."""

    student: str
    # Points, or None, and whether a person has to mark it.
    grades: dict[str, dict[str, tuple[float | None, bool]]] = field(default_factory=dict)
    comments: dict[str, dict[str, str | None]] = field(default_factory=dict)
    exercises: dict[str, dict[str, Exercise]] = field(default_factory=dict)
    warnings: dict[str, list[SubmissionWarning]] = field(default_factory=dict)
    rejected: list[str] = field(default_factory=list)  # notebooks that were missing or could not be read
    # What the checks noted, by names.
    notes: dict[str, dict[str, dict[str, list[object]]]] = field(default_factory=dict)
    mode: str = ""  # how student code was run: of several notebooks the least safe one
    seconds: float = 0.0  # that the grading took
    limited: bool = False  # its notebooks reached a limit together: one may have cost another points


@dataclass
class GradingResult(Graded):
    """The result of grading one submission just now."""

    files: dict[str, bytes] = field(default_factory=dict)  # graded notebooks and what stood beside them
    out_of_time: bool = False  # while others used the cores: on an idle machine it might earn more
    failed: str = ""  # why it could not be graded; all other fields are empty then


def log_into(log: io.StringIO) -> logging.Logger:
    """Return a logger of its own that writes there and nowhere else."""
    logger = logging.getLogger(f"{__name__}.{id(log)}")
    logger.propagate = False
    logger.addHandler(logging.StreamHandler(log))
    return logger


def grade(submission: Submission, definition: Definition, runners: Runners) -> GradingResult:
    """Grade a submission. An error is written into the result, and not raised."""
    start, log = time.monotonic(), io.StringIO()
    try:
        with runners.lock, environment_with(NBGRADER_EXECUTION="autograde"):
            try:
                result = _graded(submission, definition, runners, log_into(log))
            finally:
                runners.end_student()
    # A class is graded to its end, whatever one submission does; a step of nbgrader ends Python at times.
    except (Exception, SystemExit):
        reason = f"{log.getvalue()[-MAX_LOG:]}\n{traceback.format_exc()}"
        result = GradingResult(submission.student, failed=reason.strip())
    result.seconds = round(time.monotonic() - start, 3)
    return result


def _graded(
    submission: Submission, definition: Definition, runners: Runners, logger: logging.Logger
) -> GradingResult:
    """Take each notebook through nbgrader's steps, as the course has them, in a temporary folder."""
    result, assignment = GradingResult(submission.student), definition.assignment
    with scratch_folder() as root:
        config = Config(definition.settings)
        config.CourseDirectory = Config(root=str(root), assignment_id=assignment, student_id=STUDENT)
        own = {"shown_warnings": sorted(submission.shown_warnings), "runners": runners}
        config.IsolatedExecute = Config({**definition.settings.get("IsolatedExecute", {}), **own})
        write_files(root / "source" / assignment, definition.source)
        submitted = root / "submitted" / STUDENT / assignment
        lost = [name for name, each in submission.files.items() if not _write(submitted, name, each)]
        folder, steps = steps_of(config, logger, definition.source)
        to_grade = sorted(definition.cells if submission.to_grade is None else submission.to_grade)
        for notebook in to_grade:
            with runners.reading():
                nb, names = _read(notebook, submission, definition)
            if lost and notebook == to_grade[0]:
                text = "Of a file and a folder with one name the file that came first counts, without"
                names["warnings"].append(SubmissionWarning(f"{text} {enumerated(lost)}.", person=True))
            # There is no gradebook: this tells submissions from each other.
            resources = {"metadata": {"path": str(folder)}, "nbgrader": names | {"db_url": str(root)}}
            for step in steps:
                # What runs the notebook counts itself.
                with nullcontext() if isinstance(step, IsolatedExecute) else runners.reading():
                    nb, resources = step(nb, resources)
            with runners.reading():
                _add(result, notebook, nb, definition)
        result.files |= read_files(folder)
    return result


def _read(name: str, submission: Submission, definition: Definition) -> tuple[NotebookNode, dict[str, Any]]:
    """Return a notebook, or an empty one if it cannot be read, and what its steps are to know of it."""
    nb, cells, rejected = nbformat.v4.new_notebook(), definition.cells[name], submission.rejected
    warnings, reason = list(submission.warnings.get(name, ())), rejected.get(name)
    if (content := submission.notebooks.get(name)) is not None:
        try:
            nb, more = read_notebook(content)
            warnings += more
        except UnreadableNotebookError as error:
            text = f"`{name}.ipynb` {error} Its exercises earn no points."
            reason = SubmissionWarning(text, person=True)
    names = {"assignment": definition.assignment, "student": STUDENT, "notebook": name}
    return nb, names | {"cells": cells, "warnings": warnings, "rejected": reason}


def _write(folder: Path, inner: str, content: bytes) -> bool:
    """Write a file; False where two names collide, such as a file and a folder: the first stays."""
    path = folder / inner
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        if error.errno not in IMPOSSIBLE_NAME:
            raise
        return False
    return True


def _add(result: GradingResult, notebook: str, nb: NotebookNode, definition: Definition) -> None:
    """Add a notebook that has been through all steps to a result."""
    written = json.loads(definition.source.get(f"{notebook}.ipynb", b"{}"))
    if kernel := written.get("metadata", {}).get("kernelspec"):
        nb.metadata["kernelspec"] = kernel
    cells = definition.cells[notebook]
    add_warnings(nb, answered_elsewhere(nb, cells))  # the student reads it too
    nbformat.validate(nb, relax_add_props=True)
    result.files[f"{notebook}.ipynb"] = f"{nbformat.v4.writes(nb)}\n".encode()
    grades = result.grades[notebook] = {one.name: (None, True) for one in cells if one.grade or one.task}
    comments = result.comments[notebook] = {one.name: None for one in cells if one.solution or one.task}
    for cell in nb.cells:
        if (name := name_of(cell)) in grades and is_grade(cell):
            points, _ = determine_grade(cell)
            grades[name] = (None, True) if points is None else (float(points), False)
        if name in comments and is_solution(cell):
            is_as_given = cell.metadata.nbgrader.get("checksum") == compute_checksum(cell)
            comments[name] = NO_RESPONSE if is_as_given else None
    run = nb.metadata[RESULT]
    warnings = [SubmissionWarning(*each) for each in nb.metadata.get(WARNINGS, [])]
    result.warnings[notebook] = [*warnings, *cost_of_running(nb)]
    result.notes[notebook] = dict(run.get("notes", {}))
    source = definition.source.get(f"{notebook}.ipynb")
    result.exercises[notebook] = exercises_of(cells, source, grades, run.get("said", {}))
    result.out_of_time |= bool(run.get("is_out_of_time"))
    result.limited |= bool(run.get("is_limited"))
    result.rejected += [notebook] if REJECTED in nb.metadata else []
    # Notebooks that were not run say nothing about the others.
    result.mode = max(filter(None, (result.mode, run["mode"])), key=MODES.index)
