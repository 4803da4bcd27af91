"""How a figure shows what does not fit into memory: drawn hollow or hatched, and said in words and table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ...tables import cell
from ...units import Number
from .style import Options


def ground(color: str, feasible: bool) -> Options:
    """How to fill a bar or a marker: with its color, or with nothing where the step cannot run."""
    if feasible:
        return {"facecolor": color, "edgecolor": "white"}
    return {"facecolor": "white", "edgecolor": color}


def caveat(drawn: str, reason: str) -> str:
    """What a caption says of steps that cannot run; empty where all can."""
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
