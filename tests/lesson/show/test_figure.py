"""A figure in a notebook: alt text, a caption, and the same data as a table, in HTML and in text."""

import base64
import struct
from io import BytesIO

import pytest
from bs4 import BeautifulSoup
from matplotlib.figure import Figure
from matplotlib.image import imread

from starvelab import Q_
from starvelab.lesson.show.figure import NO_IMAGE, Blank, StaticFigure, render_figure

pytestmark = pytest.mark.usefixtures("painted")
AWKWARD = 'Time < 5 ms & "busy"'


@pytest.fixture
def drawn() -> StaticFigure:
    figure = Figure(figsize=(4, 2))
    figure.add_subplot().plot([1, 2], [3, 4])
    return render_figure(
        figure, alt="", found=(AWKWARD,), headers=["batch", "step"], rows=[[32, Q_("5.856 ms")]]
    )


def page_of(figure: StaticFigure) -> BeautifulSoup:
    return BeautifulSoup(figure._repr_html_(), "html.parser")


def parts_of(page: BeautifulSoup) -> list[str]:
    return [one.name for one in page(["figure", "img", "figcaption", "details", "table"])]


def test_the_image_is_a_png_with_alt_text(drawn):
    image = page_of(drawn).img
    assert image["alt"] == AWKWARD
    kind, data = image["src"].split(",", 1)
    assert kind == "data:image/png;base64"
    assert base64.b64decode(data) == drawn.png
    assert drawn.png.startswith(b"\x89PNG")
    assert "max-width:100%" in image["style"]
    assert struct.unpack(">II", drawn.png[16:24]) == (2 * drawn.width, drawn.width)
    assert list(imread(BytesIO(drawn.png))[0, 0]) == [1, 1, 1, 1], "its ground is white, whatever the theme"


def test_the_caption_and_the_table_stand_below_the_image(drawn):
    page = page_of(drawn)
    assert parts_of(page) == ["figure", "img", "figcaption", "details", "table"]
    assert {AWKWARD, "The same as a table", "batch", "step", "32", "5.856 ms"} <= {*page.stripped_strings}


def test_where_there_is_no_html_the_caption_and_the_table_are_shown(drawn):
    assert repr(drawn).splitlines() == [
        AWKWARD,
        "  batch      step",
        "-------  --------",
        "     32  5.856 ms",
    ]


def test_without_matplotlib_the_caption_and_the_open_table_are_shown():
    blank = Blank()
    left, right = blank.subplots(1, 2, sharex=True)
    left.spines[["top", "right"]].set_visible(False)
    right.plot([1, 2], [3, 4])
    shown = render_figure(blank, alt="a chart", found=[AWKWARD], headers=["batch"], rows=[[32]])
    page = page_of(shown)
    assert parts_of(page) == ["figure", "figcaption", "table"]
    assert {AWKWARD, NO_IMAGE, "32"} <= {*page.stripped_strings}
    assert repr(shown).splitlines()[0] == AWKWARD
