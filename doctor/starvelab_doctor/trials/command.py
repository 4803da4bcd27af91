"""`starvelab-doctor --ladder train.py` and `--try`: how much faster the job can be, and which settings help.

The script stays as it is. A short part of it runs again and again, each time in a process of its own, which
starts in a scratch folder and is killed after some batches.
"""

from __future__ import annotations

import argparse
import json
import linecache
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starvelab.errors import InputError
from starvelab.host import usable_cores
from starvelab.measure.verdict import SLIGHT

from ..finding.memory import Room, duration
from ..judging.remedies import remedies_of
from ..judging.report import Results, json_report, text_report
from ..script import INTERRUPTED, TERMINATED, Terminated, terminable
from .ascent import MAX_TRIALS, Ascent, Setup, Turns, listed
from .ladder import TURNS as LADDER_TURNS
from .ladder import Ladder, climb_ladder, rungs_of
from .runs import TURNS, WATCHED, Runs

# Of the script as it is and with what was kept, at the end. The median of all turns lies between the least
# and the greatest of six with a probability of 97 %: one time in 32 all of them are on one side of it.
LAST_TURNS = 6
MAX_PATH = 64  # characters, as those of a socket in it are 103
SETTINGS = ("workers", "prefetch", "persistent")  # remedies that no code has to be changed for


@contextmanager
def runs_of(script: str, arguments: Sequence[str], *, module: bool) -> Iterator[Runs]:
    """Return what runs a script, where this machine can."""
    if not hasattr(os, "killpg"):
        raise InputError(
            "Trials need Linux, macOS or WSL, got Windows. Run doctor without --try and --ladder."
        )
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError(
            "Trials run one process, got several ranks, each of which waits for the others in its step. "
            "Start it without torchrun: the ladder of one rank holds for each that has a GPU and cores "
            "of its own."
        )
    with tempfile.TemporaryDirectory(prefix="try-") as base:
        if len(base) > MAX_PATH:  # else each worker waits forever for the socket that it has there
            raise InputError(
                f"Trials need a folder for temporary files with a path of {MAX_PATH} characters, got {base}. "
                "Set TMPDIR=/tmp."
            )
        path = script if module else str(Path(script).resolve())
        yield Runs(path, arguments, Path(base).resolve(), module=module)


@dataclass(frozen=True)
class Tried:
    """What trials of a script found: the first run, the ladder, the settings, and the last turns of them."""

    place: str  # file and line of the loader
    results: Results
    ladder: Ladder
    ascent: Ascent
    last: Turns
    untried: Sequence[str]

    @property
    def outcome(self) -> dict[str, Any]:  # Any: for a JSON file
        """What the trials come to."""
        return {
            "place": self.place,
            "settings": self.ascent.best if self.last.kept else {},
            "gain": self.last.gain,
            "rates": self.last.rates,
            "trials": [
                {"settings": trial.settings, "gain": trial.turns.gain, "kept": trial.turns.kept}
                | {"failed": trial.turns.failed}
                for trial in self.ascent.trials
            ],
            "untried": self.untried,
        }


def try_settings(runs: Runs, say: Callable[[str], object], *, ladder_only: bool = False) -> Tried:
    """Run a script again and again: its ladder, and then other settings where the input is what it lacks."""
    first = runs.first()
    count = LADDER_TURNS * (1 + len(rungs_of(on_gpu=first["on_gpu"])))
    say(f"The ladder takes {count} runs, {duration(count * runs.each)}.")
    ladder = climb_ladder(runs, on_gpu=first["on_gpu"], say=say)
    setup = Setup(**first["setup"] | {"waits": first["pace"]["waits"], "short": first["whole"]})
    results = [
        (name, loop.replace(ceiling=ladder.bound) if loop.loader.workers == setup.workers else loop)
        for name, loop in first["results"]
    ]
    finding = next((loop for _, loop in results if loop.loader.workers == setup.workers), None)
    remedies = remedies_of(finding) if finding is not None else ()
    room = finding.room if finding is not None else Room(setup.workers)
    ascent, last = Ascent(setup, runs.compare, room.workers_for, say), Turns(failed="nothing was kept")
    if not ladder_only and not ladder.fed:
        most = 2 * (TURNS * MAX_TRIALS + LAST_TURNS)
        say(f"Other settings take at most {most} runs, {duration(most * runs.each)}.")
        ascent.climb([(remedy.name, remedy.value) for remedy in remedies], cores=usable_cores())
        last = runs.compare({}, ascent.best, LAST_TURNS) if ascent.best else last
    untried = ["the batch size and the order of batches, since they change what is trained"]
    if setup.stream:
        untried.append("num_workers, since the code of an IterableDataset deals the items out to its workers")
    if remedies and remedies[0].name not in SETTINGS:
        untried.append("what doctor says first, since that changes the code of the script")
    if ascent.crowded:
        untried.append(f"more workers than {ascent.limit}: {room.reason(ascent.ahead)}")
    return Tried(first["loop"].split(" ")[0], results, ladder, ascent, last, untried)


def announcement(script: str) -> str:
    """Return how long the first run takes, and what trials do to what the script writes."""
    return (
        f"starvelab-doctor runs {script} for {WATCHED:.0f} s of its loop first, and then says how long the "
        "rest takes. Each run is killed after some seconds. It starts in "
        f"a scratch folder with links to what is in {Path.cwd()}: what Python writes there goes to "
        "copies, which are removed. Python may not write elsewhere. W&B, MLflow, Comet, Neptune and ClearML "
        "are told to be silent. What the script changes otherwise, as in a database, or by a library that "
        "writes files without Python, it changes in each run."
    )


def text_of(tried: Tried, *, ladder_only: bool = False) -> str:
    """Return all of it as text, with the line to change."""
    file, _, number = tried.place.rpartition(":")
    loader = f"DataLoader at {Path(file).name}:{number}"
    lines = [f"starvelab-doctor --ladder: {loader}", *tried.ladder.lines]
    said = f"{text_report(tried.results)}\n" + "\n  ".join(lines)
    if ladder_only or tried.ladder.fed:
        return said
    best, (low, likely, high) = tried.ascent.best, tried.last.gain or (1.0, 1.0, 1.0)
    lines = [f"starvelab-doctor --try: {loader}"]
    if tried.last.kept:
        lines.append(f"Change {file}, line {number}: {linecache.getline(file, int(number)).strip()}")
        lines.append(f"Give that call {listed(best)}.")
        if best.get("num_workers") == 0:
            lines.append("Leave out what needs workers, such as prefetch_factor and persistent_workers.")
        lines.append(
            f"Measured in {LAST_TURNS} turns: {likely:.2f} times the batches a second, {low:.2f} to "
            f"{high:.2f}."
        )
        if "num_workers" in best:
            lines.append("Random numbers that are drawn for an item are others with other workers.")
        if best.get("persistent_workers"):
            lines.append("Workers that persist do not see what the script changes of its dataset later.")
    elif best:
        lines.append(
            f"{listed(best)} brought {likely:.2f} times the batches a second, but {low:.2f} "
            f"to {high:.2f} in {LAST_TURNS} turns. That is not certain: try again while the machine does "
            "less."
        )
    elif tried.ascent.trials:
        lines.append("Nothing of that is worth a change: leave these settings as they are.")
    else:
        fed = tried.ascent.waits < SLIGHT
        why = "the loop hardly waits for data" if fed else "none fits this loader and finds room"
        lines.append(f"No setting was tried, since {why}.")
    return f"{said}\n" + "\n  ".join([*lines, f"Not tried: {'; '.join(tried.untried)}."])


def main(asked: argparse.Namespace) -> int:
    """Run `starvelab-doctor --ladder` or `--try` with the options of doctor. Returns the exit status."""

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    say(announcement(asked.script))
    try:
        with terminable(), runs_of(asked.script, asked.arguments, module=asked.module) as runs:
            tried = try_settings(runs, say, ladder_only=not asked.tries)
    except InputError as error:
        say(f"starvelab-doctor: error: {error}")
        return 2
    except (KeyboardInterrupt, Terminated) as ended:
        say("Ended, with all that ran for it.")
        return INTERRUPTED if isinstance(ended, KeyboardInterrupt) else TERMINATED
    say(text_of(tried, ladder_only=not asked.tries))
    if asked.json is not None:
        found = json.loads(json_report(tried.results)) | {"ladder": tried.ladder.to_json()}
        found |= {"try": tried.outcome} if asked.tries else {}
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0
