"""A figure as a notebook shows it: a picture with alt text, a caption, and the same data as a table.

Bars are elements of SVG, and matplotlib draws lines, as SVG too: both take the page's color.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import runtime
from ...model.resources import ACCELERATOR, CPU, LINK, RESOURCES, STORAGE
from ...tables import HINT, cell, rows_to_frame, to_html, to_text
from ...units import Number
from .drawing import STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Safe for color-blind readers, and each passes 3:1 on white and on a dark page.
COLORS = MappingProxyType({name: resource.color for name, resource in RESOURCES.items()})
_ORANGE, _BLUE, _PINK, _GREEN = STORAGE.color, CPU.color, LINK.color, ACCELERATOR.color
# What a step of the accelerator is made of.
PART_COLORS = MappingProxyType({"compute": _GREEN, "memory": _PINK, "overhead": _ORANGE})
# For lines that are no resource: color and dash.
SERIES = ((_BLUE, "-"), (_ORANGE, "--"), (_GREEN, "-."), (_PINK, ":"))
_INK = "#010203"  # of what takes the page's color, and of nothing else
# Any: settings of matplotlib, each of a type of its own.
_LOOKS: Any = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _INK),
    "svg.fonttype": "none", "svg.hashsalt": "starvelab", "axes.spines.top": False, "axes.spines.right": False,
}  # fmt: skip


@dataclass(frozen=True)
class StaticFigure:
    """A drawn figure: its picture is an `svg` element; empty where nothing is drawn, as while grading."""

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
        caption, table = f"<figcaption>{escape(self.caption)}</figcaption>", to_html(self.headers, self.rows)
        if self.svg:
            picture = f'{HINT}<div style="overflow-x:auto">{self.svg}</div>'
            table = f"{picture}{caption}<details><summary>The same as a table</summary>{table}</details>"
        else:
            table = caption + table
        return f'<figure style="margin:0.5em 0">{table}</figure>'


def plot(draw: Callable[[Axes], None], *, title: str, description: str) -> str:
    """Let matplotlib draw on axes; empty where it is missing, and while grading, when nobody looks."""
    if runtime.current().is_grading:
        return ""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    file = io.StringIO()
    with rc_context(_LOOKS):
        figure = Figure(figsize=(7.5, 3.9), layout="constrained")
        draw(figure.add_subplot())
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    box, body = re.findall(r'<svg [^>]*(viewBox="[^"]*")[^>]*>(.*)', file.getvalue(), re.DOTALL)[0]
    words = f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
    body = body.replace("xlink:href", "href").replace(_INK, "currentColor")
    start = '<svg xmlns="http://www.w3.org/2000/svg" role="img" width="640"'
    return f'{start} style="{STYLE}" {box}>{words}{body}'


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
