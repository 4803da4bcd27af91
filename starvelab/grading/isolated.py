"""nbgrader's execution of a notebook, taken apart: what a student wrote in a sandbox, the checks outside it.

A drop-in for nbgrader's `Execute`. It runs each cell where it belongs and carries questions and answers
between the two; how an answer is scored is `scoring`'s affair.
"""

from __future__ import annotations

import ast
import atexit
import base64
import builtins
import os
import symtable
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade, is_locked, is_solution
from traitlets import Bool, Enum, Float, Integer, List, Unicode

from ..errors import StarvelabError
from . import bubblewrap, environment  # noqa: F401 (gives nbgrader its `setenv`)
from .channel import ChannelError
from .mending import REFUSED
from .process import IMPORTS, Runner, scratch
from .scoring import scored

PREDICTIONS = "predictions.json"
# How a notebook was run, the safest first.
MODES = ["not run", "sandboxed", "sandboxed, checks inside", "unsafe", "unsafe, checks inside"]
MOST_OUTPUTS = 1000
MAX_MISTAKES, MAX_MISTAKE = 50, 4000  # of a check inside the sandbox; characters of one
GRACE = 3.0  # seconds that a runner may take longer than the cell it runs


class NoSandboxError(StarvelabError, RuntimeError):
    """Student code cannot be run safely here."""


class ChecksEndedError(StarvelabError, RuntimeError):
    """An instructor's own check ended its process."""


class IsolatedExecute(NbGraderPreprocessor):
    """Runs a notebook for grading, with student code in bubblewrap and test cells where none of it runs."""

    unsafe = Bool(
        False,
        help="Run student code with your own rights where bubblewrap does not work. "
        "It can then read, change and send all that you can.",
    ).tag(config=True)
    timeout = Float(60.0, help="Seconds that a cell may take.").tag(config=True)
    deadline = Float(300.0, help="Seconds that all student code of a submission may take.").tag(config=True)
    imports = List(Unicode(), list(IMPORTS), help="What a runner imports before the first cell.").tag(
        config=True
    )
    readable = List(Unicode(), help="Folders that student code may read, such as those with data sets.").tag(
        config=True
    )
    most_bytes = Integer(5_000_000, help="Bytes of files beside the notebooks.").tag(config=True)
    checks = Enum(
        ("outside", "inside"),
        "outside",
        help="Where test cells run: outside of the sandbox, where student code can neither read nor change "
        "them, or inside, in one process with it, for checks whose values cannot leave that process.",
    ).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Run all cells, and put their outputs where nbgrader looks for them.

        Raises
        ------
        NoSandboxError
            If there is no sandbox here, and none was waived.
        """
        record = {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "version": version("starvelab")}
        if reason := nb.metadata.get(REFUSED):
            _earn_nothing(nb, reason)
            nb.metadata["starvelab_graded"] = record | {"mode": "not run"}
            return nb, resources
        sandboxed = self._sandboxed()
        if self.checks == "inside":
            mode, mistakes = self._run_inside(nb, resources, sandboxed)
            nb.metadata["starvelab_graded"] = record | {"mode": mode, "mistakes": mistakes}
            return nb, resources
        folder = Path(resources["metadata"]["path"])
        files = self._files_of(folder, self._submitted(resources))
        with runners.of_submission(self, resources, sandboxed) as (checks, student), ExitStack() as stack:
            for runner, safe, given in (
                (checks, False, {PREDICTIONS: files.get(PREDICTIONS)}),
                (student, sandboxed, files),
            ):
                place = stack.enter_context(scratch(safe))
                kept = {name: content for name, content in given.items() if content is not None}
                stack.enter_context(runner.notebook(place, kept))
            run = _Run(self, nb, checks, student, self._answers(resources))
            run.all_cells()
        mode = "sandboxed" if sandboxed else "unsafe"
        crossing = {"mistakes": run.mistakes, "unreadable": run.unreadable}
        nb.metadata["starvelab_graded"] = record | {"mode": mode} | crossing
        return nb, resources

    def _run_inside(
        self, nb: NotebookNode, resources: ResourcesDict, sandboxed: bool
    ) -> tuple[str, dict[str, list[str]]]:
        """Run all cells in one process: the mode that is recorded, and the mistakes that checks named."""
        files = self._files_of(Path(resources["metadata"]["path"]), self._submitted(resources))
        with (
            runners.of_submission(self, resources, sandboxed) as (_, student),
            scratch(sandboxed) as place,
            student.notebook(place, files),
        ):
            run = _RunInside(self, nb, student)
            run.all_cells()
        return f"{'sandboxed' if sandboxed else 'unsafe'}, checks inside", run.mistakes

    def _sandboxed(self) -> bool:
        reason = bubblewrap.why_not()
        if not reason:
            return True
        if not self.unsafe:
            raise NoSandboxError(reason)
        self.log.warning("UNSAFE: student code runs with all rights of yours. %s", reason)
        return False

    def _submitted(self, resources: ResourcesDict) -> Path:
        told, course = resources["nbgrader"], CourseDirectory(parent=self)
        return Path(course.format_path(course.submitted_directory, told["student"], told["assignment"]))

    def _files_of(self, folder: Path, submitted: Path) -> dict[str, str]:
        """What the student handed in beside the notebooks, in base64: files only, and no links to others."""
        found, left = {}, self.most_bytes
        for path in sorted(folder.rglob("*")):
            inner = path.relative_to(folder)
            # nbgrader has copied what a link points to, be it a secret of the instructor.
            if _is_linked(folder, inner) or _is_linked(submitted, inner):
                self.log.warning("%s is left out: it is a link", inner)
                continue
            if not path.is_file() or path.suffix in (".ipynb", ".py") or inner.parts[0].startswith("."):
                continue
            left -= path.stat().st_size
            if left < 0:
                self.log.warning("%s is left out: there are more than %s bytes", inner, self.most_bytes)
                break
            found[inner.as_posix()] = base64.b64encode(path.read_bytes()).decode()
        return found

    def _answers(self, resources: ResourcesDict) -> set[str]:
        """Names that the instructor's own answers define: those that a student is to define."""
        told, course = resources["nbgrader"], CourseDirectory(parent=self)
        source = course.format_path(course.source_directory, ".", told["assignment"])
        path = Path(source) / f"{told['notebook']}.ipynb"
        if not path.is_file():
            return set()  # then checks see the names that they use
        return _answers_in(path, path.stat().st_mtime_ns)


@cache
def _answers_in(path: Path, changed: int) -> set[str]:  # noqa: ARG001 (a file that changed is read again)
    """Read once for a class, and not for each of its students."""
    cells = nbformat.read(path, as_version=4).cells
    return defined(cell.source for cell in cells if cell.cell_type == "code" and is_solution(cell))


class Runners:
    """The runners that are kept: one for the checks, and one for the student whose turn it is."""

    def __init__(self) -> None:
        self.checks: Runner | None = None
        self.student: Runner | None = None
        self.whose: Any = None
        self.used = 0.0  # seconds that the student's code has taken so far

    @contextmanager
    def of_submission(
        self, settings: IsolatedExecute, resources: ResourcesDict, sandboxed: bool
    ) -> Iterator[tuple[Runner, Runner]]:
        """Runners for a notebook: notebooks of one submission share a sandbox, no two submissions do."""
        told = resources["nbgrader"]
        whose = (os.getpid(), told.get("db_url"), told["assignment"], told["student"], sandboxed)
        if self.checks is None or not self.checks.alive:
            self.checks = Runner(sandboxed=False, trusted=True, imports=settings.imports)
        if self.whose != whose:
            self.end_student()
            self.whose = whose
        if self.student is None or not self.student.alive:
            readable = settings.readable
            self.student = Runner(sandboxed=sandboxed, imports=settings.imports, readable=readable)
        yield self.checks, self.student

    def end_student(self) -> None:
        """End the sandbox of the student whose turn it was."""
        if self.student is not None:
            self.student.end()
        self.student, self.whose, self.used = None, None, 0.0

    def end(self) -> None:
        """End all of them."""
        self.end_student()
        if self.checks is not None:
            self.checks.end()
            self.checks = None


# One set for the process: nbgrader makes a preprocessor anew for each notebook.
runners = Runners()
atexit.register(runners.end)


class _Run:
    """The cells of one notebook, one after the other."""

    def __init__(
        self,
        settings: IsolatedExecute,
        nb: NotebookNode,
        checks: Runner,
        student: Runner,
        answers: set[str],
    ) -> None:
        self.settings, self.cells = settings, [cell for cell in nb.cells if cell.cell_type == "code"]
        self.checks, self.student, self.answers = checks, student, answers
        self.mistakes: dict[str, list[str]] = {}
        self.set_up: set[str] = set()
        self.checked: set[str] = set()
        self.unreadable: dict[str, str] = {}  # by name, why a value of the student's could not cross
        self.ended = ""

    def all_cells(self) -> None:
        for cell in self.cells:
            cell.outputs, cell.execution_count = [], None
            if is_grade(cell) and not is_solution(cell):
                self.check(cell)
                continue
            if is_locked(cell) and not is_solution(cell):
                self._ask_checks({"do": "run", "source": cell.source})
                self.set_up |= defined([cell.source])
            cell.outputs = self._run_student_side(cell.source)

    def _run_student_side(self, source: str) -> list[NotebookNode]:
        return _valid_outputs(
            self._ask_student({"do": "run", "source": source, "seconds": self.settings.timeout})
        )

    def check(self, cell: NotebookNode) -> None:
        """Run a test cell, with the student's names at hand."""
        # What set-up and checks define is theirs, whatever a student calls by that name.
        wanted = (self.answers | loaded(cell.source) - self.checked) - self.set_up
        names = {name: _told(self._ask_student({"do": "look", "name": name})) for name in sorted(wanted)}
        self._ask_checks({"do": "bind", "names": names})
        reply = self._ask_student({"do": "read", "file": PREDICTIONS, "most": 1_000_000})
        self._ask_checks({"do": "write", "file": PREDICTIONS, "content": reply.get("content")})
        reply = self._ask_checks({"do": "run", "source": cell.source})
        self.checked |= defined([cell.source])
        if reply.get("mistakes"):
            self.mistakes[cell.metadata.nbgrader.grade_id] = reply["mistakes"]
        points = float(cell.metadata.nbgrader.points)
        cell.outputs = [nbformat.from_dict(one) for one in scored(reply, points)]

    # --- questions and answers ------------------------------------------------------------------------

    def _ask_checks(self, message: dict[str, Any]) -> dict[str, Any]:
        """Ask the side of the checks, and carry what it asks of the student meanwhile."""
        forever = self.settings.deadline + 2 * self.settings.timeout
        reply = self.checks.ask(message, forever)
        while "ask" in reply:
            question = {**reply, "do": reply["ask"]}
            reply = self.checks.ask(self._ask_student(question), forever)
        if "ended" in reply:
            raise ChecksEndedError(
                "The process that runs the checks ended in the middle of one. Run the test cells of this "
                "notebook by themselves: one of them ends Python, or needs more memory than there is."
            )
        return reply

    def _ask_student(self, message: dict[str, Any]) -> dict[str, Any]:
        """Ask the student's side, for which the time runs."""
        left = self.settings.deadline - runners.used
        if not self.ended and left <= 0:
            self._end(f"took longer in all than the {self.settings.deadline:g} s that it may")
        if not self.ended:
            seconds = min(self.settings.timeout, left)
            begun = time.monotonic()
            try:
                reply = self.student.ask({**message, "seconds": seconds}, seconds + GRACE)
                if why := reply.get("strange") or (reply.get("kind") == "other" and reply.get("why")):
                    self.unreadable[str(message.get("name"))] = str(why)
                return reply
            except ChannelError as error:
                self._end(f"had to be ended ({error})")
            finally:
                runners.used += time.monotonic() - begun
        what = {"type": "SubmissionEnded", "message": f"The submitted code {self.ended}."}
        return {"kind": "missing", "error": what, "outputs": [_said(what["message"])]}

    def _end(self, why: str) -> None:
        self.ended = why
        self.student.end()


class _RunInside(_Run):
    """The cells of one notebook, all in one process in the sandbox, the checks among them.

    Student code can read and change such checks. It cannot reach what is outside of the sandbox.
    """

    def __init__(self, settings: IsolatedExecute, nb: NotebookNode, student: Runner) -> None:
        self.settings, self.cells = settings, [cell for cell in nb.cells if cell.cell_type == "code"]
        self.student = student
        self.mistakes: dict[str, list[str]] = {}
        self.unreadable: dict[str, str] = {}
        self.ended = ""

    def all_cells(self) -> None:
        for cell in self.cells:
            cell.outputs, cell.execution_count = [], None
            reply = self._ask_student({"do": "run", "source": cell.source, "seconds": self.settings.timeout})
            cell.outputs = _valid_outputs(reply)
            if not is_grade(cell) or is_solution(cell):
                continue
            # A forged reply may lack anything, and hold anything.
            failed = reply.get("failed") is not False
            safe = {"outputs": cell.outputs, "failed": failed, "value": reply.get("value")}
            if failed and not any(one.output_type == "error" for one in cell.outputs):
                safe |= {"failed": False, "value": 0.0}
            points = float(cell.metadata.nbgrader.points)
            cell.outputs = [nbformat.from_dict(one) for one in scored(safe, points)]
            if isinstance(reply.get("mistakes"), list) and reply["mistakes"]:
                mistakes = [str(each)[:MAX_MISTAKE] for each in reply["mistakes"][:MAX_MISTAKES]]
                self.mistakes[cell.metadata.nbgrader.grade_id] = mistakes


def _valid_outputs(reply: dict[str, Any]) -> list[NotebookNode]:
    """The outputs of a reply from the student's side, if a notebook can hold them."""
    outputs = reply.get("outputs")
    try:
        if len(outputs) > MOST_OUTPUTS:
            raise ValueError(len(outputs))
        made = [nbformat.from_dict(one) for one in outputs]
        nbformat.validate(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=made)]))
    # Whatever is wrong with outputs that a student forged, none are kept.
    except Exception:
        return [nbformat.from_dict(_said("The outputs of this cell cannot be shown."))]
    return made


def _earn_nothing(nb: NotebookNode, reason: str) -> None:
    for cell in nb.cells:
        if is_grade(cell) and not is_solution(cell) and cell.cell_type == "code":
            nothing = scored({"failed": False, "outputs": [_said(reason)], "value": 0.0}, most=0.0)
            cell.outputs = [nbformat.from_dict(one) for one in nothing]


def _is_linked(folder: Path, inner: Path) -> bool:
    """Whether a file is a symbolic link, or stands in a folder that is one."""
    return any((folder / part).is_symlink() for part in (inner, *inner.parents[:-1]))


def _told(reply: dict[str, Any]) -> dict[str, Any]:
    """What a sandbox says of a name, in the form that `bind` takes."""
    kind = reply.get("kind")
    if kind == "missing":
        return {"kind": "missing"}
    if kind == "value" and "value" in reply:
        return {"kind": "value", "value": reply["value"]}
    if kind == "function":
        return {"kind": "function"}
    return {"kind": "other", "why": str(reply.get("why", "nothing came"))}


def _said(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": f"{text}\n"}


def defined(sources: Iterable[str]) -> set[str]:
    """Names that cells define at their top level."""
    found: set[str] = set()
    for source in sources:
        for node in _statements(source):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                found |= {(name.asname or name.name).partition(".")[0] for name in node.names}
            else:
                found |= {
                    n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
                }
    return found


def loaded(source: str) -> set[str]:
    """Names that a cell uses and does not define."""
    try:
        scopes = [symtable.symtable(source, "cell", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    names = set()
    for scope in scopes:  # which grows meanwhile
        scopes += scope.get_children()
        names |= {
            one.get_name()
            for one in scope.get_symbols()
            if one.is_referenced() and (one.is_global() or scope.get_type() == "module")
        }
    return names - defined([source]) - set(dir(builtins))


def _statements(source: str) -> list[ast.stmt]:
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
