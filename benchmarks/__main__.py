"""All benchmarks, one after the other, with their results written to `results.json` for the documents.

Each takes its options from the environment, as on its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .report import REPOSITORY
from .results import SAVE

NAMES = (
    "imports",
    "solve",
    "simulate",
    "notebooks",
    "repaint",
    "validation",
    "own_loader",
    "diagnose",
    "watch",
    "grading",
)


def main() -> int:
    failed = []
    for name in NAMES:
        if (Path(__file__).parent / f"{name}.py").exists():
            print(f"== {name} ==", flush=True)
            if subprocess.run(
                [sys.executable, "-m", f"benchmarks.{name}"],
                cwd=REPOSITORY,
                env=os.environ | {SAVE: "1"},
                check=False,
            ).returncode:
                failed.append(name)
            print(flush=True)
    print("The results are in benchmarks/results.json. Write the documents' table with: make build")
    if failed:
        print(f"not finished: {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
