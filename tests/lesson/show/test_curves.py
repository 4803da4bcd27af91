"""Curves over batch size and workers: their captions, alt texts and tables say what the model says."""

import numpy as np
import pytest

from starvelab import PUBLISHED, Hardware, InputError, Models, Pipeline, Storage
from starvelab.model.resources import RESOURCES
from starvelab.show import over_batch, over_workers
from tests.rejected import message

PIPE = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
FULL = PIPE.replace(storage=Storage.NVMe_Gen4, link=Hardware.Cloud.A100)
AT_512 = PIPE.replace(batch_size=512)


# --- over the batch size ---------------------------------------------------------------------------


def test_the_crossover_is_marked_and_said(drawn):
    picture = over_batch(PIPE)
    assert picture.caption == (
        "Time of each resource and utilization over the batch size. Up to batch 22 the GPU binds, "
        "from 23 on the workers: they cross at 22.4166."
    )
    assert "which is 100.0 % at batch 1 and 12.5 % at 1024." in picture.alt
    for axes in drawn[0].axes:
        [mark] = [line for line in axes.lines if len(line.get_xdata()) == 2]
        assert list(mark.get_xdata()) == [float(PIPE.crossover().batch)] * 2
    assert [text.get_text() for text in drawn[0].axes[1].texts] == ["crossover\nat 22.4"]


@pytest.mark.parametrize("batches", [[32, 1024], [1, 8]])
def test_a_crossover_outside_the_figure_is_said_and_not_marked(batches, drawn):
    assert "they cross at 22.4166" in over_batch(PIPE, batches=batches).caption
    assert not any(len(line.get_xdata()) == 2 for axes in drawn[0].axes for line in axes.lines)


def test_the_table_over_the_batch_size_is_the_tutorials_sorted_with_few_labels(drawn):
    picture = over_batch(PIPE, batches=[1024, 32, 64, 128, 256, 512])
    assert picture.headers == ["batch", "workers time", "GPU time", "utilization", "binds"]
    assert [row[0] for row in picture.rows] == [32, 64, 128, 256, 512, 1024]
    assert [row[3] for row in picture.rows] == ["73.2 %", "41.9 %", "26.2 %", "18.3 %", "14.4 %", "12.5 %"]
    assert {row[4] for row in picture.rows} == {"workers"}
    over_batch(PIPE, batches=range(100, 0, -1))
    assert len(drawn[1].axes[0].get_xticks()) <= 12


def test_a_resource_looks_the_same_however_many_there_are(drawn):
    by_label = {resource.label: resource for resource in RESOURCES.values()}
    over_batch(PIPE)
    over_batch(FULL)
    for figure in drawn:
        for line in figure.axes[0].lines:
            if look := by_label.get(line.get_label()):
                assert line.get_color() == look.color
                assert line.get_linestyle() == look.dash


# --- over the workers ------------------------------------------------------------------------------


def test_the_last_wall_of_each_line_is_marked_and_said(drawn):
    pipelines = {"drive not modeled": AT_512, "one NVMe drive": AT_512.replace(storage=Hardware.Cloud.A100)}
    picture = over_workers(pipelines, workers=[1, 8, 16, 28, 32, 56, 64])
    assert picture.caption == (
        "Utilization over workers; a marker shows where more of them stop helping. "
        "Drive not modeled: from 56 workers on, the GPU sets the limit: 100.0 % busy. "
        "One NVMe drive: from 28 workers on, the drive sets the limit: 50.5 % busy."
    )
    assert picture.alt.endswith(picture.caption.split(". ", 1)[1])
    marks = [line.get_xydata()[0] for line in drawn[0].axes[0].lines if len(line.get_xdata()) == 1]
    assert np.allclose(marks, [(56, 1), (28, 0.5050778)])


def test_a_line_that_meets_no_wall_says_so(drawn):
    assert over_workers({"few": AT_512}, workers=[8, 32]).caption.endswith(
        "Few: the workers bind, up to 32 of them."
    )
    measured = over_workers(
        {"measured": AT_512.replace(assumptions=PUBLISHED, phase="forward")}, workers=[8, 90]
    )
    assert "Measured: the workers bind, up to 90 of them." in measured.caption
    assert all(len(line.get_xdata()) > 1 for figure in drawn for line in figure.axes[0].lines)


# --- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [over_batch, lambda p: over_workers({"p": p}, workers=[1, 2])])
def test_what_looks_for_a_wall_refuses_stages_that_do_not_overlap(draw):
    assert "looks at stages that overlap, got overlap=False" in message(
        InputError, lambda: draw(PIPE.replace(overlap=False))
    )


def test_an_axis_has_two_values_or_more_and_a_figure_one_to_four_lines():
    for draw, needs in (
        (lambda: over_batch(PIPE, batches=[8]), "over_batch needs two or more batch sizes, got [8]."),
        (lambda: lines(1, []), "over_workers needs two or more numbers of workers, got []."),
    ):
        assert message(InputError, draw) == f"{needs} Pass for example [8, 16, 32]."
    for count in (0, 5):
        assert message(InputError, lines, count, [1, 2]) == (
            f'over_workers draws one to 4 pipelines, got {count}. Pass for example {{"one drive": pipeline}}.'
        )


def lines(count, workers):
    return over_workers({f"line {i}": AT_512 for i in range(count)}, workers=workers)


# --- what the sources allow ------------------------------------------------------------------------

MEASURED = PIPE.replace(assumptions=PUBLISHED)
BAND = (
    "The band is what the sources of the values allow, with the model's own error: it claims to hold the "
    "truth in 80 % of the cases."
)


def test_the_band_over_the_batch_size_is_what_the_sources_allow(drawn):
    picture = over_batch(MEASURED, batches=[64, 512])
    [band] = drawn[0].axes[1].collections
    low, high = MEASURED.solve(batch_size=512).ranges.utilization
    corners = band.get_paths()[0].get_extents()
    at_512 = [y for x, y in band.get_paths()[0].vertices if x == 512]
    assert (min(at_512), max(at_512)) == pytest.approx((low, high))
    assert corners.x1 == 512
    assert picture.headers[-2:] == ["utilization from", "to"]
    assert picture.rows[-1][-2:] == [f"{100 * low:.1f} %", f"{100 * high:.1f} %"]
    for text in (picture.caption, picture.alt):
        assert text.endswith(BAND)


def test_each_line_over_the_workers_has_its_band(drawn):
    picture = over_workers({"measured": MEASURED, "given": AT_512}, workers=[8, 32])
    assert len(drawn[0].axes[0].collections) == 1
    assert picture.headers == ["workers", "measured", "measured from", "measured to", "given"]
    assert picture.caption.endswith(BAND)


def test_a_band_is_drawn_when_it_is_asked_for_and_left_out_when_it_is_not(drawn):
    for picture in (
        over_batch(MEASURED, batches=[64, 512], ranges=False),
        over_workers({"measured": MEASURED}, workers=[8, 32], ranges=False),
        over_batch(AT_512.replace(storage=Storage.NVMe_Gen5), batches=[64, 512]),
    ):
        assert "band" not in picture.caption
    over_batch(AT_512.replace(storage=Storage.NVMe_Gen5, workers=64), batches=[64, 512], ranges=True)
    bands = [[len(axes.collections) for axes in figure.axes] for figure in drawn]
    assert bands == [[0, 0], [0], [0, 0], [0, 1]]


def test_a_curve_says_once_on_what_its_worker_was_measured():
    scans = PIPE.replace({"dataset.size": "5 MB"})
    for picture in (
        over_batch(scans, batches=[8, 16]),
        over_workers({"scans": scans, "more": scans.replace(batch_size=512)}, workers=[8, 32]),
    ):
        for text in (picture.caption, picture.alt):
            assert text.count("was measured neither on samples of 500 KB nor of 5 MB.") == 1
