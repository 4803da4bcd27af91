"""What `starvelab-doctor --try` finds, held against a sweep: the planted jobs that settings cure.

Doctor tries at most six settings. The sweep runs each job with every number of workers, queue and kind of
worker, and one of many tensors with one buffer for all of them. Then the job runs by turns as it is, with
what doctor kept, and with the best of the sweep.

    python -m benchmarks.tried                            what is known stays in a file; `--again` begins anew
    python -m benchmarks.tried --write                    the table in benchmarks/jobs/README.md
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import product
from statistics import median
from typing import Any

from starvelab_doctor import packed
from starvelab_doctor.trials.ascent import PACKED
from starvelab_doctor.trials.command import try_settings

from .jobs.planted import JOBS as PLANTED
from .jobs.planted import Job
from .planted import PAGE, SCRIPT
from .report import Record, days, listed, options

RESULTS = SCRIPT.with_name("tried.json")
JOBS = (
    "storage, one worker", "storage, no workers", "storage, two workers",
    "one request at a time, two workers", "one request at a time, no workers", "decoding, no workers",
    "decoding, one worker", "storage and decoding", "late batches",
    "threads under one lock", "short passes", "many small tensors",
)  # fmt: skip
WORKERS, AHEAD = (0, 1, 2, 3, 4, 6, 8, 12), (2, 4, 8)
NAMES = {
    "num_workers": "workers", "prefetch_factor": "prefetch", "persistent_workers": "persistent",
    PACKED: PACKED,
}  # fmt: skip
ENOUGH = 0.9  # of the best of the sweep


def rate(job: str, change: dict[str, Any], seconds: float) -> float:  # Any: of each setting its own
    """The batches a second of a job with these settings."""
    settings = PLANTED[job] | change
    into_one = settings.pop(PACKED, False)
    known = Job(**settings)
    if into_one:
        known.loader = packed(known.loader)
    return float(known.train(seconds))


def sweep(job: str, seconds: float, workers: Sequence[int]) -> dict[str, Any]:
    """The settings that bring most batches a second, of all of them."""
    kinds = (False, True) if PLANTED[job].get("passes") else (False,)
    boxes = (False, True) if job == "many small tensors" else (False,)
    each = [
        {"workers": count, "prefetch": ahead, "persistent": kind, PACKED: box}
        for count, ahead, kind, box in product(workers, AHEAD, kinds, boxes)
        if count or (ahead, kind, box) == (AHEAD[0], False, False)
    ]
    rates = [rate(job, one, seconds) for one in each]
    return each[rates.index(max(rates))]


def held(job: str, seconds: float, turns: int, workers: Sequence[int], *, trials: bool) -> dict[str, Any]:
    """What doctor keeps and what the sweep finds, and how many times the batches a second each brings."""
    told = (
        try_settings(str(SCRIPT), [job, "--seconds", "600"])[2] if trials else {"settings": {}, "gain": None}
    )
    best = sweep(job, seconds, workers)
    kept = {NAMES[name]: value for name, value in told["settings"].items()}
    rates = [[rate(job, one, seconds) for one in ({}, kept, best)] for _ in range(turns)]
    return {
        "kept": kept,
        "said": told["gain"],
        "trials": len(told.get("trials", ())),
        "best": best,
        "gains": [median(one[place] / one[0] for one in rates) for place in (1, 2)],
        "load": os.getloadavg()[0],
    }


def in_words(settings: dict[str, Any]) -> str:
    """Settings in a few words; those of the sweep that change nothing are left out."""
    known = {
        name: value
        for name, value in settings.items()
        if (value or name == "workers") and (name, value) != ("prefetch", 2)
    }
    return ", ".join(name if value is True else f"{name} {value}" for name, value in known.items()) or "none"


def row(job: str, seen: dict[str, Any]) -> list[str]:
    """The line of the table."""
    said = "{1:.2f} ({0:.2f} to {2:.2f})".format(*seen["said"]) if seen["said"] else ""
    tried, best = seen["gains"]
    share = f"{tried / best:.0%}".replace("%", " %")
    return [
        job, str(seen["trials"]), in_words(seen["kept"]), said, f"{tried:.2f}", in_words(seen["best"]),
        f"{best:.2f}",
        share if tried >= ENOUGH * best else f"**{share}**", f"{seen['load']:.1f}",
    ]  # fmt: skip


HEADS = [
    "job", "trials", "doctor keeps", "gain said", "measured", "best of the sweep", "measured", "of the best",
    "load",
]  # fmt: skip


def table(results: dict[str, Any]) -> str:
    """The table, and what it comes to."""
    seen = {job: results[job] for job in JOBS if job in results}
    enough = sum(one["gains"][0] >= ENOUGH * one["gains"][1] for one in seen.values())
    return (
        f"{len(seen)} jobs, {days(seen.values())}: at least 90 % of the best of the sweep in {enough}.\n\n"
        f"{listed(HEADS, map(row, seen, seen.values()))}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    sizes = {"seconds": (4.0, 0.2), "turns": (3, 1), "workers": (WORKERS, (0, 1))}
    Record(RESULTS, PAGE, "tried jobs").run(
        options(__doc__ or "", jobs=(JOBS, JOBS[:1]), **sizes), arguments, JOBS,
        measure=lambda job, asked: held(job, asked.seconds, asked.turns, asked.workers, trials=asked.saved),
        row=row, table=table,
    )  # fmt: skip


if __name__ == "__main__":
    main()
