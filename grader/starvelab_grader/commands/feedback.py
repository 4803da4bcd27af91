"""`starvelab feedback`: a page for each student, made where it is out of date."""

from __future__ import annotations

from tqdm import tqdm

from starvelab.host import usable_cores

from ..batch.classroom import Classroom
from ..report.feedback_pages import FeedbackPages
from ..text import shown
from .command import DB, AssignmentCommand, print_list
from .options import FeedbackOptions


class FeedbackApp(FeedbackOptions, AssignmentCommand):
    """Writes the pages that students read."""

    kept = "The pages that were made are kept: the same command goes on from there."
    aliases = FeedbackOptions.aliases | DB

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
