"""Workers in processes, which write their batches into a ring of slots in shared memory.

What a training loop shares with them, numbers, batches and code, PyTorch's workers use as well.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

import cloudpickle
import numpy as np

from ...errors import InputError, WorkerError
from ..devices import StorageClock
from ..protocols import BatchPreparer, Work
from ..setup import Setup
from .threads import PoolLoader

# What a worker process may take to end by itself before it is killed.
END_TIMEOUT = 2.0  # seconds


class SharedMemory:
    """A few numbers, and a ring of batches.

    Files in memory rather than `multiprocessing.shared_memory`, whose blocks a dying worker takes along. The
    ring has `size` bytes and holds `slots` batches.
    """

    FREE_AT, RUNG = 0, 1  # what the numbers are: see `StorageClock`, and `Loader.rung`

    def __init__(self, size: int, *, slots: int) -> None:
        self.slots = slots
        self.folder = Path(tempfile.mkdtemp(prefix="starvelab-", dir=_in_memory(size)))
        try:
            _reserve(self.folder / "ring", size)
            _reserve(self.folder / "control", 8 * 2)
        except WorkerError:
            self.close()
            raise

    def __getstate__(self) -> dict[str, object]:
        # Without what is cached: a memory map would be copied.
        return {name: vars(self)[name] for name in ("slots", "folder")}

    @cached_property
    def control(self) -> np.ndarray:
        """When the storage is free again, and which rung is cached."""
        return np.memmap(self.folder / "control", np.float64, "r+", shape=(2,))

    def ring(self, setup: Setup) -> np.ndarray:
        """The slots, each with room for one batch of that pipeline."""
        return np.memmap(self.folder / "ring", setup.dtype, "r+", shape=(self.slots, *setup.batch_shape))

    def close(self) -> None:
        """Give the memory back."""
        vars(self).pop("control", None)
        shutil.rmtree(self.folder, ignore_errors=True)


class SharedRung:
    """The rung of a loader whose workers are processes: they look it up in shared memory for each batch."""

    shared: SharedMemory

    @property
    def rung(self) -> int:
        """How many parts come from the cache."""
        return int(self.shared.control[SharedMemory.RUNG])

    @rung.setter
    def rung(self, value: int) -> None:
        self.shared.control[SharedMemory.RUNG] = value


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
