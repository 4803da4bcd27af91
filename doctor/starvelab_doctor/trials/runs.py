"""Runs of a script for some batches each, in processes of their own that are killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from starvelab.errors import InputError

from ..watching.ranks import merge, read
from .ascent import CLEAR, Settings, Turns
from .scratch import SILENT, stand_in

WATCHED, SECONDS = 8.0, 3.0  # of a first run with a probe, and of each later one
LIMIT = 600.0  # seconds that a run may last: an evaluation may precede its first steps
TURNS = 3  # of a trial that is not clear
TAIL = 3  # lines of what a script said when it failed


class Runs:
    """Runs a script for some batches, each time anew."""

    def __init__(self, script: str, arguments: Sequence[str], base: Path, *, module: bool = False) -> None:
        self.command, self.base, self.module = [script, *arguments], base, module
        self.count, self.seconds, self.loop = 0, WATCHED, ""
        self.whole: bool | None = None  # the first run finds out
        self.each = SECONDS  # that a run takes with its start, as the first one took

    def first(self) -> dict[str, Any]:  # Any: values of a JSON file
        """Return what a first run leaves, which is watched with a probe; later ones are about its loop."""
        begun = time.monotonic()
        result = self.run({})
        self.loop, self.whole, self.seconds = result["loop"], result["whole"], SECONDS
        self.each = max(time.monotonic() - begun - result["pace"]["seconds"], 0.0) + SECONDS
        return result

    def run(self, settings: Settings, rung: str = "") -> dict[str, Any]:  # Any: as above
        """Return what one run leaves, on a rung of the ladder; raise an InputError where that is nothing."""
        folder, original = self.base / str(self.count), Path.cwd()
        self.count += 1
        (folder / "tmp").mkdir(parents=True)
        work = stand_in(folder / "tree", original)
        plan = {
            "settings": settings, "rung": rung, "loop": self.loop, "whole": self.whole, "module": self.module,
            "seconds": self.seconds, "original": str(original), "folder": str(folder), "work": str(work),
        }  # fmt: skip
        (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        with (folder / "said").open("wb") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "starvelab_doctor.trials.start", folder / "plan.json", *self.command],
                cwd=folder, env=os.environ | SILENT | {"TMPDIR": str(folder / "tmp")}, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
            )  # fmt: skip
            try:
                status = process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                status = None
            finally:  # also where this program is ended meanwhile
                with suppress(ProcessLookupError, PermissionError):  # its workers are of its group
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        found = self._left(folder, status)
        if not self.loop:
            found["results"] = merge(read(folder))
        shutil.rmtree(folder)
        return found

    def _left(self, folder: Path, status: int | None) -> dict[str, Any]:
        """Return what a run wrote down; raise an InputError that says why it is nothing."""
        script, result = self.command[0], folder / "result.json"
        if status is None:
            raise InputError(
                f"A trial needs its batches within {LIMIT:.0f} s, and {script} had too few by then. Give it "
                "less to do before its loop."
            )
        if not result.exists():
            lines = (folder / "said").read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise InputError(
                f"A trial needs a script that trains, and {script} ended with status {status} before it had "
                f"enough batches. Correct that first. It said: {' / '.join(lines[-TAIL:]) or 'nothing'}"
            )
        found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        if not found["loop"]:
            own = f"\n{found['own']}" if found.get("own") else " Run doctor without --try and --ladder."
            raise InputError(
                f"A trial changes the settings of a DataLoader, and {script} went over none in its own "
                f"process.{own}"
            )
        if found["pace"] is None:
            raise InputError(
                f"A trial needs more batches than {script} has, which ended after {found['batches']}. Give "
                "it more data, or more passes."
            )
        return found

    def compare(self, old: Settings, new: Settings, turns: int = TURNS) -> Turns:
        """Return how new settings do beside old ones; a trial that is clear takes one turn."""
        rates: list[tuple[float, float]] = []
        while len(rates) < turns:
            before = self.run(old)["pace"]["rate"]
            try:
                after = self.run(new)
            except InputError as error:
                return Turns(failed=str(error))
            rates.append((before, after["pace"]["rate"]))
            if turns == TURNS and not 1 < rates[0][1] / rates[0][0] < CLEAR:
                break
        return Turns(tuple(rates), after["pace"]["waits"])
