"""What a check tells a grader that listens, and what it lets the grader run elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from .runtime import shell


def note(name: str, value: object) -> None:
    """Tell a grader that listens what a check found, such as a known mistake; nobody else hears it."""
    sys.audit("starvelab_grader.note", name, value)


def run_apart(text: str, names: Mapping[str, object]) -> None:
    """Run a program that was submitted as a text; while grading, where it can reach nothing of this process.

    Without a grader it runs here. The text can use the names: plain data, and functions of plain data. Count
    and measure only in such functions: a grader runs those beside the check, where the text can call them and
    change nothing of them.

    Examples
    --------
    >>> seen = []
    >>> run_apart("for n in range(limit): count(n)", {"count": seen.append, "limit": 3})
    >>> seen
    [0, 1, 2]
    """
    elsewhere = getattr(shell(), "run_apart", None)
    if elsewhere is not None:
        elsewhere(text, dict(names))
    else:
        exec(compile(text, "<text>", "exec"), {"__name__": "__main__", **names})
