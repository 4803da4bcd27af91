"""The static figures: their captions, alt texts and tables say what the model says."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from starvelab import (
    PUBLISHED,
    TUTORIAL,
    Hardware,
    InputError,
    MissingValueError,
    Models,
    Pipeline,
    SingleNodeModel,
    Storage,
    crossover,
)
from starvelab.lesson import show
from starvelab.lesson.show import over_batch, over_workers, plots, roofline, stage_bars, style, timeline

PIPE = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
FULL = PIPE.replace(storage=Storage.NVMe_Gen4, link=Hardware.Cloud.A100)
AT_512 = PIPE.replace(batch_size=512)


def roof(batches=(1, 256), hardware=Hardware.Cloud.A100):
    return roofline(model=Models.ResNet50, hardware=hardware, batches=batches, assumptions=TUTORIAL)


# One call of each figure, for what holds of all of them.
FIGURES = {
    "stage_bars": lambda: stage_bars(FULL.solve()),
    "timeline": lambda: timeline(FULL.solve()),
    "over_batch": lambda: over_batch(FULL),
    "over_workers": lambda: over_workers({"alone": AT_512}, workers=[8, 64]),
    "roofline": roof,
}


@pytest.fixture
def drawn(drawn_by) -> list[Figure]:
    """The matplotlib figures behind the pictures."""
    return drawn_by(plots)


def test_each_figure_of_plots_is_among_those_tested_here():
    listed = {name for name, module in show.FIGURES.items() if module == "plots"}
    drawing = {
        name
        for name, function in inspect.getmembers(plots, inspect.isfunction)
        if function.__module__ == plots.__name__ and not name.startswith("_")
    }
    assert drawing == listed, "a figure needs its line in FIGURES of starvelab/lesson/show/__init__.py"
    assert set(FIGURES) == listed, "a figure needs its line in FIGURES of this file"


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_each_figure_can_be_read_and_is_told_apart_without_color(draw, painted, drawn):
    picture = draw()
    assert picture.png.startswith(b"\x89PNG")
    assert len(picture.alt.split()) > 10
    assert len(picture.caption.split()) > 10
    assert len(picture.rows) >= 2
    assert {len(row) for row in picture.rows} == {len(picture.headers)}
    for text in (picture.caption, picture.alt):
        assert text.endswith(".")
        assert all(sentence[0].isupper() for sentence in re.split(r"(?<=\.) ", text))
    for axes in drawn[0].axes:
        lines = [line for line in axes.lines if len(line.get_xdata()) > 2]  # the rest are marks
        assert len({(line.get_linestyle(), line.get_marker()) for line in lines}) == len(lines)
        assert axes.get_xlabel()
        marks = [text.get_text() for axis in (axes.xaxis, axes.yaxis) for text in axis.get_ticklabels()]
        assert "100.0" not in marks
        assert not any("e" in mark for mark in marks if mark[:1].isdigit())


# --- stage bars ------------------------------------------------------------------------------------


def test_stage_bars_say_what_sets_the_step_and_for_how_long():
    picture = stage_bars(PIPE.solve(batch_size=256, workers=8))
    assert picture.caption == (
        "Time each resource needs for one batch. The CPU sets the step of 64 ms; "
        "the accelerator is busy 18.3 % of it."
    )
    assert picture.alt == (
        "Bar chart of the time for one batch: CPU 64 ms, accelerator 11.74 ms. "
        "The CPU sets the step of 64 ms; the accelerator is busy 18.3 % of it."
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"storage": Storage.SATA_SSD}, "Storage sets the step of"),
        ({"link": "1 GB/s", "workers": 99}, "The link sets the step of"),
        ({"batch_size": 8}, "The accelerator sets the step of 5.225 ms;"),
        ({"overlap": False}, "Nothing overlaps, so the times add up to a step of 75.74 ms;"),
        ({"batch_size": 9999, "phase": "training"}, "has 80 GB. Use a batch of at most"),
    ],
    ids=str,
)  # fmt: skip
def test_stage_bars_name_whatever_it_is(changes, words):
    assert words in stage_bars(PIPE.solve(**changes)).caption


def test_stage_bars_are_as_long_as_the_times_and_hatched_apart(drawn):
    step = FULL.solve()
    stage_bars(step)
    bars = [bar for container in drawn[0].axes[0].containers for bar in container]
    assert [bar.get_width() for bar in bars] == [t.m_as("ms") for t in step.resource_times.values()]
    assert len({bar.get_hatch() for bar in bars}) == len(bars) == 4


@pytest.mark.parametrize(("overlap", "mark"), [(True, "64 ms (binds)"), (False, "64 ms (the longest)")])
def test_stage_bars_mark_one_bar(overlap, mark, drawn):
    stage_bars(FULL.solve(overlap=overlap))
    marked = [text.get_text() for text in drawn[0].axes[0].texts if "(" in text.get_text()]
    assert marked == [mark]


def test_the_table_of_the_stage_bars_is_the_steps_own():
    step = FULL.solve()
    picture = stage_bars(step)
    assert [row[0] for row in picture.rows] == ["storage", "CPU", "link", "accelerator"]
    assert [row[1] for row in picture.rows] == list(step.resource_times.values())
    assert [row[2] for row in picture.rows] == ["71.4 %", "0.0 %", "93.8 %", "81.7 %"]


# --- timeline --------------------------------------------------------------------------------------


def test_the_timeline_says_for_how_long_the_accelerator_waits():
    picture = timeline(PIPE.solve(batch_size=256, workers=8), batches=4)
    assert picture.caption == (
        "The first 4 batches. In the long run the accelerator waits 81.7 % of each step of 64 ms."
    )
    assert picture.alt == f"Timeline with a lane for each of CPU, accelerator. {picture.caption}"


def test_the_timeline_says_that_the_accelerator_never_waits():
    caption = timeline(PIPE.solve(batch_size=8)).caption
    assert caption == (
        "The first 5 batches. In the long run the accelerator never waits: a step takes 5.225 ms."
    )


def test_the_table_of_the_timeline_counts_batches_from_one():
    rows = timeline(PIPE.solve(batch_size=256, workers=8), batches=2).rows
    assert [[n, resource, round(start, 2), round(end, 2)] for n, resource, start, end in rows] == [
        [1, "CPU", 0, 64],
        [1, "accelerator", 64, 75.74],
        [2, "CPU", 64, 128],
        [2, "accelerator", 128, 139.74],
    ]


def test_waiting_is_hatched_and_working_is_not(drawn):
    timeline(PIPE.solve(batch_size=256, workers=8), batches=3)
    bars = [bar for container in drawn[0].axes[0].containers for bar in container]
    waiting = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars if bar.get_hatch()]
    assert np.allclose(waiting, [(0, 64), (75.743205, 128), (139.743205, 192)])
    assert len([bar for bar in bars if not bar.get_hatch()]) == 6


def test_a_bar_too_narrow_for_its_number_has_none(drawn):
    timeline(PIPE.solve(link=Hardware.Cloud.A100, transfer_size="150528 B"), batches=5)
    numbers = [text.get_text() for text in drawn[0].axes[0].texts]
    assert sorted(numbers) == sorted(["1", "2", "3", "4", "5"] * 2)  # the CPU's and the accelerator's


# --- over the batch size ---------------------------------------------------------------------------


def test_the_crossover_is_marked_and_said(drawn):
    picture = over_batch(PIPE)
    assert picture.caption == (
        "Time of each resource and utilization over the batch size. Up to batch 22 the accelerator binds, "
        "from 23 on the CPU: they cross at 22.4166."
    )
    assert "which is 100.0 % at batch 1 and 12.5 % at 1024." in picture.alt
    for axes in drawn[0].axes:
        [mark] = [line for line in axes.lines if len(line.get_xdata()) == 2]
        assert list(mark.get_xdata()) == [float(crossover(PIPE).batch)] * 2
    assert [text.get_text() for text in drawn[0].axes[1].texts] == ["crossover\nat 22.4"]


@pytest.mark.parametrize("batches", [[32, 1024], [1, 8]])
def test_a_crossover_outside_the_figure_is_said_and_not_marked(batches, drawn):
    assert "they cross at 22.4166" in over_batch(PIPE, batches=batches).caption
    assert not any(len(line.get_xdata()) == 2 for axes in drawn[0].axes for line in axes.lines)


def test_without_a_crossover_none_is_marked(drawn):
    assert "The accelerator binds at every batch size." in over_batch(PIPE.replace(workers=99)).caption
    assert not drawn[0].axes[1].texts


def test_the_table_over_the_batch_size_is_the_tutorials():
    picture = over_batch(PIPE, batches=[32, 64, 128, 256, 512, 1024])
    assert picture.headers == ["batch", "CPU time", "accelerator time", "utilization", "binds"]
    assert [row[3] for row in picture.rows] == ["73.2 %", "41.9 %", "26.2 %", "18.3 %", "14.4 %", "12.5 %"]
    assert {row[4] for row in picture.rows} == {"CPU"}


def test_batch_sizes_are_sorted_and_their_labels_thinned_out(drawn):
    picture = over_batch(PIPE, batches=range(100, 0, -1))
    assert [row[0] for row in picture.rows] == list(range(1, 101))
    assert len(drawn[0].axes[0].get_xticks()) <= 12


def test_a_resource_looks_the_same_however_many_there_are(drawn):
    over_batch(PIPE)
    over_batch(FULL)
    for figure in drawn:
        for line in figure.axes[0].lines:
            if (name := line.get_label()) in style.COLORS:
                assert line.get_color() == style.COLORS[name]
                assert line.get_linestyle() == style.DASHES[name]


# --- over the workers ------------------------------------------------------------------------------


def test_the_last_wall_of_each_line_is_marked_and_said(drawn):
    pipelines = {"drive not modeled": AT_512, "one NVMe drive": AT_512.replace(storage=Hardware.Cloud.A100)}
    picture = over_workers(pipelines, workers=[1, 8, 16, 28, 32, 56, 64])
    assert picture.caption == (
        "Utilization over workers; a marker shows where more of them stop helping. "
        "Drive not modeled: from 56 workers on, the accelerator sets the limit: 100.0 % busy. "
        "One NVMe drive: from 28 workers on, storage sets the limit: 50.5 % busy."
    )
    assert picture.alt.endswith(picture.caption.split(". ", 1)[1])
    marks = [line.get_xydata()[0] for line in drawn[0].axes[0].lines if len(line.get_xdata()) == 1]
    assert np.allclose(marks, [(56, 1), (28, 0.5050778)])


def test_the_table_over_the_workers_is_the_tutorials():
    picture = over_workers({"at 512": AT_512}, workers=[8, 16, 32])
    assert picture.headers == ["workers", "at 512"]
    assert picture.rows == [[8, "14.4 %"], [16, "28.9 %"], [32, "57.7 %"]]


def test_a_line_that_meets_no_wall_says_so(drawn):
    assert over_workers({"few": AT_512}, workers=[8, 32]).caption.endswith(
        "Few: the CPU binds up to 32 workers."
    )
    measured = over_workers(
        {"measured": AT_512.replace(assumptions=PUBLISHED, phase="forward")}, workers=[8, 90]
    )
    assert "Measured: the CPU binds up to 90 workers." in measured.caption
    assert all(len(line.get_xdata()) > 1 for figure in drawn for line in figure.axes[0].lines)


def test_a_wall_that_stands_from_the_start_is_said():
    slow = AT_512.replace(storage="1 MB/s")
    assert "from 2 workers on, storage sets the limit" in over_workers({"x": slow}, workers=[2, 9]).caption


# --- the roofline ----------------------------------------------------------------------------------


def test_the_roofline_tells_how_much_of_the_peak_is_reached():
    picture = roof([1, 256])
    share = SingleNodeModel().solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256).mfu
    assert picture.caption.startswith(
        f"Roofline of the NVIDIA A100 80GB SXM in fp16. A step reaches 0.3 % of the peak at batch 1 "
        f"and {100 * share:.1f} % at 256"
    )
    assert [row[0] for row in picture.rows] == [1, 256]
    assert [row[3] for row in picture.rows] == ["0.3 %", f"{100 * share:.1f} %"]


def test_no_batch_lies_above_the_roof():
    a100 = Hardware.Cloud.A100
    for _, intensity, reached, _, _ in roof([1, 2, 8, 64, 512, 4096]).rows:
        assert reached <= min(312, a100.memory_bandwidth.m_as("TB/s") * intensity)


def test_a_roof_needs_a_memory_bandwidth():
    bare = Hardware.Cloud.A100
    without = type(bare)(bare.kind, bare.path, bare.name, {"peak_fp16_dense": bare.facts["peak_fp16_dense"]})
    with pytest.raises(MissingValueError, match="memory_bandwidth"):
        roof(hardware=without)


# --- what is refused -------------------------------------------------------------------------------


def refused(draw) -> str:
    with pytest.raises(InputError) as caught:
        draw()
    return str(caught.value)


@pytest.mark.parametrize("draw", [stage_bars, timeline])
def test_what_draws_a_step_refuses_anything_else(draw):
    name = draw.__name__
    assert refused(lambda: draw(PIPE)) == (
        f"{name} looks at a solved pipeline, got Pipeline. Pass pipeline.solve()."
    )
    assert refused(lambda: draw(PIPE.solve(workers=[1, 2]))) == (
        f"{name} looks at one point, got several values of workers. Pass one value of each."
    )


def test_a_timeline_needs_a_batch():
    assert "batches must be finite and positive, got 0" in refused(lambda: timeline(PIPE.solve(), batches=0))


@pytest.mark.parametrize("draw", [over_batch, lambda p: over_workers({"p": p}, workers=[1, 2])])
def test_what_looks_for_a_wall_refuses_stages_that_do_not_overlap(draw):
    assert "looks at stages that overlap, got overlap=False" in refused(
        lambda: draw(PIPE.replace(overlap=False))
    )


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: over_batch(PIPE, batches=[8]), "over_batch needs two or more batch sizes, got [8]."),
        (
            lambda: over_workers({"": PIPE}, workers=[]),
            "over_workers needs two or more numbers of workers, got [].",
        ),
        (lambda: roof([4, 4]), "roofline needs two or more batch sizes, got [4, 4]."),
    ],
    ids=["over_batch", "over_workers", "roofline"],
)
def test_an_axis_has_two_values_or_more(draw, said):
    assert refused(draw) == f"{said} Pass for example [8, 16, 32]."


def test_values_of_an_axis_are_counts():
    assert "batch_size must be a whole number" in refused(lambda: over_batch(PIPE, batches=[0.5, 8]))
    assert "workers must be finite and positive" in refused(lambda: over_workers({"p": PIPE}, workers=[0, 8]))


@pytest.mark.parametrize("count", [0, 5])
def test_there_are_looks_for_four_lines(count):
    pipelines = {f"line {i}": AT_512 for i in range(count)}
    assert refused(lambda: over_workers(pipelines, workers=[1, 2])) == (
        f'over_workers draws one to 4 pipelines, got {count}. Pass for example {{"one drive": pipeline}}.'
    )
