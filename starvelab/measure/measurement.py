"""What one run measured, with the times of every batch, and how far it can be trusted."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ..model.description import Description
from ..simulate import Trace
from ..tables import TableRepr, percent
from ..units import Q_, Quantity, format_quantity
from .setup import RunSetup

# Windows of a run: enough for an interval, long enough to hold several batches of each worker.
WINDOWS = 10
# Above these a measurement is not trusted; on a shared machine both are reached often.
MAX_BACKGROUND_LOAD = 0.20
MAX_VARIATION = 0.25
CONFIDENCE = 0.95
MIN_WINDOWS = 3


@dataclass(frozen=True)
class Quality:
    """How far to believe a measurement."""

    background_load: float  # share of this process' cores that others used, 0 to 1
    variation: float  # standard deviation over mean, of the windows' periods
    windows: int

    @property
    def reason(self) -> str:
        """Why it is not to be trusted; empty if it is."""
        load, variation, windows = self.background_load, self.variation, self.windows
        doubts = {
            f"other programs used {percent(load, 0)} of the cores": load > MAX_BACKGROUND_LOAD,
            f"the windows differ by {percent(variation, 0)}": variation > MAX_VARIATION,
            f"there were only {windows} windows": windows < MIN_WINDOWS,
        }
        return " and ".join(doubt for doubt, holds in doubts.items() if holds)

    @property
    def trustworthy(self) -> bool:
        """True if nothing speaks against it."""
        return not self.reason


@dataclass(frozen=True, kw_only=True, repr=False)
class Measurement(TableRepr):
    """The result of `run`.

    Attributes
    ----------
    pipeline : Pipeline
        The one that ran.
    loader : str
        Which kind of loader, with how many workers.
    step_known : bool
        False where the loader was measured alone, without a training step.
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
        """How it came about: "measured" or "simulated"."""
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
        doubt = "" if self.quality.trustworthy else f" Not to be trusted: {self.quality.reason}."
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


def disturbance(*measurements: Measurement) -> str:
    """Return what disturbed these runs: the reason of the first that is not trustworthy; empty if none is."""
    return next((one.quality.reason for one in measurements if not one.quality.trustworthy), "")


def comparison_row(name: str, measured: Measurement, base: Measurement) -> list[object]:
    """One row of a table: the throughput, its interval, how many times that of `base`, what disturbed it."""
    times = f"{(measured.throughput / base.throughput).m_as(''):.2f}x"
    return [name, measured.throughput, _span(measured), times, disturbance(measured) or "no"]


def _span(measured: Measurement) -> str:
    return " to ".join(f"{end.m_as('img/s'):.4g}" for end in measured.interval)


class LoadMeter:
    """What other programs do on our cores between now and `background_load()`."""

    def __init__(self) -> None:
        import psutil  # loaded here: a browser's Python lacks it

        self.process = psutil.Process()
        # Not every system lets a process ask for its affinity.
        has_affinity = hasattr(self.process, "cpu_affinity")
        self.cores = self.process.cpu_affinity() if has_affinity else range(psutil.cpu_count() or 1)
        self.start = self._counters()

    def _counters(self) -> tuple[float, float, dict[int, float]]:
        """The time, for how long our cores were busy, and what we used of that: this process, each worker."""
        import psutil

        times = psutil.cpu_times(percpu=True)
        busy = sum(each.user + each.nice + each.system for i, each in enumerate(times) if i in self.cores)
        ours = {}
        for process in (self.process, *self.process.children(recursive=True)):
            with suppress(psutil.Error):  # it ended meanwhile
                spent = process.cpu_times()
                ours[process.pid] = spent.user + spent.system
        return time.monotonic(), busy, ours

    def background_load(self) -> float:
        """Share of the cores that was used by others, 0 to 1."""
        (since, busy_before, ours_before), (now, busy, ours) = self.start, self._counters()
        used = sum(after - ours_before.get(pid, 0.0) for pid, after in ours.items())
        available = (now - since) * len(self.cores)
        return float(np.clip((busy - busy_before - used) / available, 0, 1)) if available > 0 else 0.0


def interval(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """The mean's confidence interval, from windows that are long enough to be independent."""
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    reach = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * spread / len(values) ** 0.5
    return mean - reach, mean + reach


def variation(values: Sequence[float] | np.ndarray) -> float:
    """Standard deviation over mean."""
    return float(np.std(values, ddof=1) / np.mean(values)) if len(values) > 1 else 0.0
