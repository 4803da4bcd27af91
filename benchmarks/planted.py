"""What `starvelab-doctor` says of twenty-four planted jobs, held against what its first remedy brings.

Each job runs under doctor with a probe. Then it runs as it is and with the first remedy, by turns. What is
known stays in a file, so that a run that was ended goes on; `--again` begins anew.

    python -m benchmarks.planted --machine quiet          on a machine where nothing else runs
    python -m benchmarks.planted --machine busy           two loops compute beside
    python -m benchmarks.planted --write                  the table in benchmarks/jobs/README.md
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from .report import REPOSITORY, Record, days, listed, options

SCRIPT = Path(__file__).with_name("jobs") / "planted.py"
RESULTS = SCRIPT.with_suffix(".json")
PAGE = REPOSITORY / "benchmarks" / "jobs" / "README.md"
RIGHT, MISSED = 0.15, 0.10  # what a gain may be off, and what an interval may miss it by
BOUND, FED = ("highly input-bound", "moderately input-bound"), ("not input-bound",)
UNTOLD = ("cannot tell",)  # what a thread waits that fetches for the loop is not what the loop waits
KINDS = ("quiet", "busy")  # of machines
UNUSED = {"block_seconds", "first_waits"}  # of what doctor says: long, and for `starvelab-doctor compare`
SETTINGS = {"workers", "prefetch", "persistent"}  # the others are applied by hand


@dataclass(frozen=True)
class Truth:
    """What is right of a job: verdicts, stages or remedies that name its cause, and first remedies."""

    verdicts: tuple[str, ...]
    causes: tuple[str, ...]  # one of them is the largest stage, or among the remedies
    first: tuple[str, ...]  # empty: nothing of the input pipeline


TRUTH = {
    "storage, one worker": Truth(BOUND, ("dataset",), ("workers",)),
    "storage, no workers": Truth(BOUND, ("dataset",), ("workers",)),
    "storage, two workers": Truth(BOUND, ("dataset",), ("workers",)),
    # Only a second number of workers tells: that it is tried is right, and so is to ask less of the storage.
    "one request at a time, two workers": Truth(BOUND, ("dataset",), ("workers", "dataset")),
    "one request at a time, no workers": Truth(BOUND, ("dataset",), ("workers",)),
    "decoding, no workers": Truth(BOUND, ("dataset",), ("workers",)),
    "decoding, one worker": Truth(BOUND, ("dataset",), ("workers",)),
    "decoding, all cores busy": Truth(BOUND, ("dataset",), ("dataset",)),
    "storage and decoding": Truth(BOUND, ("dataset",), ("workers",)),
    "slow collate": Truth(BOUND, ("collate",), ("collate",)),
    "late batches": Truth(BOUND, ("prefetch",), ("prefetch",)),
    "a cache that fills": Truth(FED, ("",), ()),
    "large batches of floats": Truth(BOUND, ("bytes", "hand-over"), ("bytes",)),
    "large batches of bytes": Truth(BOUND, ("hand-over", "collate"), ("collate", "none", "dataset")),
    "many small tensors": Truth(BOUND, ("packing",), ("packing",)),
    "augmentation in the loop": Truth((*BOUND, *FED), ("move",), ("move",)),
    "a packer in the loop": Truth(BOUND, ("move",), ("move",)),
    "a thread between, hidden": Truth(UNTOLD, ("",), ()),
    "a thread between, slow": Truth(UNTOLD, ("",), ()),
    "threads under one lock": Truth(BOUND, ("dataset",), ("workers", "processes")),
    "a slow step": Truth(FED, ("",), ()),
    "row groups": Truth(BOUND, ("views",), ("views",)),
    "tiny items": Truth(BOUND, ("together",), ("together",)),
    "short passes": Truth((*BOUND, *FED), ("persistent",), ("persistent",)),
}


def under_doctor(job: str, seconds: float) -> dict[str, Any]:  # Any: the values of a JSON file
    """What doctor says of the loop of a job."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "doctor.json"
        command = [sys.executable, "-m", "starvelab", "doctor", "--probe", "--json", str(file)]
        subprocess.run(
            [*command, str(SCRIPT), job, "--seconds", str(seconds)],
            check=True,
            timeout=120,
            capture_output=True,
        )
        (loop, *_) = json.loads(file.read_text())["loops"]
        return loop


def by_turns(job: str, remedy: dict[str, Any], seconds: float, turns: int) -> float | None:
    """How many times the throughput a remedy brings; None where the job has no such change."""
    change = f"{remedy['name']}={remedy['value'] or 1}" if remedy["name"] in SETTINGS else "cured=1"
    changes = [change]
    if remedy["name"] == "move":
        changes.append(f"workers={remedy['value']}")
    command = [
        sys.executable,
        SCRIPT,
        job,
        "--seconds",
        str(seconds),
        "--turns",
        str(turns),
        "--change",
        *changes,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        return None if "KeyError" in done.stderr else sys.exit(done.stderr)
    return median(after / before for before, after in json.loads(done.stdout))


def judge(job: str, said: dict[str, Any], measured: float | None) -> dict[str, bool | None]:
    """What is right; None where there is nothing to judge."""
    truth, first = TRUTH[job], next(iter(said["remedies"]), {"name": "none", "gain": None})
    named = {said["largest_stage"], *(one["name"] for one in said["remedies"]), ""}
    gain, known = first["gain"], measured is not None
    return {
        "cause": said["verdict"] in truth.verdicts and bool(named & set(truth.causes)),
        "first": first["name"] in (truth.first or ("none",)),
        "gain": abs(gain[1] / measured - 1) <= RIGHT if gain and known and not first["at_most"] else None,
        "wrong": not gain[0] - MISSED <= measured <= gain[2] + MISSED if gain and known else None,
    }


@contextmanager
def others(count: int) -> Iterator[None]:
    """So many loops that compute beside."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def row(job: str, seen: dict[str, Any]) -> list[str]:
    """The line of the table."""
    first, right = seen["first"], judge(job, seen, seen["measured"])
    gain = first and first["gain"]
    told = (
        f"{'at most ' if first['at_most'] else ''}{gain[1]:.2f} ({gain[0]:.2f} to {gain[2]:.2f})"
        if gain
        else ""
    )
    measured = f"{seen['measured']:.2f}" if seen["measured"] else ""
    value = f" {first['value']}" if first and first["value"] else ""
    marks = ["yes" if right[name] else "**no**" for name in ("cause", "first")]
    wrong = "" if right["wrong"] is None else "**yes**" if right["wrong"] else "no"
    name = f"{first['name']}{value}" if first else "none"
    return [job, seen["verdict"], marks[0], name, marks[1], told, measured, wrong]


HEADS = [
    "job",
    "verdict",
    "cause right",
    "first remedy",
    "right",
    "gain said",
    "measured",
    "confident and wrong",
]


def measure(job: str, asked: argparse.Namespace) -> dict[str, Any]:
    """What doctor says of a job, and what its first remedy brings."""
    with others(2 if asked.machine == "busy" else 0):
        said = under_doctor(job, asked.seconds)
        first = next(iter(said["remedies"]), None)
        measured = first and by_turns(job, first, asked.seconds, asked.turns)
    said = {name: value for name, value in said.items() if name not in UNUSED}
    return said | {"first": first, "measured": measured}


def table(results: dict[str, Any], kind: str) -> str:
    """The table of one kind of machine, and what it comes to."""
    seen = {job: results[kind][job] for job in TRUTH if job in results.get(kind, {})}
    if not seen:
        return ""
    right = {job: judge(job, one, one["measured"]) for job, one in seen.items()}
    count = {
        name: sum(one[name] is True for one in right.values()) for name in ("cause", "first", "gain", "wrong")
    }
    gains = sum(one["gain"] is not None for one in right.values())
    numbers = sum(one["wrong"] is not None for one in right.values())
    where = "A quiet machine" if kind == "quiet" else "A busy machine, with two loops that compute beside"
    summary = (
        f"{where}, {days(seen.values())}: of {len(seen)} jobs the cause is "
        f"right in {count['cause']}, and the first remedy in {count['first']}. Of {numbers} numbers that "
        f"were held against a run, {numbers - gains} say at most; of the {gains} others {count['gain']} are "
        f"within 15 %. Confident and wrong: {count['wrong']}."
    )
    return f"{summary}\n\n{listed(HEADS, map(row, seen, seen.values()))}"


def tables(results: dict[str, Any]) -> str:
    """The tables of all kinds of machines."""
    return "\n".join(filter(None, (table(results, kind) for kind in KINDS)))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(
        __doc__ or "", seconds=(6.0, 0.6), turns=(3, 1), jobs=([*TRUTH], ["decoding, no workers"])
    )
    parser.add_argument("--machine", choices=KINDS, default="quiet")
    Record(RESULTS, PAGE, "planted jobs").run(
        parser, arguments, TRUTH, measure=measure, row=row, table=tables
    )


if __name__ == "__main__":
    main()
