"""Grading the same submissions with nbgrader's own way of running notebooks, and with `starvelab grade`.

A class of its own making hands in the walkthrough; right, wrong and open answers are mixed. Every side grades
all of it from nothing, and they take turns. Memory is that of a worker and of all it starts, at its highest.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from pathlib import Path

import psutil
from tqdm import tqdm

from .a_class import Course
from .report import machine, options, ratios, spread, turns

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
EVERY = 0.1  # seconds between two looks at the memory


class Memory(threading.Thread):
    """Watches what a worker of this run and everything below it holds for itself, as PSS."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self.over = 0, threading.Event()

    def run(self) -> None:
        """Look until it is over."""
        me = psutil.Process()
        while not self.over.wait(EVERY):
            for process in me.children(recursive=True):
                try:
                    if "multiprocessing" in " ".join(process.cmdline()) and "spawn_main" in str(
                        process.cmdline()
                    ):
                        tree = [process, *process.children(recursive=True)]
                        self.most = max(self.most, sum(map(_pss, tree)))
                except psutil.Error:
                    continue

    def __enter__(self) -> Memory:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()


def _pss(process: psutil.Process) -> int:
    try:
        return process.memory_full_info().pss
    except psutil.Error:
        return 0


def grade(course: Course, *command: str) -> float:
    """Run a command on a course in which nothing is graded; the seconds that it took."""
    for name in ("autograded", "graded"):
        shutil.rmtree(course.course / name, ignore_errors=True)
    begun = time.perf_counter()
    course.run(*command)
    return time.perf_counter() - begun


def main() -> None:
    parser = options(__doc__, rounds=3)
    parser.add_argument("--students", type=int, default=12, help="in the class (default 12)")
    parser.add_argument("--only-ours", action="store_true", help="leave nbgrader's own side out")
    asked = parser.parse_args()
    stock = [f"--Autograde.autograde_preprocessors={name}" for name in STOCK]
    ours = ["starvelab", "grade", ASSIGNMENT]
    sides = {
        "nbgrader's own kernels": ["nbgrader", "autograde", ASSIGNMENT, *stock, "--Execute.timeout=60"],
        "nbgrader, in the sandbox": ["nbgrader", "autograde", ASSIGNMENT],
        "starvelab, one worker": [*ours, "--workers=1"],
        "starvelab, two workers": [*ours, "--workers=2"],
    }
    if asked.only_ours:
        sides = {name: each for name, each in sides.items() if name.startswith("starvelab")}
    found: dict[str, list[float]] = {name: [] for name in sides}
    with tempfile.TemporaryDirectory(prefix="starvelab-bench-") as folder:
        course = Course(Path(folder), ASSIGNMENT, asked.students)
        with Memory() as memory:
            for _ in tqdm(range(asked.rounds), unit="turn"):
                for name, command in sides.items():
                    found[name].append(60 * asked.students / grade(course, *command))
    print(machine())
    print(turns(asked.rounds))
    for name, rates in found.items():
        print(f"{name:<26} {spread(rates)} submissions of six notebooks a minute")
    one, two = found["starvelab, one worker"], found["starvelab, two workers"]
    if not asked.only_ours:
        stock_rates = found["nbgrader's own kernels"]
        print(f"{'one worker over nbgrader':<26} {spread(ratios(stock_rates, one))}")
    print(f"{'two workers over one':<26} {spread(ratios(one, two))}")
    print(f"{'memory of a worker':<26} {memory.most / 1e6:.0f} MB at most, with all that it starts")


if __name__ == "__main__":
    main()
