"""What happens to each batch, and when: the rows that the rules of a loader fill in.

It holds times and knows what a batch meets behind the loader; which batch comes next is decided elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from .loader import Loader


@dataclass(frozen=True, eq=False)
class Timeline:
    """Times of every batch [ms], of shape (batches, replicas), in the order of delivery.

    `batch` counts from 0 in the order in which batches were asked for; `worker` is -1 where the training loop
    prepares. `host_free` is when the loop asks for the next batch.
    """

    batch: np.ndarray
    worker: np.ndarray
    prepare_start: np.ndarray
    prepared: np.ndarray
    received: np.ndarray
    copy_start: np.ndarray
    copied: np.ndarray
    step_start: np.ndarray
    step_end: np.ndarray
    host_free: np.ndarray


@dataclass(frozen=True, eq=False)
class Start:
    """What an epoch begins with, each of shape (replicas,) [ms].

    `asked` is when the loop asks for its first batch and sends the first indices, `workers` when the workers
    can begin; `copied` and `done` are when the accelerator's copy and step before are done. `steps`, of shape
    (any, replicas), are the ends of the steps before, which a loop with several of them in flight waits for.
    """

    asked: np.ndarray
    workers: np.ndarray
    copied: np.ndarray
    done: np.ndarray
    steps: np.ndarray

    @classmethod
    def of_run(cls, loader: Loader, replicas: int) -> Start:
        """The first epoch: workers are started, and nothing is under way."""
        zero = np.zeros(replicas)
        return cls(zero, zero + loader.ms("start_up"), zero, zero, np.empty((0, replicas)))

    def after(self, loader: Loader, epoch: Timeline) -> Start:
        """The epoch that follows one which began with this."""
        asked = epoch.host_free[-1]
        workers = asked + (0.0 if loader.persistent_workers else loader.ms("start_up"))
        steps = np.concatenate((self.steps, epoch.step_end))
        # Of more than these a loop waits for none, and one without a limit waits for none at all.
        kept = 0 if loader.in_flight == inf else int(loader.in_flight) - 1
        steps = steps[max(0, len(steps) - kept) :]
        return Start(asked, workers, epoch.copied[-1], epoch.step_end[-1], steps)

    def ends(self, batches: int) -> tuple[np.ndarray, np.ndarray]:
        """Room for the ends of the steps of an epoch, behind those before it; and that of the epoch alone."""
        ends = np.concatenate((self.steps, np.empty((batches, self.steps.shape[1]))))
        return ends, ends[len(self.steps) :]


class Accelerator:
    """What a batch meets once the loop has it: the copy, then the step."""

    def __init__(self, loader: Loader) -> None:
        # Converted once: asked for at every batch, the units would cost more than the arithmetic.
        self.copy, self.step = loader.ms("copy_time"), loader.ms("step_time")
        self.copy_overlaps = loader.copy_overlaps

    def take(
        self, received: np.ndarray, copied_before: np.ndarray, done_before: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Start and end of the copy of a batch, and of its step."""
        copy_start = np.maximum(received, copied_before if self.copy_overlaps else done_before)
        copied = copy_start + self.copy
        step_start = np.maximum(copied, done_before)
        return copy_start, copied, step_start, step_start + self.step
