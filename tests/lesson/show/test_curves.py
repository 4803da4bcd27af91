"""Curves over the workers: caption, alt text and table say what the model says."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from starvelab import PUBLISHED, Hardware, InputError, Models, Pipeline
from starvelab.lesson.show import plots
from starvelab.runtime import GRADING, use
from starvelab.show import over_workers
from tests.rejected import message

PIPE = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
AT_512 = PIPE.replace(batch_size=512)


# --- over the workers ------------------------------------------------------------------------------


@pytest.fixture
def drawn(monkeypatch) -> list[Axes]:
    """The axes that each figure draws on."""
    every = []

    def plot(draw, **_):
        every.append(Figure().add_subplot())
        draw(every[-1])
        return "<svg></svg>"

    monkeypatch.setattr(plots, "plot", plot)
    return every


def test_a_picture_is_announced_takes_the_color_of_the_page_and_is_left_out_while_grading():
    picture = over_workers({"few": AT_512}, workers=[8, 32])
    root = ElementTree.fromstring(picture.svg)
    assert (root.get("role"), root[0].text) == ("img", "Few: the workers bind, up to 32 of them.")
    inks = set(re.findall(r"(?:fill|stroke): (#\w+|currentColor)", picture.svg))
    assert inks == {"currentColor", plots.SERIES[0][0].lower()}
    with use(GRADING):
        graded = over_workers({"few": AT_512}, workers=[8, 32])
    assert (graded.svg, graded.alt, repr(graded)) == ("", picture.alt, repr(picture)), "nobody looks"
    assert not re.search("<svg|<details", graded._repr_html_())


def test_the_last_wall_of_each_line_is_marked_and_said(drawn):
    pipelines = {"drive not modeled": AT_512, "one NVMe drive": AT_512.replace(storage=Hardware.Cloud.A100)}
    picture = over_workers(pipelines, workers=[1, 8, 16, 28, 32, 56, 64])
    assert picture.caption == (
        "Utilization over workers; a disc shows where more of them stop helping. "
        "Drive not modeled: from 56 workers on, the GPU sets the limit: 100.0 % busy. "
        "One NVMe drive: from 28 workers on, the drive sets the limit: 50.5 % busy."
    )
    assert picture.alt.endswith(picture.caption.split(". ", 1)[1])
    lines = [line for line in drawn[0].lines if len(line.get_xdata()) > 1]
    discs = [line.get_xydata()[0] for line in drawn[0].lines if len(line.get_xdata()) == 1]
    assert np.allclose(discs, [(56, 100), (28, 50.50778)])
    assert len({line.get_linestyle() for line in lines}) == 2, "a color is never the only difference"


def test_a_line_that_meets_no_wall_says_so(drawn):
    few = over_workers({"few": AT_512}, workers=[8, 32])
    assert few.caption.endswith("Few: the workers bind, up to 32 of them.")
    measured = over_workers(
        {"measured": AT_512.replace(assumptions=PUBLISHED, phase="forward")}, workers=[8, 90]
    )
    assert "Measured: the workers bind, up to 90 of them." in measured.caption
    assert all(len(line.get_xdata()) > 1 for axes in drawn for line in axes.lines)


# --- what is refused -------------------------------------------------------------------------------


def test_what_looks_for_a_wall_refuses_stages_that_do_not_overlap():
    assert "looks at stages that overlap, got overlap=False" in message(
        InputError, lambda: over_workers({"p": PIPE.replace(overlap=False)}, workers=[1, 2])
    )


@pytest.mark.parametrize(("count", "workers"), [(1, []), (1, [8, 8]), (0, [1, 2]), (5, [1, 2])])
def test_an_axis_has_two_values_or_more_and_a_figure_one_to_four_lines(count, workers):
    lines = {f"line {i}": AT_512 for i in range(count)}
    assert message(InputError, over_workers, lines, workers=workers) == (
        "over_workers draws one to 4 pipelines for two or more numbers of workers, got "
        f"{count} and {sorted(set(workers))}. "
        'Pass for example {"one drive": pipeline}, workers=[8, 16, 32].'
    )


# --- what the sources allow ------------------------------------------------------------------------

MEASURED = PIPE.replace(assumptions=PUBLISHED)
BAND = (
    "The band is what the sources of the values allow, with the model's own error: it claims to hold the "
    "truth in 80 % of the cases."
)


def test_a_line_over_the_workers_has_a_band_of_what_the_sources_allow_where_there_are_ranges(drawn):
    picture = over_workers({"measured": MEASURED, "given": AT_512}, workers=[8, 32])
    (band,) = drawn[0].collections
    low, high = MEASURED.solve(workers=32).ranges.utilization
    heights = [y for x, y in band.get_paths()[0].vertices if x == 32]
    assert (min(heights), max(heights)) == pytest.approx((100 * low, 100 * high))
    assert picture.headers == ["workers", "measured", "measured from", "measured to", "given"]
    assert picture.rows[-1][2:4] == [f"{100 * low:.1f} %", f"{100 * high:.1f} %"]
    for text in (picture.caption, picture.alt):
        assert text.endswith(BAND)


def test_a_curve_says_once_on_what_its_worker_was_measured():
    scans = PIPE.replace({"dataset.size": "5 MB"})
    picture = over_workers({"scans": scans, "more": scans.replace(batch_size=512)}, workers=[8, 32])
    for text in (picture.caption, picture.alt):
        assert text.count("assumed on samples of 500 KB, and is carried over to those of 5 MB.") == 1
