"""Grading the same submissions with nbgrader's own way of running notebooks, and with `starvelab grade`.

A class of its own making hands in the walkthrough; right, wrong and open answers are mixed. Every side
grades all of it from nothing, and they take turns. A rate is taken from when each worker has graded one
submission, so that starting up, which a class pays for once, is in no side; it is printed by itself. Memory
is that of a worker and of all it starts, at its highest, in a run of its own.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
from tqdm import tqdm

from .a_class import Course
from .report import machine, number, options, ratios, spread, turns
from .results import save

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


def grade(course: Course, command: Sequence[str]) -> tuple[float, float]:
    """Run a command on a course in which nothing is graded: submissions a minute, and seconds to start up."""
    for name in ("autograded", "graded"):
        shutil.rmtree(course.course / name, ignore_errors=True)
    begun = time.time()
    course.run(*command)
    done = sorted(
        max(path.stat().st_mtime for path in student.rglob("*.ipynb"))
        for student in (course.course / "autograded").iterdir()
    )
    workers = 2 if "--workers=2" in command else 1
    each = (done[-1] - done[workers - 1]) / (len(done) - workers)
    return 60 / each, done[workers - 1] - begun - workers * each


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__, rounds=(2, 1), students=(12, 3), only_ours=(False, True))
    parser.add_argument("--students", type=int, help="in the class (default %(default)s)")
    parser.add_argument("--only-ours", action="store_true", help="leave nbgrader's own side out")
    asked = parser.parse_args(arguments)
    stock = [f"--Autograde.autograde_preprocessors={name}" for name in STOCK]
    ours = ["starvelab", "grade", ASSIGNMENT]
    one, two = [*ours, "--workers=1"], [*ours, "--workers=2"]
    sides = {
        "nbgrader's own kernels": ["nbgrader", "autograde", ASSIGNMENT, *stock, "--Execute.timeout=60"],
        "nbgrader, in the sandbox": ["nbgrader", "autograde", ASSIGNMENT],
        "starvelab, one worker": one,
        "starvelab, two workers": two,
    }
    if asked.only_ours:
        sides = {name: each for name, each in sides.items() if name.startswith("starvelab")}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    with tempfile.TemporaryDirectory(prefix="starvelab-bench-") as folder:
        course = Course(Path(folder), ASSIGNMENT, asked.students)
        for _ in tqdm(range(asked.rounds), unit="turn"):
            for name, command in sides.items():
                found[name].append(grade(course, command))
        with Memory() as memory:
            grade(course, two)
    print(machine())
    print(turns(asked.rounds))
    rates = {name: [rate for rate, _ in each] for name, each in found.items()}
    for name, each in found.items():
        begins = spread([start for _, start in each])
        print(f"{name:<26} {spread(rates[name])} submissions of six notebooks a minute, after {begins} s")
    for name in list(sides)[:-1]:
        times = spread(ratios(rates[name], rates["starvelab, two workers"]))
        print(f"two workers over {name:<26} {times}")
    print(f"{'memory of a worker':<26} {memory.most / 1e6:.0f} MB at most, with all that it starts")
    save(
        "grading-memory",
        "memory of a grading worker, with all that it starts",
        f"{memory.most / 1e6:.0f} MB at most",
    )
    if not asked.only_ours:
        _save({name: statistics.median(each) for name, each in rates.items()})


def _save(rate: dict[str, float]) -> None:
    kernels = rate["nbgrader's own kernels"]
    first, both = rate["starvelab, one worker"], rate["starvelab, two workers"]
    save(
        "grading-one-worker",
        "grading six notebooks a submission, one worker",
        f"{number(first)} submissions a minute",
        f"{number(kernels)} (`nbgrader autograde` with its own kernels)",
        f"{number(first / kernels, 2)} times",
    )
    save(
        "grading-two-workers",
        "the same, two workers on two cores",
        f"{number(both)} submissions a minute",
        f"{number(first)} (one worker)",
        f"{number(both / first)} times: {both / first / 2:.2f} efficiency",
    )


if __name__ == "__main__":
    main()
