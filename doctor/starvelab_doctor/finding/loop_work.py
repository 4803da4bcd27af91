"""The lines of a training loop at which its own thread computes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LoopWork:
    """A line of the loop at which its own thread computes."""

    place: str  # file and number of the line
    share: float  # of the time between two batches, 0 to 1
    certain: bool  # it is input work: a generator between the loader and the training computes there
