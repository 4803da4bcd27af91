"""Equality of descriptions and answers whose fields may be arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..units import Unchecked


class EqualByFields:
    """A dataclass that equals another of its type where all their fields are equal, arrays too."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        """Keep this equality: a dataclass would compare its fields as a tuple, which no array allows."""
        super().__init_subclass__()
        cls.__eq__ = EqualByFields.__eq__  # type: ignore[method-assign]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        compared = (field.name for field in dataclasses.fields(self) if field.compare)
        return all(same(getattr(self, name), getattr(other, name)) for name in compared)


def same(value: Unchecked, other: Unchecked) -> bool:
    """True if two values are equal, and two arrays are of one shape and equal everywhere."""
    if value is other:
        return True
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return value.keys() == other.keys() and all(same(value[key], other[key]) for key in value)
    shapes = [_shape(value), _shape(other)]
    if shapes == [None, None]:
        return bool(value == other)
    return shapes[0] == shapes[1] and bool(np.all(value == other))


def _shape(value: Unchecked) -> tuple[int, ...] | None:
    """Return the shape of an array, a list or a quantity of one of them; None of anything else."""
    held: Unchecked = getattr(value, "magnitude", value)
    return np.shape(held) if isinstance(held, np.ndarray | list) else None
