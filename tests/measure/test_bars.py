"""A bar counts seconds, and is silent where nobody asked for it."""

from __future__ import annotations

from starvelab.measure.bars import time_bar


def test_a_bar_shows_seconds_and_goes_away(capfd):
    with time_bar(3.0, shown=True) as bar:
        bar.update(1.2)
        bar.refresh()
    assert "1 of 3 s" in capfd.readouterr().err


def test_a_bar_can_be_left_out(capfd):
    with time_bar(3.0, shown=False) as bar:
        bar.update(3.0)
    assert capfd.readouterr() == ("", "")
