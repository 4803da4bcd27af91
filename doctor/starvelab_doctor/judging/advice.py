"""Advice for a job that was watched: what other numbers of workers would bring to it, by the lab's model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from starvelab.errors import InputError
from starvelab.measure.verdict import SLIGHT
from starvelab.tables import count_of
from starvelab.units import Q_, Quantity, format_quantity

from ..finding.job import JobFinding
from ..shares import MIN_BATCHES
from .model import Costs, Gain, JobModel, model_of

MAX_WORKERS = 64  # that are looked at; by definition more than a host of tests/golden/published.csv has (60)
# How much more than on average workers should do, since batches take different times. Where these vary by a
# half, workers that would only just do lose 14 % of the rate, and these 6 %: benchmarks.judging.
HEADROOM = 1.2


@dataclass(frozen=True)
class Option:
    """A number of workers and what it would bring."""

    workers: int
    throughput: Quantity  # of the training loop; batches a second where the batch size is not known
    gain: Gain  # over now


@dataclass(frozen=True, repr=False)
class WorkerAdvice:
    """The result of `advise`.

    Attributes
    ----------
    now : Option
        The job as it is, as measured.
    best : Option
        The fewest workers that bring the most.
    options : tuple of Option
    room : str
        Why more workers than the best find no room in memory, where they would bring more; else empty.
    """

    now: Option
    best: Option
    options: tuple[Option, ...]
    room: str = ""

    @property
    def summary(self) -> str:
        """Say what to change, and what it will bring."""
        if self.best is self.now:
            why = self.room or "more would bring less than 5 %."
            return f"Keep the {count_of(self.now.workers, 'worker')}: {why}"
        now, gain = self.now.throughput, self.best.gain
        low, likely, high = (format_quantity(now * times) for times in (gain.low, gain.likely, gain.high))
        decides = "" if gain.told else " A short run decides, or starvelab-doctor --try."
        room = f"; {self.room}" if self.room else "."
        return (
            f"{count_of(self.best.workers, 'worker')} instead of {self.now.workers}: {likely} ({low} to "
            f"{high}) instead of {format_quantity(now)}{room}{decides}"
        )

    def __str__(self) -> str:
        return self.summary

    __repr__ = __str__


def advise(finding: JobFinding, *, cores: float | None = None) -> WorkerAdvice:
    """Return how many workers a job should have, and what they will bring.

    Parameters
    ----------
    finding : JobFinding
        The `result` of `watch` or of a callback.
    cores : float, optional
        Cores for the workers; by default those that this process may use.

    Raises
    ------
    InputError
        If it is not known how many workers the job has, or too little was watched.

    Notes
    -----
    The lab's model is asked, of a pipeline that takes what was measured. What nobody measured has two ends:
    what workers wait for may serve them all at once, or one at a time; a busy host may slow its workers down;
    and the loop receives a batch in 0.3 to 4 ms where no probe timed it. A gain is said from one end to the
    other. The number that is advised has headroom: as many as if batches took 1.2 times as long.
    """
    if finding.loader.workers is None:
        raise InputError(
            "advise needs the number of workers, and this finding has none. Pass it: watch(loader, "
            "workers=4)."
        )
    model = model_of(finding, cores)
    if finding.waits.counted < MIN_BATCHES or model is None:
        raise InputError(
            f"advise needs {MIN_BATCHES} watched batches, got {finding.waits.counted}. Watch a longer run."
        )
    return advice_of(finding, model)


def advice_of(finding: JobFinding, model: JobModel) -> WorkerAdvice:
    """Return the advice for a job with this model."""
    workers, ahead = model.likely.workers, model.likely.prefetch
    limit = max(finding.room.workers_for(ahead), workers)
    wanted = _fewest(model.likely)
    # Beside other programs what computes looks as if it waited, and needs a core all the same.
    if finding.busy and model.likely.compute >= model.likely.wait:
        wanted = min(wanted, max(model.likely.cores, workers))
    size, unit = (finding.loader.batch_size, "img/s") if finding.loader.batch_size else (1, "1/s")
    rate = Q_(1e3 * size / finding.waits.period, unit)
    gains = [
        model.gain(partial(replace, workers=number))
        for number in range(max(wanted, workers, min(2 * model.likely.cores, MAX_WORKERS)) + 1)
        if number <= limit
    ]
    gains[workers] = Gain(1.0, 1.0, 1.0)
    options = tuple(Option(number, rate * gain.likely, gain) for number, gain in enumerate(gains))
    now, best = options[workers], options[min(wanted, len(options) - 1)]
    waits = finding.gpu.stall if finding.gpu.stall is not None else finding.waits.host_wait
    # Where a batch is ready, the wait is for its way to the loop, not for workers, unless the next is late.
    starved = waits >= SLIGHT and (not finding.ready or model.lateness >= 1 + SLIGHT)
    # As many as the job has are not enough where it waits for them, whatever the model says of them.
    if not starved or best.workers <= workers or best.gain.likely < 1 + SLIGHT:
        best = now
    crowded = starved and wanted > len(options) - 1
    return WorkerAdvice(now, best, options, finding.room.reason(ahead) if crowded else "")


def _fewest(likely: Costs) -> int:
    """Return the fewest workers that bring all but a slight part of the most, with headroom."""
    costs = likely.preparing(HEADROOM)
    periods = [replace(costs, workers=workers).period for workers in range(MAX_WORKERS + 1)]
    return next(number for number, period in enumerate(periods) if period <= (1 + SLIGHT) * min(periods))
