"""`starvelab-grader feedback`: a page for each student, made where it is out of date."""

from __future__ import annotations

from textwrap import dedent

from dask.system import CPU_COUNT
from tqdm import tqdm
from traitlets import Bool, Integer, Unicode

from ..batch.classroom import Classroom
from ..report.pages import FeedbackPages
from ..text import shown
from .command import ONLY, AssignmentCommand, print_list


class FeedbackApp(AssignmentCommand):
    """Writes the pages that students read."""

    examples = dedent("""
        starvelab-grader feedback starving-the-gpu                    all that are out of date
        starvelab-grader feedback starving-the-gpu --only=ada,'b*'    some students
        starvelab-grader feedback starving-the-gpu --again            also those that are up to date
        """).strip()
    options = ("workers", "only")
    flags = {"again": ({"FeedbackApp": {"again": True}}, "Write also the pages that are up to date.")}
    workers = Integer(0, min=0, help="How many pages to make at once; 0: one for each core.").tag(config=True)
    only = Unicode(help=ONLY).tag(config=True)
    again = Bool(help="Whether to write also the pages that are up to date.").tag(config=True)
    kept = "The pages that were made are kept: the same command goes on from there."

    def run(self, assignment: str) -> None:
        """Write the pages that are out of date, and print what came of it."""
        classroom = Classroom(self.coursedir, self.config, assignment)
        with classroom.exclusive_lock():
            pages = FeedbackPages(classroom)
            jobs = pages.out_of_date(self.only, self.again)
            if jobs:
                with tqdm(total=len(jobs), desc="feedback", unit="page", smoothing=0.05) as bar:
                    for student in pages.write(jobs, self.workers or CPU_COUNT):
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
