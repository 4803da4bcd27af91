"""The GPUs of a trace while the loop went from batch to batch.

A trace is brought to a timeline before, and which stretches of time count is decided in `reading`.
"""

from __future__ import annotations

import numpy as np

from ..finding.gpu_use import GpuUse, TraceSteps
from ..spans import covered
from .timeline import COPY, KERNEL, GpuWork, Timeline

# Between two kernels that were both launched in time a GPU still pauses for some microseconds.
SHORT = 10.0  # microseconds
MAX_STEPS = 100  # more than a picture can hold; a trace may have thousands


def steps_of(timeline: Timeline, waits: np.ndarray, stretches: np.ndarray) -> TraceSteps | None:
    """Return the first steps, by the spans of their waits and of what lies from each to the next."""
    if not len(waits):
        return None
    waits, stretches = waits[:MAX_STEPS], stretches[:MAX_STEPS]
    origin, end = stretches[0, 0], stretches[-1, 1]

    def in_ms(times: np.ndarray) -> np.ndarray:
        return np.asarray((times - origin) / 1e3)

    def seen(spans: np.ndarray) -> np.ndarray:
        return in_ms(spans[(spans[:, 1] > origin) & (spans[:, 0] < end)])

    gpus = [timeline.gpus[key] for key in sorted(timeline.gpus, key=str) if len(timeline.gpus[key].starts)]
    work = (seen(gpus[0].spans()), seen(gpus[0].spans([KERNEL]))) if gpus else ()
    return TraceSteps(in_ms(waits[:, 0]), in_ms(waits[:, 1]), in_ms(stretches[:, 1]), *work)


def use_of(timeline: Timeline, waits: np.ndarray, stretches: np.ndarray) -> tuple[GpuUse, np.ndarray] | None:
    """Return what the GPUs did in the stretches that count, and their idle time in each wait; else None."""
    gpus = [_Gpu(work, timeline.launches) for work in timeline.gpus.values() if len(work.starts)]
    total = float(np.sum(stretches[:, 1] - stretches[:, 0])) if len(stretches) else 0.0
    if not gpus or not total:
        return None
    idle_in_waits = np.mean([gpu.idle_in(waits) for gpu in gpus], axis=0)
    stall = float(idle_in_waits.sum()) / total

    def share(of: str) -> float:
        parts = [covered(getattr(gpu, of), stretches[:, 0], stretches[:, 1]).sum() for gpu in gpus]
        return float(np.mean(parts)) / total

    busy = share("busy")
    late = float(np.mean([gpu.late(waits, stretches) for gpu in gpus])) / total
    copying = busy - share("computing")
    use = GpuUse(
        busy=busy,
        idle=1 - busy,
        idle_in_waits=stall,
        idle_before_launch=late,
        idle_otherwise=max(0.0, 1 - busy - stall - late),
        copying=copying,
        copying_pageable=min(copying, busy - share("all_but_pageable")),
        pageable_copies=sum(gpu.pageable_copies for gpu in gpus),
    )
    return use, idle_in_waits


class _Gpu:
    """The work of one GPU as spans."""

    def __init__(self, work: GpuWork, launches: tuple[object, object]) -> None:
        self.busy, self.computing = work.spans(), work.spans([KERNEL])
        self.all_but_pageable = work.spans([KERNEL, COPY])
        self.pageable_copies = sum(kind not in (KERNEL, COPY) for kind in work.kinds)
        self.gaps = np.column_stack([self.busy[:-1, 1], self.busy[1:, 0]])
        # When the work after each gap was launched; a gap ends where a span of the union begins.
        starts = np.array(work.starts)
        order = np.argsort(starts, kind="stable")
        first = order[np.searchsorted(starts[order], self.gaps[:, 1])]
        self.launched = _launch_times(np.array(work.correlations)[first], launches)

    def idle_in(self, spans: np.ndarray) -> np.ndarray:
        """Return how long it was idle in each span."""
        return np.asarray((spans[:, 1] - spans[:, 0]) - covered(self.busy, spans[:, 0], spans[:, 1]))

    def late(self, waits: np.ndarray, stretches: np.ndarray) -> float:
        """Return how long it was idle, outside the waits, with nothing launched."""
        lengths = self.gaps[:, 1] - self.gaps[:, 0]
        late = self.gaps[(self.launched > self.gaps[:, 0]) & (lengths > SHORT)]
        # Up to the launch, and the little that a launch takes to arrive.
        return float(
            covered(late, stretches[:, 0], stretches[:, 1]).sum()
            - covered(late, waits[:, 0], waits[:, 1]).sum()
        )


def _launch_times(correlations: np.ndarray, launches: tuple[object, object]) -> np.ndarray:
    """Return when the work of these numbers was launched; minus infinity where the trace does not tell."""
    numbers, starts = np.array(launches[0], dtype=np.int64), np.array(launches[1], dtype=float)
    if not len(numbers):
        return np.full(len(correlations), -np.inf)
    order = np.argsort(numbers, kind="stable")
    numbers, starts = numbers[order], starts[order]
    places = np.minimum(np.searchsorted(numbers, correlations), len(numbers) - 1)
    found = (numbers[places] == correlations) & (correlations >= 0)
    times: np.ndarray = np.where(found, starts[places], -np.inf)
    return times
