"""Workers in threads: nothing to hand over, but Python's own work runs one thread at a time."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from ..devices import StorageClock
from ..protocols import ArrayPipeline, Work
from .base import PoolLoader

Prepared = tuple[np.ndarray, Work]


class ThreadLoader(PoolLoader[Prepared]):
    """A thread for each worker."""

    rung = 0

    def _start(self, pipe: ArrayPipeline) -> list[ThreadPoolExecutor]:
        clock = StorageClock(pipe.storage, np.zeros(1), threading.Lock())
        self.preparers = [pipe.preparer(clock) for _ in range(self.workers)]
        return [ThreadPoolExecutor(1, f"starvelab-{i}") for i in range(self.workers)]

    def _send(self, worker: int, number: int) -> Future[Prepared]:
        # The rung is looked up when the batch is made, so that a change takes hold at once.
        preparer = self.preparers[worker]
        return self.executors[worker].submit(lambda: preparer.batch(number, self.rung))

    def _take(self, number: int, result: Prepared) -> Prepared:  # noqa: ARG002
        return result
