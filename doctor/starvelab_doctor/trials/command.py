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
from pathlib import Path
from typing import Any

from starvelab.errors import InputError
from starvelab.host import usable_cores

from ..finding.job import JobFinding
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


def try_settings(
    script: str,
    arguments: Sequence[str],
    *,
    module: bool = False,
    allow_order: bool = False,
    ladder_only: bool = False,
    say: Callable[[str], object] = print,
) -> tuple[Results, Ladder, dict[str, Any]]:  # Any: for a JSON file
    """Run a script again and again: its ladder, and then other settings where the input is what it lacks.

    Returns
    -------
    results : sequence
        What doctor found in the first run.
    ladder : Ladder
    outcome : dict
        What the trials found.
    """
    with runs_of(script, arguments, module=module) as runs:
        first = runs.first()
        count = LADDER_TURNS * (1 + len(rungs_of(on_gpu=first["on_gpu"])))
        say(f"The ladder takes {count} runs, {duration(count * runs.each)}.")
        ladder = climb_ladder(runs, on_gpu=first["on_gpu"], say=say)
        setup = Setup(**first["setup"] | {"waits": first["pace"]["waits"], "short": first["whole"]})
        results = [
            (name, one.replace(ceiling=ladder.bound) if one.loader.workers == setup.workers else one)
            for name, one in first["results"]
        ]
        finding = next((one for _, one in results if one.loader.workers == setup.workers), None)
        ascent = Ascent(
            setup, runs.compare, (finding.room if finding else Room(setup.workers)).workers_for, say
        )
        last = Turns(failed="nothing was kept")
        if not ladder_only and not ladder.fed:
            most = 2 * (TURNS * MAX_TRIALS + LAST_TURNS)
            say(f"Other settings take at most {most} runs, {duration(most * runs.each)}.")
            remedies = remedies_of(finding) if finding is not None else ()
            ascent.climb(
                [(one.name, one.value) for one in remedies], cores=usable_cores(), allow_order=allow_order
            )
            last = runs.compare({}, ascent.best, LAST_TURNS) if ascent.best else last
    outcome = _outcome(first["loop"].split(" ")[0], ascent, last)
    outcome["untried"] = _untried(ascent, finding, allow_order=allow_order)
    return results, ladder, outcome


def _outcome(place: str, ascent: Ascent, last: Turns) -> dict[str, Any]:
    """Return what the trials come to, for a JSON file."""
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
    }


def _untried(ascent: Ascent, finding: JobFinding | None, *, allow_order: bool) -> list[str]:
    """Return what is not tried, and why."""
    untried = ["the batch size and a random order, since they change what is trained"]
    if ascent.setup.stream:
        untried.append("num_workers, since the code of an IterableDataset deals the items out to its workers")
    if not allow_order and ascent.workers > 1 and ascent.setup.in_order:
        untried.append("in_order=False, which --allow-order allows")
    first = next(iter(remedies_of(finding)), None) if finding is not None else None
    if first is not None and first.name not in SETTINGS:
        untried.append("what doctor says first, since that changes the code of the script")
    if ascent.crowded and finding is not None:
        untried.append(f"more workers than {ascent.limit}: {finding.room.reason(ascent.ahead)}")
    return untried


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


def ladder_text(place: str, ladder: Ladder) -> str:
    """Return the ladder as text."""
    file, _, number = place.rpartition(":")
    heading = f"starvelab-doctor --ladder: DataLoader at {Path(file).name}:{number}"
    return "\n  ".join([heading, *ladder.lines])


def text_of(outcome: dict[str, Any]) -> str:
    """Return the trials as text, with the line to change."""
    file, _, number = outcome["place"].rpartition(":")
    lines = [f"starvelab-doctor --try: DataLoader at {Path(file).name}:{number}"]
    low, likely, high = outcome["gain"] or (1.0, 1.0, 1.0)
    if outcome["settings"]:
        lines.append(f"Change {file}, line {number}: {linecache.getline(file, int(number)).strip()}")
        lines.append(f"Give that call {listed(outcome['settings'])}.")
        if outcome["settings"].get("num_workers") == 0:
            lines.append("Leave out what needs workers, such as prefetch_factor and persistent_workers.")
        lines.append(
            f"Measured in {LAST_TURNS} turns: {likely:.2f} times the batches a second, {low:.2f} to "
            f"{high:.2f}."
        )
        if "num_workers" in outcome["settings"]:
            lines.append("Random numbers that are drawn for an item are others with other workers.")
    elif outcome["uncertain"]:
        lines.append(
            f"{listed(outcome['uncertain'])} brought {likely:.2f} times the batches a second, but {low:.2f} "
            f"to {high:.2f} in {LAST_TURNS} turns. That is not certain: try again while the machine does "
            "less."
        )
    else:
        lines.append("Nothing of that is worth a change: leave these settings as they are.")
    return "\n  ".join([*lines, f"Not tried: {'; '.join(outcome['untried'])}."])


def main(asked: argparse.Namespace) -> int:
    """Run `starvelab-doctor --ladder` or `--try` with the options of doctor. Returns the exit status."""

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    say(announcement(asked.script))
    try:
        with terminable():
            results, ladder, outcome = try_settings(
                asked.script, asked.arguments, module=asked.module, allow_order=asked.allow_order,
                ladder_only=not asked.tries, say=say,
            )  # fmt: skip
    except InputError as error:
        say(f"starvelab-doctor: error: {error}")
        return 2
    except (KeyboardInterrupt, Terminated) as ended:
        say("Ended, with all that ran for it.")
        return INTERRUPTED if isinstance(ended, KeyboardInterrupt) else TERMINATED
    say(f"{text_report(results)}\n{ladder_text(outcome['place'], ladder)}")
    if asked.tries and not ladder.fed:
        say(text_of(outcome))
    if asked.json is not None:
        known = json.loads(json_report(results)) | {"ladder": ladder.to_json()}
        known |= {"try": outcome} if asked.tries else {}
        asked.json.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    return 0
