"""All benchmarks, one after the other; each is told the same options as on its own, from the environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .report import REPOSITORY

NAMES = (
    "imports",
    "solve",
    "simulate",
    "notebooks",
    "repaint",
    "validation",
    "own_loader",
    "diagnose",
    "grading",
)


def main() -> int:
    failed = []
    for name in NAMES:
        if (Path(__file__).parent / f"{name}.py").exists():
            print(f"== {name} ==", flush=True)
            if subprocess.run(
                [sys.executable, "-m", f"benchmarks.{name}"], cwd=REPOSITORY, check=False
            ).returncode:
                failed.append(name)
            print(flush=True)
    if failed:
        print(f"not finished: {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
