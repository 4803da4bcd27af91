"""Curves of explorers, in SVG: a plane of lines, and in it the time of each resource over the batch size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np

from ...model.resources import ACCELERATOR, RESOURCES
from ...model.step import one_step
from ...pipeline import Pipeline
from ...tables import percent
from .drawing import (
    LEFT,
    LENGTH,
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

_HEIGHT = 200  # of the plane of lines


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


def stroke(color: str, dash: str = "none") -> dict[str, str]:
    """Return the looks of a line."""
    return {"stroke": color, "stroke_width": "2.5", "stroke_dasharray": dash}
