"""A figure as a notebook shows it: a picture with alt text, a caption, and the same data as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import Any

import numpy as np

from ...model.resources import ACCELERATOR, CPU, LINK, RESOURCES, STORAGE
from ...tables import HINT, cell, rows_to_frame, to_html, to_text
from ...units import Number

# Safe for color-blind readers, and each passes 3:1 on white and on a dark page.
COLORS = MappingProxyType({name: resource.color for name, resource in RESOURCES.items()})
_ORANGE, _BLUE, _PINK, _GREEN = STORAGE.color, CPU.color, LINK.color, ACCELERATOR.color
# What a step of the accelerator is made of.
PART_COLORS = MappingProxyType({"compute": _GREEN, "memory": _PINK, "overhead": _ORANGE})
# For lines that are no resource: color and dashes.
SERIES = ((_BLUE, "none"), (_ORANGE, "8 4"), (_GREEN, "10 4 2 4"), (_PINK, "2 4"))


@dataclass(frozen=True)
class StaticFigure:
    """A drawn figure: its picture is an `svg` element, which takes the page's color."""

    svg: str
    alt: str
    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[object]]

    def __repr__(self) -> str:
        return f"{self.caption}\n{to_text(self.headers, self.rows)}"

    def to_pandas(self) -> Any:
        """Return what is drawn as a data frame of pandas, as `Pipeline.sweep` does its table.

        Raises
        ------
        MissingPackageError
            If pandas is not installed.
        """
        return rows_to_frame(self.headers, self.rows)

    def _repr_html_(self) -> str:
        table = to_html(self.headers, self.rows)
        return (
            f'<figure style="margin:0.5em 0">{HINT}<div style="overflow-x:auto">{self.svg}</div>'
            f"<figcaption>{escape(self.caption)}</figcaption>"
            f"<details><summary>The same as a table</summary>{table}</details></figure>"
        )


def render_figure(
    svg: str,
    *,
    alt: str,
    found: Iterable[str],
    caption: str = "",
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    feasible: Number = True,
) -> StaticFigure:
    """Join a picture, its words and its table; alt text and caption both end in what is `found`."""
    headers, rows = with_feasible(headers, rows, feasible)
    alt, caption = (" ".join(filter(None, (text, *found))) for text in (alt, caption))
    return StaticFigure(svg, alt, caption, headers, rows)


def with_feasible(
    headers: Sequence[str], rows: Iterable[Sequence[object]], feasible: Number
) -> tuple[list[str], list[list[object]]]:
    """A table with a column that says which rows can run, if one of them cannot."""
    body = [list(row) for row in rows]
    if np.all(feasible):
        return list(headers), body
    each = np.broadcast_to(feasible, len(body))
    return [*headers, "feasible"], [[*row, cell(one)] for row, one in zip(body, each, strict=True)]
