"""Bars with notes: what they say, how long they are, and what they refuse."""

from __future__ import annotations

import re

import pytest

from starvelab import InputError
from starvelab.lesson.show import bars
from starvelab.show import labeled_bars


@pytest.fixture
def drawn(drawn_by):
    """The matplotlib figures behind the pictures."""
    return drawn_by(bars)


def draw(values=(2.0, -1.0), labels=("fast", "slow"), notes=("+2 %", "-1 %")):
    return labeled_bars(labels, values, notes, axis="error (%)", caption="One error on each side of zero.")


def test_the_picture_is_painted_and_its_words_hold_its_data(painted):
    picture = draw()
    assert picture.png.startswith(b"\x89PNG")
    assert picture.alt == "Bar chart of error (%): fast +2 %; slow -1 %. One error on each side of zero."
    assert picture.caption == "One error on each side of zero."
    assert picture.headers == ["", "error (%)", "note"]
    assert picture.rows == [("fast", 2.0, "+2 %"), ("slow", -1.0, "-1 %")]


def test_bars_are_as_long_as_the_values_in_their_order_and_hatched_below_zero(drawn):
    draw()
    (axes,) = drawn[0].axes
    widths = [bar.get_width() for group in axes.containers for bar in group]
    hatches = [bar.get_hatch() for group in axes.containers for bar in group]
    assert (widths, hatches) == ([2.0, -1.0], [None, "//"])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["fast", "slow"]
    assert axes.yaxis_inverted()
    assert axes.get_xlabel() == "error (%)"


@pytest.mark.parametrize("values", [(-2.0, -1.0), (0.0, 0.0)], ids=["all below zero", "all zero"])
def test_bars_without_a_positive_one_still_have_an_axis(drawn, values):
    draw(values)
    low, high = drawn[0].axes[0].get_xlim()
    assert low <= min(values)
    assert high > 0


@pytest.mark.parametrize(
    ("arguments", "counts"),
    [({"values": (1.0,)}, "2, 1 and 2"), ({"values": (), "labels": (), "notes": ()}, "0, 0 and 0")],
    ids=["a value is missing", "nothing at all"],
)
def test_each_bar_needs_its_label_its_value_and_its_note(arguments, counts):
    message = f"Each bar has a label, a value and a note, got {counts} of them. Pass as many of each."
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        draw(**arguments)
