"""`starvelab-grader mark` and `feedback`: essays that a person marks, and pages that students read."""

import asyncio
import hashlib
import os
import re
import sys
import tempfile
import webbrowser
from collections.abc import Callable
from pathlib import Path

from dask.system import CPU_COUNT
from traitlets import Bool, Integer, Unicode

from ..batch.classroom import Classroom, chosen
from ..errors import InputError
from ..lms.rosters import read_sections, sections_in
from ..marking.marks import Marking
from ..marking.server import MarkingServer, make_redirect
from ..report.pages import FeedbackPages
from ..text import shown
from .command import ONLY, Command, print_list, progress


class MarkApp(Command):
    """Serves the page until somebody ends it."""

    examples = """
        starvelab-grader mark starving-the-gpu                        opens the page; Ctrl+C ends it
        starvelab-grader mark starving-the-gpu --share=1/3             the first of three who mark
        starvelab-grader mark starving-the-gpu --section=B --roster=canvas.csv
        starvelab-grader mark starving-the-gpu --port=8765 --no-browser
            the same on a server, which you reach by: ssh -L 8765:127.0.0.1:8765 SERVER
        """
    port = Integer(0, min=0, max=65535, help="The port of the page on this machine; 0: one that is free.")
    only = Unicode(help=ONLY)
    share = Unicode("1/1", help="The share of the class that you mark, such as 2/3: nobody is in two.")
    section = Unicode(help="The section of the class that you mark, as the roster calls it.")
    roster = Unicode(help="The platform's table of the class, which names sections.")
    names = Bool(help="Begin with the names of the students.")
    browser = Bool(True, help="Open the page in a browser; without, its address is printed.")
    kept = "Your marks are in the gradebook."

    def run(self, assignment: str) -> None:
        """Serve the page until somebody ends it, and print what is still to be marked."""
        classroom = Classroom(self.coursedir, self.config, assignment)
        marking = Marking(classroom, self._share_of(classroom.records.students))
        print_list("These requests name no exercise, or nobody who is graded:", marking.unknown_requests())
        try:
            asyncio.run(self._serve(marking))
        except KeyboardInterrupt:  # which is how it ends
            print()
        waiting = [(one.title, sum(each.waits for each in marking.answers(one))) for one in marking.essays]
        lines = [f"{title}: {number} still to be marked." for title, number in waiting if number]
        print("\n".join(lines) or f"All essays of {assignment} are marked.")
        print(f"Marks are in the gradebook. Students read them after: starvelab-grader feedback {assignment}")

    def _share_of(self, students: list[str]) -> Callable[[str], bool]:
        """Return which students this person marks. The share of a student never changes: none is in two."""
        number = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", self.share)
        if number is None or int(number[1]) > int(number[2]):
            raise InputError(f"A share is such as 1/3, the first of three; {self.share!r} is none.")
        if self.section and not self.roster:
            raise InputError("A section needs the table of the class that names it: --roster=canvas.csv")
        sections = read_sections(self.roster, students) if self.section else {}
        section_of = {student: sections_in(each) for student, each in sections.items()}
        if self.section and not any(self.section in each for each in section_of.values()):
            known = ", ".join(sorted(set().union(*section_of.values())))
            raise InputError(f"The roster has no section {self.section!r}; it has: {known}.")

        def is_mine(student: str) -> bool:
            share = int(hashlib.sha256(student.encode()).hexdigest(), 16) % int(number[2])
            in_section = not self.section or self.section in section_of.get(student, ())
            return bool(in_section and share == int(number[1]) - 1 and chosen([student], self.only))

        return is_mine

    async def _serve(self, marking: Marking) -> None:
        server = MarkingServer(marking, self.port, show_names=self.names)
        print(
            f"Mark {marking.assignment} on this page, which only you can open:\n\n    {server.address}\n\n"
            "Each mark is written into the gradebook at once. Ctrl+C ends the page.",
            flush=True,
        )
        with tempfile.TemporaryDirectory(prefix="starvelab-mark-") as folder:
            try:
                # Without a screen Python would open a browser for a terminal.
                names = os.environ.keys() & {"DISPLAY", "WAYLAND_DISPLAY"}
                if self.browser and (names or sys.platform in ("win32", "darwin")):
                    webbrowser.open(make_redirect(Path(folder), server.address).as_uri())
                await asyncio.Event().wait()
            finally:
                await server.stop()


class FeedbackApp(Command):
    """Writes the pages that students read, where they are out of date."""

    examples = """
        starvelab-grader feedback starving-the-gpu                    all that are out of date
        starvelab-grader feedback starving-the-gpu --only=ada,'b*'    some students
        """
    workers = Integer(0, min=0, help="How many pages to make at once; 0: one for each core.")
    only = Unicode(help=ONLY)
    contact = Unicode(help="Where students mail a regrade request, which is remembered; else they copy it.")
    again = Bool(help="Write also the pages that are up to date.")
    kept = "The pages that were made are kept: the same command goes on from there."

    def run(self, assignment: str) -> None:
        """Write the pages that are out of date, and print what came of it."""
        classroom = Classroom(self.coursedir, self.config, assignment)
        with classroom.exclusive_lock():
            if old := classroom.old_grades:
                print(old)
            if self.contact:
                classroom.requests.contact = self.contact
            pages = FeedbackPages(classroom)
            jobs = pages.out_of_date(self.only, self.again)
            busy = dict.fromkeys(job.student for job in jobs)
            with progress("feedback", len(jobs), "page", busy) as count:
                for student in pages.write(jobs, self.workers or CPU_COUNT):
                    del busy[student]
                    count()
        counts = f"{len(pages.written)} pages written, {len(pages.unchanged)} up to date before"
        print(
            f"{assignment}: {counts}, {len(pages.failed)} could not be written. They are in {pages.folder}."
        )
        print_list("Not written:", (f"{shown(one)}: {why}" for one, why in pages.failed.items()))
        if pages.unmarked:
            print(f"On {pages.unmarked} of all pages something is not marked yet.")
        if pages.failed:
            raise SystemExit(1)
