"""A figure as a notebook shows it: an image with alt text, a caption, and the same data as a table.

JupyterLab drops the alt text of images it draws itself, so a figure goes out as HTML.
"""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from ... import runtime
from ...errors import InputError, install_hint
from ...model.resources import ACCELERATOR, CPU, LINK, RESOURCES, STORAGE
from ...tables import HINT, cell, paragraph, rows_to_frame, to_html, to_text
from ...units import Number, format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Any: keyword arguments of matplotlib's functions, each of a type of its own.
Options: TypeAlias = dict[str, Any]

# Safe for color-blind readers, and each passes 3:1 on white and on a dark page.
COLORS = MappingProxyType({name: resource.color for name, resource in RESOURCES.items()})
_ORANGE, _BLUE, _PINK, _GREEN = STORAGE.color, CPU.color, LINK.color, ACCELERATOR.color
# What a step of the accelerator is made of.
PART_COLORS = MappingProxyType({"compute": _GREEN, "memory": _PINK, "overhead": _ORANGE})
# For lines that are no resource: color, dash, marker.
SERIES = ((_BLUE, "-", "o"), (_ORANGE, "--", "s"), (_GREEN, "-.", "^"), (_PINK, ":", "D"))
# On a white ground.
GRAY = "#595959"

# On the page; matplotlib's 10 points are then as large as the text around them.
_PIXELS_PER_INCH = 90
_IMAGE = "display:block;max-width:100%;border-radius:6px;margin-bottom:0.4em"
# White becomes nearly the ground of a dark page, and each color keeps its hue: JupyterLab, and the site.
_TURNED = "filter:invert(0.93) hue-rotate(180deg)"
DARK = (
    f'<style>body[data-jp-theme-light="false"] .sl-plot,body[data-theme="dark"] .sl-plot{{{_TURNED}}}'
    f'@media (prefers-color-scheme:dark){{body[data-theme="auto"] .sl-plot{{{_TURNED}}}}}</style>'
)
NO_IMAGE = "The picture needs matplotlib, which is not installed here. Its values stand in the table."
if sys.platform != "emscripten":  # where nobody installs anything
    NO_IMAGE = f"{NO_IMAGE} {install_hint('notebooks')}"


class Blank:
    """Takes the place of a figure and all that belongs to it: whatever is drawn on it leaves no trace."""

    def __getattr__(self, name: str) -> Blank:
        if name.startswith("__"):  # Python looks for these, and there are none
            raise AttributeError(name)
        return self

    def __call__(self, *_: object, **__: object) -> Blank:
        """Return a blank, as a drawing function returns a part."""
        return self

    def __getitem__(self, _: object) -> Blank:
        return self

    def __iter__(self) -> Iterator[Blank]:
        return iter(())

    def subplots(self, rows: int, columns: int, **_: object) -> tuple[Blank, ...]:
        """As many parts of the figure as are wanted."""
        return (self,) * (rows * columns)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches. Where matplotlib is installed, this is what loads it."""
    # A feedback page shows the text instead, and to draw took much of the time of grading.
    if runtime.current().is_grading:
        return cast("Figure", Blank())
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return cast("Figure", Blank())
    return Figure(figsize=(width, height), layout="constrained")


@dataclass(frozen=True)
class StaticFigure:
    """A drawn figure: its `png` is empty while grading, and None where matplotlib is missing.

    A figure of bars is an element `svg` instead, which takes the page's color.
    """

    png: bytes | None
    alt: str
    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[object]]
    width: int = 0
    svg: str = ""

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
        if self.png is None and not self.svg:
            return f'<figure style="margin:0.5em 0">{caption}{paragraph(NO_IMAGE)}{table}</figure>'
        table = f"<details><summary>The same as a table</summary>{table}</details>"
        picture = f'{HINT}<div style="overflow-x:auto">{self.svg}</div>' if self.svg else self._image
        return f'<figure style="margin:0.5em 0">{picture}{caption}{table}</figure>'

    @property
    def _image(self) -> str:
        data = base64.b64encode(self.png or b"").decode()
        source = f' src="data:image/png;base64,{data}"' if data else ""
        return (
            f'{DARK}<img class="sl-plot" alt="{escape(self.alt, quote=True)}" width="{self.width}" '
            f'style="{_IMAGE}"{source}>'
        )


def render_figure(
    figure: Figure | str,
    *,
    alt: str,
    found: Iterable[str],
    caption: str = "",
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    feasible: Number = True,
) -> StaticFigure:
    """Render a figure, on white, or keep one in SVG; alt text and caption both end in what is `found`."""
    headers, rows = with_feasible(headers, rows, feasible)
    alt, caption = (" ".join(filter(None, (text, *found))) for text in (alt, caption))
    if isinstance(figure, str):
        return StaticFigure(None, alt, caption, headers, rows, svg=figure)
    if isinstance(figure, Blank):
        png = b"" if runtime.current().is_grading else None
        return StaticFigure(png, alt, caption, headers, rows, 0)
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=2 * _PIXELS_PER_INCH, facecolor="white")
    width = round(_PIXELS_PER_INCH * figure.get_figwidth())
    return StaticFigure(buffer.getvalue(), alt, caption, headers, rows, width)


# --- steps that cannot run --------------------------------------------------------------------------------


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


# --- axes -------------------------------------------------------------------------------------------------


def as_number(value: float, _: object) -> str:
    """A value beside an axis."""
    return format_number(value)


def as_percent(share: float, _: object) -> str:
    """A share beside an axis."""
    return f"{100 * share:.0f} %"


def ascending(given: Sequence[int], caller: str, what: str) -> list[int]:
    """The values of an axis in rising order, each once."""
    values = sorted(set(given))
    if len(values) < 2:
        raise InputError(
            f"{caller} needs two or more {what}, got {list(given)}. Pass for example [8, 16, 32]."
        )
    return values


def name_lanes(axes: Axes, names: Sequence[str]) -> None:
    """A lane for each name, from the top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def legend(figure: Figure, entries: Mapping[str, Options]) -> None:
    """Say below a figure what each kind of bar means: by its label, how the bar is drawn."""
    if isinstance(figure, Blank):
        return
    from matplotlib.patches import Patch

    handles = [Patch(**options, label=label) for label, options in entries.items()]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(entries), frameon=False, fontsize=9,
        handlelength=1.6, columnspacing=1.4,
    )  # fmt: skip
