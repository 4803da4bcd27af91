"""Designed hosts beside each other: the bill over their cores, and a leaderboard as a link."""

from __future__ import annotations

import re
from math import ceil
from urllib.parse import quote, unquote

import numpy as np

from ...tables import percent
from ..decisions import CORE_PRICE, IMAGES, MAX_COUNTS, Design
from .said import link, table
from .svg import frame, tag, text

MAX_CORES = 64  # at the end of the axis
_LINE = re.compile(r"(\w+) x (\d+), (\d+) cores, (\d+) drives *([^\n]*)")
# As the page of the site writes it: a host, what it costs, and whose it is.
_LINK = re.compile(r"(\w+)-(\d+)-(\d+)-(\d+)=[\d.]*=([\w.~%*'()!-]*)")
BOARD = "https://starvelab.github.io/starvelab/leaderboard/index.html"


def bill_curve(host: Design) -> str:
    """Draw what the training costs on hosts like one over their cores, and where the bill stops falling.

    Parameters
    ----------
    host : Design

    Returns
    -------
    str
        SVG.
    """
    cores = np.arange(1, MAX_CORES + 1)
    step = host.pipeline.replace({"workers.cores": cores}, workers=cores).solve()
    dollars = (IMAGES / step.throughput).m_as("h") * (host.an_hour + (cores - host.cores) * CORE_PRICE)
    best, here = int(dollars.argmin()), min(host.cores, MAX_CORES) - 1
    # One core costs many times what the best number does: the axis ends where the curve can still be read.
    top = 20 * ceil(min(dollars.max(), max(3 * dollars[best], dollars[here])) / 20)
    places = [(60 + 8.5 * n, 200 - 180 * each / top) for n, each in zip(cores, dollars, strict=True)]
    curve = " ".join(f"{x:.1f},{y:.1f}" for x, y in places if y >= 20)
    body = tag("polyline", points=curve, fill="none", stroke="#0072B2", stroke_width=2.5)
    # The ring stands around the disc where both are one.
    for place, r, fill in ((best, 10, "none"), (here, 6, "#D55E00")):
        x, y = places[place]
        body += tag("circle", cx=x, cy=y, r=r, fill=fill, stroke="#D55E00", stroke_width=2)
    for dollar in (0, top // 2, top):
        body += text(52, 204 - 180 * dollar / top, f"{dollar} USD", size=11, text_anchor="end")
    for n in range(8, MAX_CORES + 1, 8):
        body += text(60 + 8.5 * n, 218, str(n), size=11, text_anchor="middle")
    lowest = f"{dollars[best]:.0f} USD with {best + 1} cores"
    return frame(
        body + text(60, 238, f"Cores of the host. Disc: this one. Ring: the lowest bill, {lowest}.", size=12),
        height=246,
        title="What the training costs, over the cores of the host",
        description=f"The bill falls to {lowest}, and rises behind it. Here it is {host.dollars:.0f} USD.",
    )


def leaderboard(mine: object, posted: str = "", *, name: str = "") -> None:
    """Show designs in the order of what they cost, each computed again, and a link that carries all of them.

    Whoever opens the link sees the board and the curve of the bill, and can add a design: a page of the site
    computes them, and no server keeps anything.

    Parameters
    ----------
    mine : mapping
        Your own design, as `judge` takes it.
    posted : str
        What others posted: links, and lines such as "A100 x 2, 39 cores, 3 drives Ada".
    name : str
        What the others are to read beside your design.

    Raises
    ------
    WrongAnswer
        If one of them cannot be bought.
    """
    found = {Design.of(mine): name}
    for gpu, *counts, whose in (*_LINE.findall(posted), *_LINK.findall(posted)):
        given = {"gpu": gpu, **{key: int(count) for key, count in zip(MAX_COUNTS, counts, strict=True)}}
        found.setdefault(Design.of(given), unquote(whose))
    ranked = sorted(found, key=lambda one: (one.obstacle != "none", one.dollars))
    table(
        ["design", "costs [USD]", "busy", "against it", "whose"],
        [
            [str(one), f"{one.dollars:.2f}", percent(one.busy), one.obstacle,
             found[one] or ("you" if one == next(iter(found)) else "somebody")]
            for one in ranked
        ],
    )  # fmt: skip
    parts = (
        f"{one.gpu}-{one.gpus}-{one.cores}-{one.drives}={one.dollars:.2f}={quote(whose, safe='')}"
        for one, whose in found.items()
    )
    link("The board as a link, to post where your course talks", f"{BOARD}#{';'.join(parts)}")
