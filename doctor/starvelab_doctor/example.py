"""For whoever has no PyTorch or GPU: a training job and what doctor found, and a trace of another one."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from starvelab.errors import InputError
from starvelab.units import Unchecked, nonnegative

from .finding.job import JobFinding
from .traces.timeline import WAIT, Event
from .watching.recorder import Recorder

SCRIPT = Path(__file__).with_name("example_job.txt")
# Written by `python -m benchmarks.own_jobs`; never edited by hand.
RECORD = Path(__file__).with_name("example_runs.json")
PROCESS, DEVICE = 4242, 0  # their numbers in the trace
BATCHES, KERNELS, KERNEL = 12, 10, 3.0  # in the trace, of a batch, and the time of one [ms]
LAUNCH = 0.01  # ms that the CPU needs for a launch, beside what the gap is
BYTES = 16 * 3 * 224 * 224 * 4


def job_script(path: str | os.PathLike[str] = "job.txt") -> str:
    """Return the text of the job's script; where there is no such file, the script is written there first."""
    file = Path(path)
    if not file.exists():
        file.write_text(SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
    return file.read_text(encoding="utf-8")


@dataclass(frozen=True)
class RecordedRun:
    """One run of the job under doctor, as it was recorded: where it ran and when, and what doctor said."""

    workers: int
    first_wait: float  # for the first batch, with the start of the workers [ms]
    waits: tuple[float, ...]  # for each later batch [ms]
    steps: tuple[float, ...]  # after each of them [ms]
    finding: JobFinding
    machine: str
    date: date

    @property
    def origin(self) -> str:
        """Where and when it ran, in a sentence."""
        return f"Recorded on {self.machine} on {self.date:%Y-%m-%d}."


def recorded_job(workers: int = 0) -> RecordedRun:
    """Return what doctor found when the job ran with that many workers, if such a run was recorded.

    >>> recorded_job(0).finding.verdict
    'highly input-bound'
    """
    record = _record()
    run = record["runs"].get(str(workers))
    if run is None:
        raise InputError(
            f"The job ran with {', '.join(record['runs'])} workers, got {workers!r:.80}. Pass one of "
            "these, or run it yourself: starvelab-doctor job.txt WORKERS."
        )
    waits, steps = ([each / 1e3 for each in run[name]] for name in ("waits", "steps"))
    recorder = Recorder(batch_size=run["batch_size"], workers=workers)
    recorder.replay(run["first_wait"] / 1e3, waits, steps)
    if run["prepare_cpu"] is not None:
        recorder.use.add(run["prepare_cpu"], 1.0)
    if run["queue_depth"] is not None:
        recorder.asked, recorder.ready = 1, run["queue_depth"]
    # A GPU of the process that reads the record took no part in the run.
    finding = recorder.finding().replace(asynchronous=False)
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


def example_trace(
    path: str | os.PathLike[str] = "trace.json",
    *,
    wait: Unchecked = "2 ms",
    copy_time: Unchecked = "22 ms",
    pinned: bool = False,
    launch_gap: Unchecked = "0.5 ms",
) -> Path:
    """Write the trace of a training whose batches all take the same times; return its file.

    `read_trace` reads it. The loop waits `wait` for each batch, and `copy_time` is that of its copy to the
    GPU: from pinned memory it runs beside the kernels of the step before, and the loop waits for one from
    pageable memory. The CPU needs `launch_gap` before it launches each kernel. All times are quantities.
    """
    training = _Training()
    lengths = [_ms(value, name) for value, name in ((wait, "wait"), (copy_time, "copy_time"))]
    gap = _ms(launch_gap, "launch_gap")
    for number in range(BATCHES):
        start = training.now
        training.on_host("user_annotation", f"{WAIT}#_MultiProcessingDataLoaderIter.__next__", lengths[0])
        training.copies(lengths[1], ahead_of=start if pinned else None)
        for _ in range(KERNELS):
            training.on_host("cpu_op", "aten::conv2d", gap)
            training.computes(KERNEL)
        training.now = max(training.now, training.free)  # the loop reads the loss
        training.add("user_annotation", f"ProfilerStep#{number + 3}", start, training.now - start)
    file = Path(path)
    file.write_text(json.dumps({"schemaVersion": 1, "traceEvents": training.events}), encoding="utf-8")
    return file


def _ms(value: Unchecked, name: str) -> float:
    return float(nonnegative(value, "ms", name))


@dataclass
class _Training:
    """A training that is written down as it goes; times are milliseconds here, and microseconds there."""

    now: float = 1000.0
    free: float = 0.0  # when the GPU has done its work
    launches: int = 0
    events: list[Event] = field(default_factory=list)

    def add(self, category: str, name: str, start: float, length: float, **arguments: object) -> None:
        """Add an event; what has a device belongs to the GPU."""
        process = DEVICE if "device" in arguments else PROCESS
        event = {"ph": "X", "cat": category, "name": name, "pid": process, "tid": process}
        self.events.append(event | {"ts": 1e3 * start, "dur": 1e3 * length, "args": arguments})

    def on_host(self, category: str, name: str, length: float) -> None:
        """Let the loop be at something for so long."""
        self.add(category, name, self.now, length)
        self.now += length

    def copies(self, length: float, *, ahead_of: float | None) -> None:
        """Copy a batch to the GPU; from pinned memory it went ahead of a moment, beside other kernels."""
        launched = self._launched("cudaMemcpyAsync")
        memory = "Pageable" if ahead_of is None else "Pinned"
        start = launched if ahead_of is None else ahead_of - length
        self.add(
            "gpu_memcpy", f"Memcpy HtoD ({memory} -> Device)", start, length,
            device=DEVICE, correlation=self.launches, bytes=BYTES,
        )  # fmt: skip
        if ahead_of is None:
            self.now = start + length
        self.free = max(self.free, start + length)

    def computes(self, length: float) -> None:
        """Run a kernel."""
        start = max(self._launched("cudaLaunchKernel"), self.free)
        self.free = start + length
        name = "void at::native::vectorized_elementwise_kernel"
        self.add("kernel", name, start, length, device=DEVICE, correlation=self.launches)

    def _launched(self, call: str) -> float:
        self.launches += 1
        self.on_host("cpu_op", "aten::to", 0.0)
        self.add("cuda_runtime", call, self.now, LAUNCH, correlation=self.launches)
        self.now += LAUNCH
        return self.now
