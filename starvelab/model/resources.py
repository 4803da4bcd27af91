"""The resources of a training step, what a batch costs them, and the levers that make it cost less.

A time is the largest of a few straight pieces over the batch size. Numbers and pieces hold floats, arrays or
exact fractions: the same formulas serve one point, a sweep of a million, and answers that must be exact.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType
from typing import Self

import numpy as np

from ..units import Number, exact
from .facts import read_data


@dataclass(frozen=True)
class Resource:
    """What stages run on."""

    name: str  # in results
    label: str  # what people read
    verb: str  # what it does with a batch, as in "reading a batch"
    done: str  # what it has done with a batch, as in "has read it"
    color: str  # in pictures; passes a contrast of 3:1 on white and on dark
    ink: str  # the color of text on `color`
    hatch: str  # how its bars differ from others without color, and `dash` its lines
    dash: str | tuple[int, tuple[int, ...]]
    shared: bool = False  # by all accelerators of a host


STORAGE = Resource("storage", "drive", "reading", "read", "#D55E00", "black", "..", "-.", shared=True)
CPU = Resource("CPU", "workers", "preparing", "prepared", "#0072B2", "white", "//", "--", shared=True)
# One thread, which receives each batch and works on it before the accelerator gets it.
LOOP = Resource("loop", "training loop", "handling", "handled", "#9467BD", "black", "--", (0, (3, 1, 1, 1)))
LINK = Resource("link", "link", "copying", "copied", "#CC79A7", "black", "xx", ":")
# The accelerator's own hardware for JPEGs or video, which works beside its kernels.
DECODER = Resource("decoder", "decoder", "decoding", "decoded", "#808080", "black", "\\\\", (0, (5, 1)))
ACCELERATOR = Resource("accelerator", "GPU", "computing on", "computed on", "#009E73", "black", "", "-")

# In the order in which a sample meets them, which is the order that people expect in a table or a picture.
RESOURCES: Mapping[str, Resource] = MappingProxyType(
    {resource.name: resource for resource in (STORAGE, CPU, LOOP, LINK, DECODER, ACCELERATOR)}
)
DISPLAY_ORDER = tuple(RESOURCES)
# In a tie the resource that is named first binds: the accelerator, since a tie starves nobody.
TIE_ORDER = (ACCELERATOR.name, CPU.name, STORAGE.name, LINK.name, DECODER.name, LOOP.name)
_SINGULAR = {"have": "has"}


@dataclass(frozen=True)
class Labels:
    """The names that people read for the resources of a pipeline.

    `renamed` holds those that differ: a TPU is a TPU, and a bucket is a bucket.
    """

    renamed: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> str:
        """Name a resource in a table or a picture: ``GPU``."""
        return self.renamed.get(name, RESOURCES[name].label)

    def the(self, name: str) -> str:
        """Name a resource in the middle of a sentence: ``the GPU``; no resource is ``nothing``."""
        return f"the {self[name]}" if name else "nothing"

    def does(self, name: str, verb: str) -> str:
        """Say what a resource does, by a verb as of several: ``the GPU binds``, ``the workers bind``."""
        plural = name and self[name].endswith("s")
        return f"{self.the(name)} {verb if plural else _SINGULAR.get(verb, f'{verb}s')}"


LABELS = Labels()


def capitalized(text: str) -> str:
    """The same text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


@dataclass(frozen=True)
class Advice:
    """One thing to change, how to tell that it is the one, and why it works."""

    name: str
    parts: tuple[str, ...]  # of an input pipeline that it relieves: read, decode, transform, collate, ...
    diagnose: str
    change: str
    why: str


LEVERS = tuple(Advice(**{**row, "parts": tuple(row["parts"])}) for row in read_data("levers")["lever"])


def levers_for(part: str) -> tuple[Advice, ...]:
    """Those that relieve that part, the first to try first."""
    return tuple(lever for lever in LEVERS if part in lever.parts)


@dataclass(frozen=True)
class Inputs:
    """The numbers of one formula, in base units: floats, arrays, or fractions after `exactly`."""

    def exactly(self) -> Self:
        """The same with every float as the fraction of the decimal number that was meant; not of arrays."""
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

    def times(self, count: Number) -> Cost:
        """That many batches, one after the other: several accelerators on one host's resource."""
        return Cost(tuple(Line(piece.fixed * count, piece.per_sample * count) for piece in self.pieces))

    def __truediv__(self, count: Number) -> Cost:
        """Its share where so many are under way at a time."""
        return Cost(tuple(Line(_over(p.fixed, count), _over(p.per_sample, count)) for p in self.pieces))


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
