"""Runs benchmarks one after the other: those that are named, or the usual ones, which the documents show.

On its own, as `python -m benchmarks.NAME`, each takes further options.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from starvelab.errors import UnknownNameError, check_names

from .report import REPOSITORY
from .results import SAVE

USUAL = (
    "imports",
    "solve",
    "simulate",
    "notebooks",
    "repaint",
    "moving",
    "validation",
    "own_loader",
    "loop",
    "diagnose",
    "watch",
    "grading",
)


def names() -> dict[str, str]:
    """The first sentence of each module that has a function `main`, by its name: the usual ones first."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in module.body):
            found[path.stem] = " ".join((ast.get_docstring(module) or "").split("\n\n")[0].split())
    return {name: found[name] for name in (*USUAL, *found)}


def main(arguments: Sequence[str] | None = None) -> int:
    known = names()
    rows = "\n".join(f"  {name:<13}{what}" for name, what in known.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"{__doc__}\nThere are:\n{rows}\n\nThe usual ones are those up to {USUAL[-1]}.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--smallest", action="store_true", help="the smallest case of each; nothing is saved")
    asked = parser.parse_args(arguments)
    try:
        check_names(asked.names, known, "benchmarks", kind="benchmark")
    except UnknownNameError as error:
        parser.error(f"{error} --help names them all.")
    failed = []
    environment = os.environ | ({} if asked.smallest else {SAVE: "1"})
    for name in asked.names or USUAL:
        print(f"== {name} ==", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{name}", *["--smallest"] * asked.smallest]
        if subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode:
            failed.append(name)
        print(flush=True)
    if not asked.smallest:
        print("The results are in benchmarks/results.json. Write the documents' table with: make build")
    if failed:
        print(f"not finished: {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
