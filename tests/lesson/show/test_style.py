"""Colors: read on white and on a dark page, and never the only difference."""

import pytest

from starvelab.lesson.show import figure as style
from starvelab.model.resources import RESOURCES

PAGES = {"white": "#ffffff", "dark": "#111111"}
DRAWN = {*style.COLORS.values(), *style.PART_COLORS.values(), *(color for color, _ in style.SERIES)}


def luminance(color: str) -> float:
    """Relative luminance, WCAG 2.2."""
    color = {"white": "#ffffff", "black": "#000000"}.get(color, color)
    shares = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), channels, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("color", sorted(DRAWN))
@pytest.mark.parametrize("page", PAGES)
def test_each_color_passes_three_to_one_on_white_and_on_dark(color, page):
    assert contrast(color, PAGES[page]) >= 3


@pytest.mark.parametrize("resource", RESOURCES)
def test_text_on_a_bar_passes_four_and_a_half_to_one(resource):
    assert contrast(RESOURCES[resource].ink, RESOURCES[resource].color) >= 4.5


def test_each_resource_series_and_part_looks_like_no_other():
    looks = [[getattr(one, look) for one in RESOURCES.values()] for look in ("color", "hatch", "dash")]
    looks += [*zip(*style.SERIES, strict=True), style.PART_COLORS.values()]
    assert all(len({*kind}) == len(kind) >= 3 for kind in looks)
