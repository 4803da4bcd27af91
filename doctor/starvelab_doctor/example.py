"""For whoever has no PyTorch or GPU: a training job and what doctor found, and a trace of another one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

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


def job_script(path: str | os.PathLike[str] = "job.txt") -> str:
    """Return the text of the job's script; where there is no such file, the script is written there first."""
    file = Path(path)
    if not file.exists():
        file.write_text(SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
    return file.read_text(encoding="utf-8")


class RecordedRun(NamedTuple):
    """One recorded run of the job: what doctor said of it, and where and when it ran."""

    finding: JobFinding
    origin: str  # a sentence


def recorded_job(workers: int = 0) -> RecordedRun:
    """Return what doctor found when the job ran with that many workers, if such a run was recorded.

    >>> recorded_job(0).finding.verdict
    'highly input-bound'
    """
    record: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))  # Any: numbers and texts
    run = record["runs"].get(str(workers))
    if run is None:
        raise InputError(
            f"The job ran with {', '.join(record['runs'])} workers, got {workers!r:.80}. Pass one of "
            "these, or run it yourself: starvelab-doctor job.txt WORKERS."
        )
    waits, steps = ([each / 1e3 for each in run[name]] for name in ("waits", "steps"))
    recorder = Recorder(batch_size=run["batch_size"], workers=workers)
    recorder.replay(run["first_wait"] / 1e3, waits, steps)
    recorder.use.add(run["prepare_cpu"], 1.0)
    if run["queue_depth"] is not None:
        recorder.asked, recorder.ready = 1, run["queue_depth"]
    # A GPU of the process that reads the record took no part in the run.
    finding = recorder.finding().replace(asynchronous=False)
    return RecordedRun(finding, f"Recorded on {record['machine']} on {record['date']}.")


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
    waiting, copying, gap = (
        float(nonnegative(value, "ms", name))
        for value, name in ((wait, "wait"), (copy_time, "copy_time"), (launch_gap, "launch_gap"))
    )
    events: list[Event] = []
    now, free = 1000.0, 0.0  # milliseconds: the moment of the loop, and when the GPU has done its work

    def add(category: str, name: str, start: float, length: float, **arguments: object) -> float:
        place = DEVICE if "device" in arguments else PROCESS
        event = {"ph": "X", "cat": category, "name": name, "pid": place, "tid": place, "args": arguments}
        events.append(event | {"ts": 1e3 * start, "dur": 1e3 * length})
        return start + length

    def launch(call: str) -> dict[str, int]:
        nonlocal now
        number = len(events)
        now = add("cuda_runtime", call, now, LAUNCH, correlation=number)
        return {"device": DEVICE, "correlation": number}

    for step in range(3, 3 + BATCHES):
        begun = now
        now = add("user_annotation", f"{WAIT}#_MultiProcessingDataLoaderIter.__next__", now, waiting)
        work = launch("cudaMemcpyAsync")
        if pinned:
            copied = add("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", begun - copying, copying, **work)
            free = max(free, copied)
        else:
            free = now = add("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", now, copying, **work)
        for _ in range(KERNELS):
            now = add("cpu_op", "aten::conv2d", now, gap)
            work = launch("cudaLaunchKernel")
            free = add("kernel", "vectorized_elementwise_kernel", max(now, free), KERNEL, **work)
        now = max(now, free)  # the loop reads the loss
        add("user_annotation", f"ProfilerStep#{step}", begun, now - begun)
    file = Path(path)
    file.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return file
