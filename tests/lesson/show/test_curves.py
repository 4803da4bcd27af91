"""Curves over the workers: caption, alt text and table say what the model says."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from starvelab import PUBLISHED, Hardware, InputError, Models, Pipeline
from starvelab.show import over_workers
from tests.rejected import message

PIPE = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
AT_512 = PIPE.replace(batch_size=512)


# --- over the workers ------------------------------------------------------------------------------


def parts(picture, name):
    return [*ElementTree.fromstring(picture.svg).iter("{http://www.w3.org/2000/svg}" + name)]


def test_the_last_wall_of_each_line_is_marked_and_said():
    pipelines = {"drive not modeled": AT_512, "one NVMe drive": AT_512.replace(storage=Hardware.Cloud.A100)}
    picture = over_workers(pipelines, workers=[1, 8, 16, 28, 32, 56, 64])
    assert picture.caption == (
        "Utilization over workers; a disc shows where more of them stop helping. "
        "Drive not modeled: from 56 workers on, the GPU sets the limit: 100.0 % busy. "
        "One NVMe drive: from 28 workers on, the drive sets the limit: 50.5 % busy."
    )
    assert picture.alt.endswith(picture.caption.split(". ", 1)[1])
    discs = [(float(disc.get("cx")), float(disc.get("cy"))) for disc in parts(picture, "circle")]
    assert np.allclose(discs, [(56 * 500 / 64, 0), (28 * 500 / 64, 200 * (1 - 0.5050778))], atol=0.1)
    lines = parts(picture, "polyline")
    looks = [{line.get(look) for line in lines} for look in ("stroke", "stroke-dasharray")]
    assert [len(look) for look in looks] == [2, 2], "a color is never the only difference"


def test_a_line_that_meets_no_wall_says_so():
    few = over_workers({"few": AT_512}, workers=[8, 32])
    assert few.caption.endswith("Few: the workers bind, up to 32 of them.")
    measured = over_workers(
        {"measured": AT_512.replace(assumptions=PUBLISHED, phase="forward")}, workers=[8, 90]
    )
    assert "Measured: the workers bind, up to 90 of them." in measured.caption
    assert not parts(few, "circle") + parts(measured, "circle")


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


def test_a_line_over_the_workers_has_a_band_of_what_the_sources_allow_where_there_are_ranges():
    picture = over_workers({"measured": MEASURED, "given": AT_512}, workers=[8, 32])
    (band,) = parts(picture, "polygon")
    low, high = MEASURED.solve(workers=32).ranges.utilization
    corners = re.findall(r"([\d.]+),([\d.]+)", band.get("points"))
    heights = [1 - float(y) / 200 for x, y in corners if x == "500.0"]
    assert (min(heights), max(heights)) == pytest.approx((low, high), abs=1e-3)
    assert picture.headers == ["workers", "measured", "measured from", "measured to", "given"]
    assert picture.rows[-1][2:4] == [f"{100 * low:.1f} %", f"{100 * high:.1f} %"]
    for text in (picture.caption, picture.alt):
        assert text.endswith(BAND)


def test_a_curve_says_once_on_what_its_worker_was_measured():
    scans = PIPE.replace({"dataset.size": "5 MB"})
    picture = over_workers({"scans": scans, "more": scans.replace(batch_size=512)}, workers=[8, 32])
    for text in (picture.caption, picture.alt):
        assert text.count("was measured neither on samples of 500 KB nor of 5 MB.") == 1
