"""Loaders of this process: no workers, or one executor for each of them with batches ordered ahead."""

from __future__ import annotations

import concurrent.futures as futures
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from ...errors import WorkerError
from ..devices import StorageClock
from ..protocols import Delivery, Loader, Work
from ..setup import Setup

# The slowest batch that is waited for. A worker that takes longer has died without a message, or hangs.
BATCH_TIMEOUT = 120.0  # seconds
# What a worker may take to end the batch that is under way once nobody wants it.
LAST_BATCH_TIMEOUT = 10.0  # seconds

Result = TypeVar("Result")  # what a worker gives back for a batch
Order: TypeAlias = "tuple[int, int, futures.Future[Result]]"  # batch, worker, and what will come of it
Prepared: TypeAlias = tuple[np.ndarray, Work]


class InlineLoader(Loader):
    """No workers: the training loop, which counts as worker -1, prepares each batch when it asks for it."""

    workers = ahead = 0

    def __init__(self, setup: Setup) -> None:
        self.preparer = setup.preparer(StorageClock(setup.storage, np.zeros(1), threading.Lock()))
        self.rung, self.number = 0, 0

    def next(self) -> Delivery:
        """Prepare the next batch."""
        number, self.number = self.number, self.number + 1
        return Delivery(number, -1, *self.preparer.batch(number, self.rung))

    def close(self) -> None:
        """Nothing runs."""


class PoolLoader(Loader, Generic[Result]):
    """One executor of a single worker for each worker, each with a few batches ordered ahead."""

    def __init__(self, setup: Setup) -> None:
        self.workers, self.ahead = setup.workers, setup.workers * setup.prefetch
        self.in_order = setup.in_order
        self.number = 0
        self.ordered: deque[Order[Result]] = deque()
        self.executors: Sequence[futures.Executor] = []
        try:
            self.executors = self._start(setup)
            for _ in range(self.ahead):
                self._order(self.number % self.workers)
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _start(self, setup: Setup) -> Sequence[futures.Executor]:
        """An executor for each worker."""

    @abstractmethod
    def _send(self, worker: int, number: int) -> futures.Future[Result]:
        """Let a worker prepare batch `number`."""

    @abstractmethod
    def _take(self, number: int, result: Result) -> tuple[np.ndarray, Work]:
        """Batch `number` as an array, from what came back from its worker."""

    def _order(self, worker: int) -> None:
        with _naming_lost_workers():
            self.ordered.append((self.number, worker, self._send(worker, self.number)))
        self.number += 1

    def next(self) -> Delivery:
        """Wait for the oldest batch, or for whichever is ready first where order does not matter."""
        if self.in_order:
            position = 0
        else:
            futures.wait(
                [future for *_, future in self.ordered],
                timeout=BATCH_TIMEOUT,
                return_when=futures.FIRST_COMPLETED,
            )
            done = (i for i, (*_, future) in enumerate(self.ordered) if future.done())
            position = next(done, 0)
        number, worker, future = self.ordered[position]
        try:
            with _naming_lost_workers():
                result = future.result(timeout=BATCH_TIMEOUT)
        except futures.TimeoutError as error:
            raise WorkerError(
                f"Batch {number} has not come after {BATCH_TIMEOUT:.0f} s, so worker {worker} hangs. "
                "Try its transforms with workers=0 to see where."
            ) from error
        del self.ordered[position]
        array, work = self._take(number, result)
        # In order the next batch goes to the worker whose turn it is, else to the one that just delivered.
        self._order(self.number % self.workers if self.in_order else worker)
        return Delivery(number, worker, array, work)

    def close(self) -> None:
        """Stop the workers: what is ordered is dropped, what is under way is waited for, within a limit."""
        for executor in self.executors:
            executor.shutdown(wait=False, cancel_futures=True)
        begun = [future for *_, future in self.ordered if not future.cancelled()]
        # A thread that hangs cannot be ended.
        if not futures.wait(begun, timeout=LAST_BATCH_TIMEOUT).not_done:
            for executor in self.executors:
                executor.shutdown(wait=True)


@contextmanager
def _naming_lost_workers() -> Iterator[None]:
    try:
        yield
    except futures.BrokenExecutor as error:
        raise WorkerError(
            "A worker process died. Something ended it from outside, most often a lack of memory. Try fewer "
            "workers, smaller batches, or kind='threads'. In a script, run it below "
            "if __name__ == '__main__'."
        ) from error


class ThreadLoader(PoolLoader[Prepared]):
    """A thread for each worker: nothing to hand over, but Python's own work runs one thread at a time."""

    rung = 0

    def _start(self, setup: Setup) -> list[futures.ThreadPoolExecutor]:
        clock = StorageClock(setup.storage, np.zeros(1), threading.Lock())
        self.preparers = [setup.preparer(clock) for _ in range(self.workers)]
        return [futures.ThreadPoolExecutor(1, f"starvelab-{i}") for i in range(self.workers)]

    def _send(self, worker: int, number: int) -> futures.Future[Prepared]:
        # The rung is read when the batch is made, so that a change takes hold at once.
        preparer = self.preparers[worker]
        return self.executors[worker].submit(lambda: preparer.batch(number, self.rung))

    def _take(self, number: int, result: Prepared) -> Prepared:  # noqa: ARG002
        return result
