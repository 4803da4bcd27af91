"""Timelines of a loader: what is drawn is in the run, and what is said is what is drawn."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from starvelab import Q_, Drive, InputError, Link, Pipeline, Samples
from starvelab.lesson.show import lanes
from starvelab.model.resources import ACCELERATOR, CPU, LINK, STORAGE
from starvelab.show import loader_timeline
from starvelab.simulate import Trace
from tests.lesson.show.drawn import boxes, numbers, words

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
WAITS = lanes.HATCHED["fill"]


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_each_has_alt_text_a_caption_its_data_and_a_title_that_tells_the_share_that_is_hatched(run):
    picture = loader_timeline(run)
    for text in (picture.caption, picture.alt):
        assert text.endswith(".")
        assert all(sentence[0].isupper() for sentence in re.split(r"(?<=\.) ", text))
    assert len(picture.rows) == min(24, run.batches - run.warm_up)
    assert {len(row) for row in picture.rows} == {len(picture.headers)}
    title = ElementTree.fromstring(picture.svg)[0].text
    waits = sum(end - start for start, end in boxes(picture.svg, WAITS, "currentColor"))
    said = re.fullmatch(r"The GPU waits ([\d.]+) % of the time", title)[1]
    assert 100 * waits == pytest.approx(float(said), abs=0.3)


def test_lanes_say_what_they_are():
    slow, shared, busy = (
        loader_timeline(RUNS[kind]) for kind in ("slow workers", "shared storage", "never waits")
    )
    assert slow.alt.startswith("Timeline with a lane for each of worker 1, worker 2, queue, up to 0, GPU.")
    assert words(slow.svg)[:4] == ["worker 1", "worker 2", "queue, up to 0", "GPU"]
    assert {f"worker {number}" for number in range(1, 13)} | {"copy"} <= {*words(shared.svg)}
    assert not boxes(busy.svg, WAITS, "currentColor")
    assert "waiting" not in words(busy.svg)


def test_what_is_drawn_of_a_run_is_said():
    never, slow = RUNS["never waits"], RUNS["slow workers"]
    assert "The GPU is busy 100.0 % and waits 0.0 % of the time." in loader_timeline(never).caption
    later = run(SLOW, batches=60, warm_up=20)
    assert loader_timeline(later).rows[0][0] == 21, "its warm-up is left out"
    assert loader_timeline(later.trace()).rows[0][0] == 1
    measured = Trace(**{**vars(slow.trace()), "source": "measured"})
    assert loader_timeline(measured, batches=6).caption.startswith("Measured run, 6 batches.")
    assert "read (ms)" not in loader_timeline(slow).headers


def test_batches_are_numbered_from_1_in_every_lane_and_the_table_tells_each_from_beginning_to_end():
    picture = loader_timeline(RUNS["slow workers"], batches=4)
    assert numbers(picture.svg) == ["1", "3", "5", "2", "4", "6", "1", "2", "3", "4"]
    assert picture.headers == [
        "batch", "prepared by", "from (ms)", "to (ms)", "received (ms)", "step (ms)", "waited (ms)",
    ]  # fmt: skip
    assert picture.rows[:2] == [
        [1, "worker 1", "0.0", "50.0", "50.0", "50.0 to 70.0", "50.0"],
        [2, "worker 2", "0.0", "50.0", "50.0", "70.0 to 90.0", "0.0"],
    ]
    # A loop that prepares itself has a lane, and no queue.
    inline = loader_timeline(RUNS["inline, copies in turn"])
    assert inline.alt.startswith("Timeline with a lane for each of training loop, copy, GPU.")
    assert inline.rows[0][1] == "training loop"


def test_boxes_stand_where_the_trace_says_and_nothing_is_held_back_if_batches_are_taken_as_they_come():
    run = RUNS["as it comes"]
    picture, trace = loader_timeline(run, batches=10), run.trace()
    assert "held back" not in picture.caption + picture.svg
    end = trace.step_end[9]
    steps = np.column_stack((trace.step_start[:10], trace.step_end[:10])) / end
    assert np.allclose(boxes(picture.svg, ACCELERATOR.color), steps, atol=4e-3)
    begun = trace.prepare_start < end
    prepared = np.column_stack((trace.prepare_start[begun], np.minimum(trace.prepared[begun], end))) / end
    assert np.allclose(sorted(boxes(picture.svg, CPU.color)), sorted(prepared.tolist()), atol=4e-3)


def test_the_queue_is_as_deep_as_the_trace_says_and_what_is_held_back_is_told_apart_and_counted():
    picture = loader_timeline(HELD)
    times, depths = HELD.trace().queue_depth()
    assert f"queue, up to {depths[times <= HELD.trace().step_end[23]].max()}" in words(picture.svg)
    # Worker 2 has its two batches done at 20 ms, and gets no other before batch 1 is back at 400.
    assert picture.caption.startswith(
        "Simulated run, 24 batches. The GPU is busy 54.5 % and waits 45.5 % of the time, once; "
        "longest for batch 1: 400 ms. Up to 2 finished batches were held back by an earlier one."
    )
    end = HELD.trace().step_end[23]
    (first, *_), *_ = held = boxes(picture.svg, "url(#hatched)", stroke=None)
    assert first * end == pytest.approx(10, abs=1)
    assert sum(until - start for start, until in held) * end > 388
    assert "ready, held back by an earlier batch" in words(picture.svg)


def test_anything_else_is_refused():
    with pytest.raises(InputError) as caught:
        loader_timeline(SLOW)
    assert str(caught.value) == (
        "loader_timeline draws a trace or a simulation, got Pipeline. "
        "Pass pipeline.simulate(), or the trace of a measurement."
    )
    with pytest.raises(InputError, match="batches must be finite and positive, got 0"):
        loader_timeline(HELD, batches=0)


def test_reads_are_drawn_apart_from_the_transforms_and_one_after_the_other():
    pipeline = SLOW.replace({"dataset.size": "40 MB", "dataset.cpu_time": "100 ms"}, workers=4, storage=DRIVE)
    simulated = run(pipeline, warm_up=20)
    picture = loader_timeline(simulated, batches=10)
    end = simulated.trace().after(20).step_end[9]
    reads = sorted(boxes(picture.svg, STORAGE.color))
    assert len(reads) > 8
    for (_, before), (start, _) in pairwise(reads):
        assert start >= before - 1e-3, "the storage serves one worker after the other"
    assert {round((stop - start) * end / 10) for start, stop in reads[1:-1]} == {4}
    assert LINK.color not in picture.svg
    assert picture.headers[3] == "read (ms)"
    assert "reading a batch" in words(picture.svg)
