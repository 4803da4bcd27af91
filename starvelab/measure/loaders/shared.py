"""What a training loop shares with workers in other processes: numbers and batches in memory, and code."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
from functools import cached_property
from pathlib import Path

import cloudpickle
import numpy as np

from ...errors import InputError, WorkerError
from ..setup import Setup


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
