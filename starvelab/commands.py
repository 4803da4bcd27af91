"""What `starvelab` on the command line runs. Each command loads what it needs, and nothing else.

`starvelab lab` needs JupyterLab, `starvelab doctor` PyTorch; the commands for instructors need nbgrader.
"""

from __future__ import annotations

import argparse
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command."""
    rows = "\n".join(f"  {name:<10}{what}" for name, what in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="starvelab",
        description=f"commands:\n{rows}\n\nEach has its own --help. The last six are for instructors.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"starvelab {version('starvelab')}")
    parser.add_argument("command", nargs="?")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="those of the command")
    asked = parser.parse_args(arguments)
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
    match command:
        case "lab":
            from .lab import main as lab

            lab(arguments)
        case "doctor":
            from .jobs.doctor import main as doctor
            from .trials.command import main as trials

            raise SystemExit(doctor(arguments, trials=trials))
        case "compare":
            from .trials.compare import main as compare

            raise SystemExit(compare(arguments))
        case _:
            # A distribution of its own, which no module of this one imports.
            with requiring(f"starvelab {command}", install_hint("grade")):
                grader = import_module("starvelab_grader.commands")
            grader.main([command, *arguments])
