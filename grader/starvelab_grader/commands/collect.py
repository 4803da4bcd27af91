"""`starvelab-grader collect`: a download of Canvas or Moodle, sorted into one folder for each student."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from pathlib import Path
from textwrap import dedent

from nbgrader.api import Gradebook, MissingEntry
from traitlets import Unicode

from ..lms.collecting import Collected, collect_download
from ..lms.rosters import Person, named_by_download, open_sheet, read_roster, register
from ..text import shown
from .command import Command, end, errors_in_a_paragraph, print_list


class CollectApp(Command):
    """Sorts a download, and prints what came of it."""

    examples = dedent("""
        starvelab-grader collect starving-the-gpu ~/Downloads/submissions.zip
        starvelab-grader collect starving-the-gpu ~/Downloads/submissions.zip --roster=~/Downloads/canvas.csv
        """).strip()
    options = ("roster",)
    roster = Unicode(
        help="The table of the class that the platform exports: names for the gradebook, and who is missing."
    ).tag(config=True)

    def start(self) -> None:
        """Sort, and print what came of it."""
        super().start()
        if len(self.extra_args) != 2:
            end("Which assignment, and which file? starvelab-grader collect starving-the-gpu submissions.zip")
        with errors_in_a_paragraph("What was sorted is kept: the same command goes on from there."):
            self.check_course(self.extra_args[0])
            self.run(*self.extra_args)

    def run(self, assignment: str, download: str) -> None:
        """Sort a download, and write the names into the gradebook."""
        if self.roster:
            open_sheet(self.roster)  # a wrong one is said before anything is written
        submitted = Path(self.coursedir.root) / self.coursedir.submitted_directory
        with closing(Gradebook(self.coursedir.db_url, self.coursedir.course_id)) as book:
            notebooks, due = _of_assignment(book, assignment)
            collected = collect_download(
                Path(download).expanduser(), submitted, assignment, notebooks=notebooks, due=due
            )
            people = read_roster(self.roster, collected.names) if self.roster else {}
            register(book, named_by_download(book, collected.names) | people)
        self._print_collected(assignment, submitted, collected, due, people)
        if collected.failed:
            raise SystemExit(1)

    def _print_collected(
        self,
        assignment: str,
        submitted: Path,
        collected: Collected,
        due: datetime | None,
        people: dict[str, Person],
    ) -> None:
        counts = f"{len(collected.new)} new, {len(collected.changed)} changed"
        print(f"{assignment}: {counts}, {len(collected.unchanged)} unchanged, in {submitted}.")
        print_list("Left out:", (f"{shown(path)}: {why}" for path, why in collected.left_out.items()))
        print_list("Not sorted:", (f"{shown(student)}: {why}" for student, why in collected.failed.items()))
        print_list(
            "Uploaded more than once; the latest upload counts (to choose another, put it in its place):",
            (f"{student}: {'; '.join(each)}" for student, each in collected.chosen.items()),
        )
        if collected.late and due is None:
            print(
                f"{len(collected.late)} came late, says Canvas, and the gradebook knows no due date: they "
                f"are graded as if in time. Set it (nbgrader db assignment add {assignment} "
                "--duedate='2026-11-30 23:59 UTC') and collect again."
            )
        elif collected.late:
            print(
                f"{len(collected.late)} came late, says Canvas, and not how late: they count as one second "
                "late, by the due date in the gradebook."
            )
        if people:
            there = {path.parent.name for path in submitted.glob(f"*/{assignment}")}
            absent = {student: one for student, one in people.items() if student not in there}
            title = f"Nothing came from {len(absent)} of the {len(people)} in the roster:"
            print_list(title, (f"{student} {shown(_name(one))}" for student, one in sorted(absent.items())))


def _name(person: Person) -> str:
    return f"{person.first_name} {person.last_name}".strip()


def _of_assignment(book: Gradebook, assignment: str) -> tuple[list[str], datetime | None]:
    """The notebooks that are asked for, and when they are due in UTC, if the gradebook knows."""
    try:
        entry = book.find_assignment(assignment)
    except MissingEntry:
        return [], None
    return [notebook.name for notebook in entry.notebooks], entry.duedate
