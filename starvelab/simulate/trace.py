"""What happened to each batch of one run, simulated or measured."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..errors import InputError
from ..tables import cell, percent
from ..units import Q_, Quantity, positive_int

SOURCES = ("simulated", "measured")
_CLOCK = ("prepare_start", "prepared", "received", "copy_start", "copied", "step_start", "step_end")
# Known where the storage is simulated; a measured run sees preparing as a whole.
_READS = ("read_start", "read_done")


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """One run, batch by batch in the order of delivery; times are milliseconds since its start.

    `batch` counts from 0 in the order in which batches were asked for, `worker` from 0; it is -1 where the
    training loop prepared the batch itself. A worker prepares a batch from `prepare_start` to `prepared`, the
    loop has it at `received`; it is copied to the accelerator, which then computes on it. The storage reads
    it from `read_start` to `read_done`, None where reads are not seen apart.
    """

    batch: np.ndarray
    worker: np.ndarray
    prepare_start: np.ndarray
    prepared: np.ndarray
    received: np.ndarray
    copy_start: np.ndarray
    copied: np.ndarray
    step_start: np.ndarray
    step_end: np.ndarray
    batch_size: int
    source: str = "simulated"
    read_start: np.ndarray | None = None
    read_done: np.ndarray | None = None

    def __post_init__(self) -> None:
        positive_int(self.batch_size, "batch_size")
        if self.source not in SOURCES:
            raise InputError(
                f"source must be one of {', '.join(SOURCES)}, got {self.source!r}. Pass one of these."
            )
        for name in ("batch", "worker", *self._times):
            column = np.asarray(getattr(self, name), dtype=float if name in self._times else np.int64)
            if column.ndim != 1 or not len(column) or len(column) != np.size(self.batch):
                raise InputError(
                    f"A trace has one {name} for each of its batches, got shape {column.shape} "
                    f"for {np.size(self.batch)} batches. Pass lists of one length."
                )
            if not np.isfinite(column).all():
                raise InputError(
                    f"Times of a trace must be finite, got {name} with a gap. Leave that batch out."
                )
            object.__setattr__(self, name, column)
        if self.step_end[-1] <= 0:
            raise InputError(
                f"A trace ends after its start, got a last step_end of {self.step_end[-1]:g} ms. "
                "Count the times from the start of the run."
            )

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
            f"{counted(len(self))} of {self.batch_size}, {self.source}: the accelerator is busy "
            f"{percent(self.utilization)}, {cell(self.throughput)}"
        )


def counted(batches: int) -> str:
    """A number of batches, in words that agree with it."""
    return "1 batch" if batches == 1 else f"{batches} batches"
