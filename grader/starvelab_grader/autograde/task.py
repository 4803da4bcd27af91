"""One submission, graded by nbgrader in a course of its own, in whatever process runs this."""

from __future__ import annotations

import errno
import io
import logging
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from ..submissions import SubmissionWarning
from ..submissions.reading import UnreadableNotebookError, read_notebook
from ..submissions.reference import ReferenceCell
from ..submissions.submission import Submission
from ..text import enumerated
from .definition import Definition
from .execution import MODES, RESULT
from .lost_points import cost_of_running, outputs_only
from .restoring import REJECTED, WARNINGS
from .runners import Runners

# In its own course every student has the same name: no character of it can mislead a path.
STUDENT = "student"
IMPOSSIBLE_NAME = {errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL}
MAX_LOG = 4000  # characters


@dataclass
class GradingResult:
    """The result of grading one submission.

    Attributes
    ----------
    student : str
    grades : dict of dict of pair
        By notebook and cell: points or None, and whether a person has to mark it.
    comments : dict of dict of str or None
        By notebook and cell.
    files : dict of str to bytes
        The graded notebooks and what stood beside them.
    warnings : dict of str to list of SubmissionWarning
        By notebook.
    rejected : list of str
        Notebooks that were missing or could not be read.
    notes : dict of dict of dict of list
        By notebook and cell, what the checks noted, by names.
    mode : str
        How student code was run.
    seconds : float
    out_of_time : bool
        Whether it ran out of time while others used the cores: on an idle machine it might earn more.
    limited : bool
        Whether its notebooks reached a limit together, so that one of them may have cost another points.
    failed : str
        Why it could not be graded; all other fields are empty then.
    """

    student: str
    grades: dict[str, dict[str, tuple[float | None, bool]]] = field(default_factory=dict)
    comments: dict[str, dict[str, str | None]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    warnings: dict[str, list[SubmissionWarning]] = field(default_factory=dict)
    rejected: list[str] = field(default_factory=list)
    notes: dict[str, dict[str, dict[str, list[object]]]] = field(default_factory=dict)
    mode: str = ""
    seconds: float = 0.0
    out_of_time: bool = False
    limited: bool = False
    failed: str = ""


def grade(submission: Submission, definition: Definition, runners: Runners) -> GradingResult:
    """Grade a submission. An error is written into the result, and not raised."""
    start = time.monotonic()
    log = io.StringIO()
    try:
        with runners.lock, _course(submission, definition, runners) as (folder, config):
            logger = logging.getLogger(f"{__name__}.{id(log)}")
            logger.propagate = False
            logger.addHandler(logging.StreamHandler(log))
            course = CourseDirectory(config=config, log=logger)
            try:
                Autograde(coursedir=course, config=config, log=logger).start()
            finally:
                runners.end_student()
            result = _read_result(folder, submission, definition)
    # A class is graded to its end, whatever one submission does; nbgrader ends Python at times.
    except (Exception, SystemExit):
        reason = f"{log.getvalue()[-MAX_LOG:]}\n{traceback.format_exc()}"
        return GradingResult(submission.student, failed=reason.strip(), seconds=time.monotonic() - start)
    result.seconds = time.monotonic() - start
    return result


@contextmanager
def _course(
    submission: Submission, definition: Definition, runners: Runners
) -> Iterator[tuple[Path, Config]]:
    """A temporary course with one student, and its configuration."""
    with tempfile.TemporaryDirectory(prefix="starvelab-grading-") as name:
        folder = Path(name)
        (folder / "gradebook.db").write_bytes(definition.gradebook)
        for inner, content in definition.source.items():
            _write(folder / "source" / definition.assignment / inner, content)
        submitted = folder / "submitted" / STUDENT / definition.assignment
        rejected = dict(submission.rejected)
        warnings = {name: list(each) for name, each in submission.warnings.items()}
        for notebook in _to_grade(submission, definition):
            cells = definition.cells[notebook]
            content = _notebook(notebook, submission, cells, rejected, warnings)
            _write(submitted / f"{notebook}.ipynb", content)
        lost = [each for each in submission.files.items() if not _write_if_possible(submitted, *each)]
        if lost:
            names = enumerated([inner for inner, _ in lost])
            text = f"Of a file and a folder with one name the file that came first counts, without {names}."
            warning = SubmissionWarning(text, person=True)
            warnings.setdefault(_to_grade(submission, definition)[0], []).append(warning)
        config = Config(definition.settings)
        config.CourseDirectory = Config(
            root=str(folder),
            db_url=f"sqlite:///{folder / 'gradebook.db'}",
            assignment_id=definition.assignment,
            student_id=STUDENT,
        )
        config.RestoreStructure = Config(
            known_warnings={
                name: [[one.text, one.person] for one in each] for name, each in warnings.items()
            },
            rejected={name: [one.text, one.person] for name, one in rejected.items()},
        )
        own = {"shown_warnings": sorted(submission.shown_warnings), "runners": runners}
        config.IsolatedExecute = Config({**definition.settings.get("IsolatedExecute", {}), **own})
        yield folder, config


def _to_grade(submission: Submission, definition: Definition) -> list[str]:
    chosen = submission.to_grade
    return [name for name in definition.cells if chosen is None or name in chosen]


def _notebook(
    name: str,
    submission: Submission,
    cells: Iterable[ReferenceCell],
    rejected: dict[str, SubmissionWarning],
    warnings: dict[str, list[SubmissionWarning]],
) -> bytes:
    """A notebook that nbgrader can read; an empty one, and the reason, where the file cannot be read."""
    nb = nbformat.v4.new_notebook()
    if name in submission.notebooks:
        content = submission.notebooks[name]
        try:
            nb, more = read_notebook(content)
            warnings.setdefault(name, []).extend([*more, *outputs_only(content, cells)])
        except UnreadableNotebookError as error:
            text = f"`{name}.ipynb` {error} Its exercises earn no points."
            rejected[name] = SubmissionWarning(text, person=True)
    return bytes(nbformat.writes(nb).encode())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _write_if_possible(folder: Path, inner: str, content: bytes) -> bool:
    """Write a student's file; False where two names collide, such as a file and a folder: the first stays."""
    try:
        _write(folder / inner, content)
    except OSError as error:
        if error.errno not in IMPOSSIBLE_NAME:
            raise
        return False
    return True


def _read_result(folder: Path, submission: Submission, definition: Definition) -> GradingResult:
    """What nbgrader wrote into the gradebook and into the notebooks."""
    result = GradingResult(submission.student)
    names = _to_grade(submission, definition)
    with closing(Gradebook(f"sqlite:///{folder / 'gradebook.db'}")) as book:
        entry = book.find_submission(definition.assignment, STUDENT)
        for notebook in [each for each in entry.notebooks if each.name in names]:
            result.grades[notebook.name] = {
                grade.name: (grade.auto_score, bool(grade.needs_manual_grade)) for grade in notebook.grades
            }
            result.comments[notebook.name] = {
                comment.name: comment.auto_comment for comment in notebook.comments
            }
    autograded = folder / "autograded" / STUDENT / definition.assignment
    for path in sorted(autograded.rglob("*")):
        if path.is_file():
            result.files[path.relative_to(autograded).as_posix()] = path.read_bytes()
    modes = []
    for name in names:
        nb = nbformat.reads(result.files[f"{name}.ipynb"].decode(), as_version=4)
        run = nb.metadata[RESULT]
        warnings = [SubmissionWarning(*each) for each in nb.metadata.get(WARNINGS, [])]
        result.warnings[name] = warnings + cost_of_running(nb)
        result.notes[name] = dict(run.get("notes", {}))
        result.out_of_time |= bool(run.get("out_of_time"))
        result.limited |= bool(run.get("limited"))
        if REJECTED in nb.metadata:
            result.rejected.append(name)
        modes.append(run["mode"])
    # Notebooks that were not run say nothing about the others.
    result.mode = max(modes, key=MODES.index)
    return result
