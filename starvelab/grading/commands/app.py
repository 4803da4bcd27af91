"""`starvelab` on the command line: its help, and the command that was named.

Each command loads what it needs. The help needs none of it, so it also comes where nbgrader is not installed.
"""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import version

from traitlets.config import Application

DESCRIPTIONS = {
    "release": "Make what students are given, if the reference solution earns every point.",
    "collect": "Sort a download from Canvas or Moodle into one folder for each student.",
    "grade": "Grade the submissions of a class: safely, in parallel, and nothing twice.",
    "mark": "Mark by hand: one essay of all students at a time, on a page in your browser.",
    "feedback": "Write a feedback page for each student: all that are out of date, in parallel.",
}


class StarvelabApp(Application):
    """What `starvelab` alone runs."""

    name = "starvelab"
    version = version("starvelab")
    description = (
        "For instructors: release an assignment; collect, grade and mark submissions; write feedback."
    )
    flags = {}  # noqa: RUF012 (traitlets reads these from the class)
    aliases = {"log-level": "Application.log_level"}  # noqa: RUF012
    subcommands = {  # noqa: RUF012
        name: (f"{__package__}.{name}.{name.capitalize()}App", description)
        for name, description in DESCRIPTIONS.items()
    }

    def start(self) -> None:
        """Run the command that was named, or say which there are."""
        if self.subapp is None:
            self.print_help()
            return
        from jupyter_core.application import NoStart  # loaded here: only a command has it

        with suppress(NoStart):  # such as after --generate-config
            self.subapp.start()
