"""The picture of the validation: predicted against measured, as samples per second on logarithmic axes."""

from __future__ import annotations

from html import escape
from math import log10

from .published import Published, Tested

WIDTH, HEIGHT, LEFT, TOP, DECADE = 710, 640, 90, 20, 95  # pixels; DECADE is one factor of ten
FIRST, LAST = 0, 6  # the axes, as powers of ten
BAND = 0.10
BLUE, ORANGE, GRAY = "#0072B2", "#D55E00", "#767676"


def _x(rate: float) -> float:
    return LEFT + DECADE * (log10(rate) - FIRST)


def _y(rate: float) -> float:
    return TOP + DECADE * (LAST - log10(rate))


def _line(x1: float, y1: float, x2: float, y2: float, **style: str) -> str:
    more = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in style.items())
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"{more}/>'


def _text(x: float, y: float, text: str, anchor: str = "start", attributes: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{attributes}>{escape(text)}</text>'


def _point(test: Tested) -> str:
    """A circle as shipped, a square where extrapolated."""
    measured, predicted = test.samples
    assert measured is not None
    assert predicted is not None
    x, y = _x(measured), _y(predicted)
    if test.uses:
        shape = f'<rect x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10" fill="{ORANGE}">'
    else:
        shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{BLUE}">'
    tag = shape[1:].split(" ", 1)[0]
    return f"{shape}<title>{escape(test.what)}: {100 * test.error:+.1f} %</title></{tag}>"


def _axes() -> list[str]:
    low, high = 10**FIRST, 10**LAST
    parts = [
        f'<rect x="{LEFT}" y="{TOP}" width="{_x(high) - LEFT:.1f}" height="{_y(low) - TOP:.1f}" fill="none" '
        'stroke="#333333"/>'
    ]
    for power in range(FIRST, LAST + 1):
        rate, label = 10.0**power, f"{10**power:,}"
        parts += [
            _line(_x(rate), TOP, _x(rate), _y(low), stroke="#dddddd"),
            _line(LEFT, _y(rate), _x(high), _y(rate), stroke="#dddddd"),
            _text(_x(rate), _y(low) + 20, label, "middle"),
            _text(LEFT - 8, _y(rate) + 5, label, "end"),
        ]
    middle = (LEFT + _x(high)) / 2
    turned = f' transform="rotate(-90 18 {(TOP + _y(low)) / 2:.1f})"'
    parts += [
        _text(middle, _y(low) + 44, "measured (samples/s)", "middle"),
        _text(18, (TOP + _y(low)) / 2, "predicted (samples/s)", "middle", turned),
    ]
    return parts


def _band() -> list[str]:
    low, high = 10**FIRST, 10**LAST
    up, down = 1 + BAND, 1 - BAND
    corners = (
        (low, low * up),
        (high / up, high),
        (high, high),
        (high, high * down),
        (low / down, low),
        (low, low),
    )
    points = " ".join(f"{_x(x):.1f},{_y(y):.1f}" for x, y in corners)
    return [
        f'<polygon points="{points}" fill="{BLUE}" fill-opacity="0.15"/>',
        _line(_x(low), _y(low), _x(high), _y(high), stroke="#333333", stroke_dasharray="4 4"),
    ]


def _legend() -> list[str]:
    x, y = LEFT + 16, TOP + 24
    entries = (
        (f'<circle cx="{x}" cy="{y - 5}" r="5" fill="{BLUE}"/>', "predicted as shipped"),
        (
            f'<rect x="{x - 5}" y="{y + 15}" width="10" height="10" fill="{ORANGE}"/>',
            "from another row, extrapolated",
        ),
        (
            f'<rect x="{x - 8}" y="{y + 38}" width="16" height="14" fill="{BLUE}" fill-opacity="0.15"/>',
            "within 10 %",
        ),
    )
    return [
        part for i, (mark, text) in enumerate(entries) for part in (mark, _text(x + 16, y + 25 * i, text))
    ]


def draw(published: Published) -> str:
    """The picture as the text of an SVG file, the same on every run."""
    shown = [test for test in published.tests if None not in test.samples]
    inside = sum(abs(test.error) <= BAND for test in shown)
    title = "Predicted against measured throughput, on logarithmic axes"
    described = f"{inside} of {len(shown)} predictions lie within 10 % of the measurement."
    body = [*_axes(), *_band(), *map(_point, shown), *_legend()]
    lines = "\n".join(body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="sans-serif" font-size="14" fill="#333333">\n'
        f"<title>{title}</title>\n<desc>{described}</desc>\n"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>\n{lines}\n</svg>\n'
    )
