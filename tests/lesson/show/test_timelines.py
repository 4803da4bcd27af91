"""Timelines of a loader: what is drawn is in the run, and what is said is what is drawn."""

import re
from itertools import pairwise

import numpy as np
import pytest

from starvelab import Q_, Drive, InputError, Link, Pipeline, Samples
from starvelab.lesson.show import timelines
from starvelab.show import loader_timeline
from starvelab.simulate import Trace

SLOW = Pipeline(
    dataset=Samples(cpu_time="50 ms", size="30 MB", transfer="5 MB"),
    batch_size=1,
    workers=2,
    hardware="20 ms",
)


def run(pipeline, **options):
    return pipeline.simulate(**{"batches": 200, "replicas": 1, "warm_up": 0, **options})


# Batch 0 takes 400 ms, and three others are ready long before it.
HELD = run(SLOW, prepare_times=Q_([400] + [10] * 29, "ms"))
DRIVE = Drive("1 GB/s", read_ahead=False)
RUNS = {
    "slow workers": run(SLOW),
    "held back": HELD,
    "inline, copies in turn": run(SLOW.replace(workers=0, link=Link("1 GB/s", overlaps=False))),
    "as it comes": run(SLOW.replace({"workers.in_order": False, "dataset.jitter.spread": 0.5})),
    "shared storage": run(SLOW.replace(workers=12, storage=DRIVE, link="500 MB/s"), warm_up=30),
    "never waits": run(SLOW.replace(workers=4), warm_up=20),
    "one batch": run(SLOW, batches=1),
}


# --- of a loader ------------------------------------------------------------------------------------


def names(axes):
    return [text.get_text() for text in axes.get_yticklabels()]


def bars(axes, color):
    """Start and end of each bar of a color."""
    wanted = timelines.RESOURCES[color].color.lower()
    return [
        (bar.get_x(), bar.get_x() + bar.get_width())
        for bar in axes.patches
        if "#{:02x}{:02x}{:02x}".format(*(round(255 * c) for c in bar.get_facecolor()[:3])) == wanted
    ]


def hatched(axes):
    return [bar for bar in axes.patches if bar.get_hatch() == "////"]


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_each_has_alt_text_a_caption_its_data_and_a_title_that_tells_the_share_that_is_hatched(run, drawn):
    picture = loader_timeline(run)
    for text in (picture.caption, picture.alt):
        assert text.endswith(".")
        assert all(sentence[0].isupper() for sentence in re.split(r"(?<=\.) ", text))
    assert len(picture.rows) == min(24, run.batches - run.warm_up)
    assert {len(row) for row in picture.rows} == {len(picture.headers)}
    title = drawn[0].get_suptitle()
    accelerator = drawn[0].axes[-1]
    end = accelerator.get_xlim()[1]
    waits = sum(bar.get_width() for bar in hatched(accelerator))
    assert title == f"The GPU waits {100 * waits / end:.1f} % of the time"


def test_it_is_a_picture(painted):
    assert loader_timeline(HELD).png.startswith(b"\x89PNG")


def test_lanes_and_axes_say_what_they_are(drawn):
    for kind in ("slow workers", "shared storage", "never waits"):
        loader_timeline(RUNS[kind])
    loader_timeline(RUNS["slow workers"].trace().after(5))
    (workers, queue, accelerator), shared, busy, later = (figure.axes for figure in drawn)
    assert (names(workers), names(accelerator)) == (["worker 1", "worker 2"], ["GPU"])
    assert queue.get_ylabel() == "batches\nin queue"
    assert accelerator.get_xlabel() == "time since the start (ms), simulated"
    assert (len(names(shared[0])), names(shared[-1])) == (12, ["copy", "GPU"])
    assert not hatched(busy[-1])
    assert later[-1].get_xlabel() == "time since the start of this stretch (ms), simulated"


def test_what_is_drawn_of_a_run_is_said():
    never, slow = RUNS["never waits"], RUNS["slow workers"]
    assert "The GPU is busy 100.0 % and waits 0.0 % of the time." in loader_timeline(never).caption
    later = run(SLOW, batches=60, warm_up=20)
    assert loader_timeline(later).rows[0][0] == 21, "its warm-up is left out"
    assert loader_timeline(later.trace()).rows[0][0] == 1
    measured = Trace(**{**vars(slow.trace()), "source": "measured"})
    assert loader_timeline(measured, batches=6).caption.startswith("Measured run, 6 batches.")
    assert "read (ms)" not in loader_timeline(slow).headers


def test_batches_are_numbered_from_1_in_every_lane_and_the_table_tells_each_from_beginning_to_end(drawn):
    picture = loader_timeline(RUNS["slow workers"], batches=4)
    workers, _, accelerator = drawn[0].axes
    assert [text.get_text() for text in accelerator.texts] == ["1", "2", "3", "4"]
    assert [text.get_text() for text in workers.texts] == ["1", "2", "3", "4", "5", "6"]
    assert picture.headers == [
        "batch", "prepared by", "from (ms)", "to (ms)", "received (ms)", "step (ms)", "waited (ms)",
    ]  # fmt: skip
    assert picture.rows[:2] == [
        [1, "worker 1", "0.0", "50.0", "50.0", "50.0 to 70.0", "50.0"],
        [2, "worker 2", "0.0", "50.0", "50.0", "70.0 to 90.0", "0.0"],
    ]
    # A loop that prepares itself has a lane, and no queue.
    inline = loader_timeline(RUNS["inline, copies in turn"])
    assert [names(axes) for axes in drawn[1].axes] == [["training loop"], ["copy", "GPU"]]
    assert "queue" not in inline.alt
    assert inline.rows[0][1] == "training loop"


def test_bars_stand_where_the_trace_says_and_nothing_is_held_back_if_batches_are_taken_as_they_come(drawn):
    run = RUNS["as it comes"]
    assert "held back" not in loader_timeline(run, batches=10).caption
    assert not any(area.get_hatch() for area in drawn[0].axes[1].collections)
    assert legend(drawn[0]) == ["preparing a batch", "ready for the loop", "computing", "waiting"]
    trace, (workers, _, accelerator) = run.trace(), drawn[0].axes
    steps = list(zip(trace.step_start[:10], trace.step_end[:10], strict=True))
    assert np.allclose(bars(accelerator, "accelerator"), steps)
    end = trace.step_end[9]
    begun = trace.prepare_start < end
    assert np.allclose(
        sorted(bars(workers, "CPU")),
        sorted(zip(trace.prepare_start[begun], trace.prepared[begun], strict=True)),
    )
    assert accelerator.get_xlim() == (0, end)


def test_the_queue_is_as_deep_as_the_trace_says(drawn):
    loader_timeline(HELD)
    [line] = drawn[0].axes[1].lines
    times, depths = HELD.trace().queue_depth()
    shown = line.get_xdata() < drawn[0].axes[1].get_xlim()[1]
    at = np.searchsorted(times, line.get_xdata()[shown], side="right")
    assert line.get_ydata()[shown].tolist() == np.concatenate(([0], depths))[at].tolist()


def test_finished_batches_behind_a_missing_one_are_told_apart_and_counted(drawn):
    picture = loader_timeline(HELD)
    # Worker 2 has its two batches done at 20 ms, and gets no other before batch 1 is back at 400.
    assert picture.caption.startswith(
        "Simulated run, 24 batches. The GPU is busy 54.5 % and waits 45.5 % of the time, once; "
        "longest for batch 1: 400 ms. Up to 2 finished batches were held back by an earlier one."
    )
    assert any(area.get_hatch() == "xx" for area in drawn[0].axes[1].collections)
    assert "ready, held back by an earlier batch" in legend(drawn[0])


def legend(figure):
    [found] = figure.legends
    return [text.get_text() for text in found.get_texts()]


def test_anything_else_is_refused():
    with pytest.raises(InputError) as caught:
        loader_timeline(SLOW)
    assert str(caught.value) == (
        "loader_timeline draws a trace or a simulation, got Pipeline. "
        "Pass pipeline.simulate(), or the trace of a measurement."
    )
    with pytest.raises(InputError, match="batches must be finite and positive, got 0"):
        loader_timeline(HELD, batches=0)


def test_reads_are_drawn_apart_from_the_transforms_and_one_after_the_other(drawn):
    pipeline = SLOW.replace({"dataset.size": "40 MB", "dataset.cpu_time": "100 ms"}, workers=4, storage=DRIVE)
    picture = loader_timeline(run(pipeline, warm_up=20), batches=10)
    (figure,) = drawn
    reads = sorted(bars(figure.axes[0], "storage"))
    assert len(reads) > 10
    for (_, end), (start, _) in pairwise(reads):
        assert start >= end - 1e-6, "the storage serves one worker after the other"
    assert {round(end - start) for start, end in reads} == {40}
    assert {round(end - start) for start, end in bars(figure.axes[0], "CPU")} == {100}
    assert picture.headers[3] == "read (ms)"
    assert "reading a batch" in legend(figure)
