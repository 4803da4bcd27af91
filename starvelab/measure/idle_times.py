"""How long a GPU has nothing to do while a training loop waits for a batch, as events on its stream tell.

An event is done when all work before it is done. One is put on the stream when the loop asks for a batch, and
one when it has it. While the GPU is still busy both are done at the same time; where it ran out of work, the
time between them is what it waited. Nothing waits for the GPU: events are read when they are done. This was
never run on a real GPU: the tests put events of the same interface in its place.
"""

from __future__ import annotations

from array import array
from collections import deque

import numpy as np

from .devices import Cuda, Event


class DeviceTimes:
    """Events around each wait of the loop, on the stream that is current when the first is recorded.

    `cuda` is `torch.cuda`, or something with its interface.
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
        """Return the seconds that the GPU waited for each batch, and the seconds from batch to batch."""
        self.read()
        return np.array(self.idle), np.array(self.lengths)
