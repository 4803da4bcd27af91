"""Designed hosts beside each other: the bill over their cores, and a leaderboard of lines of text."""

from __future__ import annotations

import re
from math import ceil

import numpy as np

from ...tables import percent
from ..decisions import CORE_PRICE, IMAGES, MAX_COUNTS, Design
from .said import say, table
from .svg import frame, tag, text

_LINE = re.compile(r"(\w+) x (\d+), (\d+) cores, (\d+) drives *([^\n]*)")


def bill_curve(host: Design, *, most: int = 64) -> str:
    """Draw what the training costs on hosts like one over their cores, and where the bill stops falling.

    Parameters
    ----------
    host : Design
    most : int
        Cores at the end of the axis.

    Returns
    -------
    str
        SVG.
    """
    cores = np.arange(1, most + 1)
    step = host.pipeline.replace({"workers.cores": cores}, workers=cores).solve()
    dollars = (IMAGES / step.throughput).m_as("h") * (host.an_hour + (cores - host.cores) * CORE_PRICE)
    top, best = 20 * ceil(dollars.max() / 20), int(dollars.argmin())
    places = [(60 + 8.5 * n, 200 - 180 * each / top) for n, each in zip(cores, dollars, strict=True)]
    curve = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    body = tag("polyline", points=curve, fill="none", stroke="#0072B2", stroke_width=2.5)
    for place, fill in ((best, "none"), (min(host.cores, most) - 1, "#D55E00")):
        x, y = places[place]
        body += tag("circle", cx=x, cy=y, r=6, fill=fill, stroke="#D55E00", stroke_width=2)
    for dollar in (0, top // 2, top):
        body += text(52, 204 - 180 * dollar / top, f"{dollar} USD", size=11, text_anchor="end")
    for n in range(8, most + 1, 8):
        body += text(60 + 8.5 * n, 218, str(n), size=11, text_anchor="middle")
    lowest = f"{dollars[best]:.0f} USD with {best + 1} cores"
    return frame(
        body + text(60, 238, f"cores. Disc: this host. Ring: the lowest bill, {lowest}.", size=12),
        height=246,
        title="What the training costs, over the cores of the host",
        description=f"The bill falls to {lowest}, and rises behind it. Here it is {host.dollars:.0f} USD.",
    )


def leaderboard(mine: object, lines: str = "") -> None:
    """Show designs in the order of what they cost, each computed again from its line.

    Parameters
    ----------
    mine : mapping
        Your own design, as `judge` takes it.
    lines : str
        What others posted, such as "A100 x 2, 39 cores, 3 drives Ada".

    Raises
    ------
    WrongAnswer
        If one of them cannot be bought.
    """
    found = [(Design.of(mine), "you")]
    for gpu, *counts, name in _LINE.findall(lines):
        given = {"gpu": gpu, **{key: int(count) for key, count in zip(MAX_COUNTS, counts, strict=True)}}
        found.append((Design.of(given), name))
    found.sort(key=lambda one: (one[0].obstacle != "none", one[0].dollars))
    table(
        ["design", "costs [USD]", "busy", "against it", "whose"],
        [[str(one), f"{one.dollars:.2f}", percent(one.busy), one.obstacle, name] for one, name in found],
    )
    say(f"Your line to post: {Design.of(mine)}")
