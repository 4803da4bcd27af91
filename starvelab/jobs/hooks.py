"""What the callbacks of training frameworks share: waits from the moments that their hooks tell.

A framework fetches a batch before it says that a step begins. So the wait for it lies between the end of one
step and the start of the next, unless something else ran there.
"""

from __future__ import annotations

import sys
import time

from tqdm.auto import tqdm

from .finding import JobFinding
from .times import LoopTimes


class HookedLoop:
    """A training loop that is known by its hooks only.

    Parameters
    ----------
    progress : bool
        Say at the end what was found.
    """

    def __init__(self, *, progress: bool = True) -> None:
        self.times = LoopTimes(batch_size=None, workers=None)
        self.progress = progress
        self.pass_begins()

    def pass_begins(self) -> None:
        """The next batch is the first of a pass over the data."""
        self.first, self.known = True, True
        self.wait: float | None = None
        self.elsewhere = 0.0  # seconds of this step that went to another loop
        self.asks()

    def asks(self) -> None:
        """From now on the loop waits for its next batch, and for nothing else."""
        self.asked = time.perf_counter()
        device = self.times.device()
        if device is not None:
            device.asked()

    def something_else(self) -> None:
        """A checkpoint is written: what the loop waits until the next step is not known."""
        self.known = False

    def step_begins(self) -> None:
        """The loop has its batch."""
        self.received = time.perf_counter()
        device = self.times.device()
        if device is not None:
            device.received(first=self.first or not self.known)
        waits = self.times.waits
        waits.batches += 1
        if self.first:
            waits.first.append(self.received - self.asked)
        self.wait = None if self.first or not self.known else self.received - self.asked
        self.first, self.known, self.elsewhere = False, True, 0.0

    def step_ends(self) -> None:
        """The step is over."""
        self.asks()
        if self.wait is not None:
            self.times.waits.add(self.wait, max(0.0, self.asked - self.received - self.elsewhere))
            self.wait = None

    def ends(self) -> None:
        """The training is over."""
        if self.progress:
            tqdm.write(self.result.summary, file=sys.stderr)

    @property
    def result(self) -> JobFinding:
        """What was found so far."""
        return self.times.finding()


class HookedCallback:
    """What a callback of any framework has; the framework's own class stands behind it as the second base.

    Parameters
    ----------
    progress : bool
        Say at the end what was found.
    """

    def __init__(self, *, progress: bool = True) -> None:
        super().__init__()
        self._loop = HookedLoop(progress=progress)

    @property
    def result(self) -> JobFinding:
        """What was found so far."""
        return self._loop.result
