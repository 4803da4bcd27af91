"""A loader simulated for many batches, and in many random runs at once.

This draws the random times and chooses the rule, which is in `rules`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from ..errors import InputError
from ..tables import TableRepr, cell, count_of, percent
from ..units import Q_, Quantity, Unchecked, nonnegative, one_value, positive_int
from .rules import follow_events, follow_in_order, follow_out_of_order
from .timeline import EpochTimes, LoaderInputs, Start, Trace

_MAX_TIMES = 10**8  # which take 800 MB
# Replicas that are followed together: their rows then fit into a processor's cache.
_TOGETHER = 1024


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(TableRepr):
    """A pipeline simulated batch by batch: the result of `Pipeline.simulate`.

    Attributes
    ----------
    batches, replicas, warm_up : int
    times : array of float, (batches, replicas x ranks)
        Time of a worker for each batch, without shared reads [ms].
    reads : array of float, (batches, replicas x ranks)
        Time of each batch on the shared storage [ms].
    step_times : array of float, (batches, replicas x ranks), or None
        Time of each step, if it scatters [ms].
    periods : array of float, (replicas,)
        Time from batch to batch [ms].
    utilizations, host_waits : array of float, (replicas,)
        Busy share of the accelerator, and share of the time that the loop spends in ``next()``.
    throughputs : quantity [sample/time], (replicas,)
    queues : array of float, (replicas, ranks)
        Mean number of batches that are ready for the loop of each rank; the last rank is the slow one.
    """

    inputs: LoaderInputs
    times: np.ndarray
    reads: np.ndarray
    warm_up: int
    periods: np.ndarray
    host_waits: np.ndarray
    queues: np.ndarray
    step_times: np.ndarray | None = None

    headers = ("figure", "mean", "lowest", "highest")

    @property
    def batches(self) -> int:
        """How many batches each replica trains on."""
        return len(self.times)

    @property
    def replicas(self) -> int:
        """How many random runs were simulated."""
        return len(self.periods)

    @property
    def utilizations(self) -> np.ndarray:
        """Busy share of the accelerator in each replica."""
        return self.inputs.busy_share * self.inputs.step_time / self.periods

    @property
    def utilization(self) -> float:
        """Busy share of the accelerator, the mean over replicas."""
        return float(self.utilizations.mean())

    @property
    def stall(self) -> float:
        """Share of the time in which the accelerator waits; utilization + stall = 1."""
        return 1 - self.utilization

    @property
    def throughputs(self) -> Quantity:
        """Samples that the accelerator finishes in each replica [sample/time]."""
        return Q_(1000 * self.inputs.ranks * self.inputs.batch_size / self.periods, "img/s")

    @property
    def throughput(self) -> Quantity:
        """Samples that the accelerator finishes [sample/time], the mean over replicas."""
        return Q_(self.throughputs.m_as("img/s").mean(), "img/s")

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

    def trace(self, replica: int = 0, rank: int = 0) -> Trace:
        """Every batch of one replica and rank, the warm-up too; `Trace.after` leaves that out.

        Raises
        ------
        InputError
        """
        replica = _whole(replica, "replica", self.replicas - 1, "Pass one of these.")
        rank, ranks = _whole(rank, "rank", self.inputs.ranks - 1, "Pass one of these."), self.inputs.ranks
        some, position = slice(replica * ranks, (replica + 1) * ranks), replica * ranks + rank
        steps = None if self.step_times is None else self.step_times[:, some]
        timeline = follow(self.inputs, self.times[:, some], self.reads[:, some], steps)
        columns = {name: column[:, rank] for name, column in vars(timeline).items() if name != "host_free"}
        if ranks > 1:  # what it computes itself, without its wait for the slowest rank
            took = self.inputs.step_time if steps is None else steps[:, rank]
            columns["step_end"] = columns["step_start"] + took
        if self.inputs.read_time > 0 and not self.inputs.read_ahead:
            # A worker reads first: what it does besides ends when the batch is prepared.
            batch = columns["batch"]
            columns["read_done"] = columns["prepared"] - self.times[batch, position]
            columns["read_start"] = columns["read_done"] - self.reads[batch, position]
        return Trace(**columns, batch_size=self.inputs.batch_size, source="simulated")

    @property
    def rows(self) -> list[list[str]]:
        """One row for each quantity: its mean over replicas, and how much these differ."""
        figures = (
            ("utilization", percent, self.utilizations),
            ("stall", percent, 1 - self.utilizations),
            ("loop in next()", percent, self.host_waits),
            ("throughput", cell, self.throughputs),
            ("time from batch to batch", cell, Q_(self.periods, "ms")),
        )
        rows = [
            [name, *(show(of(values)) for of in (np.mean, np.min, np.max))] for name, show, values in figures
        ]
        for rank in self._shown_ranks:
            ready = (cell(float(of(self.queues[:, rank]))) for of in (np.mean, np.min, np.max))
            rows.append([f"batches ready at rank {rank}", *ready])
        return rows

    @property
    def _shown_ranks(self) -> Sequence[int]:
        """Every rank, and of many only one of those alike and the last, which may be slow."""
        ranks = self.inputs.ranks
        return range(ranks if ranks > 1 else 0) if ranks <= 8 else (0, ranks - 1)

    @property
    def note(self) -> str:
        """What random times take from the rate that mean times alone allow; empty without them."""
        if not self.inputs.mean_period or not (self.inputs.spread or self.inputs.mean_delay):
            return ""
        allowed = Q_(1000 * self.inputs.ranks * self.inputs.batch_size / self.inputs.mean_period, "img/s")
        lost = 1 - float((self.throughput / allowed).m_as(""))
        if lost <= 0:
            return ""
        return f"Mean times alone allow {cell(allowed)}: late batches take {percent(lost)} of it."

    @property
    def summary(self) -> str:
        """How busy the accelerator is, in one line."""
        spread = f", give or take {percent(self.spread)}," if self.replicas > 1 else ""
        times = f", {self.replicas} times" if self.replicas > 1 else ""
        return (
            f"{count_of(self.batches, 'batch')}{times}: the GPU is busy "
            f"{percent(self.utilization)}{spread} at {cell(self.throughput)}"
        )


def simulate(
    inputs: LoaderInputs,
    batches: int = 200,
    replicas: int = 1,
    seed: int = 0,
    warm_up: int = 0,
    prepare_times: Unchecked = None,
) -> Simulation:
    """Simulate a loader batch by batch; `Pipeline.simulate` has the parameters.

    Given times replace drawn ones, and their shape sets batches and replicas.
    """
    seed = _whole(seed, "seed", inf, "Pass for example seed=1.")
    given_times = None if prepare_times is None else _own_times(prepare_times)
    if given_times is not None:
        batches, replicas = given_times.shape
    batches = one_value(positive_int(batches, "batches"), "batches")
    replicas = one_value(positive_int(replicas, "replicas"), "replicas")
    if batches * replicas * inputs.ranks > _MAX_TIMES:
        raise InputError(
            f"A simulation holds at most {_MAX_TIMES:g} batches of all ranks and replicas, got "
            f"{batches * replicas * inputs.ranks:g}. Follow fewer of them."
        )
    times, reads = draw(inputs, batches, replicas, seed)
    times = times if given_times is None else given_times.repeat(inputs.ranks, axis=1)
    steps = draw_steps(inputs, times.shape, seed)
    warm_up = _whole(warm_up, "warm_up", batches - 1, f"Of {batches} batches one must be left.")
    ranks, columns = inputs.ranks, times.shape[1]
    together = max(1, _TOGETHER // ranks) * ranks
    paces = []
    for some in (slice(first, first + together) for first in range(0, columns, together)):
        timeline = follow(inputs, times[:, some], reads[:, some], None if steps is None else steps[:, some])
        paces.append(_pace(timeline, warm_up, inputs))
    periods, waits, queues = (np.concatenate(parts).reshape(-1, ranks) for parts in zip(*paces, strict=True))
    return Simulation(inputs, times, reads, warm_up, periods[:, 0], waits.mean(axis=1), queues, steps)


def draw(inputs: LoaderInputs, batches: int, replicas: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw what a worker takes for each batch without reads, and what it reads [ms].

    Both are of shape (batches, replicas x ranks). Replicas are drawn one after the other: more of them add to
    those that were there, and loaders that differ in workers or prefetch meet the same batches.
    """
    # A stream each, so that jitter is the same with and without stragglers.
    for_jitter, for_stragglers, for_misses = np.random.default_rng(seed).spawn(3)
    shape = (replicas * inputs.ranks, batches)
    missed = np.ones(shape)  # the share that is not in memory
    if inputs.cached_share:
        missed = for_misses.binomial(inputs.batch_size, 1 - inputs.cached_share, shape) / inputs.batch_size
    times = np.full(shape, inputs.prepare_time, dtype=float)
    if inputs.slow_rank > 1:  # the pace given is that of the slow one, the last of each replica
        times.reshape(replicas, -1, batches)[:, :-1] /= inputs.slow_rank
    if inputs.spread:
        variance = np.log1p(inputs.spread**2)
        times *= for_jitter.lognormal(-variance / 2, np.sqrt(variance), shape)
    times += inputs.read_wait * missed
    if inputs.mean_delay:
        times += inputs.slow_time * for_stragglers.binomial(inputs.batch_size, inputs.slow_share, shape)
    return np.ascontiguousarray(times.T), np.ascontiguousarray(inputs.read_time * missed.T)


def draw_steps(inputs: LoaderInputs, shape: tuple[int, ...], seed: int) -> np.ndarray | None:
    """Draw what each step takes in a rank, whose slowest accelerator counts [ms]; None if none scatters."""
    if not inputs.rank_spread:
        return None
    variance, chance = np.log1p(inputs.rank_spread**2), np.random.default_rng((seed, 1))
    factors = chance.lognormal(-variance / 2, np.sqrt(variance), (*shape[::-1], inputs.rank_devices))
    slowest = np.ascontiguousarray(factors.max(axis=2).T)
    return inputs.step_time + inputs.scattered * (slowest - 1)


def _own_times(prepare_times: Unchecked) -> np.ndarray:
    """Times of shape (batches, replicas) [ms] from the user's own, which have a row for each replica."""
    times = np.asarray(nonnegative(prepare_times, "ms", "prepare_times"))
    if times.ndim not in (1, 2) or not times.size:
        raise InputError(
            f"prepare_times has a row for each replica and a column for each batch, got shape {times.shape}. "
            'Pass for example Q_([[12, 15, 11]], "ms").'
        )
    return np.ascontiguousarray(np.atleast_2d(times).T)


def follow(
    inputs: LoaderInputs, times: np.ndarray, reads: np.ndarray, steps: np.ndarray | None = None
) -> EpochTimes:
    """Every batch of every replica, epoch by epoch; with the arrays of a `Simulation`."""
    batches, length = len(times), inputs.epoch_batches or len(times)
    start, epochs = Start.of_run(inputs, *times.shape), []
    for first in range(0, batches, length):
        some = slice(first, first + length)
        start = replace(start, step_times=None if steps is None else steps[some])
        epochs.append(_follow_epoch(inputs, times[some], reads[some], start))
        start = start.after(inputs, epochs[-1])
    if len(epochs) == 1:
        return epochs[0]
    columns = {name: np.concatenate([getattr(epoch, name) for epoch in epochs]) for name in vars(epochs[0])}
    columns["batch"] += length * (np.arange(batches) // length)[:, None]  # an epoch counts from 0
    return EpochTimes(**columns)


def _follow_epoch(inputs: LoaderInputs, times: np.ndarray, reads: np.ndarray, start: Start) -> EpochTimes:
    """The batches of one epoch, by the rule that the loader needs."""
    rule = follow_in_order if inputs.in_order or inputs.workers < 2 else follow_out_of_order
    if inputs.read_time > 0 and inputs.read_ahead and inputs.workers:
        return rule(inputs, times, start, reads)
    if inputs.read_time > 0 and inputs.workers > 1:
        return follow_events(inputs, times, reads, start)
    # Nobody else asks the storage of a single worker, so reading is just one more part of its work.
    return rule(inputs, times + reads if inputs.read_time else times, start)


def _pace(
    timeline: EpochTimes, skipped: int, inputs: LoaderInputs
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Time from batch to batch [ms], share of the time that the loop spends in next(), and batches ready."""
    batches, columns = timeline.received.shape
    start = timeline.step_end[skipped - 1] if skipped else np.zeros(columns)
    end = timeline.step_end[-1]
    asked = np.vstack((np.zeros(columns), timeline.host_free[:-1]))
    waits = np.maximum(timeline.received, start) - np.maximum(asked, start)
    # By Little's law as many lie ready as one of them waits times their rate.
    lying = timeline.received - inputs.handover_loop - timeline.prepared - inputs.handover_way
    share = lying[skipped:].sum(axis=0) / (end - start)
    return (end - start) / (batches - skipped), waits.sum(axis=0) / (end - start), share


def _whole(value: Unchecked, name: str, highest: float, advice: str) -> int:
    """Return a whole number from 0 on that is checked."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not 0 <= value <= highest:
        limit = "on" if highest == inf else f"to {highest}"
        raise InputError(f"{name} must be a whole number from 0 {limit}, got {value!r:.80}. {advice}")
    return int(value)
