"""What `starvelab` on the command line runs. Each command loads what it needs, and nothing else.

`starvelab doctor` needs PyTorch and nothing of grading; the commands for instructors need nbgrader.
"""

from __future__ import annotations

import sys

HELP = """\
starvelab doctor train.py [arguments]
    run a training script, and say how long it waited for its data
starvelab release | collect | grade | mark | feedback ASSIGNMENT
    for instructors: pip install 'starvelab[grade]'

Each command has its own --help."""


def main() -> None:
    """Run a command."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["doctor"]:
        from .measure.doctor import main as doctor

        raise SystemExit(doctor(arguments[1:]))
    if arguments in ([], ["-h"], ["--help"]):
        print(HELP)
        return
    from .grading import main as grading

    grading()
