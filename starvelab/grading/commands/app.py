"""`starvelab grade`: a class, graded in parallel and safely, in the tools that nbgrader's users know."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent
from typing import Any, ClassVar

from nbgrader.converters import Autograde
from tqdm import tqdm
from traitlets import Bool, Integer, Unicode, default

from ...host import usable_cores
from ..autograde.execution import IsolatedExecute
from ..autograde.releasing import why_not_as_it_is
from ..autograde.restoring import MendStructure
from ..autograde.solution import is_remembered, remember_solution, require_full_points
from ..batch.classroom import Classroom, Outcome
from ..batch.worker_pool import crew, graded_by
from ..report.feedback_pages import FeedbackPages
from ..report.findings import for_a_person
from ..sandbox import seccomp
from ..submissions.digests import REASONS
from ..submissions.files import HandIn, shown
from .collect import CollectApp
from .command import SHOWN, AssignmentCommand, Command
from .mark import MarkApp
from .release import ReleaseApp


class GradeApp(AssignmentCommand):
    """The command."""

    name = "starvelab-grade"
    kept = "What was graded is kept: the same command goes on from there."
    description = "Grade what a class handed in: safely, in parallel, and nothing twice."
    examples = dedent("""
        starvelab grade starving-the-gpu                       all that is new, on all cores
        starvelab grade starving-the-gpu --workers=4
        starvelab grade starving-the-gpu --only=ada,'b*'       some students
        starvelab grade starving-the-gpu --scheduler=tls://10.0.0.5:8786
        starvelab grade starving-the-gpu --report              and say what the class knows
        """).strip()
    aliases = {  # noqa: RUF012 (traitlets reads it from the class)
        "workers": "GradeApp.workers",
        "scheduler": "GradeApp.scheduler",
        "only": "GradeApp.only",
        "db": "CourseDirectory.db_url",
        "log-level": "Application.log_level",
    }
    flags = {  # noqa: RUF012
        "report": ({"GradeApp": {"report": True}}, "Say what the class knows and what it does not."),
        "names": (
            {"GradeApp": {"names": True}},
            "Call students in the report by the names that the gradebook has for them.",
        ),
        "again": ({"GradeApp": {"again": True}}, "Grade also what is done and unchanged."),
        "without-tls": (
            {"GradeApp": {"without_tls": True}},
            "Accept a scheduler without TLS: whoever reaches its port can run code as its workers do.",
        ),
        "unsafe": (
            {"IsolatedExecute": {"unsafe": True}},
            "Where there is no sandbox, run student code with your own rights: all you can do, it can.",
        ),
    }
    workers = Integer(0, help="How many submissions to grade at once; 0: one for each core.").tag(config=True)
    scheduler = Unicode("", help="Address of a Dask scheduler whose workers are to grade.").tag(config=True)
    without_tls = Bool(False, help="Whether a scheduler without TLS will do.").tag(config=True)
    only = Unicode("", help="Students, with commas between them; * and ? stand for letters.").tag(config=True)
    report = Bool(False, help="Whether to write the report of the class.").tag(config=True)
    names = Bool(False, help="Whether the report calls students by their names.").tag(config=True)
    again = Bool(False, help="Whether to grade also what is done and unchanged.").tag(config=True)

    @default("classes")
    def _classes_default(self) -> list[type]:
        return [*super()._classes_default(), Autograde, IsolatedExecute, MendStructure]

    def run(self, assignment: str) -> None:
        """Grade an assignment, and say what came of it."""
        classroom = Classroom(self.coursedir, self.config, assignment)
        unsafe = bool(self.config.IsolatedExecute.get("unsafe"))
        if unsafe:
            self.log.warning("UNSAFE: where there is no sandbox, student code runs with all rights of yours.")
        elif weakness := seccomp.why_not():
            self.log.warning(weakness)
        for warning in why_not_as_it_is(self.coursedir, assignment):
            self.log.warning(warning)
        outcome = Outcome()
        with classroom.alone():
            students = classroom.students(self.only)
            todo = classroom.waiting(
                tqdm(students, desc="reading", unit="hand-in", leave=False), outcome, self.again
            )
            if todo:
                self._grade(classroom, todo, outcome, unsafe)
            self._say(classroom, outcome)
            if self.report:
                from ..report import class_report as report

                names = classroom.names() if self.names else {}
                parts = report.sections(classroom.records, classroom.definition, names)
                folder = classroom.records.folder.parent.parent / "report" / assignment
                page = report.write(folder, f"{assignment}: what the class shows", parts)
                print(f"The report: {page}, and its tables as CSV beside it.")
        if outcome.failed:
            raise SystemExit(1)

    def _grade(self, classroom: Classroom, todo: list[str], outcome: Outcome, unsafe: bool) -> None:
        in_progress: dict[str, HandIn] = {}

        def hand_ins() -> Iterator[HandIn]:
            for handed in classroom.hand_ins(todo, outcome, self.again):
                in_progress[handed.student] = handed
                yield handed

        with crew(
            workers=self.workers or None,
            scheduler=self.scheduler or None,
            without_tls=self.without_tls,
            unsafe=unsafe,
        ) as client:
            definition = classroom.definition
            if not is_remembered(self.coursedir, definition):
                require_full_points(definition, lambda one: next(graded_by(client, definition, [one])))
                remember_solution(self.coursedir, definition)
            results = graded_by(client, definition, hand_ins())
            with tqdm(total=len(todo), desc="grading", unit="submission", smoothing=0.05) as bar:
                for student in classroom.keep(results, in_progress, outcome):
                    bar.set_postfix_str(student[:20], refresh=False)
                    bar.update()

    def _say(self, classroom: Classroom, outcome: Outcome) -> None:
        done = f"{len(outcome.graded)} graded, {len(outcome.unchanged)} unchanged since they were graded"
        print(f"{classroom.assignment}: {done}, {len(outcome.failed)} could not be graded.")
        for line in _graded_again(outcome):
            print(line)
        for student, why in list(outcome.failed.items())[:SHOWN]:
            print(f"  {shown(student)}: {why.splitlines()[-1]}")
            self.log.info("%s: %s", student, why)
        found = map(classroom.records.find, sorted([*outcome.graded, *outcome.unchanged]))
        odd = [f"  {student}: {text}" for student, _, text in for_a_person(filter(None, found))]
        if odd:
            print("A person should look at:")
            print("\n".join(odd[:SHOWN]))
            if len(odd) > SHOWN:
                print(f"  and {len(odd) - SHOWN} more: --report lists them all")


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


class FeedbackApp(AssignmentCommand):
    """The command that writes the pages that students read."""

    name = "starvelab-feedback"
    kept = "The pages that were made are kept: the same command goes on from there."
    description = "Write a feedback page for each student: all that are out of date, in parallel."
    examples = dedent("""
        starvelab feedback starving-the-gpu                    all that are out of date
        starvelab feedback starving-the-gpu --only=ada,'b*'    some students
        starvelab feedback starving-the-gpu --again            every page, also those that are up to date
        """).strip()
    aliases = {  # noqa: RUF012
        "workers": "FeedbackApp.workers",
        "only": "FeedbackApp.only",
        "db": "CourseDirectory.db_url",
        "log-level": "Application.log_level",
    }
    flags = {  # noqa: RUF012
        "again": ({"FeedbackApp": {"again": True}}, "Write also the pages that are up to date."),
    }
    workers = Integer(0, help="How many pages to make at once; 0: one for each core.").tag(config=True)
    only = Unicode("", help="Students, with commas between them; * and ? stand for letters.").tag(config=True)
    again = Bool(False, help="Whether to write also the pages that are up to date.").tag(config=True)

    def run(self, assignment: str) -> None:
        """Write the pages that are out of date, and say what came of it."""
        classroom = Classroom(self.coursedir, self.config, assignment)
        with classroom.alone():
            pages = FeedbackPages(classroom)
            jobs = pages.out_of_date(self.only, self.again)
            if jobs:
                with tqdm(total=len(jobs), desc="feedback", unit="page", smoothing=0.05) as bar:
                    for student in pages.write(jobs, self.workers or usable_cores()):
                        bar.set_postfix_str(shown(student)[:20], refresh=False)
                        bar.update()
        done = f"{len(pages.written)} pages written, {len(pages.unchanged)} up to date before"
        print(f"{assignment}: {done}, {len(pages.failed)} could not be written. They are in {pages.folder}.")
        for student, why in pages.failed.items():
            print(f"  {shown(student)}: {why}")
        if pages.waiting:
            print(f"{pages.waiting} of all pages say that something is not marked yet.")
        if pages.failed:
            raise SystemExit(1)


class StarvelabApp(Command):
    """What `starvelab` alone runs."""

    name = "starvelab"
    description = (
        "For instructors: release an assignment; collect, grade and mark submissions; write feedback."
    )
    aliases = {"log-level": "Application.log_level"}  # noqa: RUF012
    flags: ClassVar[dict[str, Any]] = {}
    subcommands = {  # noqa: RUF012
        "release": (ReleaseApp, ReleaseApp.description),
        "collect": (CollectApp, CollectApp.description),
        "grade": (GradeApp, GradeApp.description),
        "mark": (MarkApp, MarkApp.description),
        "feedback": (FeedbackApp, FeedbackApp.description),
    }

    def start(self) -> None:
        """Run the command that was named, or say which there are."""
        super().start()
        self.print_help()
