"""The lab's own loaders: the training loop itself, or a worker pool of threads or of processes.

Each worker has its own queue, and batch j goes to worker j mod W, as in PyTorch's DataLoader.
"""

from __future__ import annotations

import concurrent.futures as futures
import multiprocessing
import os
import pickle
import shutil
import signal
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self, cast

import cloudpickle
import numpy as np

from ..errors import InputError, WorkerError
from .batches import DeliveredBatch
from .devices import CONNECTIONS, MAX_CONNECTIONS, StorageClock
from .setup import RunSetup

# The slowest batch that is waited for. A worker that takes longer has died without a message, or hangs.
BATCH_TIMEOUT = 120.0  # seconds
# What a worker may take to end the batch that is under way once nobody wants it.
LAST_BATCH_TIMEOUT = 10.0  # seconds
# What a worker process may take to end by itself before it is killed.
END_TIMEOUT = 2.0  # seconds
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
        """The loss of a worker that an error of the loop stands for; None where it is something else."""
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
        """Stop the workers: what is ordered is dropped, what is under way is waited for, within a limit."""
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


@dataclass(frozen=True)
class SharedMemory:
    """Arrays in files in memory: a dying worker takes blocks of `multiprocessing.shared_memory` along."""

    folder: Path

    @classmethod
    def reserve(cls, **sizes: int) -> Self:
        """Make files of these names and sizes [B], and numbers for control."""
        memory = cls(Path(tempfile.mkdtemp(prefix="starvelab-", dir=_in_memory(sum(sizes.values())))))
        try:
            for name, size in (*sizes.items(), ("control", 8 * CONTROL)):
                _reserve(memory.folder / name, size)
        except WorkerError:
            memory.close()
            raise
        return memory

    def control(self) -> np.ndarray:
        """The numbers that a loader and its workers share."""
        return np.memmap(self.folder / "control", np.float64, "r+", shape=(CONTROL,))

    def ring(self, setup: RunSetup) -> np.ndarray:
        """As many slots as were reserved, each with room for one batch of that pipeline."""
        file = self.folder / "ring"
        slots = file.stat().st_size // setup.layout.size
        return np.memmap(file, setup.layout.dtype, "r+", shape=(slots, *setup.layout.shape))

    def close(self) -> None:
        """Give the memory back."""
        shutil.rmtree(self.folder, ignore_errors=True)


def by_value(content: object) -> bytes:
    """Serialize for another process, which may never have seen the notebook that a function is defined in."""
    try:
        return bytes(cloudpickle.dumps(content))
    except (TypeError, pickle.PicklingError) as error:
        raise InputError(
            f"Transforms must be such that they can be sent to another process, and {error}. Take locks, "
            "open files and generators out of them, or pass kind='threads'."
        ) from error


def _in_memory(size: int) -> str | None:
    """A folder in memory with room for that many bytes; None for the usual place of temporary files."""
    home = "/dev/shm"
    if os.path.isdir(home) and os.access(home, os.W_OK) and shutil.disk_usage(home).free > 1.1 * size:
        return home
    return None


def _reserve(path: Path, size: int) -> None:
    """Make a file with room for `size` bytes: a full disk shows here, and not as a crash in the middle."""
    with path.open("wb") as file:
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
        except OSError as error:
            raise WorkerError(
                f"Worker processes need {size / 1e6:.0f} MB of shared memory for their batches, and "
                f"{path.parent} has no room: {error.strerror}. Send uint8, take smaller batches, or pass "
                "kind='threads'."
            ) from error


class ProcessLoader(PoolLoader):
    """A process for each worker, which writes its batches into a ring of slots in shared memory."""

    def __init__(self, setup: RunSetup) -> None:
        # One slot for each batch ordered ahead, and one for the batch that the training loop works with.
        slots = setup.workers * setup.prefetch + 1
        self.free = deque(range(slots))
        self.held: int | None = None
        self.shared = SharedMemory.reserve(ring=slots * setup.layout.size)
        super().__init__(setup)

    def _start(self, setup: RunSetup) -> Sequence[futures.Executor]:
        self.control, self.ring = self.shared.control(), self.shared.ring(setup)
        context = multiprocessing.get_context("spawn")
        start = (by_value((setup, self.shared)), context.Lock())
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
        """Stop the workers, also those that hang or are only starting, and give the shared memory back."""
        pools = [one for one in self.executors if isinstance(one, futures.ProcessPoolExecutor)]
        # Before the executors forget them; from Python 3.14 on `kill_workers` does it.
        workers = [worker for pool in pools for worker in (pool._processes or {}).values()]
        # typeshed takes this thread for a `_ThreadWakeup`.
        managers = [cast("threading.Thread | None", pool._executor_manager_thread) for pool in pools]
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        # Only an executor's own thread waits for its worker: of two that wait, one never learns of the end.
        _join(managers)
        for worker in workers:
            worker.kill()
        _join(managers)
        super().close()
        for name in ("ring", "control"):  # a file that is mapped cannot be removed on every system
            vars(self).pop(name, None)
        self.shared.close()


def _join(threads: Iterable[threading.Thread | None]) -> None:
    """Wait for threads, for all of them together no longer than a worker may take to end."""
    deadline = time.monotonic() + END_TIMEOUT
    for thread in threads:
        if thread is not None:
            thread.join(max(0.0, deadline - time.monotonic()))


# Set once when a worker process starts, since an executor offers no other place for it: prepares a batch in
# a slot, which it gives back in place of the array.
_prepared: Callable[[int, int], DeliveredBatch]


def _begin(blob: bytes, lock: AbstractContextManager[object]) -> None:
    global _prepared
    # An interrupt reaches the whole group of processes; only the training loop shall answer it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    setup, shared = cloudpickle.loads(blob)
    control, ring = shared.control(), shared.ring(setup)
    preparer = setup.preparer(StorageClock(setup.storage, control, lock))

    def prepared(number: int, slot: int) -> DeliveredBatch:
        delivery: DeliveredBatch = preparer.batch(number, int(control[RUNG]), ring[slot])
        return delivery._replace(array=slot)

    _prepared = prepared


def _prepare(number: int, slot: int) -> DeliveredBatch:
    return _prepared(number, slot)
