"""The lab's own loaders: the training loop itself, or a worker pool of threads or of processes.

Each worker has its own queue, and batch j goes to worker j mod W, as in PyTorch's DataLoader.
"""

from __future__ import annotations

import concurrent.futures as futures
import multiprocessing
import pickle
import signal
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.sharedctypes import RawArray
from typing import Any

import cloudpickle
import numpy as np

from ..errors import InputError, WorkerError
from .batches import DeliveredBatch
from .devices import CONNECTIONS, MAX_CONNECTIONS, StorageClock
from .setup import Layout, RunSetup

# The slowest batch that is waited for. A worker that takes longer has died without a message, or hangs.
BATCH_TIMEOUT = 120.0  # seconds
# What a worker may take to end the batch that is under way once nobody wants it.
LAST_BATCH_TIMEOUT = 10.0  # seconds
# What a loop and its workers share: when the storage and its connections are free (see `StorageClock`), and
# the rung.
CONTROL = CONNECTIONS + MAX_CONNECTIONS
RUNG = 1


class Loader(ABC):
    """Batches without end, from workers or from the training loop itself."""

    workers: int
    ahead: int  # batches that are ordered before the loop asks for them
    control: np.ndarray

    @property
    def rung(self) -> int:
        """Parts that the workers take from their caches; they look it up for each batch."""
        return int(self.control[RUNG])

    @rung.setter
    def rung(self, value: int) -> None:
        self.control[RUNG] = value

    @abstractmethod
    def next(self) -> DeliveredBatch:
        """Wait for the next batch."""

    def lost_worker(self, error: BaseException | None) -> WorkerError | None:  # noqa: ARG002
        """The lost worker behind an error of the loop; None if the error has another cause."""
        return None

    @abstractmethod
    def close(self) -> None:
        """End the workers and give their memory back."""


class InlineLoader(Loader):
    """No workers: the training loop, which counts as worker -1, prepares each batch when it asks for it."""

    workers = ahead = 0

    def __init__(self, setup: RunSetup) -> None:
        self.control, self.number = np.zeros(CONTROL), 0
        self.preparer = setup.preparer(StorageClock(setup.storage, self.control))

    def next(self) -> DeliveredBatch:
        """Prepare the next batch."""
        self.number += 1
        return self.preparer.batch(self.number - 1, self.rung)

    def close(self) -> None:
        """Nothing runs."""


class PoolLoader(Loader):
    """One executor of a single worker for each worker, each with a few batches ordered ahead."""

    def __init__(self, setup: RunSetup) -> None:
        self.workers, self.ahead = setup.workers, setup.workers * setup.prefetch
        self.in_order = setup.in_order
        self.number = 0
        self.ordered: deque[tuple[int, int, futures.Future[DeliveredBatch]]] = (
            deque()
        )  # batch, worker, its promise
        self.executors: Sequence[futures.Executor] = []
        try:
            self.executors = self._start(setup)
            for _ in range(self.ahead):
                self._order(self.number % self.workers)
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _start(self, setup: RunSetup) -> Sequence[futures.Executor]:
        """An executor for each worker."""

    @abstractmethod
    def _send(self, worker: int, number: int) -> futures.Future[DeliveredBatch]:
        """Let a worker prepare batch `number`."""

    def _receive(self, delivery: DeliveredBatch) -> DeliveredBatch:
        """A batch with its array, from what came back from its worker."""
        return delivery

    def _order(self, worker: int) -> None:
        with _naming_lost_workers():
            self.ordered.append((self.number, worker, self._send(worker, self.number)))
        self.number += 1

    def next(self) -> DeliveredBatch:
        """Wait for the oldest batch, or for whichever is ready first where order does not matter."""
        position = 0
        if not self.in_order:
            promises = [promise for *_, promise in self.ordered]
            futures.wait(promises, timeout=BATCH_TIMEOUT, return_when=futures.FIRST_COMPLETED)
            position = next((i for i, promise in enumerate(promises) if promise.done()), 0)
        number, worker, promise = self.ordered[position]
        try:
            with _naming_lost_workers():
                delivery = promise.result(timeout=BATCH_TIMEOUT)
        except futures.TimeoutError as error:
            raise WorkerError(
                f"Batch {number} has not come after {BATCH_TIMEOUT:.0f} s, so worker {worker} hangs. "
                "Try its transforms with workers=0 to see where."
            ) from error
        del self.ordered[position]
        delivery = self._receive(delivery)._replace(worker=worker)
        # In order the next batch goes to the worker whose turn it is, else to the one that just delivered.
        self._order(self.number % self.workers if self.in_order else worker)
        return delivery

    def close(self) -> None:
        """Stop the workers: drop ordered batches, and wait for running ones, within a limit."""
        for executor in self.executors:
            executor.shutdown(wait=False, cancel_futures=True)
        begun = [promise for *_, promise in self.ordered if not promise.cancelled()]
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


class ThreadLoader(PoolLoader):
    """A thread for each worker: nothing to hand over, but Python's own work runs one thread at a time."""

    def _start(self, setup: RunSetup) -> Sequence[futures.Executor]:
        self.control = np.zeros(CONTROL)
        storage = StorageClock(setup.storage, self.control)
        self.preparers = [setup.preparer(storage) for _ in range(self.workers)]
        return [futures.ThreadPoolExecutor(1, f"starvelab-{i}") for i in range(self.workers)]

    def _send(self, worker: int, number: int) -> futures.Future[DeliveredBatch]:
        # The rung is read when the batch is made, so that a change takes hold at once.
        return self.executors[worker].submit(lambda: self.preparers[worker].batch(number, self.rung))


def by_value(content: object) -> bytes:
    """Serialize for another process, which may never have seen the notebook that a function is defined in."""
    try:
        return bytes(cloudpickle.dumps(content))
    except (TypeError, pickle.PicklingError) as error:
        raise InputError(
            f"Transforms are pickled for another process, and that failed: {error}. Take locks, "
            "open files and generators out of them, or pass kind='threads'."
        ) from error


class ProcessLoader(PoolLoader):
    """A process for each worker, which writes its batches into a ring of slots in shared memory."""

    def __init__(self, setup: RunSetup) -> None:
        # One slot for each batch ordered ahead, and one for the batch that the training loop works with.
        slots = setup.workers * setup.prefetch + 1
        self.free = deque(range(slots))
        self.held: int | None = None
        self.shared = RawArray("d", CONTROL), RawArray("b", slots * setup.layout.size)
        self.control, self.ring = _control_and_ring(self.shared, setup.layout)
        super().__init__(setup)

    def _start(self, setup: RunSetup) -> Sequence[futures.Executor]:
        context = multiprocessing.get_context("spawn")
        start = (by_value(setup), self.shared, context.Lock())
        return [
            futures.ProcessPoolExecutor(1, context, initializer=_begin, initargs=start)
            for _ in range(self.workers)
        ]

    def _send(self, worker: int, number: int) -> futures.Future[DeliveredBatch]:
        return self.executors[worker].submit(_prepare, number, self.free.popleft())

    def _receive(self, delivery: DeliveredBatch) -> DeliveredBatch:
        if self.held is not None:
            self.free.append(self.held)
        self.held = int(delivery.array)
        return delivery._replace(array=self.ring[self.held])

    def close(self) -> None:
        """Kill the workers, also those that hang or are only starting: they hold nothing to save."""
        pools = [pool for pool in self.executors if isinstance(pool, futures.ProcessPoolExecutor)]
        # From Python 3.14 on an executor has `kill_workers`.
        for worker in [worker for pool in pools for worker in (pool._processes or {}).values()]:
            worker.kill()
        for pool in pools:
            pool.shutdown(cancel_futures=True)


# Any: the arrays of ctypes that a loader and its worker processes share.
def _control_and_ring(shared: tuple[Any, Any], layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """The numbers for control, and as many slots as there is room for, each for one batch."""
    numbers, batches = shared
    return np.frombuffer(numbers), np.frombuffer(batches, layout.dtype).reshape(-1, *layout.shape)


# Set once when a worker process starts, since an executor offers no other place for it: prepares a batch in
# a slot, which it gives back in place of the array.
_prepared: Callable[[int, int], DeliveredBatch]


def _begin(blob: bytes, shared: tuple[Any, Any], lock: AbstractContextManager[object]) -> None:
    global _prepared
    # An interrupt reaches the whole group of processes; only the training loop shall answer it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    setup: RunSetup = cloudpickle.loads(blob)
    control, ring = _control_and_ring(shared, setup.layout)
    preparer = setup.preparer(StorageClock(setup.storage, control, lock))

    def prepared(number: int, slot: int) -> DeliveredBatch:
        delivery = preparer.batch(number, int(control[RUNG]), ring[slot])
        return delivery._replace(array=slot)

    _prepared = prepared


def _prepare(number: int, slot: int) -> DeliveredBatch:
    return _prepared(number, slot)
