"""A loader followed through many batches, and through many replicas of chance at once.

The rules stand in `recurrence` and `discrete_event`; this draws the chance and chooses one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..errors import InputError
from ..tables import TableRepr, cell, percent
from ..units import Q_, Quantity, Unchecked, nonnegative, positive_int
from .discrete_event import follow_events
from .loader import Loader
from .recurrence import follow_in_order, follow_out_of_order
from .timeline import Start, Timeline
from .trace import Trace, counted

# Replicas that are followed together: their rows then fit into a processor's cache.
_TOGETHER = 1024


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(TableRepr):
    """What `simulate` found.

    Attributes
    ----------
    loader : Loader
    batches, replicas, warm_up : int
    times : array of float, (batches, replicas)
        What a worker took for each batch, without shared reads [ms].
    reads : array of float, (batches, replicas)
        What each batch occupied the shared storage [ms].
    utilizations, host_waits : array of float, (replicas,)
        Busy share of the accelerator, and share of the time that the loop spends in ``next()``.
    throughputs : quantity [sample/time], (replicas,)
    """

    loader: Loader
    times: np.ndarray = field(repr=False)
    reads: np.ndarray = field(repr=False)
    warm_up: int
    utilizations: np.ndarray
    host_waits: np.ndarray
    throughputs: Quantity

    @property
    def batches(self) -> int:
        """How many each replica trains on."""
        return self.times.shape[0]

    @property
    def replicas(self) -> int:
        """How often chance was tried."""
        return self.times.shape[1]

    @cached_property
    def utilization(self) -> float:
        """Busy share of the accelerator, the mean over replicas."""
        return float(self.utilizations.mean())

    @property
    def stall(self) -> float:
        """Share of the time in which the accelerator waits; utilization + stall = 1."""
        return 1 - self.utilization

    @property
    def throughput(self) -> Quantity:
        """Samples that the accelerator finishes [sample/time], the mean over replicas."""
        return self.throughputs.mean()

    @property
    def spread(self) -> float:
        """Standard deviation of the utilization from replica to replica; 0 for one of them."""
        return float(self.utilizations.std(ddof=1)) if self.replicas > 1 else 0.0

    @property
    def host_wait(self) -> float:
        """Share of the time that the loop spends in ``next()``, the mean over replicas.

        It is no stall: a loop that runs ahead of the accelerator waits while the accelerator computes.
        """
        return float(self.host_waits.mean())

    def trace(self, replica: int = 0) -> Trace:
        """Every batch of one replica, the warm-up too; `Trace.after` leaves that out.

        Raises
        ------
        InputError
        """
        if not 0 <= replica < self.replicas:
            raise InputError(
                f"There are replicas 0 to {self.replicas - 1}, got {replica!r:.80}. Pass one of these."
            )
        one = slice(replica, replica + 1)
        timeline = follow(self.loader, self.times[:, one], self.reads[:, one])
        columns = {name: column[:, 0] for name, column in vars(timeline).items() if name != "host_free"}
        if self.loader.ms("read_time") > 0 and not self.loader.read_ahead:
            # A worker reads first: what it does besides ends when the batch is prepared.
            batch = columns["batch"]
            columns["read_done"] = columns["prepared"] - self.times[batch, replica]
            columns["read_start"] = columns["read_done"] - self.reads[batch, replica]
        return Trace(**columns, batch_size=self.loader.batch_size, source="simulated")

    @property
    def headers(self) -> tuple[str, ...]:
        """Of the table that shows it."""
        return ("figure", "mean", "lowest", "highest")

    @property
    def rows(self) -> list[list[str]]:
        """One row for each figure: its mean over replicas, and how far they lie apart."""
        step = self.loader.busy_share * self.loader.step_time
        return [
            ["utilization", *_shares(self.utilizations)],
            ["stall", *_shares(1 - self.utilizations)],
            ["loop in next()", *_shares(self.host_waits)],
            ["throughput", *(cell(of(self.throughputs)) for of in (np.mean, np.min, np.max))],
            [
                "time from batch to batch",
                *(cell(step / of(self.utilizations)) for of in (_harmonic, np.max, np.min)),
            ],
        ]

    @property
    def note(self) -> str:
        """What chance takes of the rate that mean times alone allow; empty without chance."""
        chance = self.loader.jitter or (self.loader.straggler_share and self.loader.ms("straggler_time"))
        lost = 1 - float((self.throughput / self.loader.mean_rate).m_as(""))
        if not chance or lost <= 0:
            return ""
        return (
            f"Mean times alone allow {cell(self.loader.mean_rate)}: late batches take {percent(lost)} of it."
        )

    @property
    def summary(self) -> str:
        """How busy the accelerator is, in one line."""
        spread = f", give or take {percent(self.spread)}," if self.replicas > 1 else ""
        times = f", {self.replicas} times" if self.replicas > 1 else ""
        return (
            f"{counted(self.batches)}{times}: the accelerator is busy {percent(self.utilization)}{spread} "
            f"at {cell(self.throughput)}"
        )


def simulate(
    loader: Loader,
    *,
    batches: int = 200,
    replicas: int = 1,
    seed: int = 0,
    prepare_times: Unchecked = None,
    warm_up: int = 0,
) -> Simulation:
    """Follow a loader through its batches.

    Parameters
    ----------
    loader : Loader
    batches : int
    replicas : int
        How often chance is tried; all of them are followed at once.
    seed : int
        The same seed gives the same figures.
    prepare_times : quantity [time], (replicas, batches) or (batches,), optional
        Your own times of a worker for each batch, instead of drawn ones: then jitter, stragglers, cores and
        `read_wait` of the loader are not looked at, and the shape decides how many batches and replicas there
        are.
    warm_up : int
        Batches at the beginning that the figures leave out. Without it they start with the run, and the wait
        for the first batch counts.

    Returns
    -------
    Simulation

    Raises
    ------
    InputError

    Notes
    -----
    CPU work is stretched as if all workers computed all the time, whenever there are more of them than cores.

    Examples
    --------
    >>> slow = Loader(step_time="20 ms", prepare_time="50 ms", workers=2)
    >>> print(f"{simulate(slow).utilization:.3f}, {simulate(slow.replace(workers=4)).utilization:.3f}")
    0.794, 0.988
    """
    if not isinstance(loader, Loader):
        raise InputError(
            f"simulate follows a loader, got {type(loader).__name__}. "
            'Pass Loader(step_time="20 ms", prepare_time="50 ms").'
        )
    seed = _checked_seed(seed)
    if prepare_times is None:
        batches, replicas = positive_int(batches, "batches"), positive_int(replicas, "replicas")
        times, reads = draw(loader, batches, replicas, seed)
    else:
        times = _own_times(prepare_times)
        _, reads = draw(loader, len(times), times.shape[1], seed)
    skipped = _below(warm_up, len(times))
    groups = (slice(first, first + _TOGETHER) for first in range(0, times.shape[1], _TOGETHER))
    found = [_figures(follow(loader, times[:, some], reads[:, some]), skipped) for some in groups]
    periods, waits = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Simulation(
        loader=loader,
        times=times,
        reads=reads,
        warm_up=skipped,
        utilizations=loader.busy_share * loader.ms("step_time") / periods,
        host_waits=waits,
        throughputs=Q_(1000 * loader.batch_size / periods, "img/s"),
    )


def draw(loader: Loader, batches: int, replicas: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw what a worker takes for each batch without reads, and what it reads: (batches, replicas) [ms].

    Replicas are drawn one after the other: more of them add to those that were there, and loaders that
    differ in workers or prefetch meet the same batches.
    """
    # A stream each, so that jitter is the same with and without stragglers.
    for_jitter, for_stragglers, for_misses = np.random.default_rng(seed).spawn(3)
    shape, missed = (replicas, batches), np.ones((replicas, batches))  # the share that is not in memory
    if loader.cached_fraction:
        misses = for_misses.binomial(loader.batch_size, 1 - loader.cached_fraction, shape)
        missed = misses / loader.batch_size
    times = np.full(shape, loader.stretch * loader.ms("prepare_time"))
    if loader.jitter:
        variance = np.log1p(loader.jitter**2)
        times *= for_jitter.lognormal(-variance / 2, np.sqrt(variance), shape)
    times += loader.ms("read_wait") * missed
    if loader.straggler_share and loader.ms("straggler_time"):
        slow = for_stragglers.binomial(loader.batch_size, loader.straggler_share, shape)
        times += slow * loader.ms("straggler_time")
    return np.ascontiguousarray(times.T), np.ascontiguousarray(loader.ms("read_time") * missed.T)


def _own_times(prepare_times: Unchecked) -> np.ndarray:
    """Times of shape (batches, replicas) [ms] from the user's own, which have a row for each replica."""
    times = np.asarray(nonnegative(prepare_times, "ms", "prepare_times"))
    if times.ndim not in (1, 2) or not times.size:
        raise InputError(
            f"prepare_times has a row for each replica and a column for each batch, got shape {times.shape}. "
            'Pass for example Q_([[12, 15, 11]], "ms").'
        )
    return np.ascontiguousarray(np.atleast_2d(times).T)


def follow(loader: Loader, times: np.ndarray, reads: np.ndarray) -> Timeline:
    """Every batch of every replica, epoch by epoch; with the arrays of a `Simulation`."""
    start, epochs = Start.of_run(loader, len(times), times.shape[1]), []
    length = loader.epoch_batches or len(times)
    for first in range(0, len(times), length):
        some = slice(first, first + length)
        epochs.append(_follow_epoch(loader, times[some], reads[some], start))
        start = start.after(loader, epochs[-1])
    if len(epochs) == 1:
        return epochs[0]
    columns = {name: np.concatenate([getattr(one, name) for one in epochs]) for name in vars(epochs[0])}
    # Within an epoch batches count from 0.
    columns["batch"] = columns["batch"] + length * (np.arange(len(times)) // length)[:, None]
    return Timeline(**columns)


def _follow_epoch(loader: Loader, times: np.ndarray, reads: np.ndarray, start: Start) -> Timeline:
    """The batches of one epoch, by the rule that the loader needs."""
    if loader.read_ahead and loader.workers > 0 and loader.ms("read_time") > 0:
        follow = follow_in_order if loader.in_order else follow_out_of_order
        return follow(loader, times, start, reads)
    if loader.workers > 1 and loader.ms("read_time") > 0:
        return follow_events(loader, times, reads, start)
    if loader.workers > 1 and not loader.in_order:
        return follow_out_of_order(loader, times, start)
    # Nobody else asks the storage of a single worker, so reading is just one more part of its work.
    return follow_in_order(loader, times + reads, start)


def _figures(timeline: Timeline, skipped: int) -> tuple[np.ndarray, np.ndarray]:
    """Time from batch to batch [ms], and share of the time that the loop spends in next()."""
    batches, replicas = timeline.received.shape
    start = timeline.step_end[skipped - 1] if skipped else np.zeros(replicas)
    end = timeline.step_end[-1]
    asked = np.vstack((np.zeros(replicas), timeline.host_free[:-1]))
    waits = np.maximum(timeline.received, start) - np.maximum(asked, start)
    return (end - start) / (batches - skipped), waits.sum(axis=0) / (end - start)


def _is_whole(value: Unchecked) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 0)


def _checked_seed(seed: Unchecked) -> int:
    if not _is_whole(seed):
        raise InputError(f"seed must be a whole number from 0 on, got {seed!r:.80}. Pass for example seed=1.")
    return int(seed)


def _below(warm_up: Unchecked, batches: int) -> int:
    if not _is_whole(warm_up) or warm_up >= batches:
        raise InputError(
            f"warm_up must be a whole number from 0 to {batches - 1}, got {warm_up!r:.80}. "
            f"Of {batches} batches one must be left."
        )
    return int(warm_up)


def _shares(values: np.ndarray) -> list[str]:
    return [percent(of(values)) for of in (np.mean, np.min, np.max)]


def _harmonic(values: np.ndarray) -> float:
    return float(1 / np.mean(1 / values))
