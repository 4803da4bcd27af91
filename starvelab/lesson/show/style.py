"""The style of figures: what tells a resource apart, and how a step that cannot run is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ...model.resources import ACCELERATOR, CPU, LINK, RESOURCES, STORAGE
from ...tables import cell
from ...units import Number

# Any: keyword arguments of matplotlib's functions, each of a type of its own.
Options: TypeAlias = dict[str, Any]

# Safe for color-blind readers, and each passes 3:1 on white and on a dark page.
COLORS = MappingProxyType({name: resource.color for name, resource in RESOURCES.items()})
# Of text that stands on these: the pair with the higher contrast.
INK = MappingProxyType({name: resource.ink for name, resource in RESOURCES.items()})
HATCHES = MappingProxyType({name: resource.hatch for name, resource in RESOURCES.items()})
DASHES = MappingProxyType({name: resource.dash for name, resource in RESOURCES.items()})
_ORANGE, _BLUE, _PINK, _GREEN = STORAGE.color, CPU.color, LINK.color, ACCELERATOR.color

# What a step of the accelerator is made of.
PART_COLORS = MappingProxyType({"compute": _GREEN, "memory": _PINK, "overhead": _ORANGE})
# For lines that are no resource: color, dash, marker.
SERIES = ((_BLUE, "-", "o"), (_ORANGE, "--", "s"), (_GREEN, "-.", "^"), (_PINK, ":", "D"))
# On a white ground.
GRAY = "#595959"


def ground(color: str, feasible: bool) -> Options:
    """Fill a bar or a marker with its color, or with nothing where the step cannot run."""
    if feasible:
        return {"facecolor": color, "edgecolor": "white"}
    return {"facecolor": "white", "edgecolor": color}


def caveat(drawn: str, reason: str) -> str:
    """Say in a caption that steps cannot run; empty where all can."""
    return f"What is drawn {drawn} is not feasible. {reason}" if reason else ""


def with_feasible(
    headers: Sequence[str], rows: Iterable[Sequence[object]], feasible: Number
) -> tuple[list[str], list[list[object]]]:
    """A table with a column that says which rows can run, if one of them cannot."""
    body = [list(row) for row in rows]
    if np.all(feasible):
        return list(headers), body
    each = np.broadcast_to(feasible, len(body))
    return [*headers, "feasible"], [[*row, cell(one)] for row, one in zip(body, each, strict=True)]
