"""The GPU of a trace while the loop went from batch to batch."""

from __future__ import annotations

import numpy as np

from ..finding.gpu_use import GpuUse, TraceSteps
from ..spans import covered
from .timeline import COPY, KERNEL, PAGEABLE, Timeline

# Between two kernels that were both launched in time a GPU still pauses for some microseconds.
SHORT = 10.0  # microseconds
MAX_STEPS = 100  # more than a picture can hold


def steps_of(timeline: Timeline, waits: np.ndarray, stretches: np.ndarray) -> TraceSteps | None:
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


def use_of(timeline: Timeline, waits: np.ndarray, stretches: np.ndarray) -> tuple[GpuUse | None, np.ndarray]:
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
