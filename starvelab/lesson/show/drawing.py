"""What pictures in SVG are made of: elements, text, bars, and the frame that screen readers announce.

They take the page's color, so that they fit every theme, and are cheap enough to redraw while a slider moves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from ...units import format_number

# Pixels: the whole, where bars and axes begin, how long the longest bar and an axis are, and from one bar to
# the next.
WIDTH, LEFT, BAR, LENGTH, ROW, TOP = 640, 110, 330, 500, 40, 8
STYLE = (
    # On a phone it scrolls instead of shrinking until nobody can read it.
    "max-width:max(100%,38em);height:auto;color:var(--jp-content-font-color1,currentColor);"
    "font:14px var(--jp-content-font-family,sans-serif)"
)
# A filled part of a bar or a lane that stands for something else than the rest of it; see `hatching`.
HATCHED = {"fill": "url(#hatched)", "stroke": "currentColor"}


def tag(name: str, inside: str = "", /, **attributes: str | float | None) -> str:
    """An element: `_` in an attribute's name is a hyphen, a float has one decimal, and None is left out."""
    given = "".join(
        f' {key.replace("_", "-")}="{f"{value:.1f}" if isinstance(value, float) else value}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{inside}</{name}>" if inside else f"<{name}{given}/>"


def text(x: float, y: float, words: str, *, size: int | None = None, **attributes: str | None) -> str:
    """Words that begin at a point, or that end or have their middle there with a `text_anchor`."""
    return tag("text", escape(words), x=x, y=y, font_size=size, **attributes)


def frame(body: str, *, height: int, title: str, description: str) -> str:
    """An SVG element that screen readers announce and themes color."""
    return (
        f'<svg role="img" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" style="{STYLE}" '
        'fill="currentColor" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{body}</svg>"
    )


@dataclass(frozen=True)
class Bar:
    """A bar with its name and a note; lengths are shares of the longest."""

    name: str
    share: float
    color: str
    note: str
    outline: float = 0.0  # the share that a line around it encloses
    hollow: bool = False  # of what cannot run
    bold: bool = False
    start: float = 0.0  # where it begins
    hatched: float = 0.0  # of it, from its start on


def bar_rows(
    rows: Iterable[Bar], *, left: int = LEFT, length: int = BAR, row: int = ROW, top: int = TOP
) -> tuple[str, int]:
    """Bars below each other, and the y below the last of them."""
    drawn, y, height = "", top, round(0.7 * row)
    for bar in rows:
        weight, middle, x = "bold" if bar.bold else None, y + height // 2 + 5, left + length * bar.start
        wide = max(1.0, length * bar.share) if bar.share else 0.0
        drawn += text(left - 6, middle, bar.name, text_anchor="end", font_weight=weight)
        drawn += rect(x, y, wide, height, **fill(bar.color, hollow=bar.hollow))
        if bar.hatched:
            drawn += rect(x, y, length * bar.hatched, height, **HATCHED)
        drawn += text(left + length + 12, middle, bar.note, font_weight=weight)
        if bar.outline:
            drawn += rect(left, y, length * bar.outline, height, fill="none", stroke="currentColor")
        y += row
    return drawn, y


def rect(x: float, y: float, width: float, height: float, **style: str | float) -> str:
    """A rectangle with round corners, unless `rx` says otherwise."""
    return tag("rect", x=x, y=y, width=width, height=height, **{"rx": 3, **style})


def fill(color: str, *, hollow: bool) -> dict[str, str]:
    """Fill a shape with its color, or draw only its edge where it stands for what cannot run."""
    return {"fill": "none", "stroke": color, "stroke_width": "2"} if hollow else {"fill": color}


def line(x1: float, y1: float, x2: float, y2: float, **style: str | float) -> str:
    """A line in the page's color."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke="currentColor", **style)


def hatching(name: str = "hatched") -> str:
    """The definition of a pattern, to fill with ``url(#name)``."""
    stripe = tag("path", d="M0 6L6 0", stroke="currentColor", stroke_opacity="0.45")
    pattern = tag("pattern", stripe, id=name, width=6, height=6, patternUnits="userSpaceOnUse")
    return tag("defs", pattern)


def ticks(end: float, y: float, unit: str = "") -> str:
    """Five numbers below a horizontal axis, from 0 to its end."""
    numbers = [format_number(end * i / 4) for i in range(5)]
    return "".join(
        text(LEFT + LENGTH * i // 4, y, number + unit * (i == 4), size=11, text_anchor="middle")
        for i, number in enumerate(numbers)
    )


def legend(swatches: Mapping[str, str], y: int, *, columns: int = 2) -> tuple[str, int]:
    """Names in columns, each behind a swatch of 30 by 12 pixels, and the y below the last of them."""
    drawn = ""
    for place, (name, swatch) in enumerate(swatches.items()):
        x, top = 8 + (WIDTH - 8) // columns * (place % columns), y + 18 * (place // columns)
        drawn += tag("g", swatch, transform=f"translate({x} {top})") + text(x + 36, top + 10, name, size=12)
    return drawn, y + 18 * -(-len(swatches) // columns)


def of_one_step(
    drawn: str, y: int, below: Sequence[str], spoken: Sequence[str], *, feasible: bool, title: str, about: str
) -> str:
    """A figure of one step: what is drawn, sentences below it, and those that are heard as well."""
    lines = "".join(text(LEFT, y + 18 * i, sentence, size=12) for i, sentence in enumerate(below))
    return frame(
        drawn + lines,
        height=y - 10 + 18 * len(below),
        title=title if feasible else f"Not feasible. {title}",
        description=" ".join((about, *spoken)),
    )


def reasons(drawn: str, reason: str) -> list[str]:
    """Say below a figure of a step that cannot run, a sentence on each line."""
    return re.findall(r"\S.*?\.(?= |$)", caveat(drawn, reason))


def caveat(drawn: str, reason: str) -> str:
    """Say in a caption that steps cannot run; empty where all can."""
    return f"What is drawn {drawn} is not feasible. {reason}" if reason else ""
