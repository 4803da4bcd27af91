"""`starvelab mark`: a page on which a person marks the essays of a class, one after the other."""

from __future__ import annotations

import asyncio
import tempfile
import webbrowser
from pathlib import Path

from starvelab.host import has_display

from ..batch.classroom import Classroom
from ..marking.marks import Marking
from ..marking.server import MarkingServer, make_redirect
from .command import DB, AssignmentCommand
from .options import MarkOptions


class MarkApp(MarkOptions, AssignmentCommand):
    """Serves the page until somebody ends it."""

    kept = "Your marks are in the gradebook."
    aliases = MarkOptions.aliases | DB

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
        print(f"Marks are in the gradebook. Students read them after: starvelab feedback {assignment}")

    async def _serve(self, marking: Marking) -> None:
        server = MarkingServer(marking, self.port, show_names=self.names)
        print(
            f"Mark {marking.assignment} on this page, which only you can open:\n\n    {server.address}\n\n"
            "Each mark is written into the gradebook at once. Ctrl+C ends the page.",
            flush=True,
        )
        with tempfile.TemporaryDirectory(prefix="starvelab-mark-") as folder:
            try:
                if self.browser and has_display():
                    webbrowser.open(make_redirect(Path(folder), server.address).as_uri())
                await asyncio.Event().wait()
            finally:
                await server.stop()
