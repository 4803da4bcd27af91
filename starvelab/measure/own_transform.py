"""The transform of a dataset of one's own: where it is kept, its steps by name, and the time of each.

A transform that is a `Compose`, of torchvision or with the same attribute, is taken apart into its steps.
"""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import InputError
from .own_loader import Stream
from .protocols import Sample

if TYPE_CHECKING:
    from .datasets import Dataset

# Any: what a dataset passes to its transform is the user's: an image, several values, or values by name.
Function: TypeAlias = Callable[..., Any]
Arguments: TypeAlias = tuple[tuple[Sample, ...], dict[str, Sample]]

MAX_WRAPPERS = 8  # datasets within each other


def innermost(dataset: Dataset) -> Dataset:
    """The dataset within a Subset, a part of `random_split` or another wrapper that keeps it as an attribute.

    The first that has a transform counts, from outside.
    """
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
    named: Dataset | None = getattr(dataset, "dataset", None)
    data = sys.modules.get("torch.utils.data")
    if named is not None or data is None:
        return named
    inner = [each for each in getattr(dataset, "__dict__", {}).values() if isinstance(each, data.Dataset)]
    return inner[0] if len(inner) == 1 else None


def transform_of(dataset: Dataset) -> Function | None:
    """The function that a dataset calls for each decoded sample; None where it has none."""
    transform = getattr(innermost(dataset), "transform", None)
    return transform if callable(transform) else None


def steps_of(transform: Function) -> list[Function]:
    """The steps of a `Compose`, which calls them one after the other; none of any other function."""
    steps = getattr(transform, "transforms", None)
    chained = (
        type(transform).__name__ == "Compose" and isinstance(steps, Sequence) and all(map(callable, steps))
    )
    return list(steps) if chained and steps is not None else []


def name_of(function: Function) -> str:
    """How a report calls a step: a function by its own name, anything else by its class."""
    function = getattr(function, "func", function)  # of a functools.partial
    return str(getattr(function, "__name__", type(function).__name__))


class TimedTransform:
    """The transform of a dataset, with the seconds of each step since they were last taken.

    Parameters
    ----------
    dataset : Dataset
        It is left as it is, but for the time within `in_place`.
    taken : sequence of str
        Names that no step may have.
    """

    def __init__(self, dataset: Dataset, taken: Sequence[str] = ()) -> None:
        self.dataset, self.owner = dataset, innermost(dataset)
        self.original = transform_of(dataset)
        self.taken = set(taken)
        self.seconds: dict[str, float] = {}
        self.timed = self._timed(self.original) if self.original is not None else None

    def _timed(self, transform: Function) -> Function:
        steps = steps_of(transform)
        if steps:
            chain = copy.copy(transform)
            chain.transforms = [self._timed(step) for step in steps]  # type: ignore[attr-defined]  # see steps_of
            return chain
        name = base = name_of(transform)
        number = 1
        while name in self.taken:
            number += 1
            name = f"{base} {number}"
        self.taken.add(name)
        self.seconds[name] = 0.0
        return _TimedStep(transform, name, self.seconds)

    def take_seconds(self) -> dict[str, float]:
        """What each step has taken, from now on counted anew [s]."""
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
                holder.transform = function or self.timed  # type: ignore[attr-defined]  # see innermost
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

    def decoded_and_transformed(self, index: int) -> tuple[Arguments, Sample]:
        """What the transform is given for an item (nothing without a transform), and the item."""
        transform = self.original
        if transform is None:
            return ((), {}), self.dataset[index]
        given: list[Arguments] = []

        def watching(*values: Sample, **named: Sample) -> Sample:
            given.append(_copied((values, named)))
            return transform(*values, **named)

        with self.in_place(watching):
            item = self.dataset[index]
            if not given and isinstance(self.dataset, Stream):
                # A stream may ask for its transform once, when it begins: it begins anew with this one, and
                # once more without it.
                self.dataset.restart()
                item = self.dataset[index]
                self.dataset.restart()
        if not given:
            raise InputError(
                f"{type(self.dataset).__name__} has a transform and does not call it for item {index}. "
                "Set its transform to None, or call it in __getitem__."
            )
        return given[0], item

    def apply(self, *values: Sample, **named: Sample) -> Sample:
        """What the transform makes of a sample, with its time taken."""
        assert self.timed is not None  # nobody asks a dataset without a transform
        return self.timed(*values, **named)

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
