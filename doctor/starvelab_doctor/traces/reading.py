"""`read_trace`: what a profiler's trace says about a training job, in the words of `watch`."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ..finding.gpu_use import GpuUse, TraceSteps
from ..finding.job import JobFinding
from ..shares import share_of, without_interruptions
from ..spans import covered
from .timeline import COPY, KERNEL, PAGEABLE, Timeline, read_timeline

# Between two kernels that were both launched in time a GPU still pauses for some microseconds.
SHORT = 10.0  # microseconds
MAX_STEPS = 100  # more than a picture can hold


def read_trace(path: str | os.PathLike[str]) -> JobFinding:
    """Read what a profiler recorded of a training job.

    Parameters
    ----------
    path : path
        A trace that PyTorch's profiler wrote with `export_chrome_trace` (.json, .json.gz), of one process.

    Returns
    -------
    JobFinding

    Raises
    ------
    InputError
        If a file is missing, empty, damaged, or no such trace.

    Notes
    -----
    Waits are those for PyTorch's DataLoader, in the thread of the loop; of several GPUs it is the one with
    most work. The first wait of a trace and of each pass does not count. The step after the last wait
    counts only if the profiler marked steps, as it does after each `step()`.
    """
    timeline = read_timeline(Path(path))
    waits, stretches, begins, delivered = _batches(timeline)
    first = (waits[begins, 1] - waits[begins, 0]) / 1e6
    counts = (stretches[:, 1] > waits[:, 1]) & ~begins
    waits, stretches = waits[counts], stretches[counts]
    waited, lengths = ((spans[:, 1] - spans[:, 0]) / 1e6 for spans in (waits, stretches))
    ordinary = without_interruptions(lengths - waited)
    host = share_of(waited, lengths, ordinary)
    # Without a loader it is all from the first piece of work of the GPU to the end of the last.
    whole = np.array([[timeline.work[:, 0].min(initial=np.inf), timeline.work[:, 1].max(initial=-np.inf)]])
    use, idle = _use_of(timeline, waits[ordinary], stretches[ordinary] if delivered else whole)
    stall, idle_in_waits = None, np.zeros(len(waits))
    if use is not None and delivered:
        idle_in_waits[ordinary] = idle / 1e6
        stall = share_of(idle_in_waits, lengths, ordinary)
    return JobFinding.of_times(
        host,
        stall=stall,
        first_waits=first.tolist(),
        batches=delivered,
        workers=0 if timeline.loop.alone else None,
        use=use,
        steps=_steps_of(timeline, waits[ordinary], stretches[ordinary]),
        source="trace",
    )


def _batches(timeline: Timeline) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Return the waits, what lies from each to the next, which of them are first ones, and the batches.

    A pass ends where the loop does nothing between two waits: the second is for the first batch of the next.
    """
    waits, thread = timeline.waits, timeline.loop
    operations = np.sort(thread.operations)
    between = np.searchsorted(operations, waits[1:, 0]) - np.searchsorted(operations, waits[:-1, 1])
    # A program whose steps are not PyTorch's has no operations anywhere.
    restarts = (between == 0) & bool(len(between) and np.median(between))
    ends = np.append(waits[1:, 0], max(thread.ends, default=-np.inf))[: len(waits)]
    # The `next` that ends a pass comes back without a batch, and nothing lies behind it.
    ends[:-1][restarts] = -np.inf
    begins = np.append(True, restarts)[: len(waits)]
    return waits, np.column_stack([waits[:, 0], ends]), begins, len(waits) - int(restarts.sum())


def _steps_of(timeline: Timeline, waits: np.ndarray, stretches: np.ndarray) -> TraceSteps | None:
    """Return the first steps, by the spans of their waits and of what lies from each to the next."""
    if not len(waits):
        return None
    waits, stretches = waits[:MAX_STEPS], stretches[:MAX_STEPS]
    origin, end = stretches[0, 0], stretches[-1, 1]

    def seen(*kinds: int) -> np.ndarray:
        spans = timeline.spans(*kinds)
        inside: np.ndarray = (spans[(spans[:, 1] > origin) & (spans[:, 0] < end)] - origin) / 1e3
        return inside

    asked, received, ends = ((times - origin) / 1e3 for times in (waits[:, 0], waits[:, 1], stretches[:, 1]))
    work = (seen(KERNEL, COPY, PAGEABLE), seen(KERNEL)) if len(timeline.work) else ()
    return TraceSteps(asked, received, ends, *work)


def _use_of(timeline: Timeline, waits: np.ndarray, stretches: np.ndarray) -> tuple[GpuUse | None, np.ndarray]:
    """Return what the GPU did in the stretches that count, if anything, and its idle time in each wait."""
    total, work = float(np.sum(stretches[:, 1] - stretches[:, 0])), timeline.spans(KERNEL, COPY, PAGEABLE)
    idle_in_waits = waits[:, 1] - waits[:, 0] - covered(work, waits[:, 0], waits[:, 1])
    if not len(work) or not total:
        return None, idle_in_waits

    def share(spans: np.ndarray, of: np.ndarray = stretches) -> float:
        return float(covered(spans, of[:, 0], of[:, 1]).sum()) / total

    gaps = np.column_stack([work[:-1, 1], work[1:, 0]])
    # A gap ends where a piece of work begins: it is late if that was launched after the gap began.
    launched = timeline.launched[np.searchsorted(timeline.work[:, 0], gaps[:, 1])]
    late = gaps[(launched > gaps[:, 0]) & (gaps[:, 1] - gaps[:, 0] > SHORT)]
    busy, stall = share(work), float(idle_in_waits.sum()) / total
    before_launch = share(late) - share(late, waits)
    copying = busy - share(timeline.spans(KERNEL))
    use = GpuUse(
        busy=busy,
        idle=1 - busy,
        idle_in_waits=stall,
        idle_before_launch=before_launch,
        copying=copying,
        copying_pageable=min(copying, busy - share(timeline.spans(KERNEL, COPY))),
    )
    return use, idle_in_waits
