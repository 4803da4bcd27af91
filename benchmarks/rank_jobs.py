"""Who holds up whom in thirty jobs of two to four ranks, and what `starvelab-doctor` says of it.

Each job runs under doctor: a script that spawns its ranks, one that forks them, or `torchrun`. What is known
stays in a file, so that a run that was ended goes on; `--again` begins anew.

    python -m benchmarks.rank_jobs
    python -m benchmarks.rank_jobs --write       the table in benchmarks/jobs/README.md
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .jobs.rank_jobs import JOBS
from .report import REPOSITORY, Record, days, listed, options

SCRIPT = Path(__file__).with_name("jobs") / "rank_jobs.py"
RESULTS = SCRIPT.with_suffix(".json")
PAGE = REPOSITORY / "benchmarks" / "jobs" / "README.md"
BOUND, FED = ("highly input-bound", "moderately input-bound"), ("not input-bound",)
# What doctor says of a job, the verdicts that go with it, and what that means.
SAID = {
    "several": ("No single rank holds up the others", BOUND, "several wait"),
    "none": ("No rank waits for data", FED, "none waits"),
    "hidden": ("hides behind another rank's step", FED, "a slow step hides the waits"),
    "apart": ("go at different rates", (*BOUND, *FED), "each goes its own way"),
}
SAID |= {
    f"rank {rank}": (f"Rank {rank} holds up the others", BOUND, f"rank {rank} holds up the others")
    for rank in range(4)
}
HEADS = ["job", "its ranks start by", "what is so", "what doctor says", "verdict", "right"]


def under_doctor(job: str, steps: int) -> dict[str, Any]:  # Any: the values of a JSON file
    """What doctor says of the only loop of a job."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "doctor.json"
        command = [sys.executable, "-m", "starvelab", "doctor", "--json", str(file)]
        if JOBS[job].start == "torchrun":
            each = ["--standalone", "--nproc-per-node", str(JOBS[job].ranks), "--no-python"]
            command = [sys.executable, "-m", "torch.distributed.run", *each, *command]
        subprocess.run(
            [*command, str(SCRIPT), job, "--steps", str(steps)],
            check=True,
            timeout=20 * steps + 200,
            capture_output=True,
            env=os.environ | {"GLOO_SOCKET_IFNAME": "lo"},
        )
        (loop,) = json.loads(file.read_text())["loops"]
        return {name: loop[name] for name in ("rank", "verdict", "state")} | {"waits": loop["host_wait"]}


def said(seen: dict[str, Any]) -> str:
    """What doctor says, as a name of `SAID`; empty where it says something else."""
    return next((name for name, (words, *_) in SAID.items() if words in seen["state"]), "")


def is_right(job: str, seen: dict[str, Any]) -> bool:
    """Whether doctor says what is so, with a verdict that goes with it."""
    return said(seen) == JOBS[job].right and seen["verdict"] in SAID[JOBS[job].right][1]


def row(job: str, seen: dict[str, Any]) -> list[str]:
    """The line of the table."""
    told = SAID[said(seen)][2] if said(seen) else "something else"
    right = "yes" if is_right(job, seen) else "**no**"
    start = {"spawn": "mp.spawn", "fork": "mp.start_processes"}.get(JOBS[job].start, "torchrun")
    return [job, f"`{start}`", SAID[JOBS[job].right][2], told, seen["verdict"], right]


def table(results: dict[str, Any]) -> str:
    """The table, and what it comes to."""
    seen = {job: results[job] for job in JOBS if job in results}
    right = sum(is_right(job, one) for job, one in seen.items())
    rows = (row(job, one) for job, one in seen.items())
    return f"{right} of {len(seen)} jobs are right ({days(seen.values())}).\n\n{listed(HEADS, rows)}"


def main(arguments: Sequence[str] | None = None) -> None:
    smallest = ["slow reads, rank 1 of 2, forked"]
    Record(RESULTS, PAGE, "jobs of several ranks").run(
        options(__doc__ or "", steps=(60, 12), jobs=([*JOBS], smallest)),
        arguments,
        JOBS,
        measure=lambda job, asked: under_doctor(job, asked.steps),
        row=row,
        table=table,
    )


if __name__ == "__main__":
    main()
