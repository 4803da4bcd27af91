"""The options of the instructors' commands, and how one is started.

Nothing here needs nbgrader, so each command has its help also where nbgrader is not installed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from textwrap import dedent
from typing import Any

from traitlets import Bool, Integer, Unicode
from traitlets.config import Application, KVArgParseConfigLoader, LoggingConfigurable

from starvelab.errors import UnknownNameError, check_names, install_hint

ONLY = "Students, with commas between them; * and ? stand for characters."


class _Loader(KVArgParseConfigLoader):
    """Rejects an option that is misspelt, which traitlets would only warn of."""

    def _handle_unrecognized_alias(self, arg: str) -> None:
        try:
            check_names([arg], [*self.aliases, *self.flags], "this command", kind="option")
        except UnknownNameError as error:
            self.parser.error(str(error))


class Options(LoggingConfigurable):
    """What a command takes beside the name of an assignment; its application derives from this."""

    version: Any = version("starvelab")
    name: Any = ""
    description: Any = ""
    examples: Any = ""
    aliases: dict[str, Any] = {"log-level": "Application.log_level"}
    flags: dict[str, Any] = {}

    def _create_loader(self, argv: Any, aliases: Any, flags: Any, classes: Any) -> KVArgParseConfigLoader:
        return _Loader(argv, aliases, flags, classes=classes, log=self.log)


class ReleaseOptions(Options):
    """Of `starvelab release`."""

    name = "starvelab-release"
    description = "Make what students are given, if the reference solution earns every point."
    examples = "starvelab release starving-the-gpu"


class CollectOptions(Options):
    """Of `starvelab collect`."""

    name = "starvelab-collect"
    description = "Sort a download from Canvas or Moodle into one folder for each student."
    examples = dedent("""
        starvelab collect starving-the-gpu ~/Downloads/submissions.zip
        starvelab collect starving-the-gpu ~/Downloads/submissions.zip --roster=~/Downloads/canvas.csv
        """).strip()
    aliases = {"roster": "CollectOptions.roster", **Options.aliases}
    roster = Unicode(
        "",
        help="The table of the class that the platform exports: names for the gradebook, and who is missing.",
    ).tag(config=True)


class GradeOptions(Options):
    """Of `starvelab grade`."""

    name = "starvelab-grade"
    description = "Grade the submissions of a class: safely, in parallel, and nothing twice."
    examples = dedent("""
        starvelab grade starving-the-gpu                       all that is new, on all cores
        starvelab grade starving-the-gpu --workers=4
        starvelab grade starving-the-gpu --only=ada,'b*'       some students
        starvelab grade starving-the-gpu --scheduler=tls://10.0.0.5:8786
        starvelab grade starving-the-gpu --report              and write the report of the class
        """).strip()
    aliases = {
        "workers": "GradeOptions.workers",
        "scheduler": "GradeOptions.scheduler",
        "only": "GradeOptions.only",
        **Options.aliases,
    }
    flags = {
        "report": ({"GradeOptions": {"report": True}}, "Write the report of the class."),
        "names": (
            {"GradeOptions": {"names": True}},
            "Call students in the report by the names that the gradebook has for them.",
        ),
        "again": ({"GradeOptions": {"again": True}}, "Grade also what has not changed."),
        "without-tls": (
            {"GradeOptions": {"without_tls": True}},
            "Accept a scheduler without TLS: whoever reaches its port can run code as its workers do.",
        ),
        "unsafe": (
            {"IsolatedExecute": {"unsafe": True}},
            "Where there is no sandbox, run student code with your own rights: it can do all that you can.",
        ),
    }
    workers = Integer(0, min=0, help="How many submissions to grade at once; 0: one for each core.").tag(
        config=True
    )
    scheduler = Unicode("", help="Address of a Dask scheduler whose workers are to grade.").tag(config=True)
    without_tls = Bool(False, help="Whether to accept a scheduler without TLS.").tag(config=True)
    only = Unicode("", help=ONLY).tag(config=True)
    report = Bool(False, help="Whether to write the report of the class.").tag(config=True)
    names = Bool(False, help="Whether the report calls students by their names.").tag(config=True)
    again = Bool(False, help="Whether to grade also what has not changed.").tag(config=True)


class MarkOptions(Options):
    """Of `starvelab mark`."""

    name = "starvelab-mark"
    description = "Mark by hand: one essay of all students at a time, on a page in your browser."
    examples = dedent("""
        starvelab mark starving-the-gpu                        opens the page; Ctrl+C ends it
        starvelab mark starving-the-gpu --names                begins with the names of the students
        starvelab mark starving-the-gpu --port=8765 --no-browser
            the same on a server, which you reach by: ssh -L 8765:127.0.0.1:8765 SERVER
        """).strip()
    aliases = {"port": "MarkOptions.port", **Options.aliases}
    flags = {
        "names": ({"MarkOptions": {"names": True}}, "Begin with the names of the students."),
        "no-browser": ({"MarkOptions": {"browser": False}}, "Print the address, and open no browser."),
    }
    port = Integer(
        0, min=0, max=65535, help="The port of the page on this machine; 0: one that is free."
    ).tag(config=True)
    names = Bool(False, help="Whether the page begins with the names of the students.").tag(config=True)
    browser = Bool(True, help="Whether to open the page in a browser.").tag(config=True)


class FeedbackOptions(Options):
    """Of `starvelab feedback`."""

    name = "starvelab-feedback"
    description = "Write a feedback page for each student: all that are out of date, in parallel."
    examples = dedent("""
        starvelab feedback starving-the-gpu                    all that are out of date
        starvelab feedback starving-the-gpu --only=ada,'b*'    some students
        starvelab feedback starving-the-gpu --again            every page, also those that are up to date
        """).strip()
    aliases = {
        "workers": "FeedbackOptions.workers",
        "only": "FeedbackOptions.only",
        **Options.aliases,
    }
    flags = {
        "again": ({"FeedbackOptions": {"again": True}}, "Write also the pages that are up to date."),
    }
    workers = Integer(0, min=0, help="How many pages to make at once; 0: one for each core.").tag(config=True)
    only = Unicode("", help=ONLY).tag(config=True)
    again = Bool(False, help="Whether to write also the pages that are up to date.").tag(config=True)


OPTIONS: dict[str, type[Options]] = {
    "release": ReleaseOptions,
    "collect": CollectOptions,
    "grade": GradeOptions,
    "mark": MarkOptions,
    "feedback": FeedbackOptions,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command of `starvelab-grader`."""
    rows = "\n".join(f"  {name:<10}{options.description}" for name, options in OPTIONS.items())
    parser = argparse.ArgumentParser(
        prog="starvelab-grader",
        description=f"commands:\n{rows}\n\nEach has its own --help.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"starvelab-grader {Options.version}")
    parser.add_argument("command", nargs="?")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="those of the command")
    given = parser.parse_args(arguments)
    if given.command is None:
        parser.print_help()
        return
    try:
        check_names([given.command], OPTIONS, "starvelab-grader", kind="command")
    except UnknownNameError as error:
        parser.error(str(error))
    start(given.command, given.arguments)


def start(command: str, arguments: list[str]) -> None:
    """Run a command. Where nbgrader is not installed it has a help, and otherwise says what to install."""
    try:
        module = import_module(f".{command}", __package__)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        needed = f"starvelab {command} needs {package}, which is not installed. {install_hint('grade')}"
        if not {"-h", "--help", "--help-all"}.intersection(arguments):
            raise SystemExit(needed) from None
        type("Help", (OPTIONS[command], Application), {})().print_help()
        print(needed)
        return
    from jupyter_core.application import NoStart  # loaded here: only a command has it

    app = getattr(module, f"{command.capitalize()}App").instance()
    app.initialize(arguments)
    with suppress(NoStart):  # such as after --generate-config
        app.start()
