"""`starvelab-grader collect`: a download of Canvas or Moodle, sorted into one folder for each student."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from traitlets import Unicode

from ..lms.collecting import Collected, collect_download
from ..lms.rosters import named_by_download, open_sheet, read_roster, register
from ..text import shown
from .command import Command, print_list


class CollectApp(Command):
    """Sorts a download, and prints what came of it."""

    examples = """
        starvelab-grader collect starving-the-gpu ~/Downloads/submissions.zip
        starvelab-grader collect starving-the-gpu ~/Downloads/submissions.zip --roster=~/Downloads/canvas.csv
        """
    question = "Which assignment, and which file? {} starving-the-gpu submissions.zip"
    arguments = 2
    roster = Unicode(
        help="The table of the class that the platform exports: names for the gradebook, and who is missing."
    )
    kept = "What was sorted is kept: the same command goes on from there."

    def run(self, assignment: str, download: str) -> None:
        """Sort a download, and write the names into the gradebook."""
        if self.roster:
            open_sheet(self.roster)  # a wrong one is said before anything is written
        submitted = Path(self.coursedir.root) / self.coursedir.submitted_directory
        with closing(Gradebook(self.coursedir.db_url, self.coursedir.course_id)) as book:
            try:
                entry = book.find_assignment(assignment)
                notebooks, due = [one.name for one in entry.notebooks], entry.duedate
            except MissingEntry:
                notebooks, due = [], None
            collected = collect_download(
                Path(download).expanduser(), submitted, assignment, notebooks=notebooks, due=due
            )
            people = read_roster(self.roster, collected.names) if self.roster else {}
            register(book, named_by_download(book, collected.names) | people)
        counts = f"{len(collected.new)} new, {len(collected.changed)} changed"
        print(f"{assignment}: {counts}, {len(collected.unchanged)} unchanged, in {submitted}.")
        for title, lines in _lists(collected):
            print_list(title, lines)
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
        there = {path.parent.name for path in submitted.glob(f"*/{assignment}")}
        names = {one: f"{who.first_name} {who.last_name}".strip() for one, who in sorted(people.items())}
        absent = [f"{student} {shown(name)}" for student, name in names.items() if student not in there]
        print_list(f"Nothing came from {len(absent)} of the {len(people)} in the roster:", absent)
        if collected.failed:
            raise SystemExit(1)


def _lists(collected: Collected) -> Iterator[tuple[str, list[str]]]:
    def by_name(reasons: Mapping[str, str]) -> list[str]:
        return [f"{shown(name)}: {why}" for name, why in reasons.items()]

    yield "Left out:", by_name(collected.left_out)
    yield "Not sorted:", by_name(collected.failed)
    title = "Uploaded more than once; the latest upload counts (to choose another, put it in its place):"
    yield title, [f"{student}: {'; '.join(each)}" for student, each in collected.chosen.items()]
