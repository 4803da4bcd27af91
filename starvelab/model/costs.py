"""What a batch costs: seconds as the largest of a few straight pieces over its size, shared by workers.

Numbers and pieces hold floats, arrays or exact fractions: the same formulas serve one point, a sweep of a
million, and answers that must be exact.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import ceil, inf, sqrt
from typing import Self

import numpy as np

from ..units import Number, exact


@dataclass(frozen=True)
class Inputs:
    """The numbers of one formula, in base units: floats, arrays, or fractions after `exactly`."""

    def exactly(self) -> Self:
        """The same with every float as the fraction of the decimal number that was meant; not for arrays."""
        fields = dataclasses.fields(self)
        return dataclasses.replace(self, **{f.name: _exactly(getattr(self, f.name), f.name) for f in fields})


def _exactly(value: Number, name: str) -> Number:
    if isinstance(value, Inputs):
        return value.exactly()
    return value if value is None or isinstance(value, str | bool) else exact(value, name)


@dataclass(frozen=True)
class StepTime(Inputs):
    """How long a step takes, whatever its batch [s]."""

    seconds: Number


@dataclass(frozen=True)
class Line:
    """``fixed + per_sample * batch`` in seconds."""

    fixed: Number
    per_sample: Number

    def at(self, batch: Number) -> Number:
        """Seconds for a batch of that size."""
        return self.fixed + self.per_sample * batch

    def __add__(self, other: Line) -> Line:
        return Line(self.fixed + other.fixed, self.per_sample + other.per_sample)


@dataclass(frozen=True)
class Cost:
    """The largest of its pieces: seconds as a convex, never falling function of the batch size."""

    pieces: tuple[Line, ...]

    def at(self, batch: Number) -> Number:
        """Seconds for a batch of that size (broadcast over arrays)."""
        return maximum(piece.at(batch) for piece in self.pieces)

    @property
    def limit(self) -> Number:
        """Seconds for each sample of an infinitely large batch."""
        return maximum(piece.per_sample for piece in self.pieces)

    def __add__(self, other: Cost) -> Cost:
        """One after the other."""
        return Cost(tuple(a + b for a in self.pieces for b in other.pieces))

    def __or__(self, other: Cost) -> Cost:
        """The longer of two."""
        return Cost((*self.pieces, *other.pieces))

    def __mul__(self, count: Number) -> Cost:
        """That many batches, one after the other: several accelerators on one host's resource."""
        return Cost(tuple(Line(piece.fixed * count, piece.per_sample * count) for piece in self.pieces))

    def __truediv__(self, count: Number) -> Cost:
        """Its share where so many are under way at a time."""
        return Cost(tuple(Line(_over(p.fixed, count), _over(p.per_sample, count)) for p in self.pieces))


@dataclass(frozen=True)
class WorkerScaling(Inputs):
    """A law of scaling, within the cores of a host.

    Contention and coherency are the workers', as in Gunther's universal scalability law; both zero is linear.
    Crowding is the host's: how much longer work takes where all cores are busy, as a share. Workers beyond
    the cores run on second hardware threads, each of which adds `second_thread` of a core. So
    ``e = min(n, cores) + second_thread min(max(n - cores, 0), cores)`` cores are busy, and
    ``S = e / (1 + contention (e - 1) + coherency e (e - 1) + crowding (e - 1) / cores)``. Past the peak of
    the universal law the speed-up stays there: nobody starts workers that slow the others down.
    """

    contention: Number
    coherency: Number
    crowding: Number = 0
    second_thread: Number = 0

    @cached_property
    def peak_workers(self) -> Number:
        """The number of workers past which more do not help on any host; infinite if there is none."""
        if self.coherency == 0:
            return inf
        # One more worker helps the first n as long as n (n + 1) < (1 - contention) / coherency.
        return max(1, ceil(sqrt((1 - self.contention) / self.coherency + 0.25) - 0.5))

    def speedup(self, workers: Number, cores: Number | None = None) -> Number:
        """How many times one worker's rate so many workers reach; without `cores` each has one to itself."""
        crowding: Number = 0
        if cores is None:
            e = minimum(workers, self.peak_workers)
        else:
            surplus = minimum(workers - minimum(workers, cores), cores)
            e = minimum(minimum(workers, cores) + self.second_thread * surplus, self.peak_workers)
            # Less than one busy core crowds nobody.
            crowding = self.crowding * (e - 1) / cores
        return e / (1 + self.contention * (e - 1) + self.coherency * e * (e - 1) + crowding)


def _over(time: Number, count: Number) -> Number:
    """A share of a time; a whole 0 stays one, since 0 / 2 is a float, and no sum with that is exact."""
    return time if type(time) is int and time == 0 else time / count


def _is_array(value: Number) -> bool:
    """True of several values; `numpy.ndim` takes ten times as long for a float."""
    return isinstance(value, np.ndarray) and value.ndim > 0


def maximum(values: Iterable[Number]) -> Number:
    """The largest of numbers, or of arrays element by element; fractions stay exact."""
    values = tuple(values)
    return reduce(np.maximum, values) if any(map(_is_array, values)) else max(values)


def minimum(value: Number, other: Number) -> Number:
    """The smaller of two numbers, either of which may be an array; whole numbers stay whole."""
    return np.minimum(value, other) if _is_array(value) or _is_array(other) else min(value, other)


def exceeds(time: Number, other: Number) -> Number:
    """True if one time is longer than another by more than rounding: a tie is no bottleneck."""
    longer = np.asarray(time) > np.asarray(other) * (1 + 1e-12)
    return longer if longer.ndim else bool(longer)


def argmax(times: Sequence[Number]) -> Number:
    """The position of the largest, the first of equals; an array of positions for arrays.

    Like ``numpy.argmax`` over stacked arrays, which takes ten times as long for a few long ones.
    """
    shape = np.broadcast_shapes(*(np.shape(time) for time in times))
    largest, value = np.zeros(shape, dtype=np.intp), times[0]
    for position, time in enumerate(times[1:], start=1):
        np.copyto(largest, position, where=time > value)
        value = np.maximum(value, time)
    return largest


def name_of_largest(times: Mapping[str, Number]) -> Number:
    """The name of the largest, the first of equals; an array of names for a sweep."""
    if all(np.ndim(time) == 0 for time in times.values()):
        return max(times, key=times.__getitem__)
    return np.array([*times])[argmax([*times.values()])]


def as_float(value: Number) -> Number:
    """A Python float, or the array."""
    return value if _is_array(value) else float(value)
