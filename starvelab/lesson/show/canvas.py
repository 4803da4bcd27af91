"""Where figures are drawn: on matplotlib, or on a blank where a browser or a small installation lacks it.

A figure's caption and table are computed beside its drawing, so both remain without matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING


class Blank:
    """Takes the place of a figure and all that belongs to it: whatever is drawn on it leaves no trace."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __getattr__(self, name: str) -> Blank:
        if name.startswith("__"):  # Python asks for these, and must learn that there are none
            raise AttributeError(name)
        return Blank()

    def __call__(self, *_: object, **__: object) -> Blank:
        """What a drawing function gives back."""
        return self

    def __getitem__(self, _: object) -> Blank:
        return self

    def __iter__(self) -> Iterator[Blank]:
        return iter(())

    def subplots(self, rows: int, columns: int, **_: object) -> tuple[Blank, ...]:
        """As many parts of the figure as are asked for."""
        return (Blank(),) * (rows * columns)


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch, Patch
    from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
else:
    try:
        from matplotlib.axes import Axes
        from matplotlib.figure import Figure
        from matplotlib.patches import FancyBboxPatch, Patch
        from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
    except ImportError:
        Axes = Figure = FancyBboxPatch = Patch = FuncFormatter = MaxNLocator = PercentFormatter = Blank

__all__ = [
    "Axes",
    "Blank",
    "FancyBboxPatch",
    "Figure",
    "FuncFormatter",
    "MaxNLocator",
    "Patch",
    "PercentFormatter",
]
