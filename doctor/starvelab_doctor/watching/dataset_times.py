"""Where the time of a dataset goes: each step of its transform, and in its own part reading and decoding.

A transform that is a `Compose`, of torchvision or with the same attribute, is taken apart into its steps. For
the rest Python's profiler knows each function of C by its name. It watches one item of many, since it slows
what it watches, and not the first, for which modules are loaded.
"""

from __future__ import annotations

import copy
import itertools
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from starvelab.errors import InputError
from starvelab.measure.batches import Sample

if TYPE_CHECKING:
    import cProfile
# Any: a dataset of the user's, and what it passes to its transform: an image, several values, or by name.
Dataset: TypeAlias = Any
Function: TypeAlias = Callable[..., Any]
Arguments: TypeAlias = tuple[tuple[Sample, ...], dict[str, Sample]]
READ, DECODE = "read", "decode"
MAX_WRAPPERS = 8  # datasets within each other
EVERY, FIRST = 16, 1  # of so many items one is watched, from this one on
# Opening files and reading them, in the names that the profiler gives; not what is read from memory.
_READS = re.compile(
    r"_io\.(?!BytesIO|StringIO)|(posix|nt)\.(open|read|pread|stat|lstat|scandir|listdir)\b|fromfile|mmap"
)
# Decoders of Pillow, OpenCV and torchvision, and what unpacks compressed bytes.
_DECODES = re.compile(r"ImagingDecoder|imdecode|decode_(image|jpeg|png|webp|gif)|decompress|'zlib\.|_zstd")


def innermost(dataset: Dataset) -> Dataset:
    """The first dataset with a transform within a Subset or another wrapper that keeps it as an attribute."""
    for _ in range(MAX_WRAPPERS):
        if callable(getattr(dataset, "transform", None)):
            break
        inner = _within(dataset)
        if inner is None:
            break
        dataset = inner
    return dataset


def _within(dataset: Dataset) -> Dataset | None:
    """The only dataset among the attributes of a wrapper; None where there is none, or more than one."""
    named = getattr(dataset, "dataset", None)
    data = sys.modules.get("torch.utils.data")
    if named is not None or data is None:
        return named
    inner = [each for each in getattr(dataset, "__dict__", {}).values() if isinstance(each, data.Dataset)]
    return inner[0] if len(inner) == 1 else None


def steps_of(transform: Function) -> list[Function]:
    """The steps of a `Compose`, which calls them one after the other; none of any other function."""
    steps = getattr(transform, "transforms", None)
    chained = type(transform).__name__ == "Compose" and isinstance(steps, Sequence)
    return list(steps) if chained and steps is not None and all(map(callable, steps)) else []


def name_of(function: Function) -> str:
    """How a report calls a step: a function by its own name, anything else by its class."""
    function = getattr(function, "func", function)  # of a functools.partial
    return str(getattr(function, "__name__", type(function).__name__))


class TimedTransform:
    """The transform of a dataset, with the seconds of each step; no step gets a name that is `taken`."""

    def __init__(self, dataset: Dataset, taken: Sequence[str] = ()) -> None:
        self.owner = innermost(dataset)
        transform = getattr(self.owner, "transform", None)
        self.taken = set(taken)
        self.seconds: dict[str, float] = {}
        # Any: functions, or None where the dataset has no transform; nobody calls it then.
        self.original: Any = transform if callable(transform) else None
        self.apply: Any = self._timed(transform) if callable(transform) else None

    def _timed(self, transform: Function) -> Function:
        if steps := steps_of(transform):
            chain = copy.copy(transform)
            chain.transforms = [self._timed(step) for step in steps]  # type: ignore[attr-defined]  # see steps_of
            return chain
        base = name_of(transform)
        names = (base if number == 1 else f"{base} {number}" for number in itertools.count(1))
        name = next(name for name in names if name not in self.taken)
        self.taken.add(name)
        self.seconds[name] = 0.0
        return _TimedStep(transform, name, self.seconds)

    def take_seconds(self) -> dict[str, float]:
        """Return what each step has taken, from now on counted anew [s]."""
        spent = dict(self.seconds)
        self.seconds.update(dict.fromkeys(spent, 0.0))
        return spent

    @contextmanager
    def in_place(self, function: Function | None = None) -> Iterator[None]:
        """The dataset calls the timed transform, or a given function, instead of its own."""
        if self.original is None:
            yield
            return
        holders: list[object] = [self.owner]
        # A dataset of torchvision may call its transform through another attribute, with that of the target.
        both = getattr(self.owner, "transforms", None)
        if getattr(both, "transform", None) is self.original:
            holders.append(both)
        try:
            for holder in holders:
                holder.transform = function or self.apply  # type: ignore[attr-defined]  # see innermost
        except AttributeError as error:
            raise InputError(
                f"To time a transform, {type(self.owner).__name__} must let it be replaced, and its "
                f"transform cannot be set: {error}. Make it an ordinary attribute, or give it another name."
            ) from error
        try:
            yield
        finally:
            for holder in holders:
                holder.transform = self.original  # type: ignore[attr-defined]  # as above

    @contextmanager
    def noted(self) -> Iterator[list[Arguments]]:
        """Return what the dataset gives to its transform meanwhile."""
        given: list[Arguments] = []

        def noting(*values: Sample, **named: Sample) -> Sample:
            given.append(_copied((values, named)))
            return self.original(*values, **named)

        with self.in_place(noting):
            yield given

    def again(self, decoded: Arguments) -> None:
        """Transform once more what the transform was given."""
        values, named = _copied(decoded)
        self.apply(*values, **named)


def _copied(arguments: Arguments) -> Arguments:
    """A transform may change what it is given."""
    values, named = arguments
    return tuple(map(copy.copy, values)), {name: copy.copy(value) for name, value in named.items()}


class _TimedStep:
    """One step, with the attributes that it has."""

    def __init__(self, step: Function, name: str, seconds: dict[str, float]) -> None:
        self.step, self.name_of_step, self.seconds = step, name, seconds

    def __getattr__(self, name: str) -> object:
        return getattr(self.__dict__["step"], name)

    def __call__(self, *values: Sample, **named: Sample) -> Sample:
        before = time.perf_counter()
        try:
            return self.step(*values, **named)
        finally:
            self.seconds[self.name_of_step] += time.perf_counter() - before


class ItemTimes:
    """Shares of reading and of decoding in the time of the items that were watched."""

    def __init__(self) -> None:
        self.items = 0
        self.spent = {READ: 0.0, DECODE: 0.0}
        self.whole = 0.0
        self.profile: cProfile.Profile | None = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """One item; whether it is watched is decided here."""
        self.profile = self._started() if self.items % EVERY == FIRST else None
        self.items += 1
        try:
            yield
        finally:
            if self.profile is not None:
                self.profile.disable()

    @staticmethod
    def _started() -> cProfile.Profile | None:
        """A profiler at work; none where the program has one already, of which there can be one only."""
        if sys.getprofile() is not None:
            return None
        import cProfile  # loaded here: few who import this package diagnose a dataset

        profile = cProfile.Profile()
        try:
            profile.enable()
        except ValueError:
            return None
        return profile

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out of account what runs meanwhile."""
        if self.profile is None:
            yield
            return
        self.profile.disable()
        try:
            yield
        finally:
            self.profile.enable()

    def split(self, seconds: float) -> dict[str, float]:
        """The seconds of reading and of decoding in those that the last item took of its own."""
        if self.profile is not None:
            for entry in self.profile.getstats():
                # Functions of Python are given as their code; only those of C have a text.
                part = part_of(entry.code) if isinstance(entry.code, str) else ""
                if part:
                    self.spent[part] += entry.totaltime
            self.whole += seconds
            self.profile = None
        known = max(self.whole, sum(self.spent.values()))
        return {part: seconds * spent / known if known > 0 else 0.0 for part, spent in self.spent.items()}


def part_of(function: str) -> str:
    """The part that a function of C does by its name, read or decode; empty where it does neither."""
    if _DECODES.search(function):
        return DECODE
    return READ if _READS.search(function) else ""
