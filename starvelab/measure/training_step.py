"""A training step of one's own in place of a simulated accelerator: the loop itself is a suspect.

It is called for each batch of a diagnosis, and trains for real.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ..errors import InputError
from .devices import VirtualLink
from .protocols import Batch, DeviceRun, Passage

WARM_UP = 2  # steps


class Event(Protocol):
    """What `torch.cuda.Event` offers."""

    def record(self, stream: object = None) -> None:
        """Put it on a stream, behind all work that is there."""

    def query(self) -> bool:
        """Whether all work before it is done."""

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds to a later event."""


class Cuda(Protocol):
    """What `torch.cuda` offers of what is used here."""

    def is_initialized(self) -> bool:
        """Whether this program works with a GPU."""

    def Event(self, enable_timing: bool = False) -> Event:
        """Make an event."""

    def synchronize(self) -> None:
        """Wait until the GPU is done."""

    def current_device(self) -> int:
        """Number of the GPU in use."""

    def current_stream(self, device: int | None = None) -> object:
        """The stream that takes the work."""


def cuda_in_use() -> Cuda | None:
    """`torch.cuda`, if this program has PyTorch loaded and works with a GPU."""
    torch = sys.modules.get("torch")
    cuda: Cuda | None = getattr(torch, "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


@dataclass(frozen=True)
class StepDevice:
    """A function that trains on one batch, in place of a simulated accelerator: it is called, and trains.

    Parameters
    ----------
    step : callable
        Takes a batch as the DataLoader gives it. What it returns is not looked at.
    """

    step: Callable[[Batch], object] | None

    # The loop does not go on before a step is done: with a GPU each one is waited for.
    in_flight = 1

    def __post_init__(self) -> None:
        if self.step is not None and not callable(self.step):
            raise InputError(
                f"step must be a function that trains on one batch, got {type(self.step).__name__}. "
                "Pass for example step=train_step."
            )

    def __reduce__(self) -> tuple[type[StepDevice], tuple[None]]:
        # A pipeline travels to its workers. They train nothing, and a model need not be sent there.
        return StepDevice, (None,)

    def open(self, *, link: VirtualLink | None, batch_size: int, pinned: bool) -> StepRun:  # noqa: ARG002
        """The step at work."""
        assert self.step is not None  # workers open no device
        return StepRun(self.step)


class StepRun(DeviceRun):
    """Runs the step for each batch, and keeps its times."""

    def __init__(self, step: Callable[[Batch], object]) -> None:
        self.step = step
        self.passages: list[Passage] = []

    def warm_up(self, batch: Batch) -> None:
        """Train a few steps that are not measured."""
        for _ in range(WARM_UP):
            self.step(batch)
        self.now()

    def take(self, batch: Batch, *, resident: bool = False) -> None:  # noqa: ARG002  # the step copies
        """Train on a batch, and wait until that is done."""
        start = time.monotonic()
        self.step(batch)
        self.passages.append(Passage(start, start, start, self.now()))

    def now(self) -> float:
        """When everything ordered so far is done, on the monotonic clock [s]."""
        cuda = cuda_in_use()
        if cuda is not None:
            cuda.synchronize()
        return time.monotonic()

    def finish(self) -> list[Passage]:
        """The times of every batch."""
        return self.passages
