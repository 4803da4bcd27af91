"""Timelines: what is drawn is in the step, the run or the trace, and what is said is what is drawn."""

import re
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from starvelab import Q_, Drive, InputError, Link, Pipeline, Samples
from starvelab.jobs import read_trace, watch
from starvelab.lesson.show import timelines
from starvelab.show import loader_timeline, trace_timeline
from starvelab.simulate import Trace
from tests.jobs.trainings import Training, train

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
    assert title == f"The accelerator waits {100 * waits / end:.1f} % of the time"


def test_each_kind_is_a_picture(painted, tmp_path):
    for picture in (loader_timeline(HELD), trace_timeline(starved(tmp_path))):
        assert picture.png.startswith(b"\x89PNG")


def test_lanes_and_axes_say_what_they_are(drawn):
    for kind in ("slow workers", "shared storage", "never waits"):
        loader_timeline(RUNS[kind])
    loader_timeline(RUNS["slow workers"].trace().after(5))
    (workers, queue, accelerator), shared, busy, later = (figure.axes for figure in drawn)
    assert (names(workers), names(accelerator)) == (["worker 1", "worker 2"], ["accelerator"])
    assert queue.get_ylabel() == "batches\nin queue"
    assert accelerator.get_xlabel() == "time since the start (ms), simulated"
    assert (len(names(shared[0])), names(shared[-1])) == (12, ["copy", "accelerator"])
    assert not hatched(busy[-1])
    assert later[-1].get_xlabel() == "time since the start of this stretch (ms), simulated"


def test_what_is_drawn_of_a_run_is_said():
    never, slow = RUNS["never waits"], RUNS["slow workers"]
    assert "The accelerator is busy 100.0 % and waits 0.0 % of the time." in loader_timeline(never).caption
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
    assert [names(axes) for axes in drawn[1].axes] == [["training loop"], ["copy", "accelerator"]]
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
        "Simulated run, 24 batches. The accelerator is busy 54.5 % and waits 45.5 % of the time, once; "
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


# --- of a trace -------------------------------------------------------------------------------------


def starved(tmp_path, batches=12, **changes):
    """Waits of 40 ms, a copy of 10 ms and kernels of 50 ms."""
    times = {"wait": 40, "step": 50, "copy": "Pageable", "copying": 10} | changes
    return read_trace(train(Training(), batches, **times).write(tmp_path / "trace.json"))


def lengths(figure: Figure, color: str, lane: int) -> list[float]:
    """How long the bars of a color in a lane are [ms]."""
    found = []
    for bars in figure.axes[0].collections:
        for path in bars.get_paths():
            box = path.get_extents()
            if to_hex(bars.get_facecolor()[0]) == color.lower() and round(box.y0 + box.height / 2) == lane:
                found.append(box.width)
    return found


def test_it_says_where_the_time_of_the_loop_and_of_the_gpu_went_and_its_table_step_by_step(tmp_path):
    picture = trace_timeline(starved(tmp_path), batches=8)
    assert [row[0] for row in picture.rows] == [*range(1, 9)]
    assert picture.rows[1][1:] == ["100.0", "40.0", "200.0", "50.0", "10.0", "40.0", "0.0"]
    assert len(picture.headers) == len(picture.rows[0])
    assert all("(ms)" in header for header in picture.headers[1:])
    assert picture.caption == (
        "From a trace, 8 batches. The training loop waits 40.0 % of the time for data. The GPU computes "
        "50.0 % of the time, only copies 10.0 %, is idle in the waits 40.0 %, and idle otherwise 0.0 %."
    )
    assert picture.alt == (
        "Timeline with a lane for each of training loop, GPU. "
        + picture.caption.removeprefix("From a trace, 8 batches. ")
    )


def test_waits_kernels_and_copies_are_drawn_as_long_as_they_took(tmp_path, drawn):
    trace_timeline(starved(tmp_path), batches=4)
    (figure,) = drawn
    assert names(figure.axes[0]) == ["training loop", "GPU"]
    assert lengths(figure, timelines.WAITS["facecolor"], 0) == pytest.approx([40] * 4, abs=0.1)
    # Kernels are drawn on top of all that the GPU does.
    assert sum(lengths(figure, timelines.LINK.color, 1)) == pytest.approx(4 * 60, abs=1)
    assert sum(lengths(figure, timelines.ACCELERATOR.color, 1)) == pytest.approx(4 * 50, abs=1)
    hatches = {bars.get_hatch() for bars in figure.axes[0].collections}
    assert len(hatches) == 4, "waits, copies, other idle times and the rest differ without color"


def test_idle_for_another_reason_is_told_apart_from_a_wait(tmp_path):
    finding = starved(tmp_path, wait=0.5, step=72, copy="", kernels=56, gap=1.775, sync=False)
    picture = trace_timeline(finding)
    assert "is idle in the waits 0.0 %, and idle otherwise 28.4 %" in picture.caption


def test_a_trace_without_a_gpu_has_one_lane(tmp_path, drawn):
    training = Training()
    for number in range(6):
        start = training.now
        training.wait(30)
        training.compute(70)
        training.mark(5 + number, start)
    picture = trace_timeline(read_trace(training.write(tmp_path / "trace.json")))
    assert names(drawn[0].axes[0]) == ["training loop"]
    assert picture.caption.endswith("waits 30.0 % of the time for data. The trace holds no GPU.")
    assert picture.headers == ["step", "from (ms)", "loop waits (ms)", "to (ms)"]


def test_the_rank_that_waits_most_is_drawn(tmp_path):
    for rank, wait in enumerate((1, 60)):
        train(Training(rank=rank), 8, wait=wait, step=60).write(tmp_path / f"{rank}.json")
    assert "waits 50.0 % of the time" in trace_timeline(read_trace(tmp_path)).caption


def test_a_job_that_was_watched_has_no_steps_to_draw():
    with pytest.raises(InputError, match="draws the steps of a trace, and this JobFinding holds none"):
        trace_timeline(watch([], batch_size=1, workers=1, progress=False).result)
