"""What `starvelab` on the command line runs. Each command loads what it needs, and nothing else.

`starvelab lab` is in `lab_command`. The other commands are those of the doctor and of the grader, which are
distributions of their own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from .errors import MissingPackageError, UnknownNameError, check_names, install_hint, requiring

COMMANDS = {
    "lab": "Copy the lab's notebooks into a folder, and open them in JupyterLab.",
    "doctor": "Run a training script, and say how long it waited for its data.",
    "compare": "Say whether a change made a job faster, by what doctor wrote before and after it.",
    "release": "Make what students are given, if the reference solution earns every point.",
    "collect": "Sort a download from Canvas or Moodle into one folder for each student.",
    "grade": "Grade the submissions of a class: safely, in parallel, and nothing twice.",
    "mark": "Mark by hand: one essay of all students at a time, on a page in your browser.",
    "feedback": "Write a feedback page for each student: all that are out of date, in parallel.",
    "return": "Give feedback and points back: what is new, as files that Canvas or Moodle takes.",
}


DOCTOR = ("doctor", "compare")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command."""
    rows = "\n".join(f"  {name:<10}{what}" for name, what in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="starvelab",
        description=f"commands:\n{rows}\n\nEach has its own help: starvelab help doctor. The last six "
        "are for instructors.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"starvelab {version('starvelab')}")
    parser.add_argument("command", nargs="?")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="those of the command")
    asked = parser.parse_args(arguments)
    if asked.command == "help":
        asked.command, asked.arguments = (*asked.arguments, None)[0], ["--help"]
    if asked.command is None:
        parser.print_help()
        return
    try:
        check_names([asked.command], COMMANDS, "starvelab", kind="command")
    except UnknownNameError as error:
        parser.error(str(error))
    try:
        _run(asked.command, asked.arguments)
    except MissingPackageError as error:
        raise SystemExit(str(error)) from None


def _run(command: str, arguments: list[str]) -> None:
    if command == "lab":
        from .lab_command import open_lab

        open_lab(arguments)
        return
    module = "starvelab_doctor.doctor" if command in DOCTOR else "starvelab_grader.commands"
    # A distribution of its own, which no module of this one imports.
    with requiring(f"starvelab {command}", install_hint("doctor" if command in DOCTOR else "grade")):
        commands = import_module(module)
    if command == "doctor":
        # Anew: this process has loaded NumPy, whose threads a training script may set at its top.
        program = [sys.executable, "-m", "starvelab_doctor", *arguments]
        if os.name == "nt":  # there the new process would not be the one that the shell waits for
            raise SystemExit(subprocess.call(program))
        os.execv(sys.executable, program)
    raise SystemExit(commands.main([command, *arguments]))
