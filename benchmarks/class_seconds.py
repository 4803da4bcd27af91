"""Processor time of grading a class with odd submissions and of its feedback, by one checkout or several.

    python -m benchmarks.class_seconds --students=35 ../other-checkout

The class is made once, and the checkouts take turns with copies of it. Each uses its own `.venv`. Sandboxes
count too: what a process that ends leaves behind becomes a child of this one. Linux only.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from tests.archives import zipped

from .a_class import Course
from .report import REPOSITORY, machine, spread, turns

ASSIGNMENT = "starving-the-gpu"
PR_SET_CHILD_SUBREAPER = 36


def make_odd(folder: Path, number: int) -> None:
    """Do to a submission what students do to theirs; of seven students six do something."""
    first, second, *_ = sorted(folder.glob("*.ipynb"))
    cells = json.loads(first.read_text(encoding="utf-8"))
    match number % 7:
        case 1:
            first.rename(first.with_name(f"{first.stem} (1).ipynb"))
        case 2:
            files = {path.name: path.read_bytes() for path in folder.iterdir()}
            shutil.rmtree(folder)
            folder.mkdir()
            (folder / "all.zip").write_bytes(zipped({f"work/{name}": each for name, each in files.items()}))
        case 3:
            cells["cells"].reverse()
            first.write_text(json.dumps(cells), encoding="utf-16")
        case 4:
            first.write_text("<html>", encoding="utf-8")
        case 5:
            ends = {"cell_type": "code", "source": "exit()", "execution_count": None}
            cells["cells"].insert(3, ends | {"metadata": {}, "outputs": [], "id": "own"})
            first.write_text(json.dumps(cells), encoding="utf-8")
        case 6:
            second.unlink()


def seconds(checkout: Path, course: Course, *command: str) -> float:
    """Run a command of a checkout, and return the processor time that it took with all that it started."""
    programs = checkout / ".venv" / "bin"
    own = {"STARVELAB_COURSE": str(course.course), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [programs / command[0], *command[1:]], cwd=course.repository, check=False, stdout=subprocess.DEVNULL,
        env=os.environ | own | {"PYTHONPATH": str(checkout)},
    )  # fmt: skip
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkouts", nargs="*", type=Path, help="further checkouts, each with its .venv")
    parser.add_argument("--students", type=int, default=35)
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    checkouts = [*(path.resolve() for path in asked.checkouts), REPOSITORY]
    found: dict[tuple[Path, str], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="starvelab-bench-") as folder:
        course = Course(Path(folder), ASSIGNMENT, asked.students)
        for number in range(asked.students):
            make_odd(course.course / "submitted" / f"s{number:04d}" / ASSIGNMENT, number)
        shutil.copytree(course.course, kept := Path(folder) / "kept")
        for _ in range(asked.rounds):
            for checkout in checkouts:
                shutil.rmtree(course.course)
                shutil.copytree(kept, course.course)
                for command in ("grade", "feedback"):
                    took = seconds(checkout, course, "starvelab", command, ASSIGNMENT)
                    found.setdefault((checkout, command), []).append(took)
                graded = course.course / "graded" / ASSIGNMENT
                assert len([*graded.glob("*.json")]) == asked.students, f"{checkout} has not graded all"
    print(machine(), turns(asked.rounds), sep="\n")
    for (checkout, command), each in found.items():
        print(f"{checkout}: {command} {spread(each)} s of processor time for {asked.students} students")


if __name__ == "__main__":
    run()
