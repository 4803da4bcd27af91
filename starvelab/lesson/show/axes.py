"""What the axes of several figures have in common: how values are written, and which of them have a mark."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InputError
from ...units import format_number
from .canvas import Axes


def as_number(value: float, _: object) -> str:
    """A value beside an axis."""
    return format_number(value)


def as_percent(share: float, _: object) -> str:
    """A share beside an axis."""
    return f"{100 * share:.0f} %"


def ascending(given: Sequence[int], asks: str, what: str) -> list[int]:
    """The values of an axis in rising order, each once."""
    values = sorted(set(given))
    if len(values) < 2:
        raise InputError(f"{asks} needs two or more {what}, got {list(given)}. Pass for example [8, 16, 32].")
    return values


def bare(axes: Axes) -> None:
    """Leave out the lines above and to the right."""
    axes.spines[["top", "right"]].set_visible(False)
