"""The time of a stage as a function of the batch size: the largest of a few straight lines.

It does not know what the lines mean. They hold floats, arrays or exact fractions: the same formulas serve
one point, a sweep of a million, and answers that must be exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Line:
    """``fixed + per_sample * batch`` in seconds."""

    fixed: Any
    per_sample: Any

    def at(self, batch: Any) -> Any:
        """Seconds for a batch of that size."""
        return self.fixed + self.per_sample * batch

    def __add__(self, other: Line) -> Line:
        return Line(self.fixed + other.fixed, self.per_sample + other.per_sample)


@dataclass(frozen=True)
class Cost:
    """The largest of its legs: a convex, never falling function of the batch size, in seconds."""

    legs: tuple[Line, ...]

    def at(self, batch: Any) -> Any:
        """Seconds for a batch of that size (broadcast over arrays)."""
        values = [leg.at(batch) for leg in self.legs]
        return reduce(np.maximum, values) if any(np.ndim(v) for v in values) else max(values)

    @property
    def limit(self) -> Any:
        """Seconds per sample of a batch without end."""
        slopes = [leg.per_sample for leg in self.legs]
        return reduce(np.maximum, slopes) if any(np.ndim(s) for s in slopes) else max(slopes)

    def __add__(self, other: Cost) -> Cost:
        """One stage after the other on the same resource."""
        return Cost(tuple(a + b for a in self.legs for b in other.legs))

    def times(self, count: Any) -> Cost:
        """That many batches, one after the other: several accelerators on one host's resource."""
        return Cost(tuple(Line(leg.fixed * count, leg.per_sample * count) for leg in self.legs))


def longer(time: Any, than: Any) -> Any:
    """Whether one time is longer than another by more than rounding: a tie is no bottleneck."""
    found = np.asarray(time) > np.asarray(than) * (1 + 1e-12)
    return found if found.ndim else bool(found)


def largest(times: Sequence[Any]) -> Any:
    """The position of the largest, the first of equals; an array of positions for arrays.

    Like ``argmax`` over stacked arrays, which takes ten times as long for a few long ones.
    """
    found, best = np.zeros(np.broadcast_shapes(*(np.shape(time) for time in times)), dtype=np.intp), times[0]
    for position, time in enumerate(times[1:], start=1):
        np.copyto(found, position, where=time > best)
        best = np.maximum(best, time)
    return found


def name_of_largest(times: Mapping[str, Any]) -> Any:
    """The name of the largest, the first of equals; an array of names for a sweep."""
    if all(np.ndim(time) == 0 for time in times.values()):
        return max(times, key=times.__getitem__)
    return np.array([*times])[largest([*times.values()])]


def plain(value: Any) -> Any:
    """A Python float, or the array."""
    return value if np.ndim(value) else float(value)
