"""Stand-ins in virtual time for what a laptop lacks: a slow storage, a link, an accelerator.

Each only keeps the time at which it will be free: no thread, no load on the CPU, no noise. What they do not
know is anything a real device does besides taking time.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from ..errors import InputError
from ..units import as_quantity, check_magnitude, positive
from .preparation import weight


def _reads(owner: Any, unit: str, *names: str, zero: bool = False) -> None:
    """Turn texts into quantities, and refuse what has another dimension or is not positive."""
    for name in names:
        value = as_quantity(getattr(owner, name), unit, name)
        positive(value, unit, name, zero=zero)
        object.__setattr__(owner, name, value)


@dataclass(frozen=True, kw_only=True)
class VirtualStorage:
    """A storage that all workers share: one read after the other, and a latency that each waits by itself.

    Parameters
    ----------
    bandwidth : quantity [data/time]
    latency : quantity [time]
        Of each request; requests wait side by side.
    """

    bandwidth: Any
    latency: Any = "0 ms"

    def __post_init__(self) -> None:
        _reads(self, "B/s", "bandwidth")
        _reads(self, "s", "latency", zero=True)


@dataclass(frozen=True, kw_only=True)
class VirtualLink:
    """The host-to-device link.

    Parameters
    ----------
    bandwidth : quantity [data/time]
    overlapped : bool
        Whether a copy runs beside the accelerator's work (pinned memory, its own stream) or in between.
    latency : quantity [time]
        Fixed cost of a copy.
    """

    bandwidth: Any
    overlapped: bool = True
    latency: Any = "0 ms"

    def __post_init__(self) -> None:
        _reads(self, "B/s", "bandwidth")
        _reads(self, "s", "latency", zero=True)

    def copy_time(self, size: float) -> float:
        """Seconds for so many bytes."""
        return self.latency.m_as("s") + size / self.bandwidth.m_as("B/s")


@dataclass(frozen=True, kw_only=True)
class VirtualAccelerator:
    """An accelerator that takes a fixed time for each batch.

    Parameters
    ----------
    step_time : quantity [time]
    in_flight : int
        Steps that may be under way when the training loop asks for the next batch: 1 is a loop that reads
        `loss.item()` each step, 2 is one step ahead; `math.inf` never waits.
    """

    step_time: Any
    in_flight: float = 2

    def __post_init__(self) -> None:
        _reads(self, "s", "step_time")
        check_in_flight(self.in_flight)

    def open(self, pipe: Any) -> VirtualDevice:
        """The device at work behind that pipeline."""
        return VirtualDevice(self, pipe.link)


def check_in_flight(steps: float) -> None:
    """Refuse what is no number of steps under way."""
    if steps != inf and (check_magnitude(steps, "in_flight") < 1 or steps != int(steps)):
        raise InputError(
            f"in_flight must be a whole number from 1, or math.inf, got {steps}. "
            "Pass 1 for a loop that waits for each step."
        )


@dataclass(frozen=True)
class Passage:
    """One batch on the device: seconds on the monotonic clock."""

    copy_start: float
    copied: float
    step_start: float
    step_end: float


class VirtualDevice:
    """A link and an accelerator in virtual time, and the training loop's waiting for them."""

    def __init__(self, accelerator: VirtualAccelerator, link: VirtualLink | None) -> None:
        self.step_time = accelerator.step_time.m_as("s")
        self.in_flight = accelerator.in_flight
        self.link = link
        self.free = self.link_free = 0.0
        self.unfinished: deque[float] = deque()
        self.passages: list[Passage] = []

    def take(self, batch: Any, *, resident: bool = False) -> None:
        """Copy a batch unless it is `resident`, and step; returns when the loop may go on."""
        copy_start = copied = time.monotonic()
        if self.link is not None and not resident:
            waits_for = self.link_free if self.link.overlapped else self.free
            copy_start = max(copy_start, waits_for)
            copied = self.link_free = copy_start + self.link.copy_time(weight(batch))
        step_start = max(copied, self.free)
        self.free = step_start + self.step_time
        self.passages.append(Passage(copy_start, copied, step_start, self.free))
        self.unfinished.append(self.free)
        if len(self.unfinished) >= self.in_flight:
            sleep_until(self.unfinished.popleft())

    def warm_up(self, batch: Any) -> None:
        """Nothing has to warm up."""

    def keep(self, batch: Any) -> Any:
        """A batch of its own, where the loader writes over the one it gave."""
        return np.array(batch) if isinstance(batch, np.ndarray) else batch

    def facts(self) -> dict[str, Any]:
        """What a record should say about the device: nothing but its settings."""
        return {}

    def now(self) -> float:
        """When everything ordered so far is done, on the monotonic clock."""
        return self.free

    def finish(self) -> list[Passage]:
        """Wait for the last step; what happened to each batch."""
        sleep_until(self.free)
        return self.passages

    def close(self) -> None:
        """Nothing to give back."""


def sleep_until(moment: float) -> None:
    """Sleep to a moment of the monotonic clock: errors of single sleeps do not add up."""
    left = moment - time.monotonic()
    if left > 0:
        time.sleep(left)


class StorageClock:
    """When the shared storage is free again; used by workers in threads or processes alike.

    Parameters
    ----------
    storage : VirtualStorage or None
        None reads at the machine's own speed.
    free_at : array of one float
        Shared by all workers.
    lock : context manager
        Of their kind: of threads, or of processes.
    """

    def __init__(self, storage: VirtualStorage | None, free_at: Any, lock: Any) -> None:
        self.storage, self.free_at, self.lock = storage, free_at, lock

    def __call__(self, size: int) -> None:
        """Wait until that many bytes would have come."""
        if self.storage is None:
            return
        taken = size / self.storage.bandwidth.m_as("B/s")
        with self.lock:
            ready = max(time.monotonic(), float(self.free_at[0])) + taken
            self.free_at[0] = ready
        sleep_until(ready + self.storage.latency.m_as("s"))
