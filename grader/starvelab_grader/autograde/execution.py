"""nbgrader's execution of a notebook, replaced: student code runs in a sandbox, the checks run outside it.

Of the files beside the notebooks, data cross into the sandbox. Modules are the instructor's only: one of a
student, whatever its name, could stand in the place of another.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.machinery import all_suffixes
from pathlib import Path, PurePosixPath

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import find_all_files
from traitlets import Bool, Enum, Float, Instance, Integer, List, Unicode, default

from ..errors import GraderError
from ..fingerprints import VERSION
from ..plugins import student_files
from ..sandbox import bubblewrap, seccomp
from ..sandbox.process import IMPORTS, scratch_folder
from ..submissions import SubmissionWarning
from ..submissions.reference import (
    ReferenceNotebook,
    is_check_side,
    is_test,
    name_of,
    read_reference,
    released_source,
)
from ..text import enumerated, shown
from .notebook_run import EXTRA_TIMEOUT, Limits, NotebookRun, NotebookRunInside, Place
from .outputs import as_nodes, printed, scored
from .restoring import REJECTED, add_warnings
from .runners import Runners

# How a notebook was run, the safest first.
MODES = ["not run", "sandboxed", "sandboxed, checks inside", "unsafe", "unsafe, checks inside"]
RESULT = "starvelab_graded"  # where a graded notebook says how it was run


class NoSandboxError(GraderError, RuntimeError):
    """Student code cannot be run safely here."""


class IsolatedExecute(NbGraderPreprocessor):
    """Runs a notebook for grading, with student code in bubblewrap and test cells where none of it runs."""

    unsafe = Bool(
        False,
        help="Run student code with your own rights where bubblewrap does not work. "
        "It can then read, change and send all that you can.",
    ).tag(config=True)
    timeout = Float(60.0, min=0, help="Seconds that a cell may take.").tag(config=True)
    deadline = Float(300.0, min=0, help="Seconds that all student code of a submission may take.").tag(
        config=True
    )
    imports = List(Unicode(), list(IMPORTS), help="What a runner imports before the first cell.").tag(
        config=True
    )
    readable = List(Unicode(), help="Folders that student code may read, such as those with data sets.").tag(
        config=True
    )
    max_bytes = Integer(5_000_000, help="Bytes of files beside the notebooks.").tag(config=True)
    max_output = Integer(8_000_000, help="Bytes of outputs that a notebook keeps.").tag(config=True)
    max_output_in_all = Integer(24_000_000, help="Bytes of outputs that a submission keeps.").tag(config=True)
    shown_warnings = List(
        Unicode(), help="Warnings that stand in another notebook of the submission already."
    ).tag(config=True)
    checks = Enum(
        ("outside", "inside"),
        "outside",
        help="Where test cells run: outside of the sandbox, where student code can neither read nor change "
        "them, or inside, in one process with it, for checks whose values cannot leave that process.",
    ).tag(config=True)
    runners = Instance(Runners, help="The runners that notebooks share; `configure` sets them.").tag(
        config=True
    )

    @default("runners")
    def _runners_default(self) -> Runners:
        return Runners()

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Run all cells, and put their outputs where nbgrader looks for them; may raise NoSandboxError."""
        result = {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "version": VERSION}
        if reason := nb.metadata.get(REJECTED):
            _earn_nothing(nb, reason)
            nb.metadata[RESULT] = result | {"mode": "not run"}
            return nb, resources
        is_sandboxed = self._is_sandboxed()
        run = self._run(nb, resources, is_sandboxed)
        mode = "sandboxed" if is_sandboxed else "unsafe"
        if self.checks == "inside":
            mode += ", checks inside"
        nb.metadata[RESULT] = result | {
            "mode": mode,
            "notes": run.notes,
            "unreadable": run.unreadable,
            "out_of_time": run.is_out_of_time,
            "limited": run.is_limited,
        }
        return nb, resources

    def _run(self, nb: NotebookNode, resources: ResourcesDict, is_sandboxed: bool) -> NotebookRun:
        course, names = CourseDirectory(parent=self), resources["nbgrader"]
        assignment, student = names["assignment"], names["student"]
        folder = Path(resources["metadata"]["path"])
        attachments = read_attachments(course, assignment, student, folder, self.max_bytes)
        restored = {str(name_of(cell)) for cell in nb.cells if is_check_side(cell)}
        written = read_reference(course, assignment, names["notebook"], locked=restored)
        limits = Limits(self.timeout, self.deadline, self.max_output, self.max_output_in_all)
        self.runners.begin(
            (names.get("db_url"), assignment, student),
            sandboxed=is_sandboxed,
            imports=self.imports,
            readable=self.readable,
            shown_warnings=self.shown_warnings,
        )
        with scratch_folder(is_sandboxed) as students_folder, scratch_folder(False) as checks_folder:
            run = (NotebookRunInside if self.checks == "inside" else NotebookRun)(
                nb,
                ReferenceNotebook(written, nb.cells),
                limits,
                self.runners,
                Place(checks_folder, attachments.checks, attachments.modules),
                Place(students_folder, attachments.student, attachments.modules),
            )
            run.open()
            try:
                add_warnings(nb, self.runners.new_warnings(attachments.warnings))
                run.run_cells()
                run.is_limited |= run.time_left() < EXTRA_TIMEOUT
                add_warnings(nb, [SubmissionWarning(run.cut)] if run.cut else [])
            finally:
                run.close()
        return run

    def _is_sandboxed(self) -> bool:
        reason = bubblewrap.why_not()
        if not reason:
            weakness = seccomp.why_not()
            if weakness and self.runners.is_first_time(weakness):
                self.log.warning(weakness)
            return True
        if not self.unsafe:
            raise NoSandboxError(reason)
        self.log.warning("UNSAFE: student code runs with all your rights. %s", reason)
        return False


def _earn_nothing(nb: NotebookNode, reason: str) -> None:
    for cell in nb.cells:
        if is_test(cell):
            reply = {"failed": False, "outputs": [printed(reason)], "value": 0.0}
            cell.outputs = as_nodes(scored(reply, max_points=0.0))


# --- the files beside the notebooks -----------------------------------------------------------------------


@dataclass(frozen=True)
class Attachments:
    """The files that each side finds, in base64 by their paths, and warnings about others."""

    student: dict[str, str]
    checks: dict[str, str]
    modules: dict[str, str]  # the instructor's, among the files of both
    warnings: list[SubmissionWarning]


def modules_in(paths: Iterable[str]) -> dict[str, str]:
    """Return the files of the modules that can be imported, by their names.

    Examples
    --------
    >>> modules_in(["utils.py", "plots/__init__.py", "plots/bars.py", "data/rates.csv"])
    {'utils': 'utils.py', 'plots': 'plots/__init__.py'}
    """
    modules = [PurePosixPath(path) for path in paths if path.endswith(".py")]
    return {path.stem: str(path) for path in modules if len(path.parts) == 1} | {
        path.parts[0]: str(path) for path in modules if path.parts[1:] == ("__init__.py",)
    }


def read_attachments(
    course: CourseDirectory, assignment: str, student: str, folder: Path, max_bytes: int
) -> Attachments:
    """Read the files beside the notebooks of a submission, which nbgrader has copied into a folder."""
    # Where the student submitted a link, it has copied what that points to, be it the instructor's secret.
    beside = _files_of_the_instructor(course, assignment)
    submitted = Path(course.format_path(course.submitted_directory, student, assignment))
    sizes, warnings = {}, []
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if _is_linked(folder, inner) or _is_linked(submitted, inner):
            text = f"`{shown(str(inner))}` is a link, and was left out."
            warnings.append(SubmissionWarning(text, person=True))
        elif path.is_file() and path.suffix in all_suffixes():
            warnings += _left_out(inner.as_posix(), submitted, beside)
        elif path.is_file() and path.suffix != ".ipynb" and inner.parts[0][0] != ".":
            sizes[inner.as_posix()] = path.stat().st_size
    modules = {name: content for name, content in beside.items() if name.endswith(".py")}
    files = _encoded(modules)
    left, left_out = max_bytes, []
    own_limits = {name: most for name, (most, _) in student_files().items()}
    # What the lab wrote comes first, and no other file takes its place; then small files, so that most fit.
    for name, size in sorted(sizes.items(), key=lambda item: (item[0] not in own_limits, item[1], item[0])):
        if size > own_limits.get(name, left):
            left_out.append(name)
            continue
        left -= size
        files |= _encoded({name: (folder / name).read_bytes()})
    if left_out:
        others = "".join(f", and `{name}` {most / 1e6:g} MB" for name, most in own_limits.items())
        rule = f"The files beside the notebooks may have {max_bytes / 1e6:g} MB in all{others}."
        text = f"{rule} These were left out: {enumerated(left_out)}."
        warnings.append(SubmissionWarning(text, person=True))
    checks = _encoded(beside if sum(map(len, beside.values())) <= max_bytes else modules)
    checks |= {name: content for name, content in files.items() if name in own_limits}
    return Attachments(files, checks, modules_in(modules), warnings)


def _files_of_the_instructor(course: CourseDirectory, assignment: str) -> dict[str, bytes]:
    """The instructor's files beside the notebooks, by their paths: modules and data."""
    folder = released_source(course, assignment)
    if not folder.is_dir():
        folder = Path(course.format_path(course.source_directory, ".", assignment))
    paths = sorted(map(Path, find_all_files(str(folder), course.ignore)))
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in paths if path.suffix != ".ipynb"
    }


def _encoded(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(content).decode() for name, content in files.items()}


def _left_out(name: str, submitted: Path, beside: Mapping[str, bytes]) -> list[SubmissionWarning]:
    """A warning about code that was submitted beside the notebooks; none where it is as it was given out."""
    path = submitted / name
    # nbgrader has put the instructor's file in the place of a student's.
    if name in beside and (not path.is_file() or path.read_bytes() == beside[name]):
        return []
    text = f"`{shown(name)}` was left out, since code beside the notebooks is not run."
    if name in beside:
        text = f"`{shown(name)}` was changed, and the one that was given out counts."
    return [SubmissionWarning(text, person=name in beside)]


def _is_linked(folder: Path, inner: Path) -> bool:
    """True if a file is a symbolic link, or stands in a folder that is one."""
    return any((folder / part).is_symlink() for part in (inner, *inner.parents[:-1]))
