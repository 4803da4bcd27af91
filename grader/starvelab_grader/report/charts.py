"""The pictures of the class report: how hard each exercise was, how sure the class was, and its points."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from starvelab.lesson.show.figure import StaticFigure, render_figure
from starvelab.lesson.show.style import GRAY, SERIES
from starvelab.tables import percent

from .findings import Distribution, Item


def difficulty_chart(items: Sequence[Item]) -> StaticFigure:
    """Bars of the mean share of the points, with a point for each discrimination."""
    color, _, _ = SERIES[0]
    other, _, marker = SERIES[1]
    figure = Figure(figsize=(7.5, 1.2 + 0.26 * len(items)), layout="constrained")
    axes = figure.add_subplot()
    at = range(len(items))
    axes.barh(
        at, [one.difficulty for one in items], color=color, height=0.6, label="mean share of the points"
    )
    known = [(y, one.discrimination) for y, one in enumerate(items) if one.discrimination is not None]
    if known:
        ys, values = zip(*known, strict=True)
        axes.plot(values, ys, linestyle="", marker=marker, color=other, mec="white", label="discrimination")
    axes.set_yticks(at, [one.cell for one in items])
    axes.invert_yaxis()
    axes.axvline(0, color=GRAY, linewidth=0.8)
    axes.set_xlim(min([0.0, *(value for _, value in known)]) - 0.02, 1.02)
    axes.set_xlabel("share of the points; correlation with the rest")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    hardest, easiest = min(items, key=_by_difficulty), max(items, key=_by_difficulty)
    summary = (
        f"Hardest: {hardest.cell} ({percent(hardest.difficulty, 0)} of the points). "
        f"Easiest: {easiest.cell} ({percent(easiest.difficulty, 0)})."
    )
    return render_figure(
        figure,
        alt=f"Bar chart of the mean share of points for {len(items)} exercises. {summary}",
        caption=f"Mean share of the points of each exercise, and its discrimination. {summary}",
        headers=["exercise", "mean share of the points", "discrimination"],
        rows=[[one.cell, one.difficulty, one.discrimination] for one in items],
    )


def _by_difficulty(item: Item) -> float:
    return item.difficulty


def points_histogram(points: Distribution) -> StaticFigure:
    """How many students earned how many points."""
    color, _, _ = SERIES[0]
    other, dash, _ = SERIES[1]
    figure = Figure(figsize=(7.5, 3), layout="constrained")
    axes = figure.add_subplot()
    lows, highs, students = zip(*points.bins, strict=True)
    axes.bar(lows, students, width=[high - low for low, high in zip(lows, highs, strict=True)],
             align="edge", color=color, edgecolor="white")  # fmt: skip
    axes.axvline(points.mean, color=other, linestyle=dash, label=f"mean {points.mean:.1f}")
    axes.axvline(points.median, color=GRAY, linestyle=":", label=f"median {points.median:.1f}")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlim=(0, points.possible), xlabel=f"points by test, of {points.possible:g}", ylabel="students")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    summary = f"Mean {points.mean:.1f}, median {points.median:.1f} of {points.possible:g} points."
    return render_figure(
        figure,
        alt=f"Histogram of the points of {sum(students)} students in {len(students)} classes. {summary}",
        caption=summary,
        headers=["points from", "to", "students"],
        rows=[list(row) for row in points.bins],
    )
