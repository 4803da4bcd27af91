"""Loaders on one interface: in the training loop itself, in threads, in processes, or PyTorch's own.

Each worker has its own queue, and batch j goes to worker j mod W, as in PyTorch's DataLoader: that is the
rule of `starvelab.simulate` too. They do not know the accelerator.
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
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import psutil

from ..errors import InputError, WorkerError
from .preparation import Work
from .stand_ins import StorageClock

# The slowest batch that is waited for. A worker that takes longer has died without a word, or hangs.
PATIENCE = 120.0  # seconds
# What a worker may take to end the batch that is under way once nobody wants it.
LAST_BATCH = 10.0  # seconds


@dataclass(frozen=True)
class Delivery:
    """A batch as the training loop gets it."""

    number: int
    worker: int
    array: Any
    work: Work


def open_loader(pipe: Any) -> Any:
    """The loader that a pipeline asks for, running."""
    _ = pipe.batch_bytes  # prepares one sample here: a transform that fails says so before any worker starts
    if pipe.loader == "torch":
        from .torch_loader import TorchLoader

        return TorchLoader(pipe)
    if pipe.loader == "inline" or pipe.workers == 0:
        return InlineLoader(pipe)
    return {"threads": ThreadLoader, "processes": ProcessLoader}[pipe.loader](pipe)


class InlineLoader:
    """No workers: the training loop, which counts as worker -1, prepares each batch when it wants it."""

    workers = ahead = 0

    def __init__(self, pipe: Any) -> None:
        self.preparer = pipe.preparer(StorageClock(pipe.storage, np.zeros(1), threading.Lock()))
        self.rung, self.number = 0, 0

    def next(self) -> Delivery:
        """The next batch."""
        number, self.number = self.number, self.number + 1
        array, work = self.preparer.batch(number, self.rung)
        return Delivery(number, -1, array, work)

    def close(self) -> None:
        """Nothing runs."""


class PoolLoader:
    """One executor of a single worker for each worker, each with a few batches ordered ahead.

    Parameters
    ----------
    pipe : InputPipeline
    """

    def __init__(self, pipe: Any) -> None:
        self.workers, self.ahead = pipe.workers, pipe.workers * pipe.prefetch
        self.in_order = pipe.in_order
        self.number = 0
        self.ordered: deque[tuple[int, int, futures.Future]] = deque()
        self.executors: list[futures.Executor] = []
        try:
            self.executors = self._start(pipe)
            for _ in range(self.ahead):
                self._order(self.number % self.workers)
        except BaseException:
            self.close()
            raise

    def _start(self, pipe: Any) -> list[futures.Executor]:
        raise NotImplementedError

    def _send(self, worker: int, number: int) -> futures.Future:
        raise NotImplementedError

    def _take(self, number: int, result: Any) -> tuple[Any, Work]:
        """Batch `number` as an array, from what came back from its worker."""
        raise NotImplementedError

    def _order(self, worker: int) -> None:
        with _naming_the_dead():
            self.ordered.append((self.number, worker, self._send(worker, self.number)))
        self.number += 1

    def next(self) -> Delivery:
        """The next batch: the oldest one, or whichever is ready where order does not matter."""
        if self.in_order:
            position = 0
        else:
            futures.wait(
                [future for *_, future in self.ordered], timeout=PATIENCE, return_when=futures.FIRST_COMPLETED
            )
            done = (i for i, (*_, future) in enumerate(self.ordered) if future.done())
            position = next(done, 0)
        number, worker, future = self.ordered[position]
        try:
            with _naming_the_dead():
                result = future.result(timeout=PATIENCE)
        except futures.TimeoutError as error:
            raise WorkerError(
                f"Batch {number} has not come after {PATIENCE:.0f} s, so worker {worker} hangs. "
                "Try its transforms with loader='inline' to see where."
            ) from error
        del self.ordered[position]
        array, work = self._take(number, result)
        # In order the next batch goes to the worker whose turn it is, else to the one that just delivered.
        self._order(self.number % self.workers if self.in_order else worker)
        return Delivery(number, worker, array, work)

    def close(self) -> None:
        """Stop the workers: what is ordered is dropped, what is under way is waited for, within reason."""
        for executor in self.executors:
            executor.shutdown(wait=False, cancel_futures=True)
        begun = [future for *_, future in self.ordered if not future.cancelled()]
        # A thread that hangs cannot be ended.
        if not futures.wait(begun, timeout=LAST_BATCH).not_done:
            for executor in self.executors:
                executor.shutdown(wait=True)


class ThreadLoader(PoolLoader):
    """Workers in threads: nothing to hand over, and Python's own work runs one thread at a time."""

    rung = 0

    def _start(self, pipe: Any) -> list[futures.Executor]:
        clock = StorageClock(pipe.storage, np.zeros(1), threading.Lock())
        self.preparers = [pipe.preparer(clock) for _ in range(self.workers)]
        return [futures.ThreadPoolExecutor(1, f"starvelab-{i}") for i in range(self.workers)]

    def _send(self, worker: int, number: int) -> futures.Future:
        # The rung is looked up when the batch is made, so that a change takes hold at once.
        preparer = self.preparers[worker]
        return self.executors[worker].submit(lambda: preparer.batch(number, self.rung))

    def _take(self, number: int, result: tuple[Any, Work]) -> tuple[Any, Work]:  # noqa: ARG002
        return result


class SharedRung:
    """The rung of a loader whose workers are processes: they look it up in shared memory for each batch."""

    shared: Shared

    @property
    def rung(self) -> int:
        """How many parts come from the cache."""
        return int(self.shared.control[Shared.RUNG])

    @rung.setter
    def rung(self, value: int) -> None:
        self.shared.control[Shared.RUNG] = value


class ProcessLoader(SharedRung, PoolLoader):
    """Workers in processes, which write their batches into a ring of slots in shared memory."""

    def __init__(self, pipe: Any) -> None:
        # One slot for each batch ordered ahead, and one for the batch that the training loop works with.
        slots = pipe.workers * pipe.prefetch + 1
        self.free = deque(range(slots))
        self.held: int | None = None
        self.slot_of: dict[int, int] = {}
        self.shared = Shared(slots * pipe.batch_bytes, slots=slots)
        super().__init__(pipe)

    def _start(self, pipe: Any) -> list[futures.Executor]:
        self.ring = self.shared.ring(pipe)
        context = multiprocessing.get_context("spawn")
        lock = context.Lock()
        blob = by_value((pipe, self.shared))
        return [
            futures.ProcessPoolExecutor(1, context, initializer=_begin, initargs=(blob, lock))
            for _ in range(self.workers)
        ]

    def _send(self, worker: int, number: int) -> futures.Future:
        slot = self.slot_of[number] = self.free.popleft()
        return self.executors[worker].submit(_prepare, number, slot)

    def _take(self, number: int, result: Work) -> tuple[Any, Work]:
        if self.held is not None:
            self.free.append(self.held)
        self.held = self.slot_of.pop(number)
        return self.ring[self.held], result

    def close(self) -> None:
        """Stop the workers, also those that hang or are only starting, and give the shared memory back."""
        # Before the executors forget them; from Python 3.14 on `kill_workers` does it.
        pids = [pid for executor in self.executors for pid in executor._processes or ()]
        for executor in self.executors:
            executor.shutdown(wait=False, cancel_futures=True)
        end_workers(pids)
        super().close()
        vars(self).pop("ring", None)
        self.shared.close()


class Shared:
    """Memory that a training loop and its worker processes share: a few numbers, and a ring of batches.

    Files in memory rather than `multiprocessing.shared_memory`, whose blocks a dying worker takes along.
    """

    FREE_AT, RUNG = 0, 1  # what the numbers are

    def __init__(self, size: int, *, slots: int) -> None:
        self.slots = slots
        self.folder = Path(tempfile.mkdtemp(prefix="starvelab-", dir=_in_memory(size)))
        try:
            _reserve(self.folder / "ring", size)
            _reserve(self.folder / "control", 8 * 2)
        except WorkerError:
            self.close()
            raise

    def __getstate__(self) -> dict[str, Any]:
        # Without what is cached: a memory map would be copied.
        return {name: vars(self)[name] for name in ("slots", "folder")}

    @cached_property
    def control(self) -> np.ndarray:
        """When the storage is free again, and which rung is cached."""
        return np.memmap(self.folder / "control", np.float64, "r+", shape=(2,))

    def ring(self, pipe: Any) -> np.ndarray:
        """The slots."""
        return np.memmap(self.folder / "ring", pipe.dtype, "r+", shape=(self.slots, *pipe.batch_shape))

    def close(self) -> None:
        """Give the memory back."""
        vars(self).pop("control", None)
        shutil.rmtree(self.folder, ignore_errors=True)


def end_workers(pids: Iterable[int], patience: float = 2.0) -> None:
    """Let worker processes finish their batch, and end those that do not."""
    running = []
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            running.append(psutil.Process(pid))
    _, hanging = psutil.wait_procs(running, timeout=patience)
    for process in hanging:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def by_value(content: Any) -> bytes:
    """For another process, which may never have seen the notebook that a function is defined in."""
    try:
        return cloudpickle.dumps(content)
    except (TypeError, pickle.PicklingError) as error:
        raise InputError(
            f"Stages must be such that they can be sent to another process, and {error}. Take locks, open "
            "files and generators out of them, or loader='threads'."
        ) from error


def lost_worker(error: BaseException | None) -> WorkerError | None:
    """What PyTorch's own words for a lost worker mean; None for any other error."""
    own_words = str(error).startswith(("DataLoader worker (pid", "DataLoader timed out"))
    # A batch whose sender is gone; what a dataset raised itself begins otherwise.
    cut_off = isinstance(error, ConnectionError | EOFError) and not str(error).startswith("Caught")
    if not (cut_off or (isinstance(error, RuntimeError) and own_words)):
        return None
    return WorkerError(
        "A worker of the DataLoader died or hangs. Something ended it from outside, most often a lack of "
        "memory or of room in /dev/shm. Try fewer workers, smaller batches, or send uint8."
    )


@contextmanager
def _naming_the_dead() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool as error:
        raise WorkerError(
            "A worker process died. Something ended it from outside, most often a lack of memory. Try fewer "
            "workers, smaller batches, or loader='threads'. In a script, run it below "
            "if __name__ == '__main__'."
        ) from error


# What a worker process works with, set once when it begins.
_mine: dict[str, Any] = {}


def _begin(blob: bytes, lock: Any) -> None:
    # An interrupt reaches the whole group of processes; only the training loop shall answer it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe, shared = cloudpickle.loads(blob)
    preparer = pipe.preparer(StorageClock(pipe.storage, shared.control, lock))
    _mine.update(shared=shared, ring=shared.ring(pipe), preparer=preparer)


def _prepare(number: int, slot: int) -> Work:
    rung = int(_mine["shared"].control[Shared.RUNG])
    _, work = _mine["preparer"].batch(number, rung, out=_mine["ring"][slot])
    return work


def _in_memory(size: int) -> str | None:
    """A folder in memory with room for that many bytes; None for the usual place of temporary files."""
    home = "/dev/shm"
    if os.path.isdir(home) and os.access(home, os.W_OK) and shutil.disk_usage(home).free > 1.1 * size:
        return home
    return None


def _reserve(path: Path, size: int) -> None:
    """A file with room for `size` bytes: a full disk shows here, and not as a crash in the middle."""
    with path.open("wb") as file:
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
        except OSError as error:
            raise WorkerError(
                f"Worker processes need {size / 1e6:.0f} MB of shared memory for their batches, and "
                f"{path.parent} has no room: {error.strerror}. Send uint8, take smaller batches, or "
                "loader='threads'."
            ) from error
