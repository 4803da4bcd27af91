"""A class: who handed in, what is still to be graded, and where the grades go."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.exc import InterfaceError, OperationalError
from traitlets.config import Config

from ...errors import StarvelabError
from ..autograde.definition import Definition
from ..autograde.task import Graded
from ..report.marks import names_of
from ..submissions.digests import changed
from ..submissions.files import HandIn, collect
from .merging import is_known, known_to, merge
from .one_student import READ_TIMEOUT, CannotWriteError, one_student
from .records import Record, Records

T = TypeVar("T")
MAX_NAME = 128  # characters, in nbgrader's gradebook
MAX_NAME_BYTES = 200  # a file is called like the student, with an ending; file systems take 255
PATIENCE = 60.0  # seconds that a gradebook may be locked or away


class NothingHandedInError(StarvelabError, LookupError):
    """Nobody handed in, or nobody of those who were asked for."""


class BusyError(StarvelabError, RuntimeError):
    """Another grading of the same course is under way."""


@dataclass
class Outcome:
    """What became of a class.

    Attributes
    ----------
    graded, unchanged : list of str
        Students whose submissions were graded, and those that had been graded before as they are.
    failed : dict of str to str
        Students whose submissions could not be graded, and why.
    again : dict of str to dict of str to str
        Of students who were graded before, the notebooks that had to be graded again, and why, as in
        `inputs.REASONS`.
    """

    graded: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    again: dict[str, dict[str, str]] = field(default_factory=dict)


class Classroom:
    """The submissions of an assignment.

    Parameters
    ----------
    course : CourseDirectory
    config : Config
    assignment : str

    Raises
    ------
    NotReleasedError
    """

    def __init__(self, course: CourseDirectory, config: Config, assignment: str) -> None:
        self.course, self.config, self.assignment = course, config, assignment
        self.definition = Definition.of(course, config, assignment)
        autograded = Path(course.root) / course.autograded_directory
        self.records = Records(autograded.parent / "graded", autograded, assignment)

    # --- who ------------------------------------------------------------------------------------------

    def students(self, only: str = "") -> list[str]:
        """Those who handed in.

        Parameters
        ----------
        only : str
            Names with commas between them; `*` and `?` stand for any letters.

        Raises
        ------
        NothingHandedInError
        """
        where = self._submitted("*")
        found = sorted(
            path.parent.name for path in where.parent.parent.glob(f"*/{self.assignment}") if path.is_dir()
        )
        if not found:
            raise NothingHandedInError(
                f"Nobody has handed in {self.assignment}: there is no folder {where}. "
                "Make one for each student, and put there what came."
            )
        wanted = [name.strip() for name in only.split(",") if name.strip()]
        for name in wanted:
            if not any(_is_called(student, name) for student in found):
                some = ", ".join(found[:5]) + (", …" if len(found) > 5 else "")
                raise NothingHandedInError(f"No student who handed in is called {name!r}. There are: {some}")
        return [one for one in found if not wanted or any(_is_called(one, name) for name in wanted)]

    def _submitted(self, student: str) -> Path:
        return Path(self.course.format_path(self.course.submitted_directory, student, self.assignment))

    def hand_in(self, student: str) -> HandIn:
        """What a student handed in."""
        return collect(self._submitted(student), student, self.assignment, self.definition.asked)

    def names(self) -> dict[str, str]:
        """Students' names and the names of their folders, where the gradebook has a name."""
        with closing(self.gradebook()) as book:
            return {student: f"{name} ({student})" for student, name in names_of(book).items()}

    # --- grading --------------------------------------------------------------------------------------

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep others from grading the same assignment meanwhile.

        Raises
        ------
        BusyError
        """
        self.records.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.records.folder / ".lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise BusyError(
                f"Another process is grading {self.assignment} in this course. "
                "Wait until it is done, or end it."
            ) from None
        try:
            self.records.tidy()
            yield
        finally:
            lock.release()

    def waiting(self, students: Iterable[str], outcome: Outcome, again: bool = False) -> list[str]:
        """Those whose submissions are to be graded; the others' grades are in the gradebook afterwards.

        Parameters
        ----------
        again : bool
            Whether to grade also what is done and unchanged.
        """
        todo = []
        students = list(students)
        for student in students:
            if why := _no_name(student):
                outcome.failed[student] = why
        with closing(self.gradebook()) as book:
            known = known_to(book, self.assignment)
            for student in (one for one in students if one not in outcome.failed):
                record = None
                with one_student(student, outcome.failed, "The submission could not be read", READ_TIMEOUT):
                    record = None if again else self.records.find(student)
                    record = record and self._still_true(record)
                    if record is None:
                        todo.append(student)
                if (
                    record is not None
                    and student not in outcome.failed
                    and (is_known(record, known.get(student)) or self._merged(book, record, outcome))
                ):
                    outcome.unchanged.append(student)
        return todo

    def _inputs(self, handed: HandIn) -> dict[str, dict[str, str]]:
        """What the grade of each notebook depends on."""
        submission = handed.fingerprints()
        return {
            name: parts | {"submission": submission[name]} for name, parts in self.definition.inputs.items()
        }

    def _to_grade(self, record: Record, handed: HandIn) -> dict[str, str]:
        """The notebooks of a submission that was graded before which have to be graded again, and why."""
        found = changed(record.inputs, self._inputs(handed))
        if found and record.limited:
            # One notebook took time or room from another, which may earn more now.
            return dict.fromkeys(self.definition.cells, next(iter(found.values())))
        return found

    def _still_true(self, record: Record) -> Record | None:
        """A record whose notebooks need no grading, brought up to date; None where some do."""
        handed = self.hand_in(record.student)
        if self._to_grade(record, handed):
            return None
        if record.timestamp == handed.timestamp and record.inputs.keys() == self.definition.cells.keys():
            return record
        # The time alone has changed, or a notebook is asked for no longer.
        return self.records.keep(Graded(record.student), handed, self._inputs(handed))

    def hand_ins(self, students: Iterable[str], outcome: Outcome, again: bool = False) -> Iterator[HandIn]:
        """What each of them handed in; one whose submission cannot be read is left out, and said.

        Parameters
        ----------
        again : bool
            Whether to grade also the notebooks that are unchanged.
        """
        for student in students:
            handed = None
            with one_student(student, outcome.failed, "The submission could not be read", READ_TIMEOUT):
                handed = self.hand_in(student)
                record = None if again else self.records.find(student)
                if record is not None and (found := self._to_grade(record, handed)):
                    outcome.again[student] = found
                    stays = self.definition.cells.keys() - found.keys()
                    handed.to_grade = frozenset(found)
                    handed.said = frozenset(
                        each.text for name in stays for each in record.remarks.get(name, [])
                    )
            if handed is not None and student not in outcome.failed:
                yield handed

    def keep(self, results: Iterable[Graded], hand_ins: dict[str, HandIn], outcome: Outcome) -> Iterator[str]:
        """Write each result down as it comes, and say whose it was.

        Raises
        ------
        CannotWriteError
            What was graded before that is kept.
        """
        with closing(self.gradebook()) as book:
            for graded in results:
                handed = hand_ins.pop(graded.student)
                if graded.failed:
                    outcome.failed[graded.student] = graded.failed
                else:
                    with one_student(graded.student, outcome.failed, "The grades cannot be written"):
                        record = self.records.keep(graded, handed, self._inputs(handed))
                        if self._merged(book, record, outcome):
                            outcome.graded.append(graded.student)
                yield graded.student

    def gradebook(self) -> Gradebook:
        """The instructor's gradebook; whoever opens it closes it."""
        return Gradebook(self.course.db_url, self.course.course_id)

    def _merged(self, book: Gradebook, record: Record, outcome: Outcome) -> bool:
        """Whether a record went into the gradebook; if not, the others' still go in."""
        with one_student(record.student, outcome.failed, "The gradebook refuses it"):
            patiently(lambda: merge(book, record, self.config))
        return record.student not in outcome.failed


def _is_called(student: str, pattern: str) -> bool:
    return student == pattern or fnmatchcase(student, pattern)


def _no_name(student: str) -> str:
    """Why a folder's name cannot be that of a student in a gradebook; empty if it can."""
    try:
        student.encode()
    except UnicodeEncodeError:
        return "The name of the folder is not in UTF-8. Rename it."
    for length, most, unit in (
        (len(student), MAX_NAME, "characters"),
        (len(student.encode()), MAX_NAME_BYTES, "bytes"),
    ):
        if length > most:
            return f"The name of the folder has {length} {unit}, and {most} are allowed. Rename it."
    return ""


def patiently(write: Callable[[], T], patience: float = PATIENCE) -> T:
    """Write into a gradebook that may be locked, or away for a moment.

    Raises
    ------
    CannotWriteError
    """
    given_up = time.monotonic() + patience
    while True:
        try:
            return write()
        except (OperationalError, InterfaceError) as error:
            if time.monotonic() > given_up:
                why = str(getattr(error, "orig", error)).splitlines()[0]
                raise CannotWriteError(
                    f"The gradebook takes no grades: {why}. Nothing is lost: what was graded is kept beside "
                    "it. Close what else uses the gradebook, and start again."
                ) from error
            time.sleep(0.2)
