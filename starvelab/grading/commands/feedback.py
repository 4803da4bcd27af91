"""`starvelab feedback`: a page for each student, made where it is out of date."""

from __future__ import annotations

from textwrap import dedent

from tqdm import tqdm
from traitlets import Bool, Integer, Unicode

from ...host import usable_cores
from ..batch.classroom import Classroom
from ..report.feedback_pages import FeedbackPages
from ..text import shown
from .app import DESCRIPTIONS
from .command import AssignmentCommand, print_list


class FeedbackApp(AssignmentCommand):
    """Writes the pages that students read."""

    name = "starvelab-feedback"
    kept = "The pages that were made are kept: the same command goes on from there."
    description = DESCRIPTIONS["feedback"]
    examples = dedent("""
        starvelab feedback starving-the-gpu                    all that are out of date
        starvelab feedback starving-the-gpu --only=ada,'b*'    some students
        starvelab feedback starving-the-gpu --again            every page, also those that are up to date
        """).strip()
    aliases = {  # noqa: RUF012 (traitlets reads it from the class)
        "workers": "FeedbackApp.workers",
        "only": "FeedbackApp.only",
        "db": "CourseDirectory.db_url",
        "log-level": "Application.log_level",
    }
    flags = {  # noqa: RUF012
        "again": ({"FeedbackApp": {"again": True}}, "Write also the pages that are up to date."),
    }
    workers = Integer(0, help="How many pages to make at once; 0: one for each core.").tag(config=True)
    only = Unicode("", help="Students, with commas between them; * and ? stand for characters.").tag(
        config=True
    )
    again = Bool(False, help="Whether to write also the pages that are up to date.").tag(config=True)

    def run(self, assignment: str) -> None:
        """Write the pages that are out of date, and print what came of it."""
        classroom = Classroom(self.coursedir, self.config, assignment)
        with classroom.exclusive_lock():
            pages = FeedbackPages(classroom)
            jobs = pages.out_of_date(self.only, self.again)
            if jobs:
                with tqdm(total=len(jobs), desc="feedback", unit="page", smoothing=0.05) as bar:
                    for student in pages.write(jobs, self.workers or usable_cores()):
                        bar.set_postfix_str(shown(student)[:20], refresh=False)
                        bar.update()
        counts = f"{len(pages.written)} pages written, {len(pages.unchanged)} up to date before"
        print(
            f"{assignment}: {counts}, {len(pages.failed)} could not be written. They are in {pages.folder}."
        )
        print_list("Not written:", (f"{shown(one)}: {why}" for one, why in pages.failed.items()))
        if pages.unmarked:
            print(f"On {pages.unmarked} of all pages something is not marked yet.")
        if pages.failed:
            raise SystemExit(1)
