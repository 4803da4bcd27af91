"""Where figures are drawn: on matplotlib, or on a blank where a browser or a small installation lacks it.

A figure's caption and table are computed beside its drawing, so both remain without matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
else:  # matplotlib is loaded when a figure is drawn, if it is installed; these are named in annotations
    Axes = Figure = Patch = object


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


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches. Where matplotlib is installed, this is what loads it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return cast("Figure", Blank())
    return Figure(figsize=(width, height), layout="constrained")


# Any: options of matplotlib's patches, each of a type of its own.
def patch(kind: str, *place: Any, **options: Any) -> Patch:
    """One of matplotlib's patches, such as "Patch" for a legend; a blank where matplotlib is missing."""
    try:
        from matplotlib import patches
    except ImportError:
        return cast("Patch", Blank())
    made: Patch = getattr(patches, kind)(*place, **options)
    return made


__all__ = ["Axes", "Blank", "Figure", "Patch", "new_figure", "patch"]
