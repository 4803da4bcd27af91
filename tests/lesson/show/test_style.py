"""Colors: read on white and on a dark page, and never the only difference."""

import pytest
from matplotlib.colors import to_rgb

from starvelab.lesson.show import figure as style
from starvelab.model.resources import RESOURCES

PAGES = {"white": "#ffffff", "dark": "#111111"}
DRAWN = {*style.COLORS.values(), *style.PART_COLORS.values(), *(color for color, _, _ in style.SERIES)}


def luminance(color: str) -> float:
    """Relative luminance, WCAG 2.2."""
    channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), channels, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("color", sorted(DRAWN))
@pytest.mark.parametrize("page", PAGES)
def test_each_color_passes_three_to_one_on_white_and_on_dark(color, page):
    assert contrast(color, PAGES[page]) >= 3


def test_grey_lines_pass_on_white_where_alone_they_stand():
    assert contrast(style.GRAY, "white") >= 4.5


@pytest.mark.parametrize("resource", RESOURCES)
def test_text_on_a_bar_passes_four_and_a_half_to_one(resource):
    assert contrast(RESOURCES[resource].ink, RESOURCES[resource].color) >= 4.5


def test_each_resource_series_and_part_looks_like_no_other():
    looks = [[getattr(one, look) for one in RESOURCES.values()] for look in ("color", "hatch", "dash")]
    looks += [*zip(*style.SERIES, strict=True), style.PART_COLORS.values()]
    assert all(len({*kind}) == len(kind) >= 3 for kind in looks)
