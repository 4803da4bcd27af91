"""What the GPUs of a trace did while the training loop went from batch to batch, and why they were idle.

It gets the stretches of time that count; what is a batch is decided in `reading`.
"""

from __future__ import annotations

import numpy as np

from ..gpu_use import GpuUse
from .spans import covered, gaps, union
from .timeline import GpuWork, Timeline

# Between two kernels that were both launched in time a GPU still pauses for some microseconds.
SHORT = 10.0  # microseconds


def use_of(timeline: Timeline, waits: np.ndarray, stretches: np.ndarray) -> tuple[GpuUse, np.ndarray] | None:
    """What the GPUs did in the stretches that count, and how long they were idle in the wait of each.

    Several GPUs of one process count alike. None if there is no GPU in the trace.

    Parameters
    ----------
    waits, stretches : array of float
        Start and end of each wait, and of the stretch from it to the next [us].
    """
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
        pageable_bytes=timeline.pageable_bytes,
    )
    return use, idle_in_waits


class _Gpu:
    """The work of one GPU as spans."""

    def __init__(self, work: GpuWork, launches: tuple[object, object]) -> None:
        starts, ends = np.array(work.starts), np.array(work.ends)
        kinds, correlations = np.array(work.kinds), np.array(work.correlations)
        self.busy = union(starts, ends)
        self.computing = union(starts[kinds == GpuWork.KERNEL], ends[kinds == GpuWork.KERNEL])
        quick = kinds != GpuWork.PAGEABLE
        self.all_but_pageable = union(starts[quick], ends[quick])
        self.pageable_copies = int(np.sum(~quick))
        self.gaps = gaps(self.busy)
        # When the work after each gap was launched; a gap ends where a span of the union begins.
        order = np.argsort(starts, kind="stable")
        first = order[np.searchsorted(starts[order], self.gaps[:, 1])]
        self.launched = _launch_times(correlations[first], launches)

    def idle_in(self, spans: np.ndarray) -> np.ndarray:
        """How long it was idle in each span."""
        idle: np.ndarray = (spans[:, 1] - spans[:, 0]) - covered(self.busy, spans[:, 0], spans[:, 1])
        return idle

    def late(self, waits: np.ndarray, stretches: np.ndarray) -> float:
        """How long it was idle, outside the waits, with nothing launched."""
        lengths = self.gaps[:, 1] - self.gaps[:, 0]
        late = self.gaps[(self.launched > self.gaps[:, 0]) & (lengths > SHORT)]
        # Up to the launch, and the little that a launch takes to arrive.
        return float(
            covered(late, stretches[:, 0], stretches[:, 1]).sum()
            - covered(late, waits[:, 0], waits[:, 1]).sum()
        )


def _launch_times(correlations: np.ndarray, launches: tuple[object, object]) -> np.ndarray:
    """When the work of these numbers was launched; minus infinity where the trace does not tell."""
    numbers, starts = np.array(launches[0], dtype=np.int64), np.array(launches[1], dtype=float)
    if not len(numbers):
        return np.full(len(correlations), -np.inf)
    order = np.argsort(numbers, kind="stable")
    numbers, starts = numbers[order], starts[order]
    places = np.minimum(np.searchsorted(numbers, correlations), len(numbers) - 1)
    found = (numbers[places] == correlations) & (correlations >= 0)
    times: np.ndarray = np.where(found, starts[places], -np.inf)
    return times
