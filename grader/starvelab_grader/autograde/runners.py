"""The runners that a process of the grader keeps between notebooks."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from traitlets.config import Config

from ..sandbox.process import Runner
from ..submissions import SubmissionWarning


class Runners:
    """Two runners and what they have used: one runs the checks, the other the code of one student."""

    # Notebooks of one submission share a sandbox, and no two submissions do. nbgrader makes a preprocessor
    # anew for each notebook, so whoever starts nbgrader passes these in the configuration.

    def __init__(self) -> None:
        self.checks: Runner | None = None
        self.student: Runner | None = None
        self.seconds_used = 0.0  # by code of the student
        self.output_bytes = 0  # that were kept of the student's outputs
        self.shown_warnings: set[str] = set()  # those that stand in another notebook of the submission
        # Held while nbgrader grades: it changes the current folder of the whole process.
        self.lock = threading.Lock()
        self._submission: Hashable = None
        self._new = partial(Runner, sandboxed=True)
        self._logged: set[str] = set()
        self._running: list[Runner] = []
        # Also where nobody calls `close`: when this object is deleted, or when Python ends.
        self._finalizer = weakref.finalize(self, _end_all, self._running)

    @classmethod
    def of(cls, config: Config) -> Runners:
        """Return the runners that `configure` has put into a configuration; new ones where there are none."""
        runners = config.get("IsolatedExecute", {}).get("runners")
        return runners if isinstance(runners, Runners) else cls()

    def __deepcopy__(self, memo: object) -> Runners:
        """Return the same object: traitlets copies what stands in a configuration."""
        return self

    def begin(
        self,
        submission: tuple[str | None, ...],
        *,
        sandboxed: bool,
        imports: Sequence[str],
        readable: Sequence[str],
        shown_warnings: Iterable[str] = (),
    ) -> None:
        """Begin a notebook of a submission, which is told from every other one by this tuple."""
        key = (os.getpid(), *submission, sandboxed)
        if self._submission != key:
            self.end_student()
            self._submission = key
            self.shown_warnings |= set(shown_warnings)
        self._new = partial(Runner, sandboxed=sandboxed, imports=imports, readable=readable)
        if self.checks is None or not self.checks.alive:
            self.checks = self._started(Runner(sandboxed=False, trusted=True, imports=imports))

    def student_again(self) -> Runner:
        """Return the runner of the student; a new one in the place of one that was ended."""
        if self.student is None or not self.student.alive:
            self.student = self._started(self._new())
        return self.student

    def _started(self, runner: Runner) -> Runner:
        self._running[:] = [*(each for each in self._running if each.alive), runner]
        return runner

    def end_student(self) -> None:
        """End the sandbox of the student whose turn it was."""
        if self.student is not None:
            self.student.end()
        self.student, self._submission, self.seconds_used, self.output_bytes = None, None, 0.0, 0
        self.shown_warnings.clear()

    def close(self) -> None:
        """End both runners."""
        self.end_student()
        if self.checks is not None:
            self.checks.end()
            self.checks = None

    def new_warnings(self, warnings: Iterable[SubmissionWarning]) -> list[SubmissionWarning]:
        """Return those warnings that no notebook of the submission shows yet."""
        new = [warning for warning in warnings if warning.text not in self.shown_warnings]
        self.shown_warnings |= {warning.text for warning in new}
        return new

    def is_first_time(self, message: str) -> bool:
        """True if a message was not logged before: one for the first notebook is enough."""
        is_first = message not in self._logged
        self._logged.add(message)
        return is_first

    @contextmanager
    def counted(self, student: Runner) -> Iterator[None]:
        """Count what this block takes as time of the student."""
        start = student.clock()
        try:
            yield
        finally:
            # The clock takes back seconds that others had the cores for, also some of before this block.
            self.seconds_used = max(0.0, self.seconds_used + student.clock() - start)


def _end_all(runners: list[Runner]) -> None:
    for runner in runners:
        if runner.alive:
            runner.end()
