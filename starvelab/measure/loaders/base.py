"""What loaders with workers have in common: one executor for each worker, and batches ordered ahead."""

from __future__ import annotations

import concurrent.futures as futures
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from ...errors import WorkerError
from ..protocols import ArrayPipeline, Delivery, Work

# The slowest batch that is waited for. A worker that takes longer has died without a message, or hangs.
BATCH_TIMEOUT = 120.0  # seconds
# What a worker may take to end the batch that is under way once nobody wants it.
LAST_BATCH_TIMEOUT = 10.0  # seconds

Result = TypeVar("Result")  # what a worker gives back for a batch
Order: TypeAlias = "tuple[int, int, futures.Future[Result]]"  # batch, worker, and what will come of it


class PoolLoader(ABC, Generic[Result]):
    """One executor of a single worker for each worker, each with a few batches ordered ahead.

    Parameters
    ----------
    pipe : ArrayPipeline
    """

    def __init__(self, pipe: ArrayPipeline) -> None:
        self.workers, self.ahead = pipe.workers, pipe.workers * pipe.prefetch
        self.in_order = pipe.in_order
        self.number = 0
        self.ordered: deque[Order[Result]] = deque()
        self.executors: Sequence[futures.Executor] = []
        try:
            self.executors = self._start(pipe)
            for _ in range(self.ahead):
                self._order(self.number % self.workers)
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _start(self, pipe: ArrayPipeline) -> Sequence[futures.Executor]:
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
        """Wait for the oldest batch, or for whichever is ready first where order does not matter.

        Raises
        ------
        WorkerError
            If a worker hangs or has died.
        """
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
                "Try its transforms with loader='inline' to see where."
            ) from error
        del self.ordered[position]
        array, work = self._take(number, result)
        # In order the next batch goes to the worker whose turn it is, else to the one that just delivered.
        self._order(self.number % self.workers if self.in_order else worker)
        return Delivery(number, worker, array, work)

    def lost_worker(self, error: BaseException | None) -> WorkerError | None:  # noqa: ARG002
        """None: `next` says itself when a worker is lost."""
        return None

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
            "workers, smaller batches, or loader='threads'. In a script, run it below "
            "if __name__ == '__main__'."
        ) from error
