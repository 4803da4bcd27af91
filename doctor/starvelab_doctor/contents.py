"""The contents of a batch: its objects, their bytes, and whether two batches hold the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from starvelab.measure.batches import Batch
from starvelab.units import Quantity, data_size

MAX_OBJECTS = 10_000  # of a batch; one that holds more is not looked through


@dataclass(frozen=True)
class BatchContents:
    """The contents of a batch.

    Attributes
    ----------
    objects : int
        Tensors, arrays, texts and numbers in it, in however many lists and dictionaries.
    size : quantity [data] or None
        Of its tensors and arrays; None without any.
    dtype : str or None
        Type of the elements that take most of it, such as "float32".
    tensors : int
        Of its objects, those that a worker hands over one by one: texts and numbers travel together.
    """

    objects: int
    size: Quantity | None
    dtype: str | None
    tensors: int


class Items(NamedTuple):
    """The items of a batch, as the dataset gives them: how many, how, and of what they are views."""

    number: int
    together: bool  # `__getitems__` gives all of them at once
    spread: float  # bytes of what it is a view of, over its own


def contents_of(batch: object) -> BatchContents | None:
    """Return what a batch holds; None if there is none, or too much to look through."""
    sizes: dict[str, int] = {}
    try:
        parts = list(islice(_parts_of(batch), MAX_OBJECTS + 1))
        for part in parts:
            if isinstance(size := getattr(part, "nbytes", None), int):
                name = str(getattr(part, "dtype", "")).removeprefix("torch.")
                sizes[name] = sizes.get(name, 0) + size
    except Exception:  # of a batch's own class: the training goes on as it would without this look
        return None
    if batch is None or len(parts) > MAX_OBJECTS:
        return None
    most = max(sizes, key=sizes.__getitem__, default="")
    tensors = sum(hasattr(part, "untyped_storage") for part in parts)
    return BatchContents(len(parts), data_size(sum(sizes.values())) if sizes else None, most or None, tensors)


def _parts_of(batch: object) -> Iterator[object]:
    """Return what is in lists, tuples and mappings, and theirs."""
    if isinstance(batch, Mapping):
        batch = tuple(batch.values())
    if not isinstance(batch, list | tuple):
        yield batch
        return
    for part in batch:
        yield from _parts_of(part)


def items_of(items: object, together: bool) -> Items | None:
    """Return what the items of a batch are; None for none."""
    if not isinstance(items, list) or not items:
        return None
    (size, whole, owner), (_, _, last) = map(_largest_of, (items[0], items[-1]))
    # What all of them are views of lies in memory: nothing is read for each.
    held = len(items) > 1 and owner is not None and owner == last
    return Items(len(items), together, whole / size if size and not held else 1.0)


def _largest_of(item: Any) -> tuple[int, int, int | None]:  # Any: whatever a dataset gives
    """Return the bytes of an item's largest part, those of what it is a view of, and where that lies."""
    arrays: list[Any] = [part for part in _parts_of(item) if isinstance(getattr(part, "nbytes", None), int)]
    if not arrays:
        return 0, 0, None
    part = max(arrays, key=lambda array: array.nbytes)
    if hasattr(part, "untyped_storage"):
        storage = part.untyped_storage()
        return part.nbytes, int(storage.nbytes()), int(storage.data_ptr())
    whole = part
    while isinstance(getattr(whole, "base", None), np.ndarray):
        whole = whole.base
    if not isinstance(whole, np.memmap):
        return part.nbytes, int(whole.nbytes), id(whole)
    # Of a file what lies from its first element to its last is read.
    reach = sum((n - 1) * abs(step) for n, step in zip(part.shape, part.strides, strict=True))
    return part.nbytes, int(reach + part.itemsize), None


class Repeats:
    """Sees by the first batches of a stream whether its workers repeat each other, each giving all of it."""

    def __init__(self) -> None:
        self.first: Batch = None
        self.alike = self.found = False

    def see(self, number: int, batch: Batch, workers: int) -> None:
        """Look at the batch of that number, from 1 on: at first each comes from another worker."""
        if number == 1:
            self.first = batch
        elif number == 2:
            self.alike = same_contents(self.first, batch)
        if number == workers + 1:  # of the first worker again: data that never changes is no repetition
            self.found = self.alike and workers > 1 and not same_contents(self.first, batch)
            self.first = None


def same_contents(one: Batch, other: Batch) -> bool:
    """True if two batches hold the same, as far as that can be compared here."""
    try:
        parts = [list(islice(_parts_of(batch), MAX_OBJECTS)) for batch in (one, other)]
        return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(*parts, strict=True))
    except Exception:  # of a batch's own class, or of another device
        return False
