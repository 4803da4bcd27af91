"""nbgrader's execution of a notebook, replaced: student code runs in a sandbox, the checks run outside it."""

from __future__ import annotations

import time
from pathlib import Path

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Enum, Float, Instance, Integer, List, Unicode, default

from ..errors import GraderError
from ..fingerprints import VERSION
from ..sandbox import bubblewrap, seccomp
from ..sandbox.process import IMPORTS, scratch_folder
from ..submissions import SubmissionWarning
from ..submissions.reference import (
    ReferenceNotebook,
    is_check_side,
    is_test,
    name_of,
    read_reference,
)
from .attachments import read_attachments
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
        """Run all cells, and put their outputs where nbgrader looks for them.

        A `NoSandboxError` says that there is no sandbox here, and that the instructor did not accept that.
        """
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
