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

from starvelab.errors import InputError
from starvelab.host import usable_cores
from starvelab.measure.verdict import SLIGHT

from ..finding.job import JobFinding
from ..finding.memory import Room, duration
from ..judging.facts import Facts
from ..judging.remedies import is_for_handover, remedies_of
from ..judging.report import Results, json_report, text_report
from ..script import INTERRUPTED, terminable
from .ascent import MAX_TRIALS, Advised, Ascent, Setup, Turns, listed
from .ladder import TURNS as LADDER_TURNS
from .ladder import Ladder, climb_ladder, rungs_of
from .runs import TURNS, WATCHED, Runs

# Of the script as it is and with what was kept, at the end. The median of all turns lies between the least
# and the greatest of six with a probability of 97 %: one time in 32 all of them are on one side of it.
LAST_TURNS = 6
MAX_PATH = 50  # characters, as those of a socket in it are 103
SETTINGS = ("workers", "packing", "prefetch", "persistent")  # remedies that a setting may be tried for


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
    # Each worker has a socket there, and waits forever for one whose path is too long.
    folder = "/tmp" if len(tempfile.gettempdir()) > MAX_PATH else None
    with tempfile.TemporaryDirectory(prefix="try-", dir=folder) as base:
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


def try_settings(runs: Runs, say: Callable[[str], object], *, ladder_only: bool = False) -> Tried:
    """Run a script again and again: on its ladder, with what doctor advises, and with other settings."""
    first = runs.first()
    setup = Setup(**first["setup"] | {"waits": first["pace"]["waits"], "short": first["whole"]})
    loops = [loop for _, loop in first["results"] if loop.loader.workers == setup.workers]
    room = loops[0].room if loops else Room(setup.workers)
    ascent, last = Ascent(setup, runs.compare, room.workers_for, say), Turns(failed="nothing was kept")
    count = LADDER_TURNS * (1 + len(rungs_of(on_gpu=first["on_gpu"])))
    say(f"The ladder takes {count} runs, {duration(count * runs.each)}.")
    ladder = climb_ladder(runs, on_gpu=first["on_gpu"], say=say)
    bound = {"ceiling": ladder.ceiling, "whole_passes": ladder.whole}
    results = [
        (name, loop.replace(**bound) if loop.loader.workers == setup.workers else loop)
        for name, loop in first["results"]
    ]
    if not ladder_only and not ladder.fed:
        most = 2 * (TURNS * MAX_TRIALS + LAST_TURNS)
        say(f"Settings take at most {most} runs, {duration(most * runs.each)}; the advised one comes first.")
        ascent.climb(_advised(loops[0]) if loops else (), cores=usable_cores())
    if ascent.best:
        last = runs.compare({}, ascent.best, LAST_TURNS)
    return Tried(first["loop"].split(" ")[0], results, ladder, ascent, last)


def _advised(loop: JobFinding) -> list[Advised]:
    """Return the settings that the doctor advises, the first one first."""
    if remedies := remedies_of(loop):
        return [(remedy.name, remedy.value) for remedy in remedies if remedy.name in SETTINGS]
    # Workers of tiny batches also take cores from a step that hardly waits for them.
    return [("workers", 0)] if is_for_handover(Facts(loop)) else []


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
        lines += [
            f"Change {file}, line {number}: {linecache.getline(file, int(number)).strip()}",
            f"Give that call {listed(best)}.",
            f"Measured in {LAST_TURNS} turns: {likely:.2f} times the batches a second, {low:.2f} to "
            f"{high:.2f}.",
        ]
        if best.get("persistent_workers"):
            lines.append("Workers that persist do not see what the script changes of its dataset later.")
    elif best:
        lines.append(
            f"{listed(best)} brought {likely:.2f} times the batches a second, but {low:.2f} "
            f"to {high:.2f} in {LAST_TURNS} turns. That is not certain: try again while the machine does "
            "less."
        )
    elif tried.ascent.trials and tried.ladder.disturbed:
        lines.append("Nothing of that helped while another program used the machine, which proves little.")
    elif tried.ascent.trials:
        lines.append("Nothing of that is worth a change: leave these settings as they are.")
    else:
        fed = tried.ascent.waits < SLIGHT
        why = "the loop hardly waits for data" if fed else "none fits this loader and finds room"
        lines.append(f"No setting was tried, since {why}.")
    return f"{said}\n" + "\n  ".join(lines)


def main(asked: argparse.Namespace) -> int:
    """Run `starvelab-doctor --ladder` or `--try` with the options of doctor. Returns the exit status."""

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    say(
        f"starvelab-doctor runs {asked.script} for {WATCHED:.0f} s of its loop first, and then says how long "
        f"the rest takes. Each run is killed after some seconds. What Python writes in {Path.cwd()} goes to "
        "copies, which are removed. What the script changes otherwise, as in a database, it changes in each "
        "run."
    )
    try:
        with terminable(), runs_of(asked.script, asked.arguments, module=asked.module) as runs:
            tried = try_settings(runs, say, ladder_only=not asked.tries)
    except InputError as error:
        say(f"starvelab-doctor: error: {error}")
        return 2
    except KeyboardInterrupt:
        say("Ended, with all that ran for it.")
        return INTERRUPTED
    say(text_of(tried, ladder_only=not asked.tries))
    if asked.json is not None:
        found = json.loads(json_report(tried.results)) | {"ladder": tried.ladder.to_json()}
        if asked.tries:
            found["try"] = {
                "place": tried.place,
                "settings": tried.ascent.best if tried.last.kept else {},
                "gain": tried.last.gain,
                "trials": [
                    {"settings": settings, "gain": turns.gain, "kept": turns.kept, "failed": turns.failed}
                    for settings, turns in tried.ascent.trials
                ],
            }
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0
