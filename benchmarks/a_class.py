"""A class that hands in: every student gets some exercises right, some wrong, and leaves some open."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import nbformat

from tests.assignments import notebooks_of
from tests.notebooks.exercises import exercises

from .report import REPOSITORY


class Course:
    """A copy of what an instructor has, and a class of so many students."""

    def __init__(self, folder: Path, assignment: str, students: int) -> None:
        self.repository, self.course, self.assignment = folder / "repository", folder / "course", assignment
        for name in ("solutions", "labs"):
            shutil.copytree(REPOSITORY / name, self.repository / name)
        shutil.copy(REPOSITORY / "nbgrader_config.py", self.repository)
        self.run("nbgrader", "generate_assignment", assignment, "--force")
        for number in range(students):
            self.hand_in(f"s{number:04d}", random.Random(number))

    def hand_in(self, student: str, luck: random.Random) -> None:
        """Answer as somebody of a certain strength would."""
        strength = luck.uniform(0.2, 1.1)
        folder = self.course / "submitted" / student / self.assignment
        folder.mkdir(parents=True)
        answers = {}
        for one in exercises(self.assignment):
            if luck.random() < strength:
                answers[one.answer_id] = luck.choice([one.solution, *(each.source for each in one.right)])
            elif luck.random() < 0.8 and one.wrong:
                answers[one.answer_id] = luck.choice(one.wrong).source
        for notebook in notebooks_of(self.assignment):
            nb = nbformat.read(notebook.released, as_version=4)
            for cell in nb.cells:
                cell.source = answers.get(cell.id, cell.source)
            nbformat.write(nb, folder / notebook.released.name)
            with redirect_stdout(StringIO()):
                notebook.lock_predictions(folder)
        self.reveal(folder / "predictions.json", luck)

    def reveal(self, path: Path, luck: random.Random) -> None:
        """Say of each prediction how sure the student was, and whether it came true; most are too sure."""
        told = json.loads(path.read_text(encoding="utf-8"))
        for one in told.values():
            one["confidence"] = luck.choice([0.5, 0.6, 0.7, 0.8, 0.9])
            one |= {"hit": luck.random() < one["confidence"] - 0.15, "revealed_at": one["locked_at"]}
        path.write_text(json.dumps(told), encoding="utf-8")

    def run(self, *command: str) -> str:
        """Run a command of the environment in the repository; what it printed."""
        programs = str(Path(sys.executable).parent)
        done = subprocess.run(
            [Path(programs) / command[0], *command[1:]],
            cwd=self.repository,
            env=os.environ
            | {
                "STARVELAB_COURSE": str(self.course),
                "PYTHONPATH": str(REPOSITORY),
                "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            },
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{command} failed:\n{done.stdout}{done.stderr}")
        return done.stdout
