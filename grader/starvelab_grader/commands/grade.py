"""`starvelab-grader grade`: a class, graded in parallel and safely, with nbgrader's folders and gradebook."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from textwrap import dedent

from nbgrader.converters import Autograde
from tqdm import tqdm
from traitlets import Bool, Integer, Unicode, default

from ..autograde.execution import IsolatedExecute
from ..autograde.releasing import (
    is_remembered,
    remember_solution,
    require_full_points,
    warnings_since_release,
)
from ..autograde.restoring import RestoreStructure
from ..batch.classroom import Classroom, Outcome
from ..batch.worker_pool import graded_by, open_pool
from ..fingerprints import REASONS
from ..report.findings import for_a_person
from ..sandbox import seccomp
from ..submissions.submission import Submission
from ..text import printed, shown
from .command import ONLY, AssignmentCommand, print_list


class GradeApp(AssignmentCommand):
    """Grades what is new or has changed, and prints what came of it."""

    kept = "What was graded is kept: the same command goes on from there."
    examples = dedent("""
        starvelab-grader grade starving-the-gpu                    all that is new, on all cores
        starvelab-grader grade starving-the-gpu --workers=4
        starvelab-grader grade starving-the-gpu --only=ada,'b*'    some students
        starvelab-grader grade starving-the-gpu --scheduler=tls://10.0.0.5:8786
        starvelab-grader grade starving-the-gpu --report           and write the report of the class
        """).strip()
    options = ("workers", "scheduler", "only")
    flags = {
        "report": ({"GradeApp": {"report": True}}, "Write the report of the class."),
        "names": (
            {"GradeApp": {"names": True}},
            "Call students in the report by the names that the gradebook has for them.",
        ),
        "again": ({"GradeApp": {"again": True}}, "Grade also what has not changed."),
        "without-tls": (
            {"GradeApp": {"without_tls": True}},
            "Accept a scheduler without TLS: whoever reaches its port can run code as its workers do.",
        ),
        "unsafe": (
            {"IsolatedExecute": {"unsafe": True}},
            "Where there is no sandbox, run student code with your own rights: it can do all that you can.",
        ),
    }
    workers = Integer(0, min=0, help="How many submissions to grade at once; 0: one for each core.").tag(
        config=True
    )
    scheduler = Unicode(help="Address of a Dask scheduler whose workers are to grade.").tag(config=True)
    without_tls = Bool(help="Whether to accept a scheduler without TLS.").tag(config=True)
    only = Unicode(help=ONLY).tag(config=True)
    report = Bool(help="Whether to write the report of the class.").tag(config=True)
    names = Bool(help="Whether the report calls students by their names.").tag(config=True)
    again = Bool(help="Whether to grade also what has not changed.").tag(config=True)

    @default("classes")
    def _classes_default(self) -> list[type]:
        return [*super()._classes_default(), Autograde, IsolatedExecute, RestoreStructure]

    def run(self, assignment: str) -> None:
        """Grade an assignment, and print what came of it."""
        classroom = Classroom(self.coursedir, self.config, assignment)
        unsafe = IsolatedExecute(parent=self).unsafe
        if unsafe:
            self.log.warning("UNSAFE: where there is no sandbox, student code runs with all your rights.")
        elif weakness := seccomp.why_not():
            self.log.warning(weakness)
        for warning in warnings_since_release(self.coursedir, assignment):
            self.log.warning(warning)
        outcome = Outcome()
        with classroom.exclusive_lock():
            students = classroom.students(self.only)
            pending = classroom.pending(
                tqdm(students, desc="reading", unit="submission", leave=False), outcome, self.again
            )
            if pending:
                self._grade(classroom, pending, outcome, unsafe)
            self._print_outcome(classroom, outcome)
            if self.report:
                self._write_report(classroom, outcome)
        if outcome.failed:
            raise SystemExit(1)

    def _write_report(self, classroom: Classroom, outcome: Outcome) -> None:
        from ..batch.gradebook import names_of
        from ..report import class_report  # loaded here: it draws, and most commands do not

        names = {}
        if self.names:
            with closing(classroom.gradebook()) as book:
                names = {student: f"{name} ({student})" for student, name in names_of(book).items()}
        sections = class_report.sections(classroom.records, classroom.definition, names, outcome.failed)
        folder = classroom.records.folder.parent.parent / "report" / classroom.assignment
        page = class_report.write(folder, f"{classroom.assignment}: the report of the class", sections)
        print(f"The report: {page}, and its tables as CSV beside it.")

    def _grade(self, classroom: Classroom, pending: list[str], outcome: Outcome, unsafe: bool) -> None:
        in_progress: dict[str, Submission] = {}

        def submissions() -> Iterator[Submission]:
            for submission in classroom.submissions(pending, outcome, self.again):
                in_progress[submission.student] = submission
                yield submission

        with open_pool(
            workers=self.workers or None,
            scheduler=self.scheduler or None,
            without_tls=self.without_tls,
            unsafe=unsafe,
        ) as client:
            definition = classroom.definition
            if not is_remembered(self.coursedir, definition):
                require_full_points(definition, lambda one: next(graded_by(client, definition, [one])))
                remember_solution(self.coursedir, definition)
            results = graded_by(client, definition, submissions())
            with tqdm(total=len(pending), desc="grading", unit="submission", smoothing=0.05) as bar:
                for student in classroom.save(results, in_progress, outcome):
                    bar.set_postfix_str(shown(student)[:20], refresh=False)
                    bar.update()

    def _print_outcome(self, classroom: Classroom, outcome: Outcome) -> None:
        counts = f"{len(outcome.graded)} graded, {len(outcome.unchanged)} unchanged since they were graded"
        print(f"{classroom.assignment}: {counts}, {len(outcome.failed)} could not be graded.")
        for line in _graded_again(outcome):
            print(line)
        failed = outcome.failed.items()
        print_list("Not graded:", (f"{shown(one)}: {reason.splitlines()[-1]}" for one, reason in failed))
        for student, reason in failed:
            self.log.info("%s: %s", shown(student), printed(reason))
        records = map(classroom.records.load, sorted([*outcome.graded, *outcome.unchanged]))
        to_check = (f"{shown(student)}: {text}" for student, _, text in for_a_person(filter(None, records)))
        print_list("A person should look at these:", to_check, more=": --report lists them all")


def _graded_again(outcome: Outcome) -> Iterator[str]:
    """One line for each reason for which notebooks were graded again."""
    for kind, reason in REASONS.items():
        counts = [list(outcome.again.get(student, {}).values()).count(kind) for student in outcome.graded]
        if any(counts):
            notebooks, submissions = sum(counts), sum(map(bool, counts))
            yield (
                f"Graded again because {reason}: {_count(notebooks, 'notebook')} of "
                f"{_count(submissions, 'submission')}."
            )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
