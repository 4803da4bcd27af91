"""`starvelab-grader mark`: a page on which a person marks the essays of a class, one after the other."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import webbrowser
from pathlib import Path
from textwrap import dedent

from traitlets import Bool, Integer

from ..batch.classroom import Classroom
from ..marking.marks import Marking
from ..marking.server import MarkingServer, make_redirect
from .command import AssignmentCommand


def _has_display() -> bool:
    """True if there is a screen for a browser: without one, Python opens one for a terminal."""
    return sys.platform in ("win32", "darwin") or bool({"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys())


class MarkApp(AssignmentCommand):
    """Serves the page until somebody ends it."""

    examples = dedent("""
        starvelab-grader mark starving-the-gpu                        opens the page; Ctrl+C ends it
        starvelab-grader mark starving-the-gpu --names                begins with the names of the students
        starvelab-grader mark starving-the-gpu --port=8765 --no-browser
            the same on a server, which you reach by: ssh -L 8765:127.0.0.1:8765 SERVER
        """).strip()
    options = ("port",)
    flags = {
        "names": ({"MarkApp": {"names": True}}, "Begin with the names of the students."),
        "no-browser": ({"MarkApp": {"browser": False}}, "Print the address, and open no browser."),
    }
    port = Integer(
        0, min=0, max=65535, help="The port of the page on this machine; 0: one that is free."
    ).tag(config=True)
    names = Bool(help="Whether the page begins with the names of the students.").tag(config=True)
    browser = Bool(True, help="Whether to open the page in a browser.").tag(config=True)
    kept = "Your marks are in the gradebook."

    def run(self, assignment: str) -> None:
        """Serve the page until somebody ends it, and print what is still to be marked."""
        classroom = Classroom(self.coursedir, self.config, assignment)
        marking = Marking(classroom.definition, classroom.gradebook, classroom.records.notebooks, self.config)
        try:
            asyncio.run(self._serve(marking))
        except KeyboardInterrupt:  # which is how it ends
            print()
        waiting = {one.title: sum(each.waits for each in marking.answers(one)) for one in marking.essays}
        for title, number in waiting.items():
            if number:
                print(f"{title}: {number} still to be marked.")
        if not any(waiting.values()):
            print(f"All essays of {assignment} are marked.")
        print(f"Marks are in the gradebook. Students read them after: starvelab-grader feedback {assignment}")

    async def _serve(self, marking: Marking) -> None:
        server = MarkingServer(marking, self.port, show_names=self.names)
        print(
            f"Mark {marking.assignment} on this page, which only you can open:\n\n    {server.address}\n\n"
            "Each mark is written into the gradebook at once. Ctrl+C ends the page.",
            flush=True,
        )
        with tempfile.TemporaryDirectory(prefix="starvelab-mark-") as folder:
            try:
                if self.browser and _has_display():
                    webbrowser.open(make_redirect(Path(folder), server.address).as_uri())
                await asyncio.Event().wait()
            finally:
                await server.stop()
