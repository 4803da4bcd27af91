"""The contents of a batch: objects, bytes, the type of its elements, and of what its items are views."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ..units import Quantity, data_size, format_quantity

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
    """

    objects: int
    size: Quantity | None
    dtype: str | None

    def __str__(self) -> str:
        count = f"{self.objects} object{'s' * (self.objects != 1)}"
        return count if self.size is None else f"{count}, {format_quantity(self.size)}, {self.dtype}"


class Items(NamedTuple):
    """The items of a batch, as the dataset gives them: how many, how, and of what they are views."""

    number: int
    together: bool  # `__getitems__` gives all of them at once
    bytes: int  # of one of them
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
    return BatchContents(len(parts), data_size(sum(sizes.values())) if sizes else None, most or None)


def _parts_of(batch: object) -> Iterator[object]:
    """Return what is in lists, tuples and dictionaries, and theirs."""
    if isinstance(batch, dict | UserDict):
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
    first = items[0]
    if isinstance(first, Mapping):
        first = list(first.values())
    parts = first if isinstance(first, list | tuple) else [first]
    held = [
        (part.nbytes, _bytes_of_view(part))
        for part in parts
        if isinstance(getattr(part, "nbytes", None), int)
    ]
    size, whole = max(held, default=(0, 0))
    return Items(len(items), together, size, whole / size if size else 1.0)


def _bytes_of_view(part: Any) -> int:  # Any: an array or a tensor
    """Return the bytes of what an array is a view of; of a file, those from its first to its last."""
    if hasattr(part, "untyped_storage"):
        return int(part.untyped_storage().nbytes())
    whole = part
    while isinstance(getattr(whole, "base", None), np.ndarray):
        whole = whole.base
    if not isinstance(whole, np.memmap):
        return int(whole.nbytes)
    return int(
        sum((n - 1) * abs(step) for n, step in zip(part.shape, part.strides, strict=True)) + part.itemsize
    )
