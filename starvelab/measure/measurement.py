"""What one run measured: throughput, utilization and stall, with the times of every batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..simulate import Trace
from ..tables import TableRepr, percent
from ..units import Q_, Quantity, format_quantity
from .protocols import Pipeline
from .quality import Quality, interval, variation

# Windows of a run: enough for an interval, long enough to hold several batches of each worker.
WINDOWS = 10


@dataclass(frozen=True, kw_only=True, repr=False)
class Measurement(TableRepr):
    """The result of `run`.

    Attributes
    ----------
    pipeline : InputPipeline
        What ran.
    throughput : quantity [sample/time]
        Of the training loop.
    interval : pair of quantity [sample/time]
        95 % confidence interval of the throughput.
    period : quantity [time]
        Between two batches.
    step_time : quantity [time]
        The accelerator's own for a batch.
    utilization, stall : float
        Busy and idle share of the accelerator, which add up to 1.
    host_wait : float
        Share of the time that the training loop spends waiting in `next()`. It is not the stall: a loop that
        runs ahead of the accelerator waits, too, while the accelerator works.
    stage_times : mapping of str to quantity [time]
        Of one sample in one worker, waits included.
    quality : Quality
    trace : Trace
    step_known : bool
        Whether there was a training step; without one a loader was measured alone.
    """

    pipeline: Pipeline
    throughput: Quantity
    interval: tuple[Quantity, Quantity]
    period: Quantity
    step_time: Quantity
    utilization: float
    stall: float
    host_wait: float
    stage_times: Mapping[str, Quantity]
    quality: Quality
    trace: Trace
    step_known: bool = True

    @property
    def source(self) -> str:
        """How it came about: "measured" or "simulated"."""
        return self.trace.source

    @property
    def headers(self) -> tuple[str, str]:
        """Of the table that shows it."""
        return ("quantity", "value")

    @property
    def rows(self) -> Sequence[Sequence[object]]:
        """One row for each quantity, and one for each stage."""
        low, high = self.interval
        training = [
            ["accelerator busy", percent(self.utilization)],
            ["accelerator waits", percent(self.stall)],
            ["loop waits in next()", percent(self.host_wait)],
        ]
        return [
            ["throughput", self.throughput],
            ["95 % interval", f"{low.m_as('img/s'):.4g} to {high.m_as('img/s'):.4g} img/s"],
            ["time between batches", self.period],
            *(training if self.step_known else []),
            *([f"{name}, each sample", time] for name, time in self.stage_times.items()),
        ]

    @property
    def summary(self) -> str:
        """Throughput and utilization in one line, and why they are not to be trusted."""
        busy = f"the accelerator is busy {percent(self.utilization)}"
        if not self.step_known:
            busy = "without a training step: pass step=train_step to see how long it waits"
        doubt = "" if self.quality.trustworthy else f" Not to be trusted: {self.quality.reason}."
        return (
            f"{format_quantity(self.throughput)} {self.source} "
            f"({self.pipeline.loader} loader, {self.pipeline.worker_count} workers), "
            f"{busy}.{doubt}"
        )


def summarize(
    pipe: Pipeline,
    trace: Trace,
    waits: np.ndarray,
    stage_seconds: Mapping[str, float],
    background_load: float = 0.0,
) -> Measurement:
    """What the times of all batches amount to, measured or simulated.

    Parameters
    ----------
    pipe : Pipeline
    trace : Trace
    waits : array of float
        How long the training loop waited for each batch [ms].
    stage_seconds : mapping of str to float
        What each stage took for a sample [s].
    background_load : float
        Share of the cores that other programs used, 0 to 1.
    """
    # From the end of a step to that of a later one, a multiple of the workers apart: batches come in bursts.
    workers = max(pipe.worker_count, 1)
    count = (len(trace.step_end) - 1) // workers * workers
    first = len(trace.step_end) - 1 - count
    ends = trace.step_end[first:]
    length = float(ends[-1] - ends[0])
    period = length / count
    window = max(workers, round(count / WINDOWS / workers) * workers)
    periods = np.diff(ends[::window]) / window
    step_times = trace.step_end - trace.step_start
    busy = float(np.sum(step_times[first + 1 :]) / length)
    shortest, longest = interval(periods) if len(periods) > 1 else (period, period)
    batch = trace.batch_size
    return Measurement(
        pipeline=pipe,
        throughput=Q_(batch / period * 1e3, "img/s"),
        interval=(Q_(batch / longest * 1e3, "img/s"), Q_(batch / max(shortest, 1e-9) * 1e3, "img/s")),
        period=Q_(period, "ms"),
        step_time=Q_(float(np.mean(step_times)), "ms"),
        utilization=busy,
        stall=1 - busy,
        host_wait=float(np.clip(np.sum(waits[first + 1 :]) / length, 0, 1)),
        stage_times={name: Q_(1e3 * seconds, "ms") for name, seconds in stage_seconds.items()},
        quality=Quality(background_load, variation(periods), len(periods)),
        trace=trace,
    )
