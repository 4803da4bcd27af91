"""What happens to each batch, and when: the rows that the rules of a loader fill in.

It holds times and knows what a batch meets behind the loader; which batch comes next is decided elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

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
