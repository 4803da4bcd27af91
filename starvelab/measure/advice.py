"""What other numbers of workers would bring to a job that was watched, by the package's model of a loader.

It takes the times of that job from what was found, and knows of no loader.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from ..errors import InputError
from ..host import usable_cores
from ..simulate import Loader
from ..tables import TableRepr
from ..units import Q_, Quantity, format_quantity
from .watching.finding import JobFinding
from .watching.verdict import SLIGHT

MAX_WORKERS = 64
ENOUGH = 0.95  # of the best throughput
# What a measured time may be off; and what handing a batch over adds, which a loop without workers skips.
ERROR, HANDOVER = 0.08, 0.15


@dataclass(frozen=True)
class Option:
    """A number of workers and what it would bring.

    Attributes
    ----------
    workers : int
    throughput : quantity [sample/time] or [1/time]
        Of the training loop; batches a second where the batch size is not known.
    low, high : quantity
        The range that it lies in.
    bottleneck : str
        What binds then: the workers, the CPU's cores or the training step.
    """

    workers: int
    throughput: Quantity
    low: Quantity
    high: Quantity
    bottleneck: str


@dataclass(frozen=True, repr=False)
class WorkerAdvice(TableRepr):
    """The result of `advise`.

    Attributes
    ----------
    now : Option
        The job as it is, as measured.
    best : Option
        The fewest workers that bring the most.
    enough : Option
        The fewest that bring 95 % of it.
    options : tuple of Option
    finding : JobFinding
    """

    now: Option
    best: Option
    enough: Option
    options: tuple[Option, ...]
    finding: JobFinding

    @property
    def gain(self) -> float:
        """Throughput of the best over that of now, less one."""
        return float((self.best.throughput / self.now.throughput).m_as("")) - 1

    @property
    def summary(self) -> str:
        """What to change, and what it will bring."""
        if self.gain < SLIGHT:
            return f"Keep the {self.now.workers} workers: more or fewer would bring less than 5 %."
        best, low, high = (
            format_quantity(each) for each in (self.best.throughput, self.best.low, self.best.high)
        )
        less = (
            f"; {self.enough.workers} are enough for 95 % of it"
            if self.enough.workers < self.best.workers
            else ""
        )
        return (
            f"{self.best.workers} workers instead of {self.now.workers}: {best} ({low} to {high}) instead of "
            f"{format_quantity(self.now.throughput)}, then {self.best.bottleneck} binds{less}."
        )

    @property
    def headers(self) -> tuple[str, ...]:
        """Of the table that shows it."""
        return ("workers", "throughput", "at least", "at most", "what binds")

    @property
    def rows(self) -> list[list[object]]:
        """One row for each number of workers."""
        return [[one.workers, one.throughput, one.low, one.high, one.bottleneck] for one in self.options]


def advise(finding: JobFinding, *, cores: float | None = None) -> WorkerAdvice:
    """How many workers a job should have, and what they will bring.

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
    Where the loop waits, its workers are busy all the time, so a batch takes a worker that many times the
    period. Where it does not wait, no number of workers brings anything. The workers of a batch do not help
    each other. Their CPU time cannot exceed that of the cores; what they wait for storage has no such limit
    here, though the storage has one, which no loop shows.

    Examples
    --------
    >>> from starvelab.measure import watch
    >>> watched = watch([], batch_size=32, workers=4, progress=False)
    >>> advise(watched.result)
    Traceback (most recent call last):
    ...
    starvelab.errors.InputError: advise needs 8 watched batches, got 0. Watch a longer run.
    """
    workers = finding.workers
    if workers is None:
        raise InputError(
            "advise needs the number of workers, and this finding has none. Pass it: watch(loader, "
            "workers=4)."
        )
    if finding.counted < finding.min_batches or finding.step_time is None:
        raise InputError(
            f"advise needs {finding.min_batches} watched batches, got {finding.counted}. Watch a longer run."
        )
    job = _Job(finding, finding.step_time, workers, float(cores if cores is not None else usable_cores()))
    options = tuple(job.option(number) for number in job.candidates())
    now = job.now()
    most = max(one.throughput for one in options)
    best = next(one for one in options if one.throughput >= 0.999 * most)
    if job.starved and best.throughput < now.throughput:
        best = now
    enough = next((one for one in options if one.throughput >= ENOUGH * best.throughput), best)
    return WorkerAdvice(now, best if job.starved else now, enough if job.starved else now, options, finding)


class _Job:
    """The times of one job, and what other workers would make of them."""

    def __init__(self, finding: JobFinding, step_time: Quantity, workers: int, cores: float) -> None:
        self.finding, self.workers, self.cores = finding, workers, cores
        self.step = step_time.m_as("ms")
        self.period = 1e3 / finding.batch_rate.m_as("1/s")
        waits = self.period - self.step
        # Without workers the loop prepares while it waits; with them, each is busy for the whole period.
        self.prepare = max(waits, 1e-3) if workers == 0 else workers * self.period
        waits_for_data = (finding.stall if finding.stall is not None else finding.host_wait) >= SLIGHT
        # Where a batch is ready when the loop asks, the wait is for its way to the loop, not for workers.
        self.starved = waits_for_data and (finding.queue_depth or 0.0) < 1
        known = finding.prepare_cpu
        self.cpu_shares = (known, known, known) if known is not None else (0.5, 1.0, 0.0)

    def candidates(self) -> list[int]:
        """Numbers of workers that are worth a look: up to where the step binds even if all is CPU work."""
        needed = int(self.prepare * (1 + HANDOVER) / self.step) + 2
        most = min(max(needed, self.workers, 2), MAX_WORKERS)
        return [0, *range(1, most + 1)]

    def _rate(self, workers: int, prepare: float, cpu: float) -> float:
        """Batches a second."""
        size = self.finding.batch_size or 1
        loader = Loader(
            step_time=Q_(self.step, "ms"),
            prepare_time=Q_(max(prepare * cpu, 1e-6), "ms"),
            read_wait=Q_(prepare * (1 - cpu), "ms"),
            batch_size=size,
            workers=workers,
            in_flight=1,
        )
        # Work of the CPU is stretched where more than the cores work at a time; what waits needs no core.
        most = self.cores / max(prepare * cpu / 1e3, 1e-9) if workers else inf
        return min(float(loader.mean_rate.m_as("img/s")) / size, most)

    def option(self, workers: int) -> Option:
        """What that many would bring."""
        # Handing a batch over costs a worker time, which a loop without workers does not show.
        extra = HANDOVER if self.workers == 0 and workers else 0.0
        likely, low_cpu, high_cpu = self.cpu_shares
        rate = self._rate(workers, self.prepare * (1 + extra / 2), likely)
        low = self._rate(workers, self.prepare * (1 + extra) * (1 + ERROR), low_cpu) * (1 - ERROR / 2)
        high = self._rate(workers, self.prepare * (1 - ERROR), high_cpu) * (1 + ERROR / 2)
        return self._made(workers, rate, low, high)

    def now(self) -> Option:
        """The job as it was measured."""
        rate = 1e3 / self.period
        return self._made(self.workers, rate, rate * (1 - ERROR / 2), rate * (1 + ERROR / 2))

    def _made(self, workers: int, rate: float, low: float, high: float) -> Option:
        shown = self._shown
        return Option(workers, shown(rate), shown(low), shown(high), self._binds(workers, rate))

    def _binds(self, workers: int, rate: float) -> str:
        if rate >= 0.98e3 / self.step:
            return "the training step"
        busy = rate * self.prepare / 1e3 * self.cpu_shares[0]
        return "the CPU" if workers > self.cores and busy > 0.9 * self.cores else "the workers"

    def _shown(self, rate: float) -> Quantity:
        size = self.finding.batch_size
        return Q_(rate * size, "img/s") if size else Q_(rate, "1/s")
