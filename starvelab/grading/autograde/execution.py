"""nbgrader's execution of a notebook, taken apart: what a student wrote in a sandbox, the checks outside it.

A drop-in for nbgrader's `Execute`. It runs each cell where it belongs and carries questions and answers
between the two; how an answer is scored is `scoring`'s affair.
"""

from __future__ import annotations

import atexit
import base64
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Enum, Float, Integer, List, Unicode

from ...errors import StarvelabError
from ..sandbox import bubblewrap, seccomp
from ..sandbox.channel import ChannelError, TooLongError
from ..sandbox.codec import storable
from ..sandbox.process import CLOSE, IMPORTS, START, Runner, scratch
from ..submissions.files import PREDICTIONS, shown
from ..submissions.notebooks import Remark
from ..submissions.reference import Reference, is_check_side, is_test, name_of, read_reference
from . import environment  # noqa: F401 (gives nbgrader its `setenv`)
from .restoring import REFUSED, add_remarks
from .scoring import scored

MAX_PREDICTIONS = 1_000_000  # bytes
# How a notebook was run, the safest first.
MODES = ["not run", "sandboxed", "sandboxed, checks inside", "unsafe", "unsafe, checks inside"]
MOST_OUTPUTS = 1000
MAX_DEPTH = 100  # of what an output holds; nbconvert copies it with Python's own stack
TOO_LARGE = "it is too large to be sent to the checks"
MAX_MISTAKES, MAX_MISTAKE = 50, 4000  # of a check inside the sandbox; characters of one
ENDED_PYTHON = "Your cell ended Python. Take out what does that, such as exit() or sys.exit()."
ENDED_EARLY = "SubmissionEnded"  # the error of a check that needed more of code that was over
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
    max_output = Integer(8_000_000, help="Bytes of outputs that a notebook keeps.").tag(config=True)
    max_output_in_all = Integer(24_000_000, help="Bytes of outputs that a submission keeps.").tag(config=True)
    said = List(Unicode(), help="Remarks that stand in another notebook of the submission already.").tag(
        config=True
    )
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
        folder = Path(resources["metadata"]["path"])
        files, remarks = self._files_of(folder, self._submitted(resources))
        told, course = resources["nbgrader"], CourseDirectory(parent=self)
        restored = {name_of(cell) for cell in nb.cells if is_check_side(cell)}
        written = read_reference(course, told["assignment"], told["notebook"], locked=restored)
        reference = Reference(written, nb.cells)
        locked = {name: content for name, content in files.items() if name == PREDICTIONS}
        with runners.of_submission(self, resources, sandboxed) as (checks, student), ExitStack() as stack:
            theirs, ours = (stack.enter_context(scratch(each)) for each in (sandboxed, False))
            kind = _RunInside if self.checks == "inside" else _Run
            run = kind(self, nb, checks, student, reference, lambda: _opened(checks, ours, locked))
            run.open(theirs, files)
            stack.callback(run.close)
            add_remarks(nb, runners.unsaid(remarks))
            run.all_cells()
            run.limited |= run.time_left() < GRACE
            if run.cut:
                add_remarks(nb, [Remark(run.cut)])
        mode = "sandboxed" if sandboxed else "unsafe"
        if self.checks == "inside":
            mode += ", checks inside"
        nb.metadata["starvelab_graded"] = record | {
            "mode": mode,
            "mistakes": run.mistakes,
            "unreadable": run.unreadable,
            "out_of_time": run.out_of_time,
            "limited": run.limited,
        }
        return nb, resources

    def _sandboxed(self) -> bool:
        reason = bubblewrap.why_not()
        if not reason:
            if weakness := _said_once(seccomp.why_not()):
                self.log.warning(weakness)
            return True
        if not self.unsafe:
            raise NoSandboxError(reason)
        self.log.warning("UNSAFE: student code runs with all rights of yours. %s", reason)
        return False

    def _submitted(self, resources: ResourcesDict) -> Path:
        told, course = resources["nbgrader"], CourseDirectory(parent=self)
        return Path(course.format_path(course.submitted_directory, told["student"], told["assignment"]))

    def _files_of(self, folder: Path, submitted: Path) -> tuple[dict[str, str], list[Remark]]:
        """What was submitted beside the notebooks, in base64, and what is said of files that are left out."""
        sizes, remarks = {}, []
        for path in sorted(folder.rglob("*")):
            inner = path.relative_to(folder)
            # nbgrader has copied what a link points to, be it a secret of the instructor.
            if _is_linked(folder, inner) or _is_linked(submitted, inner):
                remarks.append(Remark(f"`{shown(str(inner))}` is a link, and was left out.", person=True))
            elif path.is_file() and path.suffix not in (".ipynb", ".py") and inner.parts[0][0] != ".":
                sizes[inner.as_posix()] = path.stat().st_size
        found: dict[str, str] = {}
        left, left_out = self.most_bytes, []
        # Predictions come first, so that no other file takes their place; then small files, so that most fit.
        for name, size in sorted(sizes.items(), key=lambda one: (one[0] != PREDICTIONS, one[1], one[0])):
            if size > (MAX_PREDICTIONS if name == PREDICTIONS else left):
                left_out.append(f"`{shown(name)}`")
                continue
            left -= size
            found[name] = base64.b64encode((folder / name).read_bytes()).decode()
        if left_out:
            names = ", ".join(left_out[:10]) + (f" and {len(left_out) - 10} more" if left_out[10:] else "")
            rule = (
                f"The files beside the notebooks may have {self.most_bytes / 1e6:g} MB in all, "
                f"and `{PREDICTIONS}` {MAX_PREDICTIONS / 1e6:g} MB."
            )
            remarks.append(Remark(f"{rule} These were left out: {names}.", person=True))
        return found, remarks


class Runners:
    """The runners that are kept: one for the checks, and one for the student whose turn it is."""

    def __init__(self) -> None:
        self.checks: Runner | None = None
        self.student: Runner | None = None
        self.whose: Any = None
        self.used = 0.0  # seconds that the student's code has taken so far
        self.said: set[str] = set()  # remarks that another notebook of the submission bears
        self.put_out = 0  # bytes of outputs that were kept of this student so far

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
            self.said |= set(settings.said)
        if self.student is None or not self.student.alive:
            readable = settings.readable
            self.student = Runner(sandboxed=sandboxed, imports=settings.imports, readable=readable)
        yield self.checks, self.student

    def end_student(self) -> None:
        """End the sandbox of the student whose turn it was."""
        if self.student is not None:
            self.student.end()
        self.student, self.whose, self.used, self.put_out = None, None, 0.0, 0
        self.said.clear()

    def unsaid(self, remarks: Iterable[Remark]) -> list[Remark]:
        """Those remarks that no notebook of the submission bears yet."""
        found = [one for one in remarks if one.text not in self.said]
        self.said |= {one.text for one in found}
        return found

    @contextmanager
    def counted(self) -> Iterator[None]:
        """What this takes is of the student's time."""
        clock = self.student.clock
        begun = clock()
        try:
            yield
        finally:
            self.used += clock() - begun

    def end(self) -> None:
        """End all of them."""
        self.end_student()
        if self.checks is not None:
            self.checks.end()
            self.checks = None


@contextmanager
def _opened(runner: Runner, folder: str, files: dict[str, str]) -> Iterator[None]:
    """A notebook that a runner has open meanwhile."""
    runner.open(folder, files)
    try:
        yield
    finally:
        runner.close()


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
        reference: Reference,
        begin_checks: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.settings, self.cells = settings, [cell for cell in nb.cells if cell.cell_type == "code"]
        self.checks, self.student, self.reference = checks, student, reference
        self.begin_checks, self.checks_open = begin_checks, ExitStack()
        self.mistakes: dict[str, list[str]] = {}
        self.unreadable: dict[str, str] = {}  # by name, why a value of the student's could not cross
        self.done: list[str] = []  # locked cells that the checks' side has run
        self.ended = ""
        self.out_of_time = False  # whether it might have got further alone
        self.put_out = 0  # bytes of outputs that were kept so far
        self.cut = ""
        self.limited = False  # whether the notebooks of the submission together reached a limit

    def open(self, place: str, files: dict[str, str]) -> None:
        """Begin the notebook in the sandbox. It may be held up by what an earlier one has left there."""
        if self._is_over():
            return
        with runners.counted():
            try:
                self.student.open(place, files, min(START, self.time_left()))
            except ChannelError as error:
                self._end(f"had to be ended ({error})")

    def close(self) -> None:
        """End the notebook in the sandbox, and the sandbox where that takes too long."""
        with runners.counted():
            self.student.close(max(0.0, min(CLOSE, self.time_left())))

    def time_left(self) -> float:
        """Seconds that code of this submission may still take."""
        return self.settings.deadline - runners.used

    def _is_over(self) -> bool:
        """Whether the student's code may run no longer; it is ended then."""
        if not self.ended and self.time_left() <= 0:
            self._end(f"took longer in all than the {self.settings.deadline:g} s that it may")
        return bool(self.ended)

    def all_cells(self) -> None:
        """Run them in the student's order; on the side of the checks, locked ones in the instructor's."""
        with self.checks_open:
            self.checks_open.enter_context(self.begin_checks())
            for cell in self.cells:
                cell.outputs, cell.execution_count = [], None
                if is_test(cell):
                    self.check(cell)
                    continue
                # One that stands too early waits for the first test that comes after it for the instructor.
                if self.reference.is_locked(cell) and self.done == self.reference.before(name_of(cell)):
                    self._run_locked(name_of(cell))
                cell.outputs = self._run_student_side(cell.source)

    def _run_student_side(self, source: str) -> list[NotebookNode]:
        return self._outputs_of(self._run_in_sandbox(source))

    def _run_in_sandbox(self, source: str) -> dict[str, Any]:
        return self._ask_student({"do": "run", "source": source, "seconds": self.settings.timeout})

    def _outputs_of(self, reply: dict[str, Any]) -> list[NotebookNode]:
        """The outputs of a cell that ran in the sandbox, if a notebook can hold them."""
        if "ended" in reply:
            return [nbformat.from_dict(_said(ENDED_PYTHON))]
        outputs = reply.get("outputs")
        try:
            if len(outputs) > MOST_OUTPUTS:
                raise ValueError(len(outputs))
            made = [nbformat.from_dict(one) for one in outputs]
            _require_shallow(outputs)
            nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=made)])
            nbformat.validate(nb)
            nbformat.writes(nb).encode()  # which fails for what JSON can hold and a file cannot
        # Whatever is wrong with outputs that a student forged, none are kept.
        except Exception:
            return [nbformat.from_dict(_said("The outputs of this cell cannot be shown."))]
        return [nbformat.from_dict(_said(self.cut))] if self._is_too_much(outputs) else made

    def _is_too_much(self, outputs: list[dict[str, Any]]) -> bool:
        """Whether outputs are more than may still be kept; if not, they are counted."""
        size = len(json.dumps(outputs))
        for most, before, whose in (
            (self.settings.max_output, self.put_out, "notebook"),
            (self.settings.max_output_in_all, runners.put_out, "submission"),
        ):
            if before + size > most:
                self.cut = f"Outputs are left out: a {whose} may put out {most / 1e6:g} MB in all."
                self.limited |= whose == "submission"
                return True
        self.put_out += size
        runners.put_out += size
        return False

    def check(self, cell: NotebookNode) -> None:
        """Run a test cell, with the student's names at hand."""
        name = name_of(cell)
        before = self.reference.before(name)
        if self.done != before[: len(self.done)]:
            # What has run by now comes later in the instructor's order: the checks begin anew.
            self.checks_open.close()
            self.checks_open.enter_context(self.begin_checks())
            self.done = []
        for earlier in before[len(self.done) :]:
            self._run_locked(earlier)
        reply = self._run_locked(name)
        if reply.get("mistakes"):
            self.mistakes[name] = reply["mistakes"]
        if self.ended:
            reply = self._with_reason(reply)
        # What the student's functions printed stands there too; how a failed check is known has to stay.
        if self._is_too_much([one for one in reply["outputs"] if one["output_type"] != "error"]):
            errors = [one for one in reply["outputs"] if one["output_type"] == "error"]
            reply = {**reply, "outputs": [_said(self.cut), *errors]}
        points = float(cell.metadata.nbgrader.points)
        cell.outputs = [nbformat.from_dict(one) for one in scored(reply, points)]

    def _run_locked(self, name: str) -> dict[str, Any]:
        """Run a cell of the instructor's on the side of the checks."""
        cell = self.reference.cells[name]
        answers, others = self.reference.asked_for(name)
        if others:
            # Such as what a magic or an `import *` of a locked cell has defined.
            others -= set(self._ask_checks({"do": "names"})["names"])
        wanted = sorted(answers | others)
        names = {each: _told(self._ask_student({"do": "look", "name": each})) for each in wanted}
        try:
            self._ask_checks({"do": "bind", "names": names})
        except TooLongError:
            what = {"kind": "other", "why": TOO_LARGE}
            self._ask_checks({"do": "bind", "names": dict.fromkeys(names, what)})
        if is_test(cell):
            reply = self._ask_student({"do": "read", "file": PREDICTIONS, "most": MAX_PREDICTIONS})
            content = reply.get("content")
            # What is read was limited on the student's side, which may lie. Where the file is gone the checks
            # keep what they have: nobody who locked predictions loses them.
            if isinstance(content, str) and len(content) <= len(base64.b64encode(bytes(MAX_PREDICTIONS))):
                self._ask_checks({"do": "write", "file": PREDICTIONS, "content": content})
        self.done.append(name)
        return self._ask_checks({"do": "run", "source": cell.source})

    # --- questions and answers ------------------------------------------------------------------------

    def _ask_checks(self, message: dict[str, Any]) -> dict[str, Any]:
        """Ask the side of the checks, and carry what it asks of the student meanwhile."""
        forever = self.settings.deadline + 2 * self.settings.timeout
        reply = self.checks.ask(message, forever)
        while "ask" in reply:
            answer = self._ask_student({**reply, "do": reply["ask"]})
            try:
                if "callback" not in answer:
                    reply = self.checks.ask(answer, forever)
                    continue
                # A function of the checks that the student's code calls takes of the student's time.
                with runners.counted():
                    answer["seconds"] = max(0.01, min(self.settings.timeout, self.time_left()))
                    reply = self.checks.ask(answer, forever)
            except TooLongError:
                reply = self.checks.ask({"strange": TOO_LARGE}, forever)
        if "ended" in reply:
            raise ChecksEndedError(
                "The process that runs the checks ended in the middle of one. Run the test cells of this "
                "notebook by themselves: one of them ends Python, or needs more memory than there is."
            )
        return reply

    def _ask_student(self, message: dict[str, Any]) -> dict[str, Any]:
        """Ask the student's side, for which the time runs."""
        if not self._is_over():
            seconds = min(self.settings.timeout, self.time_left())
            clock = self.student.clock
            with runners.counted():
                begun = clock()
                try:
                    reply = self.student.ask({**message, "seconds": seconds}, seconds + GRACE)
                    if "ended" in reply:
                        self.ended = "ended Python"
                        if message["do"] != "run":
                            return self._reply_of_ended()
                    if why := reply.get("strange") or (reply.get("kind") == "other" and reply.get("why")):
                        self.unreadable[str(message.get("name"))] = storable(str(why)[:MAX_MISTAKE])
                    return reply
                except ChannelError as error:
                    self._end(f"had to be ended ({error})")
                finally:
                    self.out_of_time |= clock() - begun >= seconds and clock.starved
        return self._reply_of_ended()

    def _reply_of_ended(self) -> dict[str, Any]:
        what = {"type": ENDED_EARLY, "message": self._why_ended()}
        return {"kind": "missing", "error": what, "outputs": [_said(what["message"])]}

    def _why_ended(self) -> str:
        return f"The submitted code {self.ended}."

    def _with_reason(self, reply: dict[str, Any]) -> dict[str, Any]:
        """What a check says that may have failed only since the student's code was over."""
        why = self._why_ended()
        error = {"output_type": "error", "ename": ENDED_EARLY, "evalue": why, "traceback": [why]}
        outputs = [error if one["output_type"] == "error" else one for one in reply["outputs"]]
        return {**reply, "outputs": outputs if reply["failed"] else [_said(why), *outputs]}

    def _end(self, why: str) -> None:
        self.ended = why
        self.student.end()


class _RunInside(_Run):
    """The cells of one notebook, all in one process in the sandbox, the checks among them.

    Student code can read and change such checks. It cannot reach what is outside of the sandbox.
    """

    def all_cells(self) -> None:
        """Run them in the student's order."""
        for cell in self.cells:
            cell.outputs, cell.execution_count = [], None
            reply = self._run_in_sandbox(cell.source)
            cell.outputs = self._outputs_of(reply)
            if is_test(cell):
                self._score(cell, reply)

    def _score(self, cell: NotebookNode, reply: dict[str, Any]) -> None:
        # A forged reply may lack anything, and hold anything.
        failed = reply.get("failed") is not False
        safe = {"outputs": cell.outputs, "failed": failed, "value": reply.get("value")}
        points = float(cell.metadata.nbgrader.points)
        cell.outputs = [nbformat.from_dict(one) for one in scored(safe, points)]
        if isinstance(reply.get("mistakes"), list) and reply["mistakes"]:
            mistakes = [storable(str(each)[:MAX_MISTAKE]) for each in reply["mistakes"][:MAX_MISTAKES]]
            self.mistakes[name_of(cell)] = mistakes


@cache
def _all_said() -> set[str]:
    return set()


def _said_once(warning: str) -> str:
    """A warning for the first notebook, and nothing for those that follow."""
    first = warning not in _all_said()
    _all_said().add(warning)
    return warning if first else ""


def _require_shallow(value: Any, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(depth)
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _require_shallow(each, depth + 1)


def _earn_nothing(nb: NotebookNode, reason: str) -> None:
    for cell in nb.cells:
        if is_test(cell):
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
