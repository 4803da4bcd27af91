"""`starvelab-grader release`, `grade` and `feedback`: an assignment, and what a class gets back for it."""

from functools import partial
from pathlib import Path

from dask.system import CPU_COUNT
from nbgrader.converters import Autograde
from tqdm import tqdm
from traitlets import Bool, Dict, Integer, Unicode

from ..autograde import releasing
from ..autograde.execution import IsolatedExecute, RestoreStructure
from ..batch.classroom import Classroom, Outcome
from ..batch.gradebook import names_of
from ..files import REASONS
from ..report import class_report
from ..report.findings import missing_packages, to_look_at
from ..report.pages import FeedbackPages
from ..sandbox import bubblewrap
from ..text import printed, shown
from .command import ONLY, UNSAFE, Command, print_list, progress

OWN_SOLUTION = "grading your own solution"


class ReleaseApp(Command):
    """Makes the students' notebooks, and prints what has changed."""

    examples = "starvelab-grader release starving-the-gpu"
    kept = "Nothing was changed. Start the same command again."
    configured = (IsolatedExecute,)

    def run(self, assignment: str) -> None:
        """Release, and print what has changed."""
        IsolatedExecute(parent=self)  # a setting that cannot be is better said before than by a worker
        with progress(OWN_SOLUTION, 1, "solution") as bar:
            replaced = releasing.release(self.coursedir, self.config, assignment)
            bar.update()
        folder = Path(self.coursedir.format_path(self.coursedir.release_directory, ".", assignment))
        print(f"{assignment} is released: give out {folder}")
        if reason := bubblewrap.why_not():
            self.log.warning("The reference solution was not graded: there is no sandbox here. %s", reason)
        print_list("Dropped from the gradebook:", replaced.dropped)
        points = (f"{cell}: {old:g} before, {new:g} now" for cell, (old, new) in replaced.points.items())
        print_list("Other points:", points)
        if replaced.marks_file:
            print(f"Marks by hand for what was dropped are kept in {replaced.marks_file}")
        if replaced.to_mark_again:
            print(f"{replaced.to_mark_again} marks by hand are above the new maximum: give them again.")
        if old := Classroom(self.coursedir, self.config, assignment).old_grades:
            print(old)


class GradeApp(Command):
    """Grades what is new or has changed, and prints what came of it."""

    kept = "What was graded is kept: the same command goes on from there."
    examples = """
        starvelab-grader grade starving-the-gpu                    all that is new, on all cores
        starvelab-grader grade starving-the-gpu --only=ada,'b*'    some students
        starvelab-grader grade starving-the-gpu --scheduler=tls://10.0.0.5:8786
        starvelab-grader grade starving-the-gpu --report           and write the report of the class
        """
    configured = (Autograde, IsolatedExecute, RestoreStructure)
    flags = UNSAFE
    workers = Integer(0, min=0, help="How many submissions to grade at once; 0: one for each core.")
    scheduler = Unicode(help="Address of a Dask scheduler whose workers are to grade.")
    without_tls = Bool(help="Accept a scheduler without TLS: who reaches its port runs code as workers do.")
    only = Unicode(help=ONLY)
    report = Bool(help="Write the report of the class.")
    names = Bool(help="Call students in the report by the names that the gradebook has for them.")
    again = Bool(help="Grade also what has not changed.")
    own_numbers = Dict(Integer(min=0), key_trait=Unicode(), help="Each student's number, for own_number.txt.")

    def run(self, assignment: str) -> None:
        """Grade an assignment, and print what came of it."""
        classroom = Classroom(self.coursedir, self.config, assignment, self.own_numbers)
        unsafe = IsolatedExecute(parent=self).unsafe
        if unsafe:
            self.log.warning("UNSAFE: where there is no sandbox, student code runs with all your rights.")
        elif weakness := bubblewrap.weakness():
            self.log.warning(weakness)
        if warning := releasing.warning_since_release(self.coursedir, assignment):
            self.log.warning(warning)
        outcome = Outcome()
        with classroom.exclusive_lock():
            students = tqdm(classroom.students(self.only), "reading", unit="submission", leave=False)
            if pending := classroom.pending(students, outcome, self.again):
                self._grade(classroom, pending, outcome, unsafe)
            self._print_outcome(classroom, outcome)
            if self.report:
                self._write_report(classroom, outcome)
        if outcome.failed:
            raise SystemExit(1)

    def _grade(self, classroom: Classroom, pending: list[str], outcome: Outcome, unsafe: bool) -> None:
        # Loaded here: nothing else needs Dask's workers.
        from ..batch.worker_pool import graded_by, open_pool

        with open_pool(self.workers, self.scheduler, self.without_tls, unsafe) as client:
            definition = classroom.definition
            if not releasing.is_remembered(self.coursedir, definition):
                with progress(OWN_SOLUTION, 1, "solution") as bar:
                    grade = partial(graded_by, client, definition)
                    releasing.require_full_points(definition, lambda one: next(grade([one])))
                    bar.update()
                releasing.remember_solution(self.coursedir, definition)
            work = classroom.submissions(pending, outcome, self.again)
            with progress("grading", len(pending), "submission") as bar:
                results = graded_by(client, definition, work, bar.set_postfix_str)
                for _ in classroom.save(results, outcome):
                    bar.update()

    def _print_outcome(self, classroom: Classroom, outcome: Outcome) -> None:
        counts = f"{len(outcome.graded)} graded, {len(outcome.unchanged)} unchanged since they were graded"
        print(f"{classroom.assignment}: {counts}, {len(outcome.failed)} could not be graded.")
        for kind, why in REASONS.items():
            again = [list(outcome.again.get(student, {}).values()).count(kind) for student in outcome.graded]
            if any(again):
                submissions = _count(sum(map(bool, again)), "submission")
                print(f"Graded again because {why}: {_count(sum(again), 'notebook')} of {submissions}.")
        failed = outcome.failed.items()
        print_list("Not graded:", (f"{shown(one)}: {reason.splitlines()[-1]}" for one, reason in failed))
        for student, reason in failed:
            self.log.info("%s: %s", shown(student), printed(reason))
        loaded = map(classroom.records.load, sorted([*outcome.graded, *outcome.unchanged]))
        records = list(filter(None, loaded))
        lacking = (
            f"{_count(len(students), 'student')}, {package}: {shown(', '.join(students))}"
            for package, students in missing_packages(records).items()
        )
        title = "Students import packages that the grader lacks. Install them here, or say which ones count:"
        print_list(title, lacking)
        print_list("A person should look at these, the worst first:", map(str, to_look_at(records)))

    def _write_report(self, classroom: Classroom, outcome: Outcome) -> None:
        with classroom.gradebook() as book:
            names = {one: f"{name} ({one})" for one, name in names_of(book).items() if self.names}
        name = classroom.assignment
        sections = class_report.sections(classroom, names, outcome.failed)
        folder = classroom.records.folder.parent.parent / "report" / name
        page = class_report.write(folder, f"{name}: the report of the class", sections)
        print(f"The report: {page}, and its tables as CSV beside it.")


class FeedbackApp(Command):
    """Writes the pages that students read, where they are out of date."""

    examples = """
        starvelab-grader feedback starving-the-gpu                    all that are out of date
        starvelab-grader feedback starving-the-gpu --only=ada,'b*'    some students
        """
    workers = Integer(0, min=0, help="How many pages to make at once; 0: one for each core.")
    only = Unicode(help=ONLY)
    again = Bool(help="Write also the pages that are up to date.")
    kept = "The pages that were made are kept: the same command goes on from there."

    def run(self, assignment: str) -> None:
        """Write the pages that are out of date, and print what came of it."""
        classroom = Classroom(self.coursedir, self.config, assignment)
        with classroom.exclusive_lock():
            if old := classroom.old_grades:
                print(old)
            pages = FeedbackPages(classroom)
            jobs = pages.out_of_date(self.only, self.again)
            with progress("feedback", len(jobs), "page") as bar:
                for _ in pages.write(jobs, self.workers or CPU_COUNT):
                    bar.update()
        counts = f"{len(pages.written)} pages written, {len(pages.unchanged)} up to date before"
        print(
            f"{assignment}: {counts}, {len(pages.failed)} could not be written. They are in {pages.folder}."
        )
        print_list("Not written:", (f"{shown(one)}: {why}" for one, why in pages.failed.items()))
        if pages.unmarked:
            print(f"Pages with an answer that is not marked yet: {pages.unmarked}.")
        if pages.failed:
            raise SystemExit(1)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
