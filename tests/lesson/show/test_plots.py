"""The static figures: their captions, alt texts and tables say what the model says."""

from __future__ import annotations

import inspect
import re
from xml.etree import ElementTree

import pytest

from starvelab import Hardware, InputError, Models, Pipeline, Storage, show
from starvelab.lesson.show import plots
from starvelab.lesson.show.drawing import HATCHED
from starvelab.lesson.show.svg import step_bars
from starvelab.show import labeled_bars, over_workers, stage_bars
from tests.rejected import message

SVG = "{http://www.w3.org/2000/svg}"
PIPE = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
FULL = PIPE.replace(storage=Storage.NVMe_Gen4, link=Hardware.Cloud.A100)


def bars_with_notes(values=(2.0, -1.0), labels=("fast", "slow"), notes=("+2 %", "-1 %")):
    return labeled_bars(labels, values, notes, axis="error (%)", caption="One error on each side of zero.")


# One call of each figure, for what holds of all of them.
FIGURES = {
    "stage_bars": lambda: stage_bars(FULL.solve()),
    "over_workers": lambda: over_workers({"alone": FULL}, workers=[8, 64]),
    "labeled_bars": bars_with_notes,
}


def test_each_figure_of_plots_is_among_those_tested_here():
    listed = {name for name in show.__all__ if inspect.getmodule(getattr(show, name)) is plots}
    drawing = {
        name
        for name, function in inspect.getmembers(plots, inspect.isfunction)
        if function.__module__ == plots.__name__ and not name.startswith("_")
    }
    assert drawing == listed, "a figure needs its import in starvelab/show.py"
    assert set(FIGURES) == listed, "a figure needs its line in FIGURES of this file"


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_each_figure_can_be_read(draw):
    picture = draw()
    assert len(picture.alt.split()) > 10
    assert len(picture.caption.split()) > 5
    assert len(picture.rows) >= 2
    assert {len(row) for row in picture.rows} == {len(picture.headers)}
    for text in (picture.caption, picture.alt):
        assert text.endswith(".")
        assert all(sentence[0].isupper() for sentence in re.split(r"(?<=\.) ", text))
    assert picture.svg in picture._repr_html_()


# --- stage bars ------------------------------------------------------------------------------------


def test_stage_bars_say_what_sets_the_step_and_for_how_long():
    picture = stage_bars(PIPE.solve(batch_size=256, workers=8))
    assert picture.caption == (
        "Time each resource needs for one batch of 256. The workers set the step of 64 ms; "
        "the GPU is busy 18.3 % of it."
    )
    assert picture.alt == (
        "Bar chart of the time for one batch: workers 64 ms, GPU 11.74 ms. "
        "The workers set the step of 64 ms; the GPU is busy 18.3 % of it."
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"storage": Storage.SATA_SSD}, "The drive sets the step of"),
        ({"link": "1 GB/s", "workers": 99}, "The link sets the step of"),
        ({"batch_size": 8}, "The GPU sets the step of 5.225 ms;"),
        ({"overlap": False}, "Nothing overlaps, so the times add up to a step of 75.74 ms;"),
        ({"batch_size": 9999, "phase": "training"}, "has 80 GB. Use a batch of at most"),
    ],
    ids=str,
)  # fmt: skip
def test_stage_bars_name_whatever_it_is(changes, words):
    assert words in stage_bars(PIPE.solve(**changes)).caption


def test_the_bars_and_the_table_of_stages_are_the_steps_own():
    step = FULL.solve()
    picture = stage_bars(step)
    assert [row[0] for row in picture.rows] == ["drive", "workers", "link", "GPU"]
    assert [row[1] for row in picture.rows] == list(step.resource_times.values())
    assert [row[2] for row in picture.rows] == ["71.4 %", "0.0 %", "92.5 %", "81.7 %"]
    assert picture.svg == step_bars(step), "the same bars have one style"


# --- bars with notes ------------------------------------------------------------------------------


@pytest.mark.parametrize(("values", "starts", "widths"), [
    ((2.0, -1.0), [1 / 3, 0], [2 / 3, 1 / 3]),
    ((-2.0, -1.0), [0, 0.5], [1, 0.5]),
    ((0.0, 0.0), [0, 0], [0, 0]),
])  # fmt: skip
def test_bars_are_as_long_as_the_values_from_a_common_zero_and_hatched_below_it(values, starts, widths):
    picture = bars_with_notes(values)
    assert picture.alt == "Bar chart of error (%): fast +2 %; slow -1 %. One error on each side of zero."
    assert picture.caption == "Error (%). One error on each side of zero."
    assert picture.headers == ["", "error (%)", "note"]
    assert picture.rows == [["fast", values[0], "+2 %"], ["slow", values[1], "-1 %"]]
    rects = [one.attrib for one in ElementTree.fromstring(picture.svg).iter(f"{SVG}rect")]
    bars = [one for one in rects if one["fill"] != HATCHED["fill"]]
    left, length = 42, 640 - 42 - 42 - 14
    assert [(float(bar["x"]) - left) / length for bar in bars] == pytest.approx(starts, abs=1e-3)
    assert [float(bar["width"]) / length for bar in bars] == pytest.approx(widths, abs=1e-3)
    assert len(rects) - len(bars) == sum(value < 0 for value in values)


@pytest.mark.parametrize(
    ("arguments", "counts"),
    [({"values": (1.0,)}, "2, 1 and 2"), ({"values": (), "labels": (), "notes": ()}, "0, 0 and 0")],
    ids=["a value is missing", "nothing at all"],
)
def test_each_bar_needs_its_label_its_value_and_its_note(arguments, counts):
    said = f"Each bar has a label, a value and a note, got {counts} of them. Pass as many of each."
    assert message(InputError, bars_with_notes, **arguments) == said


# --- what is refused -------------------------------------------------------------------------------


def test_what_draws_a_step_refuses_anything_else():
    assert message(InputError, stage_bars, PIPE) == (
        "stage_bars looks at a solved pipeline, got Pipeline. Pass pipeline.solve()."
    )
    assert message(InputError, stage_bars, PIPE.solve(workers=[1, 2])) == (
        "stage_bars looks at one point, got 2. Solve for one."
    )
