"""One submission, graded by nbgrader in a course of its own, on whatever worker it lands."""

from __future__ import annotations

import errno
import io
import logging
import os
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from ..submissions.files import HandIn
from ..submissions.notebooks import Remark, TrueCell, UnreadableNotebookError, read
from .definition import Definition
from .environment import environment_with
from .execution import MODES, runners
from .oddities import cost_of_running, outputs_only
from .restoring import REFUSED, REMARKS

# nbgrader changes the folder of the whole process.
_one_at_a_time = threading.Lock()
# In its own course every student has the same name: no letter of it can mislead a path.
STUDENT = "student"
IMPOSSIBLE_NAME = {errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL}


@dataclass
class Graded:
    """What came of a submission.

    Attributes
    ----------
    student : str
    grades : dict of dict of pair
        By notebook and cell: points, or None, and whether a person has to mark it.
    comments : dict of dict of str or None
        By notebook and cell.
    files : dict of str to bytes
        The graded notebooks and what stood beside them.
    remarks : dict of str to list of Remark
        By notebook.
    refused : list of str
        Notebooks that were not there or could not be read.
    mistakes : dict of dict of list of str
        By notebook and cell, those that the checks named.
    mode : str
        How student code was run.
    seconds : float
    out_of_time : bool
        Whether it ran out of time, and others had the cores meanwhile: alone it might earn more.
    limited : bool
        Whether its notebooks together reached a limit, so that one of them cost another something.
    failed : str
        Why it could not be graded; then there is nothing else.
    """

    student: str
    grades: dict[str, dict[str, tuple[float | None, bool]]] = field(default_factory=dict)
    comments: dict[str, dict[str, str | None]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    remarks: dict[str, list[Remark]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    mistakes: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    mode: str = ""
    seconds: float = 0.0
    out_of_time: bool = False
    limited: bool = False
    failed: str = ""


def grade(handed: HandIn, definition: Definition) -> Graded:
    """Grade a submission; what goes wrong is told, and not raised."""
    begun = time.monotonic()
    log = io.StringIO()
    try:
        with _one_at_a_time, _course(handed, definition) as (folder, config):
            handler = logging.StreamHandler(log)
            logger = logging.getLogger(f"{__name__}.{id(log)}")
            logger.propagate = False
            logger.addHandler(handler)
            course = CourseDirectory(config=config, log=logger)
            try:
                Autograde(coursedir=course, config=config, log=logger).start()
            finally:
                runners.end_student()
            graded = _read(folder, handed, definition)
    # A class is graded to its end, whatever one hand-in does; nbgrader ends Python at times.
    except (Exception, SystemExit):
        told = f"{log.getvalue()[-4000:]}\n{traceback.format_exc()}"
        return Graded(handed.student, failed=told.strip(), seconds=time.monotonic() - begun)
    graded.seconds = time.monotonic() - begun
    return graded


@contextmanager
def _course(handed: HandIn, definition: Definition) -> Iterator[tuple[Path, Config]]:
    """A temporary course with one student, and the configuration for it."""
    # nbgrader calls `alembic`, which is installed beside Python.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    with (
        environment_with(PATH=path),
        tempfile.TemporaryDirectory(prefix="starvelab-grading-") as name,
    ):
        folder = Path(name)
        (folder / "gradebook.db").write_bytes(definition.gradebook)
        for inner, content in definition.source.items():
            _write(folder / "source" / definition.assignment / inner, content)
        submitted = folder / "submitted" / STUDENT / definition.assignment
        refused, remarks = dict(handed.refused), {name: list(each) for name, each in handed.remarks.items()}
        for notebook in _to_grade(handed, definition):
            cells = definition.cells[notebook]
            _write(submitted / f"{notebook}.ipynb", _notebook(notebook, handed, cells, refused, remarks))
        for inner, content in handed.files.items():
            _write_if_possible(submitted, inner, content)
        config = Config(definition.settings)
        config.CourseDirectory = Config(
            root=str(folder),
            db_url=f"sqlite:///{folder / 'gradebook.db'}",
            assignment_id=definition.assignment,
            student_id=STUDENT,
        )
        config.MendStructure = Config(
            known={name: [[one.text, one.person] for one in each] for name, each in remarks.items()},
            refused={name: [one.text, one.person] for name, one in refused.items()},
        )
        told = definition.settings.get("IsolatedExecute", {})
        config.IsolatedExecute = Config({**told, "said": sorted(handed.said)})
        yield folder, config


def _to_grade(handed: HandIn, definition: Definition) -> list[str]:
    return [name for name in definition.cells if handed.to_grade is None or name in handed.to_grade]


def _notebook(
    name: str,
    handed: HandIn,
    cells: Iterable[TrueCell],
    refused: dict[str, Remark],
    remarks: dict[str, list[Remark]],
) -> bytes:
    """A notebook that nbgrader can read; an empty one, and the reason, where what was handed in is none."""
    nb = nbformat.v4.new_notebook()
    if name in handed.notebooks:
        try:
            nb, more = read(handed.notebooks[name])
            remarks.setdefault(name, []).extend([*more, *outputs_only(handed.notebooks[name], cells)])
        except UnreadableNotebookError as error:
            refused[name] = Remark(f"`{name}.ipynb` {error} Its exercises count nothing.", person=True)
    return nbformat.writes(nb).encode()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _write_if_possible(folder: Path, inner: str, content: bytes) -> None:
    """Write a student's file; where two names collide, such as a file and a folder, the first stays."""
    try:
        _write(folder / inner, content)
    except OSError as error:
        if error.errno not in IMPOSSIBLE_NAME:
            raise


def _read(folder: Path, handed: HandIn, definition: Definition) -> Graded:
    """What nbgrader has found."""
    graded = Graded(handed.student)
    names = _to_grade(handed, definition)
    with closing(Gradebook(f"sqlite:///{folder / 'gradebook.db'}")) as book:
        submission = book.find_submission(definition.assignment, STUDENT)
        for notebook in [one for one in submission.notebooks if one.name in names]:
            graded.grades[notebook.name] = {
                one.name: (one.auto_score, bool(one.needs_manual_grade)) for one in notebook.grades
            }
            graded.comments[notebook.name] = {one.name: one.auto_comment for one in notebook.comments}
    done = folder / "autograded" / STUDENT / definition.assignment
    for path in sorted(done.rglob("*")):
        if path.is_file():
            graded.files[path.relative_to(done).as_posix()] = path.read_bytes()
    modes = []
    for name in names:
        nb = nbformat.reads(graded.files[f"{name}.ipynb"].decode(), as_version=4)
        told: dict[str, Any] = nb.metadata
        graded.remarks[name] = [Remark(*one) for one in told.get(REMARKS, [])]
        graded.mistakes[name] = dict(told["starvelab_graded"].get("mistakes", {}))
        graded.out_of_time |= bool(told["starvelab_graded"].get("out_of_time"))
        graded.limited |= bool(told["starvelab_graded"].get("limited"))
        graded.remarks[name] += cost_of_running(nb)
        if REFUSED in told:
            graded.refused.append(name)
        modes.append(told["starvelab_graded"]["mode"])
    # Notebooks that were not run say nothing of the others.
    graded.mode = max(modes, key=MODES.index)
    return graded
