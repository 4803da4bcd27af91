"""What `compare` says of a hundred loops against themselves, and of a hundred losses of 10 %.

Ten training loops run under `starvelab-doctor`, each some seconds: as it is, once more as it is, and with all
its times longer, in a new order in each turn. What is known stays in a file, so that a run that was ended
goes on; `--again` begins anew.

    chrt --fifo 10 python -m benchmarks.compare        other programs get a core only where no loop wants it
    python -m benchmarks.compare --write       the table in benchmarks/jobs/README.md
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from starvelab_doctor.compare import SAME, WORSE, compare
from starvelab_doctor.doctor import main as doctor

from .jobs.compared import JOBS
from .report import REPOSITORY, Record, days, listed, options

SCRIPT = Path(__file__).with_name("jobs") / "compared.py"
RESULTS = SCRIPT.with_suffix(".json")
PAGE = REPOSITORY / "benchmarks" / "jobs" / "README.md"
LOSS = 0.1  # of the throughput
LONGER = {"reads like their neighbors": 3}  # times as long: of neighbors that are so alike, few tell anything
RUNS = {"before": 1.0, "again": 1.0, "longer": 1 / (1 - LOSS)}


def _in_its_process(arguments: Sequence[str]) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stderr.fileno())
    raise SystemExit(doctor(arguments))


def under_doctor(job: str, longer: float, seconds: float) -> dict[str, Any]:  # Any: the values of a JSON file
    """What doctor writes of the loop of a job, in a process of its own, which need not load PyTorch again."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "doctor.json"
        own = [str(SCRIPT), job, "--seconds", str(seconds), "--longer", str(longer)]
        arguments = ["--json", str(file), *own]
        process = multiprocessing.get_context("fork").Process(target=_in_its_process, args=(arguments,))
        process.start()
        process.join(20 * seconds + 60)
        process.kill()
        (loop,) = json.loads(file.read_text(encoding="utf-8"))["loops"]
        return loop


def measure(job: str, asked: argparse.Namespace) -> dict[str, Any]:
    """What compare says of the job against itself, and against the longer one: ratio and interval."""
    found: dict[str, Any] = {"again": [], "longer": []}
    for _ in range(asked.turns):
        order = random.sample([*RUNS], len(RUNS))
        seconds = asked.seconds * LONGER.get(job, 1)
        seen = {run: under_doctor(job, RUNS[run], seconds) for run in order}
        for run, known in found.items():
            one = compare(seen["before"], seen[run])
            known.append({"verdict": one.verdict, "ratio": one.ratio, "interval": one.interval})
    return found | {"load": os.getloadavg()[0]}


def row(job: str, seen: dict[str, Any]) -> list[str]:
    """The line of the table."""
    wrong = sum(one["verdict"] != SAME for one in seen["again"])
    found = sum(one["verdict"] == WORSE for one in seen["longer"])
    ratios = (f"{median(one['ratio'] for one in seen[run]):.3f}" for run in ("again", "longer"))
    width = median(high / low for low, high in (one["interval"] or (1.0, 1.0) for one in seen["again"]))
    counts = (f"{count} of {len(seen['again'])}" for count in (wrong, found))
    return [job, *counts, *ratios, f"{50 * (width - 1):.1f} %", f"{seen['load']:.1f}"]


HEADS = [
    "loop", "called different from itself", "10 % loss found", "throughput again", "throughput with the loss",
    "half the interval", "load",
]  # fmt: skip


def table(results: dict[str, Any]) -> str:
    """The table, and what it comes to."""
    seen = {job: results[job] for job in JOBS if job in results}
    count = sum(len(one["again"]) for one in seen.values())
    wrong = sum(one["verdict"] != SAME for each in seen.values() for one in each["again"])
    found = sum(one["verdict"] == WORSE for each in seen.values() for one in each["longer"])
    summary = (
        f"{days(seen.values())}: of {count} runs against themselves {wrong} are called different, and of "
        f"{count} losses of 10 % {found} are found."
    )
    return f"{summary}\n\n{listed(HEADS, map(row, seen, seen.values()))}"


def main(arguments: Sequence[str] | None = None) -> None:
    Record(RESULTS, PAGE, "compared jobs").run(
        options(__doc__ or "", seconds=(5.0, 1.0), turns=(10, 1), jobs=([*JOBS], ["a long step"])),
        arguments,
        JOBS,
        measure=measure,
        row=row,
        table=table,
    )


if __name__ == "__main__":
    main()
