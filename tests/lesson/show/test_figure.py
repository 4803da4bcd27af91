"""A figure in a notebook: alt text, a caption, and the same data as a table, in HTML and in text."""

import base64
import struct
from html.parser import HTMLParser
from io import BytesIO

import pytest
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


class Page(HTMLParser):
    """Collects what a browser and a screen reader would find."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.image: dict[str, str] = {}
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "img":
            self.image = dict(attrs)

    def handle_data(self, data):
        self.text.append(data)


def test_the_image_is_a_png_with_alt_text(drawn):
    page = Page(drawn._repr_html_())
    assert page.image["alt"] == AWKWARD
    kind, data = page.image["src"].split(",", 1)
    assert kind == "data:image/png;base64"
    assert base64.b64decode(data) == drawn.png
    assert drawn.png.startswith(b"\x89PNG")
    assert "max-width:100%" in page.image["style"]
    assert struct.unpack(">II", drawn.png[16:24]) == (2 * drawn.width, drawn.width)
    assert list(imread(BytesIO(drawn.png))[0, 0]) == [1, 1, 1, 1], "its ground is white, whatever the theme"


def test_the_caption_and_the_table_stand_below_the_image(drawn):
    page = Page(drawn._repr_html_())
    tags = [tag for tag in page.tags if tag in ("figure", "img", "figcaption", "details", "table")]
    assert tags == ["figure", "img", "figcaption", "details", "table"]
    assert AWKWARD in page.text
    assert {"The same as a table", "batch", "step", "32", "5.856 ms"} <= set(page.text)


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
    page = Page(shown._repr_html_())
    assert [tag for tag in page.tags if tag in ("figure", "img", "figcaption", "details", "table")] == [
        "figure", "figcaption", "table",
    ]  # fmt: skip
    assert {AWKWARD, NO_IMAGE, "32"} <= set(page.text)
    assert repr(shown).splitlines()[0] == AWKWARD
