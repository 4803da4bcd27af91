"""What stock nbgrader gives the honest answers of grader/tests/honest.toml, with a kernel for each notebook.

It takes minutes, and says something of nbgrader's version only: run it when the pins are brought up to date.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.grading import STOCK
from benchmarks.report import options
from grader.tests.a_course import MOST, TINY, Course
from grader.tests.test_honest import ANSWERS, HABITS, answered, practise

# Under stock nbgrader a copied cell stops the class, a deleted test waits for ever, and a file that is called
# like a module stops the kernel.
NOT_STOCK = {"adds", "damages"}
SANITIZE = ("ClearOutput", "DeduplicateIds", "OverwriteKernelspec", "OverwriteCells", "CheckCellMetadata")


def graded_by_stock(folder: Path, count: int | None) -> dict[str, dict[str, float | None]]:
    """Points by student and test cell: of so many of the answers and habits, or of all."""
    course = Course.write(folder)
    course.run("starvelab-grader", "release", TINY)
    given_out = {cell.id: cell.source for nb in course.released().values() for cell in nb.cells}
    for name in list(ANSWERS)[:count]:
        course.hand_in(name, course.solved(**answered(name, given_out)))
    for habit in sorted(set(HABITS) - NOT_STOCK)[:count]:
        practise(course, habit)
    settings = [f"--Autograde.autograde_preprocessors={name}" for name in STOCK]
    settings += [f"--Autograde.sanitize_preprocessors=nbgrader.preprocessors.{name}" for name in SANITIZE]
    settings += [
        "--Execute.timeout=60",
        "--Execute.shutdown_kernel=immediate",
        "--IgnorePattern.enabled=False",
    ]
    course.run("nbgrader", "autograde", TINY, *settings)
    return course.scores()


def main(arguments: Sequence[str] | None = None) -> None:
    """Print whose points differ from what honest.toml says; the exit status says if there is anybody."""
    asked = options(__doc__, count=(None, 1)).parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="starvelab-stock-") as folder:
        scores = graded_by_stock(Path(folder), asked.count)
    differ = []
    for name, found in scores.items():
        told = ANSWERS.get(name, {})
        expected = MOST | told.get("earns", {}) | told.get("stock", {})
        if (mine := {cell: found[cell] for cell in MOST}) != expected:
            differ.append(f"{name}: {mine}, where {expected} was expected")
    print("\n".join([*differ, f"{len(scores)} submissions, {len(differ)} of them differ."]))
    raise SystemExit(bool(differ))


if __name__ == "__main__":
    main()
