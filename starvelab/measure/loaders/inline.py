"""No workers: the training loop, which counts as worker -1, prepares each batch when it asks for it."""

from __future__ import annotations

import threading

import numpy as np

from ..devices import StorageClock
from ..protocols import ArrayPipeline, Delivery


class InlineLoader:
    """Prepares each batch in `next` itself.

    Parameters
    ----------
    pipe : ArrayPipeline
    """

    workers = ahead = 0

    def __init__(self, pipe: ArrayPipeline) -> None:
        self.preparer = pipe.preparer(StorageClock(pipe.storage, np.zeros(1), threading.Lock()))
        self.rung, self.number = 0, 0

    def next(self) -> Delivery:
        """Prepare the next batch."""
        number, self.number = self.number, self.number + 1
        array, work = self.preparer.batch(number, self.rung)
        return Delivery(number, -1, array, work)

    def lost_worker(self, error: BaseException | None) -> None:
        """None: there is no worker that could be lost."""

    def close(self) -> None:
        """Nothing runs."""
