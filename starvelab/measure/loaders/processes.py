"""Workers in processes, which write their batches into a ring of slots in shared memory."""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import cast

import cloudpickle
import numpy as np

from ..devices import StorageClock
from ..protocols import BatchPreparer, Work
from ..setup import Setup
from .shared import SharedMemory, SharedRung, by_value
from .threads import PoolLoader

# What a worker process may take to end by itself before it is killed.
END_TIMEOUT = 2.0  # seconds


class ProcessLoader(SharedRung, PoolLoader[Work]):
    """A process for each worker."""

    def __init__(self, setup: Setup) -> None:
        # One slot for each batch ordered ahead, and one for the batch that the training loop works with.
        slots = setup.workers * setup.prefetch + 1
        self.free = deque(range(slots))
        self.held: int | None = None
        self.slot_of: dict[int, int] = {}
        self.shared = SharedMemory(slots * setup.batch_bytes, slots=slots)
        super().__init__(setup)

    def _start(self, setup: Setup) -> list[ProcessPoolExecutor]:
        self.ring = self.shared.ring(setup)
        context = multiprocessing.get_context("spawn")
        lock = context.Lock()
        blob = by_value((setup, self.shared))
        return [
            ProcessPoolExecutor(1, context, initializer=_begin, initargs=(blob, lock))
            for _ in range(self.workers)
        ]

    def _send(self, worker: int, number: int) -> Future[Work]:
        slot = self.slot_of[number] = self.free.popleft()
        return self.executors[worker].submit(_prepare, number, slot)

    def _take(self, number: int, result: Work) -> tuple[np.ndarray, Work]:
        if self.held is not None:
            self.free.append(self.held)
        self.held = self.slot_of.pop(number)
        return self.ring[self.held], result

    def close(self) -> None:
        """Stop the workers, also those that hang or are only starting, and give the shared memory back."""
        pools = [one for one in self.executors if isinstance(one, ProcessPoolExecutor)]
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
        vars(self).pop("ring", None)
        self.shared.close()


def _join(threads: Iterable[threading.Thread | None]) -> None:
    """Wait for threads, for all of them together no longer than a worker may take to end."""
    deadline = time.monotonic() + END_TIMEOUT
    for thread in threads:
        if thread is not None:
            thread.join(max(0.0, deadline - time.monotonic()))


@dataclass(frozen=True)
class _Worker:
    """What a worker process works with."""

    shared: SharedMemory
    ring: np.ndarray
    preparer: BatchPreparer


# Set once when a worker process begins: an executor offers no other place for it.
_worker: _Worker


def _begin(blob: bytes, lock: AbstractContextManager[object]) -> None:
    global _worker
    # An interrupt reaches the whole group of processes; only the training loop shall answer it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    setup, shared = cloudpickle.loads(blob)
    preparer = setup.preparer(StorageClock(setup.storage, shared.control, lock))
    _worker = _Worker(shared, shared.ring(setup), preparer)


def _prepare(number: int, slot: int) -> Work:
    rung = int(_worker.shared.control[SharedMemory.RUNG])
    _, work = _worker.preparer.batch(number, rung, out=_worker.ring[slot])
    return work
