"""A class: who has submitted, what has to be graded, and where the grades go."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from filelock import FileLock, Timeout
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from ..autograde.definition import Definition
from ..autograde.task import GradingResult
from ..errors import InputError, NotFoundError, UnavailableError
from ..files import changed
from ..submissions.submission import OWN_NUMBER, Submission, read_submission
from ..text import listed, storable
from .gradebook import entries_of, is_in_book, merge, retry
from .one_student import READ_TIMEOUT, one_student
from .records import GradedSubmission, GradedSubmissions

MAX_NAME = 128  # characters, in nbgrader's gradebook
MAX_NAME_BYTES = 200  # a file is called like the student, with an ending; file systems take 255
ENDLESS = re.compile(rb"\bwhile[ (]+(?:True|1)\b")
MAX_LOOKED_AT, MAX_READ = 30, 1_000_000  # notebooks of a student; bytes of each
UNREADABLE = "The submission could not be read"


@dataclass
class Outcome:
    """What became of a class, by student."""

    graded: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)  # since they were graded
    failed: dict[str, str] = field(default_factory=dict)  # and why
    again: dict[str, dict[str, str]] = field(default_factory=dict)  # by notebook, a key of `REASONS`
    in_progress: dict[str, Submission] = field(default_factory=dict)  # in the order in which they began


class Classroom:
    """The submissions of an assignment."""

    def __init__(
        self, course: CourseDirectory, config: Config, assignment: str,
        own_numbers: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        self.course, self.config, self.assignment = course, config, assignment
        self.own_numbers = own_numbers
        self.definition = Definition.of(course, config, assignment)
        autograded = Path(course.root) / course.autograded_directory
        self.records = GradedSubmissions(autograded.parent / "graded", autograded, assignment)

    def students(self, only: str = "") -> list[str]:
        """Return those who have submitted, or of them whom `only` names: `*` and `?` stand for characters."""
        folders = self._submitted("*").parent.parent.glob(f"*/{self.assignment}")
        students = sorted(path.parent.name for path in folders if path.is_dir())
        if not students:
            raise NotFoundError(
                f"Nobody has submitted {self.assignment}: there is no folder {self._submitted('*')}. "
                "Make one for each student, and put the student's files into it."
            )
        for name in only.split(","):
            if not chosen(students, name):
                some = f"There are: {listed(students)}"
                raise NotFoundError(f"No student who has submitted is called {name.strip()!r}. {some}")
        return chosen(students, only)

    def _submitted(self, student: str) -> Path:
        return Path(self.course.format_path(self.course.submitted_directory, student, self.assignment))

    def submission_of(self, student: str) -> Submission:
        """Return what a student has submitted, with the student's own number where the course has numbers."""
        folder, asked = self._submitted(student), self.definition.asked
        submission = read_submission(folder, student, self.assignment, asked)
        submission.files.pop(OWN_NUMBER, None)  # nobody gives the number to themselves
        if self.own_numbers:
            if student not in self.own_numbers:
                raise InputError(
                    f"This course gives each student a number, and {student} has none. "
                    "Add one to c.GradeApp.own_numbers in nbgrader_config.py."
                )
            submission.files[OWN_NUMBER] = f"{self.own_numbers[student]}\n".encode()
        return submission

    @contextmanager
    def exclusive_lock(self) -> Iterator[None]:
        """Let no other process grade the same assignment in this block."""
        self.records.folder.mkdir(parents=True, exist_ok=True)
        try:
            lock = FileLock(self.records.folder / ".lock").acquire(timeout=0)
        except Timeout:
            raise UnavailableError(
                f"Another process is grading {self.assignment} in this course. "
                "Wait until it is done, or end it."
            ) from None
        with lock:
            self.records.clean_up()
            yield

    def pending(self, students: Iterable[str], outcome: Outcome, again: bool = False) -> list[str]:
        """Return those whose submissions have to be graded; the grades of the others are in the gradebook."""
        pending = []
        with self.gradebook() as book:
            entries = entries_of(book, self.assignment)
            for student in students:
                if reason := _why_no_name(student):
                    outcome.failed[student] = reason
                    continue
                record = None
                with one_student(student, outcome.failed, UNREADABLE, READ_TIMEOUT):
                    record = None if again else self._up_to_date(student)
                    if record is None:
                        pending.append(student)
                is_there = record is not None and is_in_book(record, entries.get(student))
                if is_there or (record is not None and self._merged(book, record, outcome)):
                    outcome.unchanged.append(student)
        return sorted(pending, key=self._expected_seconds, reverse=True)

    def _expected_seconds(self, student: str) -> float:
        """Return how long grading may take: as last time, or for ever where a loop may have no end.

        Whoever takes longest comes first, so that the others run beside it.
        """
        if (record := self.records.load(student)) is not None:
            return record.seconds
        notebooks = sorted(self._submitted(student).glob("*.ipynb"))[:MAX_LOOKED_AT]
        return float("inf") if any(map(_may_not_end, notebooks)) else 0.0

    def _inputs(self, submission: Submission) -> dict[str, dict[str, str]]:
        """Return what the grade of each notebook depends on."""
        own = submission.fingerprints()
        return {name: each | {"submission": own[name]} for name, each in self.definition.inputs.items()}

    def _to_grade(self, record: GradedSubmission, submission: Submission) -> dict[str, str]:
        """The notebooks that have to be graded again, of a submission that has a record, and why."""
        reasons = changed(record.inputs, self._inputs(submission))
        if reasons and record.limited:
            # One notebook used up what another one needed, which may earn more now.
            return dict.fromkeys(self.definition.cells, next(iter(reasons.values())))
        return reasons

    @property
    def old_grades(self) -> str:
        """Return how many grades are of another state of the assignment; empty if none are."""
        now = {name: each["assignment"] for name, each in self.definition.inputs.items()}
        records = [*filter(None, map(self.records.load, self.records.students))]
        old = sum(
            any(record.inputs.get(name, {}).get("assignment") != each for name, each in now.items())
            for record in records
        )
        if not old:
            return ""
        counts = f"Graded before {self.assignment} changed: {old} of {len(records)} students."
        return f"{counts} Their grades are of then. Grade again: starvelab-grader grade {self.assignment}"

    def _up_to_date(self, student: str) -> GradedSubmission | None:
        """A record whose notebooks need no grading, brought up to date; None where some do."""
        record = self.records.load(student)
        if record is None or self._to_grade(record, submission := self.submission_of(student)):
            return None
        if record.timestamp == submission.timestamp and record.inputs.keys() == self.definition.cells.keys():
            return record
        # Only the time has changed, or a notebook is not asked for any more.
        return self.records.save(GradingResult(student), submission, self._inputs(submission))

    def submissions(
        self, students: Iterable[str], outcome: Outcome, again: bool = False
    ) -> Iterator[Submission]:
        """Yield what each has submitted. One that cannot be read is left out, and is in the outcome."""
        for student in students:
            submission = None
            with one_student(student, outcome.failed, UNREADABLE, READ_TIMEOUT):
                submission = self.submission_of(student)
                record = None if again else self.records.load(student)
                if record is not None and (reasons := self._to_grade(record, submission)):
                    outcome.again[student] = reasons
                    unchanged = self.definition.cells.keys() - reasons.keys()
                    submission.to_grade = frozenset(reasons)
                    shown = (one for name in unchanged for one in record.warnings.get(name, []))
                    submission.shown_warnings = frozenset(one.text for one in shown)
            if submission is not None and student not in outcome.failed:
                outcome.in_progress[student] = submission
                yield submission

    def save(self, results: Iterable[GradingResult], outcome: Outcome) -> Iterator[str]:
        """Write each result as soon as it is there, and yield the name of the student."""
        with self.gradebook() as book:
            for result in results:
                submission = outcome.in_progress.pop(result.student)
                if result.failed:
                    outcome.failed[result.student] = result.failed
                else:
                    with one_student(result.student, outcome.failed, "The grades cannot be written"):
                        record = self.records.save(result, submission, self._inputs(submission))
                        if self._merged(book, record, outcome):
                            outcome.graded.append(result.student)
                yield result.student

    def gradebook(self) -> Gradebook:
        """Open the instructor's gradebook; whoever opens it closes it."""
        return Gradebook(self.course.db_url, self.course.course_id)

    def _merged(self, book: Gradebook, record: GradedSubmission, outcome: Outcome) -> bool:
        """Return True if a record went into the gradebook; if not, those of other students still can."""
        with one_student(record.student, outcome.failed, "The gradebook does not take it"):
            retry(lambda: merge(book, record, self.config))
        return record.student not in outcome.failed


def chosen(students: Iterable[str], only: str) -> list[str]:
    """Return the students whom names or patterns with commas between them mean; all if there are none."""
    names = [name.strip() for name in only.split(",") if name.strip()] or ["*"]
    return [one for one in students if one in names or any(fnmatchcase(one, name) for name in names)]


def _may_not_end(notebook: Path) -> bool:
    """True if the beginning of a file has a loop whose condition is always true."""
    with suppress(OSError), os.fdopen(os.open(notebook, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        return ENDLESS.search(file.read(MAX_READ)) is not None
    return False


def _why_no_name(student: str) -> str:
    """Why a folder's name cannot be that of a student in a gradebook; empty if it can."""
    if storable(student) != student:
        return "The name of the folder is not in UTF-8. Rename it."
    lengths = {"characters": (len(student), MAX_NAME), "bytes": (len(student.encode()), MAX_NAME_BYTES)}
    for unit, (length, limit) in lengths.items():
        if length > limit:
            return f"The name of the folder has {length} {unit}, and {limit} are allowed. Rename it."
    return ""
