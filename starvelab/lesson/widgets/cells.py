"""A log of a learner's kernel: which cells ran, what each earned, and errors in one line.

It is not installed where a notebook is graded or validated: nbgrader has to see the errors.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import linecache
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from numbers import Real
from pathlib import Path
from traceback import walk_tb
from types import FunctionType, TracebackType

import pint
from IPython import get_ipython
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell

from ... import runtime
from ...errors import InputError, StarvelabError
from ...tables import as_sentence
from .. import notices, wording
from ..checks import OTHER_VALUES, NotAnsweredError, Points, WrongAnswer
from ..exercises import NOT_ANSWERED, OPEN_WORD, Exercise, find_notebook, read_exercises
from ..my_model import FILE, PARTS, save_part, stand_in_for_the_file

# A check's own errors come of an answer that is not there, or that takes or returns something else.
_RUN_THE_ANSWER = (
    "It happened when the check called your answer, or used what that returned. Run the cell of your answer, "
    "and then this one; after a restart of the kernel, choose Run > Run All Cells."
)
_RUN_ABOVE = (
    "{} has no value: the cell that gives it one has not run since the kernel started. Choose "
    "Run > Run All Above Selected Cell, and then run this cell."
)
_IN_CHECK = re.compile(r"\b(check|Credit)\(")
_PUTS_OUT = re.compile(r"\b(print|display|show)\b")
_HOW = (
    "Replace the two lines in the cell of your answer, run that cell until it ends without an error, and "
    "then this one."
)


@dataclass
class CellLog:
    """The cells that one kernel ran, by their sources."""

    # What the last run returned if that is a number, infinity if it ended well with anything else, and None
    # if it failed or needs an answer that is still open.
    earned: dict[str, float | None] = field(default_factory=dict)
    # Those whose last run ended in an error that is no open answer.
    failed: set[str] = field(default_factory=set)
    # The last error that was shown as a notice: Run All goes on behind it.
    _passed: BaseException | None = None

    def notebook(self) -> Path | None:
        """The file of the notebook that runs; None if it is not found."""
        return find_notebook(Path.cwd(), self.earned)

    def exercises(self) -> tuple[Exercise, ...]:
        """The exercises of the notebook that runs, as it was last saved; none if its file is not found."""
        path = self.notebook()
        return () if path is None else read_exercises(path)

    def is_wrong(self, exercise: Exercise) -> bool:
        """True if its check ran, and found nothing right."""
        return exercise.source in self.failed or self.earned.get(exercise.source) == 0

    def points(self, exercise: Exercise) -> float:
        """Return what its check found in the last run, without the hidden part; 0 where it did not run."""
        return min(self.earned.get(exercise.source) or 0.0, exercise.visible_points)

    def remember(self, result: ExecutionResult | None) -> None:
        """Keep what a cell earned; an answer that is still open does not stop Run All."""
        if result is None or result.info is None:  # it was interrupted before it ran
            return
        source, error = result.info.raw_cell, result.error_before_exec or result.error_in_exec
        value = result.result
        earned = float(value) if isinstance(value, Real) and not isinstance(value, bool) else inf
        self.earned[source] = earned if error is None else None
        self.failed.discard(source)
        if error is not None and error is self._passed:
            result.error_in_exec = None
        if not (error is None or _is_open(error) or (error is self._passed and type(error) is NameError)):
            self.failed.add(source)

    def say_what_is_left(self, shell: InteractiveShell, result: ExecutionResult | None) -> None:
        """Say of a check that has passed that others follow, and keep a part of the learner's model."""
        if result is None or result.info is None or not result.success:
            return
        source = result.info.raw_cell
        if not _IN_CHECK.search(source):  # to look for the notebook takes some milliseconds
            return
        exercise = next((one for one in self.exercises() if one.source == source), None)
        if exercise is None or not self.points(exercise) >= exercise.visible_points > 0:
            return
        answers = answers_of(source, shell.user_ns)
        if not isinstance(result.result, Points):  # these say it themselves
            points = Points(exercise.visible_points, exercise.visible_points)
            # The notice says once that all is right. What the learner's own code puts out stays.
            if not any(_PUTS_OUT.search(answer) for answer in answers.values()):
                shell.display_pub.clear_output(wait=True)  # type: ignore[no-untyped-call]
            keywords = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.keyword))
            means = [ast.literal_eval(one.value) for one in keywords if one.arg == "means"]
            shell.display_pub.publish(
                notices.formats(" ".join((*means, points.sentence, OTHER_VALUES)), "Done")
            )
        for name in PARTS.keys() & answers.keys():
            if save_part(name, text_of(shell.user_ns[name], answers[name])):
                kept = f"{name} is kept in {FILE}: it is a part of your model."
                shell.display_pub.publish(notices.formats(kept, "Done"))

    def show_error(
        self,
        shell: InteractiveShell,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
        tb_offset: int | None = None,
    ) -> None:
        """Show in one line what has an explanation or ends a check, and another error as IPython does."""
        # The last cell of the history is the one that runs.
        source = shell.history_manager.input_hist_raw[-1] if shell.history_manager else ""
        in_check = _IN_CHECK.search(source) is not None
        own = {frame.f_code.co_filename for frame, _ in walk_tb(trace) if frame.f_globals is shell.user_ns}
        passed: tuple[str, ...] = ()
        if isinstance(error.__cause__, NameError):  # a part of a check has met it
            passed = _RUN_ABOVE.format(error.__cause__.name), "Not run yet"
        elif _is_open(error):
            self.earned[source] = None  # by it the notebook is found
            title = next((f"{one.name} " for one in self.exercises() if one.source == source), "")
            passed = f"{title}{_HOW}", OPEN_WORD
        elif isinstance(error, WrongAnswer):
            passed = as_sentence(str(error)), "Not yet"
        elif type(error) is NameError and len(own) == 1:
            passed = _RUN_ABOVE.format(error.name), "Not run yet"
        if passed:
            self.earned[source], self._passed = None, error
            shell.display_pub.publish(notices.formats(*passed))
            return
        explained = isinstance(error, StarvelabError | pint.DimensionalityError)
        if (explained or in_check) and not hasattr(error, "_render_traceback_"):
            # IPython draws no traceback of an error that renders itself. That of a check would show what the
            # check expects.
            line = f"{wording.error_text(error)}{_where(shell, trace, in_check)}"
            if isinstance(error, pint.DimensionalityError):  # some front ends show an error's own words, too
                kind, error = InputError, InputError(line)
            error._render_traceback_ = lambda: [line]  # type: ignore[attr-defined]
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


LOG = CellLog()  # of the notebook that runs in this process


def install(log: CellLog = LOG, shell: InteractiveShell | None = None) -> None:
    """Let IPython tell `log` of each cell, where a learner works in a notebook."""
    shell = shell or get_ipython()
    if runtime.current().is_grading:
        stand_in_for_the_file()
    if shell is None or runtime.current().is_for_nbgrader:
        return

    shell.events.register("post_run_cell", log.remember)
    shell.events.register("post_run_cell", lambda result: log.say_what_is_left(shell, result))
    # IPython makes a method of the shell of what it gets, and a bound method cannot be made one.
    shell.set_custom_exc((Exception,), lambda *error, **more: log.show_error(*error, **more))


def _is_open(error: BaseException | None) -> bool:
    """True if an error only says that a learner has not answered yet."""
    if isinstance(error, NotImplementedError):
        return str(error) == NOT_ANSWERED
    return isinstance(error, NotAnsweredError)


def _where(shell: InteractiveShell, trace: TracebackType | None, in_check: bool) -> str:
    """The last line of the notebook that an error came through; of a check none, but what is to be done."""
    own = [(frame, line) for frame, line in walk_tb(trace) if frame.f_globals is shell.user_ns]
    if in_check and own:
        # The first frame is that of the cell that runs.
        check = own[0][0].f_code.co_filename
        own = [(frame, line) for frame, line in own if frame.f_code.co_filename != check]
        if not own:
            return f" {_RUN_THE_ANSWER}"
    if not own:
        return ""
    frame, line = own[-1]
    code, name = linecache.getline(frame.f_code.co_filename, line).strip(), frame.f_code.co_name
    within = "" if name.startswith("<") else f" of {name}"
    return f" It happened in line {line}{within}: {code}"


def answers_of(check: str, names: Mapping[str, object]) -> dict[str, str]:
    """Return the source of each function that a check calls, of the `names` that other cells have defined."""
    asked = list(ast.walk(ast.parse(check)))
    used = [node for node in asked if isinstance(node, ast.Name)]
    own = {node.name for node in asked if isinstance(node, ast.FunctionDef)}
    own |= {node.id for node in used if isinstance(node.ctx, ast.Store)}
    found = {}
    for name in sorted({node.id for node in used} - own):
        answer = names.get(name)
        if isinstance(answer, FunctionType) and answer.__module__ == "__main__":
            with contextlib.suppress(OSError):  # it was made by exec, for example
                found[name] = inspect.getsource(answer)
    return found


def text_of(answer: FunctionType, source: str) -> str:
    """Return the text of an answer's cell without what only shows something, or else the function alone."""
    cell = "".join(linecache.getlines(answer.__code__.co_filename))
    try:
        statements = ast.parse(cell).body
    except SyntaxError:  # it has commands of IPython
        return source
    lines = cell.splitlines()
    for statement in reversed(statements):
        if isinstance(statement, ast.Expr):
            del lines[statement.lineno - 1 : statement.end_lineno]
    return "\n".join(lines)
