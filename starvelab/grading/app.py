"""`starvelab grade`: a class, graded in parallel and safely, in the tools that nbgrader's users know."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from textwrap import dedent
from typing import Any, ClassVar, NoReturn

from nbgrader.apps.baseapp import NbGrader
from nbgrader.converters import Autograde
from sqlalchemy.exc import SAWarning, SQLAlchemyError
from tqdm import tqdm
from traitlets import Bool, Integer, Unicode, default

from ..errors import StarvelabError
from ..measure.cores import usable_cores
from . import seccomp
from .classroom import Classroom, Outcome
from .collecting import collect_download
from .crew import crew, graded_by
from .feedback_pages import FeedbackPages
from .findings import for_a_person
from .handin import HandIn, shown
from .isolated import IsolatedExecute
from .mending import MendStructure
from .private import restrict_new_files, warning_if_open

CONFIG = "nbgrader_config.py"
SHOWN = 20  # names in a list on the screen


class _Command(NbGrader):
    version = version("starvelab")

    def start(self) -> None:
        """Read the configuration; what is written from now on is closed to other users of the machine."""
        super().start()
        restrict_new_files(self.coursedir)
        if warning := warning_if_open(self.coursedir):
            self.log.warning(warning)

    def check_course(self, assignment: str = "") -> None:
        """See that this is a course, and that it has the assignment.

        Raises
        ------
        NoCourseError
        """
        if not any(Path(path).name == CONFIG for path in self.loaded_config_files):
            raise NoCourseError(
                f"This folder, {Path.cwd()}, is no course: it has no {CONFIG}. Go to the folder that has one."
            )
        source = Path(self.coursedir.format_path(self.coursedir.source_directory, ".", "."))
        known = sorted(path.name for path in source.glob("*") if path.is_dir() and any(path.glob("*.ipynb")))
        if assignment and assignment not in known:
            some = ", ".join(known) or "none"
            raise NoCourseError(f"This course has no assignment {assignment!r} in {source}; it has: {some}.")


class NoCourseError(StarvelabError, LookupError):
    """The folder is no course, or the course has no such assignment."""


@contextmanager
def _in_sentences(kept: str) -> Iterator[None]:
    """What cannot be done is said in a paragraph, and the exit status is 1.

    Parameters
    ----------
    kept : str
        What is said to a person who interrupts.
    """
    try:
        yield
    except StarvelabError as error:
        _exit(str(error))
    except SQLAlchemyError as error:
        why = str(getattr(error, "orig", error)).splitlines()[0]
        _exit(
            f"The gradebook cannot be used: {why}. "
            "Check CourseDirectory.db_url in nbgrader_config.py, and whether a server that it names runs."
        )
    except OSError as error:
        where = error.filename or "A file or a folder"
        _exit(f"{where} cannot be used: {error.strerror or error}. See that you may read and write there.")
    except KeyboardInterrupt:
        _exit(f"Stopped. {kept}", 130)


class GradeApp(_Command):
    """The command."""

    name = "starvelab-grade"
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
        return [*super()._classes_default(), GradeApp, Autograde, IsolatedExecute, MendStructure]

    @default("log_level")
    def _log_level_default(self) -> int:
        return logging.WARNING

    def start(self) -> None:
        """Grade; what cannot be done is said in one paragraph, and the exit status is 1."""
        super().start()
        warnings.simplefilter("ignore", SAWarning)  # of nbgrader's queries, in which nothing is amiss
        if len(self.extra_args) != 1:
            _exit("Which assignment? For example: starvelab grade starving-the-gpu")
        with _in_sentences("What was graded is kept: the same command goes on from there."):
            self.check_course(self.extra_args[0])
            self.run(self.extra_args[0])

    def run(self, assignment: str) -> None:
        """Grade an assignment, and say what came of it."""
        classroom = Classroom(self.coursedir, self.config, assignment)
        unsafe = bool(self.config.IsolatedExecute.get("unsafe"))
        if unsafe:
            self.log.warning("UNSAFE: where there is no sandbox, student code runs with all rights of yours.")
        elif weakness := seccomp.why_not():
            self.log.warning(weakness)
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
                from . import report

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
            for handed in classroom.hand_ins(todo, outcome):
                in_progress[handed.student] = handed
                yield handed

        with crew(
            workers=self.workers or None,
            scheduler=self.scheduler or None,
            without_tls=self.without_tls,
            unsafe=unsafe,
        ) as client:
            results = graded_by(client, classroom.definition, hand_ins())
            with tqdm(total=len(todo), desc="grading", unit="submission", smoothing=0.05) as bar:
                for student in classroom.keep(results, in_progress, outcome):
                    bar.set_postfix_str(student[:20], refresh=False)
                    bar.update()

    def _say(self, classroom: Classroom, outcome: Outcome) -> None:
        done = f"{len(outcome.graded)} graded, {len(outcome.unchanged)} unchanged since they were graded"
        print(f"{classroom.assignment}: {done}, {len(outcome.failed)} could not be graded.")
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


class CollectApp(_Command):
    """The command that sorts a download."""

    name = "starvelab-collect"
    description = "Sort what Canvas or Moodle let you download into one folder for each student."
    examples = "starvelab collect starving-the-gpu ~/Downloads/submissions.zip"
    aliases = {"log-level": "Application.log_level"}  # noqa: RUF012
    flags: ClassVar[dict[str, Any]] = {}

    def start(self) -> None:
        """Sort, and say what came of it."""
        super().start()
        if len(self.extra_args) != 2:
            _exit("Which assignment, and which file? starvelab collect starving-the-gpu submissions.zip")
        assignment, download = self.extra_args
        submitted = Path(self.coursedir.root) / self.coursedir.submitted_directory
        with _in_sentences("What was sorted is kept: the same command goes on from there."):
            self.check_course(assignment)
            found = collect_download(Path(download).expanduser(), submitted, assignment)
        counts = f"{len(found.new)} new, {len(found.changed)} changed, {len(found.unchanged)} unchanged"
        print(f"{assignment}: {counts}, in {submitted}.")
        if found.left_out:
            print("Left out, since no student could be told from the name, or too large:")
            print("\n".join(f"  {shown(name)}" for name in found.left_out[:SHOWN]))
        if found.failed:
            print("Not sorted:")
            print("\n".join(f"  {shown(student)}: {why}" for student, why in found.failed.items()))
            raise SystemExit(1)


class FeedbackApp(_Command):
    """The command that writes the pages that students read."""

    name = "starvelab-feedback"
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

    @default("classes")
    def _classes_default(self) -> list[type]:
        return [*super()._classes_default(), FeedbackApp]

    @default("log_level")
    def _log_level_default(self) -> int:
        return logging.WARNING

    def start(self) -> None:
        """Write the pages, and say what came of it."""
        super().start()
        warnings.simplefilter("ignore", SAWarning)
        if len(self.extra_args) != 1:
            _exit("Which assignment? For example: starvelab feedback starving-the-gpu")
        with _in_sentences("The pages that were written are kept: the same command goes on from there."):
            self.check_course(self.extra_args[0])
            self.run(self.extra_args[0])

    def run(self, assignment: str) -> None:
        """Write what is out of date."""
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


class StarvelabApp(_Command):
    """What `starvelab` alone runs."""

    name = "starvelab"
    description = "For instructors: collect, grade, and give feedback on, what a class submitted."
    aliases = {"log-level": "Application.log_level"}  # noqa: RUF012
    flags: ClassVar[dict[str, Any]] = {}
    subcommands = {  # noqa: RUF012
        "collect": (CollectApp, CollectApp.description),
        "grade": (GradeApp, GradeApp.description),
        "feedback": (FeedbackApp, FeedbackApp.description),
    }

    def start(self) -> None:
        """Run the command that was named, or say which there are."""
        super().start()
        self.print_help()


def _exit(message: str, status: int = 1) -> NoReturn:
    print(message, file=sys.stderr)
    raise SystemExit(status)
