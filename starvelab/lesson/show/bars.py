"""Bars with a note beside each: rates along a chain of changes, or errors on both sides of zero."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InputError
from ...model.resources import CPU, STORAGE
from .canvas import new_figure
from .figure import StaticFigure, render_figure


def labeled_bars(
    labels: Sequence[str], values: Sequence[float], notes: Sequence[str], *, axis: str, caption: str
) -> StaticFigure:
    """Horizontal bars, each with its note; bars below zero are hatched.

    Parameters
    ----------
    labels, notes : sequence of str
        What each bar stands for, and what is written beside it.
    values : sequence of float
        How long each bar is, in the unit that `axis` names.
    axis : str
        What the bars count, with its unit.
    caption : str
        One or more sentences that say what there is to see.

    Raises
    ------
    InputError
        If the three sequences are not of one length, or empty.
    """
    lengths = {len(labels), len(values), len(notes)}
    if len(lengths) != 1 or 0 in lengths:
        raise InputError(
            "Each bar has a label, a value and a note, "
            f"got {len(labels)}, {len(values)} and {len(notes)} of them. Pass as many of each."
        )
    figure = new_figure(9, 0.8 + 0.4 * len(labels))
    axes = figure.add_subplot()
    for y, (value, note) in enumerate(zip(values, notes, strict=True)):
        resource, hatch = (CPU, None) if value >= 0 else (STORAGE, "//")
        axes.barh(y, value, color=resource.color, hatch=hatch, edgecolor="white")
        axes.annotate(note, (max(value, 0), y), xytext=(6, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(labels)), list(labels))
    # A third of the longest bar leaves room for the notes.
    axes.set(xlabel=axis, xlim=(1.1 * min(*values, 0), 1.35 * max(*values, 0) or 1))
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    each = "; ".join(f"{label} {note}" for label, note in zip(labels, notes, strict=True))
    return render_figure(
        figure,
        alt=f"Bar chart of {axis}: {each}. {caption}",
        caption=caption,
        headers=["", axis, "note"],
        rows=list(zip(labels, values, notes, strict=True)),
    )
