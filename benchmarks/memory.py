"""What `starvelab-doctor` says of the memory of twenty jobs: ten that leak, and ten whose memory has an end.

Each job runs under doctor. What is known stays in a file, so that a run that was ended goes on; `--again`
begins anew.

    python -m benchmarks.memory
    python -m benchmarks.memory --write       the table in benchmarks/jobs/README.md
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .jobs.memory_jobs import HONEST, LEAKS
from .report import REPOSITORY, Record, days, listed, number, options

SCRIPT = Path(__file__).with_name("jobs") / "memory_jobs.py"
RESULTS = Path(__file__).with_name("jobs") / "memory.json"
PAGE = REPOSITORY / "benchmarks" / "jobs" / "README.md"
IN_THE_LOOP = {"without workers", "losses with their graphs", "outputs that are kept"}
HEADS = ["job", "what is so", "what doctor says", "bytes a batch", "right"]


def under_doctor(job: str, seconds: float) -> dict[str, Any]:  # Any: the values of a JSON file
    """What doctor says of the memory of a job."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "doctor.json"
        doctor = [sys.executable, "-m", "starvelab", "doctor", "--json", str(file), str(SCRIPT), job]
        subprocess.run(
            [*doctor, "--seconds", str(seconds)], check=True, timeout=20 * seconds + 60, capture_output=True
        )
        memory = json.loads(file.read_text())["loops"][0]["memory"]
    return memory | {name: memory[name] and memory[name]["batch"] for name in ("growth", "loop_growth")}


def truth(job: str) -> str:
    """What is so: who grows without an end."""
    return "no leak" if job in HONEST else "the loop leaks" if job in IN_THE_LOOP else "the workers leak"


def said(memory: dict[str, Any]) -> str:
    """What doctor says: who grows without an end that it can see."""
    grows = [name for name, key in (("workers", "growth"), ("loop", "loop_growth")) if memory[key]]
    return f"the {' and the '.join(grows)} {'leaks' if grows == ['loop'] else 'leak'}" if grows else "no leak"


def row(job: str, seen: dict[str, Any]) -> list[str]:
    """The line of the table."""
    memory = seen["memory"]
    growth = memory["growth"] or memory["loop_growth"]
    bytes_of = f"{number(growth[1], 2)} ({number(growth[0], 2)} to {number(growth[2], 2)})" if growth else ""
    copied = memory["copied"]
    copy = f", {copied / 1e6:.0f} MB copied by each worker" if copied >= 50e6 else ""
    right = "yes" if said(memory) == truth(job) else "**no**"
    return [job, truth(job), said(memory) + copy, bytes_of, right]


def table(results: dict[str, Any]) -> str:
    """The table, and what it comes to."""
    seen = {job: results[job] for job in (*LEAKS, *HONEST) if job in results}
    right = sum(said(one["memory"]) == truth(job) for job, one in seen.items())
    rows = (row(job, one) for job, one in seen.items())
    return f"{right} of {len(seen)} jobs are right ({days(seen.values())}).\n\n{listed(HEADS, rows)}"


def main(arguments: Sequence[str] | None = None) -> None:
    jobs = [*LEAKS, *HONEST]
    Record(RESULTS, PAGE, "memory of jobs").run(
        options(__doc__ or "", seconds=(16.0, 1.0), jobs=(jobs, ["nothing kept"])),
        arguments,
        jobs,
        measure=lambda job, asked: {"memory": under_doctor(job, asked.seconds)},
        row=row,
        table=table,
    )


if __name__ == "__main__":
    main()
