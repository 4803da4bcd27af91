"""`starvelab-grader collect`: a download of Canvas or Moodle, sorted into one folder for each student."""

from pathlib import Path

from nbgrader.api import Gradebook
from traitlets import Unicode

from ..lms.collecting import collect_download
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
    roster = Unicode(help="The platform's table of the class: names for the gradebook, and who is missing.")
    kept = "What was sorted is kept: the same command goes on from there."

    def run(self, assignment: str, download: str) -> None:
        """Sort a download, and write the names into the gradebook."""
        if self.roster:
            open_sheet(self.roster)  # a wrong one is said before anything is written
        submitted = Path(self.coursedir.root) / self.coursedir.submitted_directory
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as book:
            entry = next((one for one in book.assignments if one.name == assignment), None)
            notebooks, due = ([one.name for one in entry.notebooks], entry.duedate) if entry else ([], None)
            place = Path(download).expanduser()
            collected = collect_download(place, submitted, assignment, notebooks=notebooks, due=due)
            people = read_roster(self.roster, collected.names) if self.roster else {}
            register(book, named_by_download(book, collected.names) | people)
        counts = f"{len(collected.new)} new, {len(collected.changed)} changed"
        print(f"{assignment}: {counts}, {len(collected.unchanged)} unchanged, in {submitted}.")
        for title, reasons in (("Left out:", collected.left_out), ("Not sorted:", collected.failed)):
            print_list(title, (f"{shown(name)}: {why}" for name, why in reasons.items()))
        print_list(
            "Uploaded more than once; the latest upload counts (to choose another, put it in its place):",
            (f"{student}: {'; '.join(each)}" for student, each in collected.chosen.items()),
        )
        if collected.late:
            how = "not how late: they count as one second late, by the due date in the gradebook."
            if due is None:
                how = "the gradebook knows no due date: they are graded as if in time. Set it (nbgrader db "
                how += f"assignment add {assignment} --duedate='2026-11-30 23:59 UTC') and collect again."
            print(f"{len(collected.late)} came late, says Canvas, and {how}")
        there = {path.parent.name for path in submitted.glob(f"*/{assignment}")}
        names = {one: f"{who.first_name} {who.last_name}".strip() for one, who in sorted(people.items())}
        absent = [f"{student} {shown(name)}" for student, name in names.items() if student not in there]
        print_list(f"Nothing came from {len(absent)} of the {len(people)} in the roster:", absent)
        if collected.failed:
            raise SystemExit(1)
