"""The picture of the whole pipeline: every resource in its place, and its words."""

from __future__ import annotations

from starvelab.lesson.show.overview import _WORK
from starvelab.model.resources import DISPLAY_ORDER
from starvelab.show import whole_pipeline


def test_it_shows_every_resource_in_the_order_in_which_a_batch_meets_them(painted):
    figure = whole_pipeline()
    assert [row[0] for row in figure.rows] == [name for name in DISPLAY_ORDER if name != "decoder"]
    assert figure.png.startswith(b"\x89PNG")


def test_its_alternative_text_says_what_each_does():
    alt = whole_pipeline().alt
    for work, _ in _WORK.values():
        assert work.replace("\n", " ") in alt
    assert alt.endswith(".")
