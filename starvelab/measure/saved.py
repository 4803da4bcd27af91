"""Results that outlive their session, as JSON that people can read: figures as numbers with their units."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from ..errors import InputError
from ..units import Q_, Quantity, unit_name


class Saved:
    """A dataclass that `save` writes and `load` reads.

    Attributes
    ----------
    called : str
        What it is, for messages and for the format's name.
    """

    called: ClassVar[str]

    @classmethod
    def _format(cls) -> str:
        return f"starvelab {cls.called} 1"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON."""
        content = {"format": self._format(), **plain(self)}
        Path(path).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        InputError
            If the file is no such thing, or damaged.
        """
        called = cls.called
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise InputError(
                f"A {called} is a JSON file, and {path} is not readable as one: {error}. Save it again with "
                f"{called}.save(path)."
            ) from error
        if not isinstance(content, dict) or content.pop("format", None) != cls._format():
            raise InputError(
                f"A {called} begins with the format {cls._format()!r}, and {path} does not. "
                f"Pass a file that {called}.save wrote."
            )
        try:
            return cls(**cls._from_plain({name: back(value) for name, value in content.items()}))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"{path} is a damaged {called}: {error}. Save it again with {called}.save(path)."
            ) from error

    @classmethod
    def _from_plain(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields as the class has them, where JSON has no such thing."""
        return fields


def plain(value: Any) -> Any:
    """As JSON has it: a quantity as its number and its unit."""
    if isinstance(value, Quantity):
        return {"magnitude": float(value.magnitude), "unit": unit_name(value.units)}
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        # A microsecond is finer than any clock here.
        return value.tolist() if value.dtype.kind in "iu" else value.round(3).tolist()
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def back(value: Any) -> Any:
    """As `plain` found it."""
    if isinstance(value, dict):
        if set(value) == {"magnitude", "unit"}:
            return Q_(value["magnitude"], value["unit"])
        return {key: back(each) for key, each in value.items()}
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return [back(each) for each in value]
    return value
