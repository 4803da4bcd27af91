"""`starvelab-grader release`: an assignment given out, if its reference solution earns every point."""

from __future__ import annotations

from pathlib import Path

from traitlets import default

from ..autograde.definition import Replaced
from ..autograde.execution import IsolatedExecute
from ..autograde.releasing import release
from ..sandbox import bubblewrap
from .command import AssignmentCommand, print_list


class ReleaseApp(AssignmentCommand):
    """Makes the students' notebooks, and prints what has changed."""

    examples = "starvelab-grader release starving-the-gpu"
    kept = "Nothing was changed. Start the same command again."

    @default("classes")
    def _classes_default(self) -> list[type]:
        return [*super()._classes_default(), IsolatedExecute]

    def run(self, assignment: str) -> None:
        """Release, and print what has changed."""
        IsolatedExecute(parent=self)  # a setting that cannot be is better said before than by a worker
        self._print_changes(assignment, release(self.coursedir, self.config, assignment))

    def _print_changes(self, assignment: str, replaced: Replaced) -> None:
        folder = Path(self.coursedir.format_path(self.coursedir.release_directory, ".", assignment))
        print(f"{assignment} is released: give out {folder}")
        if reason := bubblewrap.why_not():
            self.log.warning("The reference solution was not graded: there is no sandbox here. %s", reason)
        print_list("Dropped from the gradebook:", replaced.dropped)
        print_list(
            "Other points:",
            (f"{cell}: {old:g} before, {new:g} now" for cell, (old, new) in replaced.points.items()),
        )
        if replaced.marks_file:
            print(f"Marks by hand for what was dropped are kept in {replaced.marks_file}")
        if replaced.to_mark_again:
            print(f"{replaced.to_mark_again} marks by hand are above the new maximum: give them again.")
        if replaced.dropped or replaced.points:
            print(f"Grade again what this touches: starvelab-grader grade {assignment}")
