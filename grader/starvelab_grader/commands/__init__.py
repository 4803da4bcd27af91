"""The commands of `starvelab-grader`. Each loads what it needs, and nothing else."""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version

COMMANDS = {
    "release": "Make what students are given, if the reference solution earns every point.",
    "collect": "Sort a download from Canvas or Moodle into one folder for each student.",
    "grade": "Grade the submissions of a class: safely, in parallel, and nothing twice.",
    "mark": "Mark by hand: one essay of all students at a time, on a page in your browser.",
    "feedback": "Write a feedback page for each student: all that are out of date, in parallel.",
    "run": "Grade one submission without a gradebook: a file with the results, and an exit status.",
    "autograder": "Write the archive with which Gradescope and other platforms grade.",
    "return": "Give feedback and points back: what is new, as files that Canvas or Moodle takes.",
}
MODULES = {
    "release": "grade", "feedback": "grade", "collect": "platforms", "return": "platforms",
    "autograder": "run",
}  # fmt: skip  # not called like the command


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command."""
    rows = "\n".join(f"  {name:<12}{about}" for name, about in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="starvelab-grader", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=f"commands:\n{rows}\n\nEach has its own --help.",
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('starvelab-grader')}")
    parser.add_argument("command", nargs="?", choices=COMMANDS, metavar="command")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="those of the command")
    given = parser.parse_args(arguments)
    if given.command is None:
        parser.print_help()
        return
    from jupyter_core.application import NoStart  # loaded here: the help needs no command

    module = import_module(f".{MODULES.get(given.command, given.command)}", __package__)
    app = getattr(module, f"{given.command.capitalize()}App").instance()
    app.initialize(given.arguments)
    with suppress(NoStart):  # such as after --generate-config
        app.start()
