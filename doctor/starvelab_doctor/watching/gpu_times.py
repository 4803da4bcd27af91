"""How long a GPU waits for a batch, by events on the stream of the loop."""

from __future__ import annotations

from array import array
from collections import deque
from typing import Any, TypeAlias

import numpy as np

from starvelab.measure.devices import Cuda

Event: TypeAlias = Any


class DeviceTimes:
    """How long a GPU has nothing to do while a loop waits for a batch, by events on the loop's stream.

    Between the event of asking and that of receiving, a GPU without work waits. Events are read when they are
    done, so nothing waits for the GPU. This was never run on a real one.
    """

    def __init__(self, cuda: Cuda) -> None:
        self.cuda = cuda
        self.stream = cuda.current_stream(cuda.current_device())
        self.free: list[Event] = []
        # Of each batch the events before and after the wait, and whether it begins a pass.
        self.pending: deque[tuple[Event, Event, bool]] = deque()
        self.asking: Event | None = None
        self.before: Event | None = None
        self.idle, self.lengths = array("d"), array("d")
        self.counts = False

    def ask(self) -> None:
        """Note that the loop asks for a batch."""
        self.asking = self._record()

    def receive(self, *, first: bool) -> None:
        """Note that the loop has its batch; `first` is that of a pass, which does not count."""
        if self.asking is not None:
            self.pending.append((self.asking, self._record(), first))
            self.asking = None
        self.read()

    def _record(self) -> Event:
        event = self.free.pop() if self.free else self.cuda.Event(enable_timing=True)
        event.record(self.stream)
        return event

    def read(self) -> None:
        """Take the times of what is done."""
        while self.pending and self.pending[0][1].query():
            asked, received, first = self.pending.popleft()
            # The time since the batch before counts, unless that was a first one: its step is start-up, too.
            if self.before is not None:
                if self.counts and not first:
                    self.idle.append(asked.elapsed_time(received) / 1e3)
                    self.lengths.append(self.before.elapsed_time(received) / 1e3)
                self.free.append(self.before)
            self.free.append(asked)
            self.before, self.counts = received, not first

    def times(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the seconds that the GPU waited for each batch, and from batch to batch."""
        self.read()
        return np.array(self.idle[:]), np.array(self.lengths[:])
