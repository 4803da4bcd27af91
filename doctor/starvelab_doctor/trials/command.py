"""`starvelab-doctor --try train.py`: settings of the loader that change neither order nor data, tried.

The script stays as it is. A short part of it runs by turns with old and new settings, each time in a process
of its own, which starts in a scratch folder and is killed after some batches.
"""

from __future__ import annotations

import argparse
import json
import linecache
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from starvelab.errors import InputError
from starvelab.host import usable_cores

from ..finding.memory import Room
from ..judging.remedies import remedies_of
from ..judging.report import Results, json_report, text_report
from ..script import INTERRUPTED, TERMINATED, Terminated, terminable
from ..watching.ranks import merge, read
from .ascent import CLEAR, MAX_TRIALS, PACKED, Ascent, Settings, Setup, Turns
from .run import SILENT, link_entries

WATCHED, SECONDS = 8.0, 3.0  # of a first run with a probe, and of each later one
LIMIT = 180.0  # seconds that a run may last
TURNS = 3  # of a trial that is not clear
# Of the script as it is and with what was kept, at the end. The median of all turns lies between the least
# and the greatest of six with a probability of 97 %: one time in 32 all of them are on one side of it.
LAST_TURNS = 6
MAX_PATH = 64  # characters, as those of a socket in it are 103
TAIL = 3  # lines of what a script said when it failed


class Runs:
    """Runs a script for some batches, each time anew."""

    def __init__(self, script: str, arguments: Sequence[str], base: Path, *, module: bool = False) -> None:
        self.command, self.base, self.module = [script, *arguments], base, module
        self.count, self.seconds, self.loop = 0, WATCHED, ""
        self.whole: bool | None = None  # the first run finds out

    def run(self, settings: Settings) -> dict[str, Any]:  # Any: values of a JSON file
        """Return what one run leaves; raise an InputError where that is nothing."""
        folder, original = self.base / str(self.count), Path.cwd()
        self.count += 1
        (folder / "tmp").mkdir(parents=True)
        link_entries(folder / "work", original)
        plan = {
            "settings": settings, "loop": self.loop, "whole": self.whole, "module": self.module,
            "seconds": self.seconds, "original": str(original), "folder": str(folder),
        }  # fmt: skip
        (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        with (folder / "said").open("wb") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "starvelab_doctor.trials.run", folder / "plan.json", *self.command],
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
            raise InputError(
                f"A trial changes the settings of a DataLoader, and {script} went over none in its own "
                "process. Run doctor without --try."
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
            if after["changes"] and new.get("persistent_workers"):
                return Turns(
                    failed="the script changes its dataset between passes, which these would not see"
                )
            rates.append((before, after["pace"]["rate"]))
            if turns == TURNS and not 1 < rates[0][1] / rates[0][0] < CLEAR:
                break
        return Turns(tuple(rates), after["pace"]["waits"])


def try_settings(
    script: str, arguments: Sequence[str], *, module: bool = False, allow_order: bool = False
) -> tuple[Results, dict[str, Any]]:  # Any: for a JSON file
    """Run a script again and again; return what doctor found in the first run, and what the trials found."""
    if not hasattr(os, "killpg"):
        raise InputError("doctor --try needs Linux, macOS or WSL, got Windows. Run doctor without --try.")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError("doctor --try runs one process, got several ranks. Start it without torchrun.")
    with tempfile.TemporaryDirectory(prefix="try-") as base:
        if len(base) > MAX_PATH:  # else each worker waits forever for the socket that it has there
            raise InputError(
                f"doctor --try needs a folder for temporary files with a path of {MAX_PATH} characters, got "
                f"{base}. Set TMPDIR=/tmp."
            )
        runs = Runs(
            script if module else str(Path(script).resolve()), arguments, Path(base).resolve(), module=module
        )
        first = runs.run({})
        runs.loop, runs.whole, runs.seconds = first["loop"], first["whole"], SECONDS
        setup = Setup(**first["setup"] | {"waits": first["pace"]["waits"], "short": first["whole"]})
        found = next((one for _, one in first["results"] if one.workers == setup.workers), None)
        named = {one.name: one.value for one in remedies_of(found)} if found is not None else {}
        room = found.room if found is not None else Room(setup.workers)
        ascent = Ascent(setup, runs.compare, room.workers_for)
        ascent.climb(named, cores=usable_cores(), allow_order=allow_order)
        last = runs.compare({}, ascent.best, LAST_TURNS) if ascent.best else Turns(failed="nothing was kept")
    told = _told(first["loop"].split(" ")[0], ascent, last, allow_order=allow_order)
    if ascent.crowded:
        told["untried"].append(f"more workers than {ascent.limit}: {room.reason(ascent.ahead)}")
    return first["results"], told


def _told(place: str, ascent: Ascent, last: Turns, *, allow_order: bool) -> dict[str, Any]:
    """Return what the trials come to, for a JSON file."""
    untried = ["the batch size and a random order, since they change what is trained"]
    if ascent.setup.stream:
        untried.append("num_workers, since the code of an IterableDataset deals the items out to its workers")
    if not allow_order and ascent.workers > 1 and ascent.setup.in_order:
        untried.append("in_order=False, which --allow-order allows")
    return {
        "place": place,
        "settings": ascent.best if last.kept else {},
        "uncertain": {} if last.kept else ascent.best,
        "gain": last.gain,
        "rates": last.rates,
        "trials": [
            {"settings": one.settings, "gain": one.turns.gain, "kept": one.turns.kept}
            | {"failed": one.turns.failed}
            for one in ascent.trials
        ],
        "untried": untried,
    }


def announcement(script: str) -> str:
    """Return what trials do to the machine, and to what the script writes."""
    most = 1 + 2 * (TURNS * MAX_TRIALS + LAST_TURNS)
    return (
        f"starvelab-doctor --try runs {script} up to {most} times for some seconds, and kills it then. It "
        f"starts in a scratch folder with links to what is in {Path.cwd()}: what Python writes there goes to "
        "copies, which are removed. Python may not write elsewhere. W&B, MLflow, Comet, Neptune and ClearML "
        "are told to be silent. What the script changes otherwise, as in a database, or by a library that "
        "writes files without Python, it changes in each run."
    )


def text_of(told: dict[str, Any]) -> str:
    """Return the trials as text, with the line to change."""
    file, _, number = told["place"].rpartition(":")
    lines = [f"starvelab-doctor --try: DataLoader at {Path(file).name}:{number}"]
    for one in told["trials"]:
        brought = f"{one['gain'][1]:.2f} times the batches a second" if one["gain"] else one["failed"]
        lines.append(f"{_listed(one['settings'])}: {brought}, {'kept' if one['kept'] else 'not kept'}.")
    low, likely, high = told["gain"] or (1.0, 1.0, 1.0)
    if told["settings"]:
        lines.append(f"Change {file}, line {number}: {linecache.getline(file, int(number)).strip()}")
        if given := {name: value for name, value in told["settings"].items() if name != PACKED}:
            lines.append(f"Give that call {_listed(given)}.")
        if told["settings"].get("num_workers") == 0:
            lines.append("Leave out what needs workers, such as prefetch_factor and persistent_workers.")
        if PACKED in told["settings"]:
            lines.append("Write packed(...) around that call: from starvelab_doctor import packed.")
        lines.append(
            f"Measured in {LAST_TURNS} turns: {likely:.2f} times the batches a second, {low:.2f} to "
            f"{high:.2f}."
        )
        if "num_workers" in told["settings"]:
            lines.append("Random numbers that are drawn for an item are others with other workers.")
    elif told["uncertain"]:
        lines.append(
            f"{_listed(told['uncertain'])} brought {likely:.2f} times the batches a second, but {low:.2f} to "
            f"{high:.2f} in {LAST_TURNS} turns. That is not certain: try again while the machine does less."
        )
    else:
        lines.append("Nothing of that is worth a change: leave these settings as they are.")
    return "\n  ".join([*lines, f"Not tried: {'; '.join(told['untried'])}."])


def _listed(settings: Settings) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def main(asked: argparse.Namespace) -> int:
    """Run `starvelab-doctor --try` with the options of doctor. Returns the exit status."""
    print(announcement(asked.script), file=sys.stderr, flush=True)
    try:
        with terminable():
            results, told = try_settings(
                asked.script, asked.arguments, module=asked.module, allow_order=asked.allow_order
            )
    except InputError as error:
        print(f"starvelab-doctor: error: {error}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, Terminated) as ended:
        print("Ended, with all that ran for it.", file=sys.stderr)
        return INTERRUPTED if isinstance(ended, KeyboardInterrupt) else TERMINATED
    print(f"{text_report(results)}\n{text_of(told)}", file=sys.stderr)
    if asked.json is not None:
        known = json.loads(json_report(results)) | {"try": told}
        asked.json.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    return 0
