"""The models beside twenty published loaders: given the same, a learner's is as far as the lab's."""

import re
from statistics import median

import pytest

from starvelab.lesson.my_model import save_part
from starvelab.widgets import beside_published

CPU = "def cpu_time(b, size, workers, rate):\n    return {}"


def test_twenty_loaders_of_twelve_sources_are_published_with_one_worker():
    found = beside_published()
    assert len(found.loaders) == 20
    assert len({loader.source.partition("@")[0].partition(",")[0] for loader in found.loaders}) == 12
    assert all(loader.workers > 1 and loader.one < loader.measured for loader in found.loaders)
    assert [row[0] for row in found.rows()] == [loader.what for loader in found.loaders]


def test_a_straight_line_is_what_one_worker_prepares_times_the_workers_and_its_half_is_said():
    save_part("cpu_time", CPU.format("b * size / workers / rate"))
    found = beside_published()
    assert found.yours == pytest.approx([one.one * one.workers for one in found.loaders], rel=1e-6)
    pairs = zip(found.yours, found.loaders, strict=True)
    half = f"{median(abs(own / loader.measured - 1) for own, loader in pairs):.0%}".replace("%", " %")
    assert f"half of the errors of your model of 2 lines are within {half}" in str(found)
    html = found._repr_html_()
    assert html.count("<circle") == 21  # one for each, and the legend's
    assert re.search("<desc>From what one worker prepares, ", html)


@pytest.mark.parametrize("value", ["None", "'fast'", "Q_(-1, 's')", "Q_(1, 'B')"])
def test_a_model_that_returns_no_time_has_no_mark_and_stops_nothing(value):
    save_part("cpu_time", CPU.format(value))
    found = beside_published()
    assert found.yours == (None,) * 20
    assert "<circle" in found._repr_html_()
    assert found.rows()[0][3] == "none"
