"""What the times of all batches amount to, whichever clock they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..simulate import Trace
from ..units import Q_
from .quality import Quality, interval, variation
from .record import Record

# Windows of a run: enough for an interval, long enough to hold several batches of each worker.
WINDOWS = 10


def summarize(
    pipe: Any,
    trace: Trace,
    waits: np.ndarray,
    seconds: Mapping[str, float],
    foreign_load: float,
    where: Mapping[str, Any],
) -> Record:
    """A record from the times of all batches, the loop's waits [ms], and each stage's seconds a sample."""
    # From the end of a step to that of a later one, a multiple of the workers apart: batches come in bursts.
    workers = max(pipe.worker_count, 1)
    count = (len(trace.step_end) - 1) // workers * workers
    first = len(trace.step_end) - 1 - count
    ends = trace.step_end[first:]
    length = ends[-1] - ends[0]
    period = length / count
    each = max(workers, round(count / WINDOWS / workers) * workers)
    marks = ends[::each]
    periods = np.diff(marks) / each
    busy = float(np.sum((trace.step_end - trace.step_start)[first + 1 :]) / length)
    slow, fast = (interval(periods)[::-1]) if len(periods) > 1 else (period, period)
    batch = trace.batch_size
    return Record(
        settings=settings(pipe),
        machine=where,
        throughput=Q_(batch / period * 1e3, "img/s"),
        interval=(Q_(batch / slow * 1e3, "img/s"), Q_(batch / max(fast, 1e-9) * 1e3, "img/s")),
        period=Q_(period, "ms"),
        step_time=Q_(float(np.mean(trace.step_end - trace.step_start)), "ms"),
        utilization=busy,
        stall=1 - busy,
        host_wait=float(np.clip(np.sum(waits[first + 1 :]) / length, 0, 1)),
        stage_times={name: Q_(1e3 * value, "ms") for name, value in seconds.items()},
        quality=Quality(foreign_load, variation(periods), len(periods)),
        trace=trace,
        source=trace.source,
    )


def settings(pipe: Any) -> dict[str, Any]:
    """What ran, for a record."""
    return {
        "samples": pipe.samples.name,
        "batch_size": pipe.batch_size,
        "workers": pipe.worker_count,
        "loader": pipe.loader,
        "prefetch": pipe.prefetch,
        "in_order": pipe.in_order,
        "transforms": [transform.name for transform in pipe.transforms],
        "accelerator": repr(pipe.accelerator),
        "link": repr(pipe.link),
        "storage": repr(pipe.storage),
    }
