"""A figure in a notebook: a picture with a title, a caption, and the same data as a table."""

import pytest
from bs4 import BeautifulSoup

from starvelab import Q_
from starvelab.lesson.show.drawing import frame
from starvelab.lesson.show.figure import StaticFigure, render_figure

AWKWARD = 'Time < 5 ms & "busy"'


@pytest.fixture
def drawn() -> StaticFigure:
    svg = frame("", height=10, title=AWKWARD, description="Nothing.")
    return render_figure(
        svg, alt="", found=(AWKWARD,), headers=["batch", "step"], rows=[[32, Q_("5.856 ms")]]
    )


def test_the_caption_and_the_table_stand_below_a_picture_that_is_announced(drawn):
    page = BeautifulSoup(drawn._repr_html_(), "html.parser")
    names = ["figure", "svg", "figcaption", "details", "table"]
    assert [part.name for part in page(names)] == names
    assert {AWKWARD, "The same as a table", "batch", "step", "32", "5.856 ms"} <= {*page.stripped_strings}
    assert (page.svg["role"], page.svg.title.string) == ("img", AWKWARD)
    assert "overflow-x:auto" in page.svg.parent["style"]


def test_where_there_is_no_html_the_caption_and_the_table_are_shown(drawn):
    assert repr(drawn).splitlines() == [
        AWKWARD,
        "  batch      step",
        "-------  --------",
        "     32  5.856 ms",
    ]
