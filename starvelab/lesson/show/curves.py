"""Curves in SVG: the time of each resource over the batch size, and utilization over the workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import ceil

import numpy as np

from ...errors import InputError
from ...model.analysis._remarks import foreign_rate
from ...model.assumptions import COVERAGE
from ...model.costs import exceeds
from ...model.description import check_asked
from ...model.resources import ACCELERATOR, CPU, RESOURCES
from ...model.step import Step, one_step
from ...pipeline import Pipeline
from ...tables import percent
from .drawing import (
    LEFT,
    LENGTH,
    caveat,
    frame,
    hatching,
    legend,
    line,
    of_one_step,
    reasons,
    rect,
    tag,
    text,
    ticks,
)
from .figure import SERIES, StaticFigure, render_figure

_HEIGHT = 200  # of the plane of lines
_BAND = (
    "The band is what the sources of the values allow, with the model's own error: it claims to hold the "
    f"truth in {percent(COVERAGE, 0)} of the cases."
)


@dataclass(frozen=True)
class Plane:
    """The plane of lines, from 0 to `right` and up to `top`, whose `unit` stands beside the upright axis."""

    right: float
    top: float
    unit: str

    def points(self, xs: np.ndarray, ys: np.ndarray) -> str:
        """Return the points of a line in pixels."""
        x, y = LENGTH / self.right, _HEIGHT / self.top
        return " ".join(f"{x * at:.1f},{_HEIGHT - y * value:.1f}" for at, value in zip(xs, ys, strict=True))

    def upright(self, at: float, dashes: str = "none") -> str:
        """Return a vertical line."""
        x = LENGTH * at / self.right
        return line(x, 0, x, _HEIGHT, stroke_dasharray=dashes)

    def dot(self, at: float, value: float, **style: str | int) -> str:
        """Return a disc on a line."""
        x, y = LENGTH * at / self.right, _HEIGHT - _HEIGHT * value / self.top
        return tag("circle", cx=x, cy=y, **{"r": 5, **style})

    def drawn(self, curves: str, lines: Mapping[str, Mapping[str, str]], columns: int) -> tuple[str, int]:
        """Draw curves with axes, and above them the name of each line; also the y below it."""
        swatches = {name: tag("path", d="M0 6h30", **look) for name, look in lines.items()}
        names, top = legend(swatches, 4, columns=columns)
        # A disc at the edge is seen whole.
        edge = f"M0 -6H{LENGTH + 6}V{_HEIGHT}H0z"
        clip = tag("clipPath", tag("path", d=edge), id="plane")
        curves += line(0, _HEIGHT, LENGTH, _HEIGHT)
        plane = tag("g", curves, transform=f"translate({LEFT} {top + 8})", clip_path="url(#plane)")
        heights = "".join(
            text(LEFT - 8, top + 12 + _HEIGHT - _HEIGHT * i // 4,
                 f"{self.top * i / 4:g}{self.unit * (i == 4)}", size=11, text_anchor="end")
            for i in range(5)
        )  # fmt: skip
        drawn = f"{names}<defs>{clip}</defs>{plane}{ticks(self.right, top + _HEIGHT + 30)}{heights}"
        return drawn, top + _HEIGHT + 52


def lines_over_batch(pipeline: Pipeline, *, batches: int = 160) -> str:
    """The time of each resource for up to so many samples, and where the accelerator begins to wait.

    The pipeline's own batch size is marked, too. The axes depend on the accelerator alone, so that figures of
    two numbers of workers compare.
    """
    crossover = pipeline.crossover()
    sizes = np.arange(1, batches + 1)
    step, here = pipeline.solve(batch_size=sizes), pipeline.solve()
    one_step(here, "lines_over_batch")
    times = {name: time.m_as("ms") for name, time in step.resource_times.items()}
    chip = times[ACCELERATOR.name]
    plane = Plane(batches, 4 * ceil(2.5 * float(chip[-1]) / 4), " ms")  # the axis has four parts
    looks = {name: stroke(RESOURCES[name].color, RESOURCES[name].dash) for name in times}
    curves = "".join(
        tag("polyline", fill="none", points=plane.points(sizes, time), **looks[name])
        for name, time in times.items()
    )
    at = float(crossover.batch or np.inf)
    if crosses := at <= batches:
        curves += plane.upright(at, "4 3") + plane.dot(at, float(np.interp(at, sizes, chip)))
    curves += plane.upright(int(here.batch_size))
    cannot = sizes[~np.broadcast_to(step.feasible, sizes.shape)]
    if len(cannot):
        first, fill = LENGTH * int(cannot[0]) / batches, "url(#cannot-run)"
        curves += hatching("cannot-run") + rect(first, 0, LENGTH - first, _HEIGHT, rx=0, fill=fill)
    drawn, y = plane.drawn(curves, {here.labels[name]: look for name, look in looks.items()}, columns=4)
    busy = f"{here.labels.the(ACCELERATOR.name)} is busy {percent(here.utilization)} of a step."
    where = f"batch {here.batch_size}, where {busy}"
    below = [
        f"Time for one batch, over the batch size.{' Dashed: where the lines cross.' * crosses}",
        f"Solid: {where}",
        *reasons("hatched", step.infeasible_reason),
    ]
    listed = ", ".join(here.labels[name] for name in times)
    about = f"Time for a batch of each of {listed}, up to batch {batches}. Marked: {where}"
    return of_one_step(drawn, y, below, below[2:], feasible=True, title=crossover.summary, about=about)


def over_workers(pipelines: Mapping[str, Pipeline], *, workers: Sequence[int]) -> StaticFigure:
    """Utilization over the number of workers, one line for each named pipeline, with its last wall marked.

    Where its assumptions have ranges, a band shows what the sources of the values allow.

    Parameters
    ----------
    pipelines : mapping of str to Pipeline
        What each line is called, and what it solves; up to four.
    workers : sequence of int
        Two or more; the table has a row for each.
    """
    counts = sorted(set(workers))
    if not 1 <= len(pipelines) <= len(SERIES) or len(counts) < 2:
        raise InputError(
            f"over_workers draws one to {len(SERIES)} pipelines for two or more numbers of workers, got "
            f"{len(pipelines)} and {counts}. "
            'Pass for example {"one drive": pipeline}, workers=[8, 16, 32].'
        )
    dense = np.arange(counts[0], counts[-1] + 1)
    plane, curves, looks = Plane(counts[-1], 100, " %"), "", {}
    columns, sentences, banded = {}, [], False
    for (name, pipeline), (color, dash) in zip(pipelines.items(), SERIES, strict=False):
        check_asked(pipeline, "over_workers", whatever=pipeline.swept, overlapping=True)
        at, step = pipeline.solve(workers=counts), pipeline.solve(workers=dense)
        shares = 100 * np.asarray(step.utilization)
        can_run = bool(np.all(step.feasible))
        label = name if can_run else f"{name} (not feasible)"
        looks[label] = stroke(color, dash) | ({} if can_run else {"stroke_opacity": "0.4"})
        columns[label] = np.asarray(at.utilization)
        if step.ranged and not np.array_equal(*step.ranges.utilization):
            banded = True
            low, high = (100 * np.asarray(end) for end in step.ranges.utilization)
            edge = plane.points(np.append(dense, dense[::-1]), np.append(low, high[::-1]))
            curves += tag("polygon", points=edge, fill=color, fill_opacity="0.2")
            columns |= zip((f"{label} from", f"{label} to"), np.asarray(at.ranges.utilization), strict=True)
        curves += tag("polyline", fill="none", points=plane.points(dense, shares), **looks[label])
        if (wall := _wall(step)) is not None:
            curves += plane.dot(int(dense[wall]), float(shares[wall]), fill=color)
        sentences += [_wall_in_words(name, step, dense), caveat("pale", step.infeasible_reason)]
    drawn, y = plane.drawn(curves, looks, columns=2)
    axis = f"{step.labels.the(ACCELERATOR.name)} is busy, over the workers"
    alt = f"Line chart of the share of a step in which {axis}."
    notes = dict.fromkeys(foreign_rate(pipeline) for pipeline in pipelines.values())
    return render_figure(
        frame(drawn + text(LEFT, y, f"Share of a step in which {axis}.", size=12), height=y + 10,
              title=sentences[0], description=alt),
        alt=alt,
        caption="Utilization over workers; a disc shows where more of them stop helping.",
        found=(*sentences, _BAND * banded, *notes),
        headers=["workers", *columns],
        rows=[[n, *(percent(column[i]) for column in columns.values())] for i, n in enumerate(counts)],
    )  # fmt: skip


def stroke(color: str, dash: str = "none") -> dict[str, str]:
    """Return the looks of a line."""
    return {"stroke": color, "stroke_width": "2.5", "stroke_dasharray": dash}


def _wall_in_words(name: str, step: Step, dense: np.ndarray) -> str:
    """From how many workers on something else sets the limit."""
    name = name[:1].upper() + name[1:]
    wall = _wall(step)
    if wall is None:
        return f"{name}: {step.labels.does(CPU.name, 'bind')}, up to {dense[-1]} of them."
    others = {other: times[wall] for other, times in _others(step).items()}
    # As in the pipeline, the accelerator binds in a tie.
    slowest = max(others, key=lambda other: (others[other], other == ACCELERATOR.name))
    share = percent(np.asarray(step.utilization)[wall])
    return (
        f"{name}: from {dense[wall]} workers on, {step.labels.does(slowest, 'set')} the limit: {share} busy."
    )


def _others(step: Step) -> dict[str, np.ndarray]:
    return {name: time.m_as("ms") for name, time in step.resource_times.items() if name != CPU.name}


def _wall(step: Step) -> int | None:
    """The first position from which the CPU is no slower than something else; None if there is none."""
    keeps_up = ~exceeds(step.resource_times[CPU.name].m_as("ms"), reduce(np.maximum, _others(step).values()))
    return int(np.argmax(keeps_up)) if keeps_up.any() else None
