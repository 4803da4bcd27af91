"""PyTorch's own `DataLoader` behind the interface of the other loaders, with the times of its workers."""

from __future__ import annotations

import itertools
import multiprocessing
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from multiprocessing.sharedctypes import RawArray
from typing import Any

import cloudpickle
import numpy as np

from ..errors import InputError, WorkerError, install_hint
from .batches import Batch, DeliveredBatch, Sample
from .devices import StorageClock
from .loaders import BATCH_TIMEOUT, CONTROL, RUNG, Loader, by_value
from .preparation import Preparer
from .setup import RunSetup

try:
    import torch
    from torch.utils.data import DataLoader, Dataset, default_collate, get_worker_info
except ImportError as error:
    raise InputError(
        "kind='torch' needs PyTorch, and it is not installed. Take another loader (threads, "
        f"processes). {install_hint('torch')}"
    ) from error


class TorchLoader(Loader):
    """A `DataLoader` over the samples of a pipeline."""

    def __init__(self, setup: RunSetup) -> None:
        self.workers, self.ahead = setup.workers, setup.workers * setup.prefetch
        numbers = RawArray("d", CONTROL)
        self.control = np.frombuffer(numbers)
        dataset = _Dataset(by_value(setup), numbers, multiprocessing.get_context().Lock())
        batches = itertools.count(step=setup.batch_size)
        with warnings.catch_warnings():
            # More workers than cores is what some experiments are about.
            warnings.filterwarnings("ignore", message="This DataLoader will create")
            loader = DataLoader(
                dataset,
                batch_sampler=(list(range(first, first + setup.batch_size)) for first in batches),
                num_workers=self.workers,
                collate_fn=dataset.collate,
                worker_init_fn=_ignore_interrupts,
                pin_memory=setup.pinned and torch.cuda.is_available(),
                # Without workers torch accepts none of these.
                prefetch_factor=setup.prefetch if self.workers else None,
                timeout=BATCH_TIMEOUT if self.workers else 0,
                in_order=setup.in_order or not self.workers,
            )
        self.iterator: Iterator[DeliveredBatch] = iter(loader)

    def next(self) -> DeliveredBatch:
        """The next batch, as a tensor."""
        return next(self.iterator)

    def lost_worker(self, error: BaseException | None) -> WorkerError | None:
        """PyTorch tells of a lost worker by a signal, so its error comes wherever the loop was just then."""
        return explain_lost_worker(error)

    def close(self) -> None:
        """Stop the workers."""
        # Left to the garbage collector, they would live as long as a traceback that mentions the iterator.
        try:
            if self.workers:
                self.iterator._shutdown_workers()  # type: ignore[attr-defined]  # of workers
        except RuntimeError as error:
            if explain_lost_worker(error) is None:  # a lost worker need not be stopped any more
                raise
        finally:
            del self.iterator


def explain_lost_worker(error: BaseException | None) -> WorkerError | None:
    """Return the error that explains PyTorch's own one for a lost worker; None for any other."""
    own_words = str(error).startswith(("DataLoader worker (pid", "DataLoader timed out"))
    # A batch whose sender is gone; what a dataset raised itself begins otherwise.
    cut_off = isinstance(error, ConnectionError | EOFError) and not str(error).startswith("Caught")
    if not (cut_off or (isinstance(error, RuntimeError) and own_words)):
        return None
    return WorkerError(
        "A worker of the DataLoader died or hangs. Something ended it from outside, most often a lack of "
        "memory or of room in /dev/shm. Try fewer workers, smaller batches, or send uint8."
    )


class _Dataset(Dataset[Sample]):
    """The samples of a pipeline, fetched a batch at a time."""

    # Any: an array of ctypes.
    def __init__(self, blob: bytes, numbers: Any, lock: AbstractContextManager[object]) -> None:
        self.blob, self.numbers, self.lock = blob, numbers, lock

    # These are made in the worker. By value, so that functions of a notebook reach a spawned one, too.

    @cached_property
    def setup(self) -> RunSetup:
        setup: RunSetup = cloudpickle.loads(self.blob)
        return setup

    @cached_property
    def control(self) -> np.ndarray:
        return np.frombuffer(self.numbers)

    @cached_property
    def preparer(self) -> Preparer:
        return self.setup.preparer(StorageClock(self.setup.storage, self.control, self.lock))

    def __getitems__(self, indices: list[int]) -> list[Sample]:
        self.start, self.number = time.monotonic(), indices[0] // len(indices)
        self.seconds = dict.fromkeys(self.preparer.stages, 0.0)
        self.rung = int(self.control[RUNG])
        return [self.preparer.sample(index, self.rung, self.seconds) for index in indices]

    def collate(self, samples: list[Sample]) -> DeliveredBatch:
        before = time.perf_counter()
        array = _joined(samples)
        self.seconds["collate"] = time.perf_counter() - before
        worker = info.id if (info := get_worker_info()) else -1
        # A named tuple: torch pins the memory of what it finds in one.
        return DeliveredBatch(
            self.number, worker, array, self.start, time.monotonic(), self.rung, self.seconds
        )


def _joined(samples: list[Sample]) -> Batch:
    try:
        with warnings.catch_warnings():
            # Of an array that was made from an image or from bytes; joining copies it anyway.
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            return default_collate(samples)
    except (RuntimeError, TypeError) as error:
        raise InputError(
            f"All samples of a batch must have one shape and type, and be arrays or tensors: {error}. "
            "Let the last transform bring them to that."
        ) from error


def _ignore_interrupts(worker: int) -> None:  # noqa: ARG001
    # An interrupt reaches the whole group of processes; only the training loop shall answer it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
