"""A training job to try `starvelab doctor` on, and what doctor found: for whoever has no PyTorch."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import InputError
from .finding import JobFinding
from .times import LoopTimes

SCRIPT = Path(__file__).with_name("example_job.txt")
# Written by `python -m benchmarks.own_jobs --record`; never edited by hand.
RECORD = Path(__file__).with_name("example_runs.json")


def job_script(path: str | os.PathLike[str] = "job.txt") -> str:
    """The text of the job's script; where there is no such file, the script is written there first."""
    file = Path(path)
    if not file.exists():
        file.write_text(SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
    return file.read_text(encoding="utf-8")


@dataclass(frozen=True)
class RecordedRun:
    """One run of the job under doctor, as it was recorded.

    Attributes
    ----------
    workers : int
    first_wait : float
        For the first batch, with the start of the workers [ms].
    waits, steps : tuple of float
        The wait for each later batch, and the step after it [ms].
    finding : JobFinding
        What doctor said.
    machine : str
        Where it ran.
    date : date
        When.
    """

    workers: int
    first_wait: float
    waits: tuple[float, ...]
    steps: tuple[float, ...]
    finding: JobFinding
    machine: str
    date: date

    @property
    def origin(self) -> str:
        """Where and when it ran, in a sentence."""
        return f"Recorded on {self.machine} on {self.date:%Y-%m-%d}."


def recorded_job(workers: int = 0) -> RecordedRun:
    """What doctor found when the job ran with that many workers.

    Parameters
    ----------
    workers : int

    Raises
    ------
    InputError
        If no run with that many was recorded.

    Examples
    --------
    >>> recorded_job(0).finding.verdict
    'highly input-bound'
    """
    record = _record()
    run = record["runs"].get(str(workers))
    if run is None:
        raise InputError(
            f"The job ran with {', '.join(record['runs'])} workers, got {workers!r:.80}. Pass one of "
            "these, or run it yourself: starvelab doctor job.txt WORKERS."
        )
    times = LoopTimes(batch_size=run["batch_size"], workers=workers)
    times.waits.first = [run["first_wait"] / 1e3]
    times.waits.batches = 1 + len(run["waits"])
    for wait, step in zip(run["waits"], run["steps"], strict=True):
        times.waits.add(wait / 1e3, step / 1e3)
    if run["prepare_cpu"] is not None:
        times.cpu.add(run["prepare_cpu"], 1.0)
    if run["queue_depth"] is not None:
        times.ready.add(run["queue_depth"])
    # A GPU of the process that reads the record took no part in the run.
    finding = replace(times.finding(), asynchronous=False)
    return RecordedRun(
        workers=workers,
        first_wait=run["first_wait"],
        waits=tuple(run["waits"]),
        steps=tuple(run["steps"]),
        finding=finding,
        machine=record["machine"],
        date=date.fromisoformat(record["date"]),
    )


@cache
def _record() -> dict[str, Any]:  # Any: the values of a JSON file, each of a type of its own
    record: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return record
