"""The cells of one notebook: code of the student runs in a sandbox, and the checks run outside it."""

from dataclasses import dataclass, field, replace

from nbformat import NotebookNode

from ..errors import GraderError
from ..plugins import declared
from ..sandbox.channel import ChannelError, Message, MessageTooLongError
from ..sandbox.clock import STARVED
from ..sandbox.process import CLOSE_TIMEOUT, START_TIMEOUT, Place, Runners
from ..submissions.reference import ReferenceNotebook, is_test, loaded, name_of, names_defined
from ..submissions.run_order import run_order
from ..text import storable
from .exercises import said_by_check
from .outputs import NOT_SHOWN, as_nodes, checked, failed, printed, scored, size_of

EXTRA_TIMEOUT = 3.0  # seconds that a runner may take longer than the cell that it runs
MIN_CALLBACK_TIMEOUT = 0.01  # seconds
MAX_ENDS = 10  # times that a notebook begins anew after code of the student has ended its process
TOO_LARGE = "it is too large to be sent to the checks"
MAX_NOTES, MAX_NOTE = 50, 4000  # of a check inside the sandbox; characters of one
ENDED_PYTHON = "Your cell ended Python. Take out what does that, such as exit() or sys.exit()."
# What the grader writes below a cell once the code of a student runs no longer.
ENDED = "The submitted code "
UNFINISHED = "CheckUnfinished"  # the error of a check that did not end with an answer
NO_END = (
    "This check did not end: it took too long, needed more memory than there is, or ended Python. "
    "Is your answer of a size that nobody expects?"
)
ENDED_EARLY = "SubmissionEnded"  # the error of a check that needed more of that code
WHY_ENDED = {  # for the student, by the error of the channel
    "Nothing came in time.": "it took too long, and could not be interrupted",
    "The other end is gone.": "it needed more memory or more processes than it may have, or ended itself",
}


class _EndedError(GraderError):
    """The process of the notebook has ended, and why."""


@dataclass
class NotebookRun:
    """The cells of one notebook, run one after the other, each side in its place."""

    nb: NotebookNode
    reference: ReferenceNotebook
    runners: Runners
    checks_place: Place
    student_place: Place
    timeout: float  # of a cell [s]
    deadline: float  # of all code of the submission [s]
    max_output: int  # that is kept of the notebook [B]
    max_output_in_all: int  # that is kept of the submission [B]
    hide_prints: bool  # of functions of the student that a check calls
    # By test cell, what its checks noted: plain values by the names of the notes.
    notes: dict[str, dict[str, list[object]]] = field(default_factory=dict)
    # By test cell, its messages and whether its visible part is right.
    said: dict[str, Message] = field(default_factory=dict)
    # By name, why a value of the student could not be sent to the checks.
    unreadable: dict[str, str] = field(default_factory=dict)
    is_out_of_time: bool = False  # whether on an idle machine it might have got further
    is_limited: bool = False  # whether the notebooks of the submission reached a limit together
    cut: str = ""  # what is said where outputs were left out

    def __post_init__(self) -> None:
        cells = [cell for cell in self.nb.cells if cell.cell_type == "code"]
        for cell in cells:
            cell.outputs, cell.execution_count = [], None
        self.cells = run_order(cells, self.reference)
        assert self.runners.checks is not None  # which `begin` has started
        self.checks, self.student = self.runners.checks, self.runners.student_again()
        self._locked_done: list[str] = []  # locked cells that the side of the checks has run
        self._end_reason = ""
        self._output_bytes = 0
        self._ran: list[str] = []  # sources that the process of the notebook has run
        self._ends = 0
        self._is_apart = False  # whether another process answers in the place of the notebook's
        self._lost: dict[str, str] = {}  # names that a cell would have defined, and why it did not
        self._fatal: set[str] = set()  # names that end Python where they are looked at
        self._missing: set[str] = set()  # names that the last locked cell asked for in vain
        self._unfinished: dict[str, Message] = {}  # replies in the place of those of cells that never ended
        self._is_called_back = False  # whether code of the student waits for a function of the checks

    def open(self) -> None:
        """Begin the notebook in the sandbox, where processes of an earlier notebook may slow it down."""
        reason = ""
        for _ in range(2):  # what an earlier notebook has left may keep this one from beginning there
            if self._is_over():
                return
            self.student = self.runners.student_again()
            try:
                self._open_student(self.student_place)
                return
            except ChannelError as error:
                reason = f"had to be ended: {WHY_ENDED.get(str(error), error)}"
        self._end(reason)

    def _open_student(self, place: Place) -> None:
        with self.runners.counted(self.student):
            self.student.open(place, min(START_TIMEOUT, self.time_left()))

    def _begin_again(self) -> None:
        """Open the notebook anew, and run what had run: what ended Python costs no other cell its points."""
        while not self._is_over():
            self._ends += 1
            if self._ends > MAX_ENDS:
                self._end(f"ended Python more than {MAX_ENDS} times")
                return
            self.open()
            if self._end_reason or self._runs_again():
                return

    def _runs_again(self) -> bool:
        for source in self._ran:
            try:
                self._exchange({"do": "run", "source": source})
            except _EndedError as error:
                self._leave_out(source, str(error))
                return False
        return True

    def _leave_out(self, source: str, reason: str) -> None:
        self._ran = [each for each in self._ran if each != source]
        with self.runners.reading():
            self._lost |= dict.fromkeys(names_defined(source), reason)

    def close(self) -> None:
        """End the notebook in the sandbox, and the sandbox where that takes too long."""
        with self.runners.counted(self.student):
            self.student.close(max(0.0, min(CLOSE_TIMEOUT, self.time_left())))

    def time_left(self) -> float:
        """Return the time that code of this submission may still take [s]."""
        return self.deadline - self.runners.seconds_used

    def _is_over(self) -> bool:
        """True if code of the student may run no longer; it is ended then."""
        if not self._end_reason and self.time_left() <= 0:
            self._end(f"took longer in all than the {self.deadline:g} s that it may")
        return bool(self._end_reason)

    def _end(self, reason: str) -> None:
        self._end_reason = reason
        self.student.end()

    def run_cells(self) -> None:
        """Run the cells; the checks run locked cells in the instructor's order."""
        self._open_checks()
        try:
            for cell in self.cells:
                if is_test(cell):
                    self._run_test(cell)
                    continue
                name = str(name_of(cell))
                # A locked cell that stands too early waits for the first test that comes after it for the
                # instructor.
                if self.reference.is_locked(cell) and self._locked_done == self.reference.before(name):
                    self._run_locked(name)
                cell.outputs = self._kept_outputs(self._run_in_sandbox(cell.source))
        finally:
            self.checks.close()

    def _open_checks(self) -> None:
        self.checks.open(self.checks_place)
        self._locked_done = []

    def _run_in_sandbox(self, source: str, *, test: bool = False) -> Message:
        self._ran.append(source)
        return self._ask_student({"do": "run", "source": source, "test": test})

    def _kept_outputs(self, reply: Message) -> list[NotebookNode]:
        """The outputs of a cell that ran in the sandbox, if a notebook can hold them."""
        with self.runners.reading():
            if self._is_too_much(reply.get("outputs")):
                return as_nodes([printed(self.cut)])
            nodes = checked(reply.get("outputs"))
        return as_nodes([printed(NOT_SHOWN)]) if nodes is None else nodes

    def _is_too_much(self, outputs: object) -> bool:
        """True if outputs are more than may still be kept; if not, they are counted."""
        size = size_of(outputs, self.max_output)
        for limit, before, owner in (
            (self.max_output, self._output_bytes, "notebook"),
            (self.max_output_in_all, self.runners.output_bytes, "submission"),
        ):
            if before + size > limit:
                self.cut = f"Outputs are left out: a {owner} may put out {limit / 1e6:g} MB in all."
                self.is_limited |= owner == "submission"
                return True
        self._output_bytes += size
        self.runners.output_bytes += size
        return False

    def _run_test(self, cell: NotebookNode) -> None:
        """Run a test cell, which finds the student's names."""
        name = str(name_of(cell))
        before = self.reference.before(name)
        if self._locked_done != before[: len(self._locked_done)]:
            # Cells have run that come later in the instructor's order: the checks begin anew.
            self.checks.close()
            self._open_checks()
        while len(self._locked_done) < len(before):
            self._run_locked(before[len(self._locked_done)])
        reply = self._run_locked(name)
        if reply.get("notes"):
            self.notes[name] = reply["notes"]
        lost = self._missing & self._lost.keys() & loaded(self.reference.cells[name].source)
        # A check may have failed only because code of the student ran no longer.
        if reason := self._end_reason or next((self._lost[each] for each in sorted(lost)), ""):
            text = f"{ENDED}{reason}."
            error = failed(ENDED_EARLY, text)
            outputs = [error if each["output_type"] == "error" else each for each in reply["outputs"]]
            others = [] if reply["failed"] else reply.get("messages", [])
            reply = {**reply, "outputs": outputs if reply["failed"] else [printed(text), *outputs]}
            reply |= {"messages": [(text, False), *others], "visibly_right": None}
        errors = [output for output in reply["outputs"] if output["output_type"] == "error"]
        # What the student's functions printed stands there too. The error of a failed check has to stay.
        if self._is_too_much([output for output in reply["outputs"] if output not in errors]):
            reply = {**reply, "outputs": [printed(self.cut), *errors]}
        cell.outputs = as_nodes(scored(reply, float(cell.metadata.nbgrader.points)))
        self.said[name] = said_by_check(reply, cell.outputs)

    def _run_locked(self, name: str) -> Message:
        """Run a cell of the instructor's on the side of the checks; one that never ended is not run again."""
        if name in self._unfinished:
            self._locked_done.append(name)
            return self._unfinished[name]
        start = self.checks.clock()
        try:
            with self.runners.checking():
                return self._run_there(name)
        except ChannelError:
            # With the instructor's own answer each check ends: this costs its points, and the student's time.
            self._unfinished[name] = {"failed": True, "outputs": [failed(UNFINISHED, NO_END)], "value": None}
            self.runners.seconds_used += self.checks.clock() - start
            self.is_out_of_time = True  # on an idle machine it may end
            self._end_apart(by_force=True)
            if self._is_called_back:
                self.student.end()
                self._begin_again()
            self.checks = self.runners.checks_again()
            self._open_checks()
            return self._unfinished[name]

    def _run_there(self, name: str) -> Message:
        cell = self.reference.cells[name]
        answers, others = self.reference.asked_for(name)
        if others:
            # A magic or an `import *` of a locked cell may have defined some of them.
            others -= set(self._ask_checks({"do": "names"})["names"])
        names = {each: self._look(each) for each in sorted(answers | others)}
        self._missing = {each for each, binding in names.items() if binding["kind"] == "missing"}
        for each in names.keys() & self.reference.imports.keys() - self._missing:
            verb, module, *_ = self.reference.imports[each].split()
            # What a module of the course remembers is where the answers have called it.
            if verb == "import" or module.partition(".")[0] not in self.checks_place.modules:
                names[each] = {"kind": "import", "statement": self.reference.imports[each]}
                self.unreadable.pop(each, None)
        try:
            self._ask_checks({"do": "bind", "names": names})
        except MessageTooLongError:
            binding = {"kind": "other", "strange": TOO_LARGE}
            self._ask_checks({"do": "bind", "names": dict.fromkeys(names, binding)})
        if is_test(cell):
            self._copy_student_files()
        self._locked_done.append(name)
        more = {"hide_prints": self.hide_prints, "test": is_test(cell)}
        return self._ask_checks({"do": "run", "source": cell.source, **more})

    def _look(self, name: str) -> Message:
        """Ask a sandbox for a name, and answer in the form that `bind` takes."""
        if name in self._fatal:
            return {"kind": "missing"}
        match self._ask_student({"do": "look", "name": name}):
            case {"kind": "missing" | "function" as kind}:
                return {"kind": kind}
            case {"kind": "value", "value": value}:
                return {"kind": "value", "value": value}
            case reply:
                return {"kind": "other", "strange": str(reply.get("strange", "nothing came"))}

    def _copy_student_files(self) -> None:
        """Give the checks the files that the lab wrote for the student, as they are now."""
        for name, (most, _) in declared("student_files").items():
            content = self._ask_student({"do": "read", "file": name, "most": most}).get("content")
            # The student's side was asked to limit what it reads, and may have been changed by the student.
            # Where the file is gone the checks keep what they have: nobody loses what was written before.
            if isinstance(content, str) and len(content) <= 4 * ((most + 2) // 3):  # in Base64
                self._ask_checks({"do": "write", "file": name, "content": content})

    def _ask_checks(self, message: Message) -> Message:
        """Ask the side of the checks, and pass on what it asks of the student meanwhile."""
        limit = 2 * self.timeout + EXTRA_TIMEOUT
        reply = self.checks.ask(message, limit)
        while "ask" in reply:
            # What the student's side says stays apart, so that the checks never take it for an order.
            if reply.get("apart"):
                self._begin_apart()
            answer = self._ask_student({**reply, "do": reply["ask"]})
            self._is_called_back = "callback" in answer
            try:
                if not self._is_called_back:
                    self._end_apart()
                    reply = self.checks.ask({"number": reply["number"], "answer": answer}, limit)
                    continue
                # A function of the checks that code of the student calls takes of the student's time.
                with self.runners.counted(self.student):
                    left = min(self.timeout, self.time_left())
                    answer["seconds"] = max(MIN_CALLBACK_TIMEOUT, left)
                    reply = self.checks.ask({"number": reply["number"], "answer": answer}, limit)
            except MessageTooLongError:
                self._end_apart(by_force=True)
                reply = self.checks.ask({"number": reply["number"], "answer": {"strange": TOO_LARGE}}, limit)
        if "ended" in reply:
            raise ChannelError("The process that runs the checks has ended.")
        return reply

    def _begin_apart(self) -> None:
        """Let what is asked next be answered by a process in which no cell has run; the notebook waits."""
        if self._is_over():
            return
        try:
            self._exchange({"do": "pause"})
            self._open_student(replace(self.student_place, files={}))
            self._is_apart = True
        except (_EndedError, ChannelError):
            self._begin_again()

    def _end_apart(self, *, by_force: bool = False) -> None:
        if not self._is_apart:
            return
        self._is_apart = False
        if by_force:
            self.student.end()
        self.close()
        if not self.student.alive:
            self._begin_again()

    def _ask_student(self, message: Message) -> Message:
        """Ask the student's side, while the student's time runs."""
        if self._is_over():
            return _reply_after_end(self._end_reason)
        try:
            reply = self._exchange(message)
        except _EndedError as error:
            was_apart, self._is_apart = self._is_apart, False
            if was_apart and self.student.alive:  # the notebook goes on
                return _reply_after_end(str(error))
            if message["do"] == "run":
                self._leave_out(message["source"], str(error))
            elif message["do"] == "look":
                self._lost[message["name"]] = str(error)
                self._fatal.add(message["name"])
            self._begin_again()
            return _reply_after_end(str(error), message["do"])
        if why := reply.get("strange"):
            self.unreadable[str(message.get("name"))] = _shortened(why)
        return reply

    def _exchange(self, message: Message) -> Message:
        seconds, clock = min(self.timeout, self.time_left()), self.student.clock
        with self.runners.counted(self.student):
            start, worked = clock(), clock.work
            try:
                reply = self.student.ask({**message, "seconds": seconds}, seconds + EXTRA_TIMEOUT)
            except ChannelError as error:
                raise _EndedError(f"had to be ended: {WHY_ENDED.get(str(error), error)}") from error
            finally:
                # Who has worked for as long as there was would not get further on an idle machine.
                has_worked = clock.work - worked >= (1 - STARVED) * seconds
                self.is_out_of_time |= clock() - start >= seconds and clock.starved and not has_worked
        if "paused" in reply and message["do"] != "pause":  # the code of the student has stopped its process
            self.student.end()
            raise _EndedError("stopped Python")
        if "ended" in reply:
            raise _EndedError("ended Python")
        return reply


class NotebookRunInside(NotebookRun):
    """A notebook and its checks in one process in the sandbox: student code can read and change them."""

    def run_cells(self) -> None:
        """Run the cells."""
        for cell in self.cells:
            reply = self._run_in_sandbox(cell.source, test=is_test(cell))
            cell.outputs = self._kept_outputs(reply)
            if not is_test(cell):
                continue
            # A forged reply may lack anything, and hold anything.
            has_failed, notes = reply.get("failed") is not False, reply.get("notes")
            # Here nothing tells what a check prints from what a function of the student prints.
            kept = [one for one in cell.outputs if not self.hide_prints or one["output_type"] == "error"]
            safe = {"outputs": kept, "failed": has_failed, "value": reply.get("value")}
            cell.outputs = as_nodes(scored(safe, float(cell.metadata.nbgrader.points)))
            self.said[str(name_of(cell))] = said_by_check(reply, cell.outputs)
            if isinstance(notes, dict) and notes:
                self.notes[str(name_of(cell))] = {
                    _shortened(name): [_shortened(each) for each in values[:MAX_NOTES]]
                    for name, values in list(notes.items())[:MAX_NOTES]
                    if isinstance(values, list)
                }


def _shortened(text: object) -> str:
    return storable(str(text)[:MAX_NOTE])


def _reply_after_end(reason: str, asked: str = "") -> Message:
    """Answer for the code of the student, which `asked` has ended."""
    text = ENDED_PYTHON if asked == "run" and reason == "ended Python" else f"{ENDED}{reason}."
    return {"kind": "missing", "error": {"type": ENDED_EARLY, "message": text}, "outputs": [printed(text)]}
