"""What one run measured, with the times of every batch, and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ..model.description import Description
from ..simulate import Trace
from ..tables import TableRepr, percent
from ..units import Q_, Quantity, format_quantity
from .quality import Quality
from .setup import RunSetup

# Windows of a run: enough for an interval, long enough to hold several batches of each worker.
WINDOWS = 10
CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True, repr=False)
class Measurement(TableRepr):
    """The result of `run`.

    Attributes
    ----------
    pipeline : Pipeline
        The pipeline that ran.
    loader : str
        Which kind of loader, with how many workers.
    step_known : bool
        False where the loader was measured alone, without a training step.
    throughput : quantity [sample/time]
        Rate of the training loop.
    interval : pair of quantity [sample/time]
        95 % confidence interval of the throughput.
    period : quantity [time]
        Time between two batches.
    step_time : quantity [time]
        The accelerator's own time for a batch.
    utilization, stall : float
        Busy and idle share of the accelerator, which add up to 1.
    host_wait : float
        Share of the time that the training loop spends waiting in `next()`. It is not the stall: a loop that
        runs ahead of the accelerator waits, too, while the accelerator works.
    stage_times : mapping of str to quantity [time]
        Time of one sample in one worker, including waits.
    quality : Quality
    trace : Trace
    """

    pipeline: Description
    loader: str
    step_known: bool
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

    headers = ("quantity", "value")

    @property
    def source(self) -> str:
        """Where it comes from: "measured" or "simulated"."""
        return self.trace.source

    @property
    def rows(self) -> Sequence[Sequence[object]]:
        """One row for each quantity, and one for each stage."""
        training = {
            "GPU busy": percent(self.utilization),
            "GPU waits": percent(self.stall),
            "loop waits in next()": percent(self.host_wait),
        }
        return [
            ["throughput", self.throughput],
            ["95 % interval", f"{_span(self)} img/s"],
            ["time between batches", self.period],
            *(training.items() if self.step_known else ()),
            *([f"{name}, each sample", time] for name, time in self.stage_times.items()),
        ]

    @property
    def summary(self) -> str:
        """Throughput and utilization in one line, and why they are not to be trusted."""
        busy = f"the GPU is busy {percent(self.utilization)}"
        if not self.step_known:
            busy = "without a training step: pass Accelerator(device=train_step) to see how long it waits"
        doubt = f" Not to be trusted: {self.quality.reason}." if self.quality.reason else ""
        return f"{format_quantity(self.throughput)} {self.source} ({self.loader}), {busy}.{doubt}"


def summarize(
    setup: RunSetup,
    trace: Trace,
    waits: np.ndarray,
    stage_seconds: Mapping[str, float],
    background_load: float = 0.0,
) -> Measurement:
    """Return what the times of all batches amount to: waits [ms], stages of a sample [s]."""
    # From the end of a step to that of a later one, a multiple of the workers apart: batches come in bursts.
    workers = max(setup.workers, 1)
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
        pipeline=setup.description,
        loader=f"{setup.kind} loader, {setup.workers} workers",
        step_known=setup.step_known,
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


def comparison_row(name: str, measured: Measurement, base: Measurement) -> list[object]:
    """One row of a table: the throughput, its interval, and how many times that of `base`."""
    times = f"{(measured.throughput / base.throughput).m_as(''):.2f}x"
    return [name, measured.throughput, _span(measured), times]


def _span(measured: Measurement) -> str:
    return " to ".join(f"{end.m_as('img/s'):.4g}" for end in measured.interval)


def interval(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """The mean's confidence interval, from windows that are long enough to be independent."""
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    reach = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * spread / len(values) ** 0.5
    return mean - reach, mean + reach


def variation(values: Sequence[float] | np.ndarray) -> float:
    """Standard deviation over mean."""
    return float(np.std(values, ddof=1) / np.mean(values)) if len(values) > 1 else 0.0
