"""Run a pipeline for a while, and say what came out.

It measures one pipeline as it is; which stage is to blame is `diagnose`'s question.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..simulate import Trace
from ..units import Q_, as_quantity, format_quantity, positive
from .bars import time_bar
from .cores import usable_cores
from .quality import LoadMeter, Quality, interval, variation
from .record import Record
from .session import Session

# Windows of a run: enough for an interval, long enough to hold several batches of each worker.
WINDOWS = 10
FEWEST_ROUNDS = 4  # batches of each worker, however slow they are


def run(pipe: Any, *, seconds: Any = "3 s", clock: Any = None, progress: bool = True) -> Record:
    """Let a pipeline feed its accelerator, and measure both.

    Parameters
    ----------
    pipe : InputPipeline
    seconds : quantity [time]
        How long; slow pipelines take longer, until each worker has made a few batches.
    clock : SimulatedClock, optional
        Work it out instead of running it.
    progress : bool
        Say how long it takes, and show a bar.

    Raises
    ------
    InputError, WorkerError
    """
    wanted = positive(as_quantity(seconds, "s", "seconds"), "s", "seconds")
    if clock is not None:
        return clock.record(pipe, seconds=wanted)
    if progress:
        print(f"Running {description(pipe)} for about {format_quantity(Q_(wanted, 's'))}, and its start-up.")
    with Session(pipe) as session, time_bar(wanted, shown=progress) as bar:
        session.warm_up()
        meter, start = LoadMeter(), time.monotonic()
        least = FEWEST_ROUNDS * session.period_of_workers + 1
        while (elapsed := time.monotonic() - start) < wanted or len(session.passed) < least:
            session.step()
            bar.update(min(elapsed, wanted) - bar.n)
        trace = session.trace()
        load, facts = meter.foreign_load(), session.device.facts()
    return summarise(pipe, trace, session.waits(), session.stage_seconds(), load, machine() | facts)


def summarise(
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


def description(pipe: Any) -> str:
    """What runs, for a sentence."""
    how = (
        "in the training loop itself"
        if pipe.worker_count == 0
        else f"with {pipe.workers} workers ({pipe.loader})"
    )
    return f"{pipe.samples.name} images {how}"


def settings(pipe: Any) -> dict[str, Any]:
    """What ran, for a record."""
    return {
        "samples": pipe.samples.name,
        "batch_size": pipe.batch_size,
        "workers": pipe.worker_count,
        "loader": pipe.loader,
        "prefetch": pipe.prefetch,
        "in_order": pipe.in_order,
        "stages": [stage.name for stage in pipe.stages],
        "accelerator": repr(pipe.accelerator),
        "link": repr(pipe.link),
        "storage": repr(pipe.storage),
    }


def machine() -> dict[str, Any]:
    """Where it ran."""
    return {
        "cores": usable_cores(),
        "system": platform.system(),
        "processor": platform.machine(),
        "python": platform.python_version(),
    }
