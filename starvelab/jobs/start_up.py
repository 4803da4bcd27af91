"""What it takes to start workers and to begin a pass over the data, beside what its batches take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import reduction
from typing import Any

from ..units import Q_, Quantity, data_size
from .finding import JobFinding
from .times import JobModel

NAMED = 0.02  # share of the job that is worth a line


@dataclass(frozen=True)
class StartUp:
    """What a later pass takes in which no batch is trained on [ms]."""

    each: float  # from asking for its first batch until that comes, and from its last batch until its end
    ready: float  # of that, what a batch takes in any case
    others: float  # what its other batches take
    batches: float  # of a pass

    @property
    def share(self) -> float:
        """Of a later pass, 0 to 1."""
        return self.each / (self.each + self.others)

    @property
    def now(self) -> float:
        """Milliseconds from batch to batch, over whole passes."""
        return (self.each + self.others) / self.batches

    @property
    def after(self) -> float:
        """The same where workers run already and the data is known."""
        return (self.ready + self.others) / self.batches

    @property
    def matters(self) -> bool:
        """Whether what can be saved is worth a line."""
        return self.now - self.after >= NAMED * self.now


def start_up_of(finding: JobFinding, model: JobModel) -> StartUp | None:
    """Return what later passes take to begin and to end; None where there was none."""
    if not (later := [wait.m_as("ms") for wait in finding.first_waits[1:]]):
        return None
    period, batches = float(1e3 / finding.batch_rate.m_as("1/s")), finding.batches / len(finding.first_waits)
    first, times = float(sum(later) / len(later)), model.likely
    # The first batch of a pass is prepared while the loop waits, also by workers that run already.
    ready = min(first, times.wait + times.compute + (times.receive if model.workers else 0.0))
    ending = finding.ending.m_as("ms") if finding.ending is not None else 0.0
    return StartUp(first + ending, ready, period * (batches - 1), batches)


def pickled_share(finding: JobFinding) -> float:
    """Return the share of the job in which its data was pickled for workers that started, 0 to 1."""
    rate = float(finding.batch_rate.m_as("1/s"))
    if finding.pickled is None or not rate:
        return 0.0
    whole = sum(wait.m_as("s") for wait in finding.first_waits) + finding.counted / rate
    return float(finding.pickled[0].m_as("s") / max(whole, 1e-9))


class Pickled:
    """What is pickled for processes that start: no fork needs it, and each other process needs all of it."""

    def __init__(self) -> None:
        self.seconds, self.bytes = 0.0, 0  # in all, and for the process that got most

    def add(self, more: Pickled) -> None:
        """Count what another one counted."""
        self.seconds, self.bytes = self.seconds + more.seconds, max(self.bytes, more.bytes)

    @property
    def found(self) -> tuple[Quantity, Quantity] | None:
        """The two with their units; None where nothing was pickled."""
        return (Q_(1e3 * self.seconds, "ms"), data_size(self.bytes)) if self.seconds else None

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what is pickled while this lasts."""
        original = reduction.dump

        def dump(obj: object, file: Any, protocol: int | None = None) -> None:  # Any: a file or a pipe
            begun, before = time.perf_counter(), file.tell() if file.seekable() else 0
            original(obj, file, protocol)
            self.seconds += time.perf_counter() - begun
            self.bytes = max(self.bytes, file.tell() - before if file.seekable() else 0)

        reduction.dump = dump
        try:
            yield
        finally:
            reduction.dump = original
