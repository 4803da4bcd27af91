"""What `starvelab` on the command line runs. Each command loads what it needs, and nothing else.

`starvelab lab` needs JupyterLab, `starvelab doctor` PyTorch; the commands for instructors need nbgrader.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.metadata import version

from .errors import UnknownNameError, check_names
from .grading.commands.options import OPTIONS, start

COMMANDS = {
    "lab": "Copy the lab's notebooks into a folder, and open them in JupyterLab.",
    "doctor": "Run a training script, and say how long it waited for its data.",
    **{name: options.description for name, options in OPTIONS.items()},
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command."""
    rows = "\n".join(f"  {name:<10}{what}" for name, what in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="starvelab",
        description=f"commands:\n{rows}\n\nEach has its own --help. The last five are for instructors.",
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
    match asked.command:
        case "lab":
            from .lab import main as lab

            lab(asked.arguments)
        case "doctor":
            from .jobs.doctor import main as doctor

            raise SystemExit(doctor(asked.arguments))
        case instructors:
            start(instructors, asked.arguments)
