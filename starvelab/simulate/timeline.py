"""What a simulation starts from, and what happens to each batch, and when: simulated, or measured in one run.

It holds times and knows what a batch meets behind the loader; which batch comes next is decided elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from ..errors import InputError
from ..tables import cell, count_of, percent
from ..units import Q_, Quantity, positive_int

_CLOCK = ("prepare_start", "prepared", "received", "copy_start", "copied", "step_start", "step_end")
# Known where the storage is simulated; a measured run sees preparing as a whole.
_READS = ("read_start", "read_done")


@dataclass(frozen=True, kw_only=True)
class LoaderInputs:
    """Workers that prepare batches, the order in which these arrive, and the loop that trains on them.

    Whoever makes one has checked its parts. Times are for one batch, in milliseconds as in a `Trace`: whole
    ones stay exact, so that a tie is a tie.
    """

    batch_size: int = 32
    step_time: float
    busy_share: float = 1.0  # of a step, in which the accelerator works
    in_flight: float = 2
    copy_time: float = 0.0
    copy_overlaps: bool = True
    workers: int = 2
    prefetch: int = 2
    in_order: bool = True
    start_up: float = 0.0
    persistent: bool = False
    epoch_batches: int | None = None  # a run of one epoch unless given
    prepare_time: float  # one worker's on average, stretched where all of them share the cores
    spread: float = 0.0
    slow_share: float = 0.0
    slow_time: float = 0.0  # of one sample
    read_time: float = 0.0  # which a batch occupies the storage; reads are served one after the other
    read_wait: float = 0.0  # which its worker sleeps through, occupying nothing
    read_ahead: bool = False
    cached_share: float = 0.0  # of the samples, which take neither of these two
    handover_way: float = 0.0
    handover_loop: float = 0.0
    # Ranks that end each step together; the last has the pace above, and the others prepare so many times as
    # fast. Of each step so much scatters, in each of a rank's accelerators, and costs this wait on average.
    ranks: int = 1
    slow_rank: float = 1.0
    rank_spread: float = 0.0
    rank_devices: int = 1
    scattered: float = 0.0
    barrier: float = 0.0
    mean_period: float = 0.0  # from batch to batch, which mean times alone allow in an epoch without end

    @property
    def mean_delay(self) -> float:
        """How much longer a batch takes on average because of slow samples."""
        return self.batch_size * self.slow_share * self.slow_time


@dataclass(frozen=True, eq=False, kw_only=True)
class _Batches:
    """Times of every batch [ms], in the order of delivery."""

    batch: np.ndarray
    worker: np.ndarray
    prepare_start: np.ndarray
    prepared: np.ndarray
    received: np.ndarray
    copy_start: np.ndarray
    copied: np.ndarray
    step_start: np.ndarray
    step_end: np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class EpochTimes(_Batches):
    """Each of shape (batches, replicas); `batch` counts from 0, `worker` is -1 where the loop prepares."""

    host_free: np.ndarray  # when the loop asks for the next batch


@dataclass(frozen=True, eq=False)
class Start:
    """What an epoch begins with, each of shape (replicas,) [ms].

    `asked` is when the loop asks for its first batch and sends the first indices, `workers` when the workers
    can begin; `copied` is when the accelerator's copy before is done. `steps`, of shape (any, replicas), are
    the ends of the steps before, as many as the loop may have unfinished; 0 where there were none.
    `step_times`, of shape (batches, replicas), are what its steps take, where these are not all alike.
    """

    asked: np.ndarray
    workers: np.ndarray
    copied: np.ndarray
    steps: np.ndarray
    step_times: np.ndarray | None = None

    @classmethod
    def of_run(cls, inputs: LoaderInputs, batches: int, replicas: int) -> Start:
        """Return the start of a run of so many batches: workers are started, and nothing is under way."""
        zero = np.zeros(replicas)
        # Without a limit the loop waits for no step; the accelerator still waits for the last one.
        kept = 1 if inputs.in_flight in (1, inf) else int(min(inputs.in_flight - 1, batches))
        return cls(zero, zero + inputs.start_up, zero, np.zeros((kept, replicas)))

    def after(self, inputs: LoaderInputs, epoch: EpochTimes) -> Start:
        """Return the start of the epoch that follows one which began with this."""
        asked = epoch.host_free[-1]
        steps = np.concatenate((self.steps, epoch.step_end))[-len(self.steps) :]
        return Start(asked, asked + (0.0 if inputs.persistent else inputs.start_up), epoch.copied[-1], steps)


class Loop:
    """What the loop and its accelerator do with each batch of an epoch, in the order of delivery."""

    def __init__(self, inputs: LoaderInputs, start: Start, shape: tuple[int, ...]) -> None:
        self.inputs, self.ranks = inputs, inputs.ranks
        self.step_times = np.broadcast_to(
            inputs.step_time if start.step_times is None else start.step_times, shape
        )
        self.received, self.copy_start, self.step_start = (np.empty(shape) for _ in range(3))
        # Each a view of the same rows: those of the batches, and those of the batch before.
        copied, host, ends = (
            np.concatenate((before, np.empty(shape)))
            for before in (start.copied[None], start.asked[None], start.steps)
        )
        self.copied, self.host_free, self.step_end = copied[1:], host[1:], ends[len(start.steps) :]
        self.host_before, step_before = host[:-1], ends[len(start.steps) - 1 : -1]
        self.step_before, self.copy_after = step_before, copied[:-1] if inputs.copy_overlaps else step_before
        self.waited_for = {1: self.step_end, inf: self.received}.get(inputs.in_flight, ends[: shape[0]])

    # Any: the number of a row, or rows and columns.
    def receive(self, place: Any, ready: np.ndarray) -> None:
        """Receive the batch of a row as soon as it is ready, copy it, and compute on it."""
        received = np.maximum(ready, self.host_before[place]) + self.inputs.handover_loop
        copy_start = np.maximum(received, self.copy_after[place])
        copied = copy_start + self.inputs.copy_time
        step_start = np.maximum(copied, self.step_before[place])
        self.received[place], self.copy_start[place], self.copied[place] = received, copy_start, copied
        ends = step_start + self.step_times[place]
        if self.ranks > 1:  # those of a replica stand side by side, and end their steps together
            ends = ends.reshape(-1, self.ranks).max(axis=1).repeat(self.ranks)
        self.step_start[place], self.step_end[place] = step_start, ends
        self.host_free[place] = np.maximum(received, self.waited_for[place])

    def timeline(
        self, batch: np.ndarray, worker: np.ndarray, prepare_start: np.ndarray, prepared: np.ndarray
    ) -> EpochTimes:
        """Return the epoch, whose batches were prepared so."""
        return EpochTimes(
            batch=batch, worker=worker, prepare_start=prepare_start, prepared=prepared,
            received=self.received, copy_start=self.copy_start, copied=self.copied,
            step_start=self.step_start, step_end=self.step_end, host_free=self.host_free,
        )  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace(_Batches):
    """One run, batch by batch in the order of delivery; times are milliseconds since its start.

    `batch` counts from 0 in the order in which batches were asked for, `worker` from 0; it is -1 where the
    training loop prepared the batch itself. A worker prepares a batch from `prepare_start` to `prepared`, the
    loop has it at `received`; it is copied to the accelerator, which then computes on it. The storage reads
    it from `read_start` to `read_done`, None where reads are not seen apart.
    """

    batch_size: int
    source: str = "simulated"
    read_start: np.ndarray | None = None
    read_done: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name in ("batch", "worker", *self._times):
            column = np.asarray(getattr(self, name), dtype=float if name in self._times else np.int64)
            object.__setattr__(self, name, column)

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def _times(self) -> tuple[str, ...]:
        """The columns that are times."""
        return _CLOCK if self.read_start is None or self.read_done is None else (*_CLOCK, *_READS)

    @property
    def utilization(self) -> float:
        """Busy share of the accelerator, from the start to the end of the last step."""
        return float((self.step_end - self.step_start).sum() / self.step_end[-1])

    @property
    def stall(self) -> float:
        """Share of that time in which the accelerator waits."""
        return 1 - self.utilization

    @property
    def step_time(self) -> Quantity:
        """Mean time that the accelerator computes on a batch [time]."""
        return Q_(float((self.step_end - self.step_start).mean()), "ms")

    @property
    def period(self) -> Quantity:
        """Mean time from one batch to the next [time]."""
        return Q_(float(self.step_end[-1] / len(self)), "ms")

    @property
    def throughput(self) -> Quantity:
        """Samples that the accelerator finishes [sample/time]."""
        return Q_(float(1000 * self.batch_size * len(self) / self.step_end[-1]), "img/s")

    def queue_depth(self, *, in_turn: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """How many finished batches wait for the loop: times [ms], and the depth from each up to the next.

        With `in_turn` only those count that no missing batch holds back.
        """
        ready = np.maximum.accumulate(self.prepared) if in_turn else self.prepared
        times, place = np.unique(np.concatenate((ready, self.received)), return_inverse=True)
        changes = np.repeat((1, -1), len(self))
        depths = np.bincount(place, weights=changes).cumsum()
        return times, depths.round().astype(np.int64)

    def first(self, batches: int) -> Trace:
        """The run up to the end of its first batches; all of it where it has no more."""
        some = slice(positive_int(batches, "batches"))
        return replace(self, **{n: getattr(self, n)[some] for n in ("batch", "worker", *self._times)})

    def after(self, batches: int) -> Trace:
        """The run without its first batches, its clock set to 0 when the last of them was done."""
        first = positive_int(batches, "batches")
        if first >= len(self):
            raise InputError(
                f"A trace of {len(self)} batches has none left after {first}. Skip at most {len(self) - 1}."
            )
        start = self.step_end[first - 1]
        moved = {name: getattr(self, name)[first:] - start for name in self._times}
        return replace(self, batch=self.batch[first:], worker=self.worker[first:], **moved)

    def __repr__(self) -> str:
        return (
            f"{count_of(len(self), 'batch')} of {self.batch_size}, {self.source}: the GPU is busy "
            f"{percent(self.utilization)}, {cell(self.throughput)}"
        )
