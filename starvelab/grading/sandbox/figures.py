"""A figure as data, for an exercise that asks for one: what it shows, and the text in it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer

# Texts, numbers and lists of those: a check compares them.
Description: TypeAlias = dict[str, Any]


def describe_figure(value: object) -> Description | None:
    """A matplotlib figure, or the axes of one, as plain data; None for anything else.

    Returns
    -------
    dict or None
        ``{"figure": [axes, ...]}``, each with its title, labels, scales and legend, with `lines` (label, x,
        y) and with `bars` (label, positions, lengths; those of horizontal bars run along x).
    """
    if "matplotlib.figure" not in sys.modules:
        return None
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    if isinstance(value, Figure):
        return {"figure": [_axes(one) for one in value.axes]}
    if isinstance(value, Axes):
        return {"figure": [_axes(value)]}
    return None


def _axes(axes: Axes) -> Description:
    from matplotlib.container import BarContainer

    legend = axes.get_legend()
    return {
        "title": axes.get_title(),
        "xlabel": axes.get_xlabel(),
        "ylabel": axes.get_ylabel(),
        "xscale": axes.get_xscale(),
        "yscale": axes.get_yscale(),
        "legend": [text.get_text() for text in legend.get_texts()] if legend else [],
        "lines": [
            {
                "label": line.get_label(),
                "x": _values(line.get_xdata()),
                "y": _values(line.get_ydata()),
            }
            for line in axes.get_lines()
        ],
        "bars": [_bars(one) for one in axes.containers if isinstance(one, BarContainer)],
    }


def _values(data: object) -> list[object]:
    return list(data) if isinstance(data, Iterable) else [data]


def _bars(container: BarContainer) -> Description:
    is_horizontal = container.orientation == "horizontal"
    return {
        "label": container.get_label(),
        "at": [
            bar.get_y() + bar.get_height() / 2 if is_horizontal else bar.get_x() + bar.get_width() / 2
            for bar in container
        ],
        "length": [bar.get_width() if is_horizontal else bar.get_height() for bar in container],
        "lying": is_horizontal,
    }
