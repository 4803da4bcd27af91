"""Grading the same submissions with nbgrader's own way of running notebooks, and in the sandbox.

Both run `nbgrader autograde` on the walkthrough, solved by every student, and take turns.
What nbgrader does besides, such as its gradebook, is in both.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tqdm import tqdm

from .report import REPOSITORY, machine, options, ratios, spread, turns

ASSIGNMENT = "starving-the-gpu"
STOCK = (
    "nbgrader.preprocessors.Execute",
    "nbgrader.preprocessors.IgnorePattern",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
)


class Course:
    """A copy of what an instructor has, and a class that hands in the solution."""

    def __init__(self, folder: Path, students: int) -> None:
        self.repository, self.course = folder / "repository", folder / "course"
        for name in ("solutions", "labs"):
            shutil.copytree(REPOSITORY / name, self.repository / name)
        shutil.copy(REPOSITORY / "nbgrader_config.py", self.repository)
        self.nbgrader("generate_assignment", ASSIGNMENT, "--force")
        for number in range(students):
            shutil.copytree(
                REPOSITORY / "solutions" / ASSIGNMENT,
                self.course / "submitted" / f"s{number:03d}" / ASSIGNMENT,
                ignore=shutil.ignore_patterns("*.py"),
            )

    def nbgrader(self, *arguments: str) -> float:
        """Run a command; how many seconds it took."""
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "nbgrader", *arguments],
            cwd=self.repository,
            env={**os.environ, "STARVELAB_COURSE": str(self.course), "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            check=True,
        )
        return time.perf_counter() - start


def main() -> None:
    parser = options(__doc__, rounds=3)
    parser.add_argument("--students", type=int, default=4, help="in the class (default 4)")
    asked = parser.parse_args()
    stock = [f"--Autograde.autograde_preprocessors={name}" for name in STOCK]
    sides = {"nbgrader's kernel": [*stock, "--Execute.timeout=60"], "in the sandbox": []}
    found: dict[str, list[float]] = {name: [] for name in sides}
    with tempfile.TemporaryDirectory(prefix="starvelab-bench-") as folder:
        course = Course(Path(folder), asked.students)
        for _ in tqdm(range(asked.rounds), unit="turn"):
            for name, arguments in sides.items():
                taken = course.nbgrader("autograde", ASSIGNMENT, "--force", *arguments)
                found[name].append(60 * asked.students / taken)
    print(machine())
    print(turns(asked.rounds))
    for name, rates in found.items():
        print(f"{name:<18} {spread(rates)} submissions of six notebooks a minute")
    print(f"{'ratio':<18} {spread(ratios(*found.values()))}")


if __name__ == "__main__":
    main()
