"""The timeline of a trace in a notebook: what is drawn is in the trace, and what is said is what is drawn."""

import pytest

from doctor.tests.trainings import Training, train
from starvelab import InputError
from starvelab.model.resources import ACCELERATOR, CPU, LINK
from starvelab.show import trace_timeline
from starvelab_doctor import read_trace, watch
from tests.lesson.show.drawn import boxes, words


def starved(tmp_path, batches=12, **changes):
    """Waits of 40 ms, a copy of 10 ms and kernels of 50 ms."""
    times = {"wait": 40, "step": 50, "copy": "Pageable", "copying": 10} | changes
    return read_trace(train(Training(), batches, **times).write(tmp_path / "trace.json"))


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


def test_waits_kernels_and_copies_are_drawn_as_long_as_they_took(tmp_path):
    picture = trace_timeline(starved(tmp_path), batches=4).svg

    def lengths(fill: str) -> list[float]:
        return [400 * (end - start) for start, end in boxes(picture, fill)]

    assert words(picture)[:2] == ["training loop", "GPU"]
    # Both lanes show the waits.
    assert lengths("url(#hatched)") == pytest.approx([40] * 8, abs=0.2)
    assert lengths(CPU.color) == pytest.approx([60] * 4, abs=1.5), "a gap between boxes"
    # Kernels are drawn on top of all that the GPU does.
    assert sum(lengths(LINK.color)) == pytest.approx(4 * 60, abs=1)
    assert sum(lengths(ACCELERATOR.color)) == pytest.approx(4 * 50, abs=1)
    assert "stroke-dasharray" in picture, "copies differ from kernels without color"
    assert {"computing", "only copying", "idle for another reason"} <= {*words(picture)}


def test_idle_for_another_reason_is_told_apart_from_a_wait(tmp_path):
    finding = starved(tmp_path, wait=0.5, step=72, copy="", kernels=56, gap=1.775, sync=False)
    picture = trace_timeline(finding)
    assert "is idle in the waits 0.0 %, and idle otherwise 28.3 %" in picture.caption


def test_a_trace_without_a_gpu_has_one_lane(tmp_path):
    training = Training()
    for number in range(6):
        start = training.now
        training.wait(30)
        training.compute(70)
        training.mark(5 + number, start)
    picture = trace_timeline(read_trace(training.write(tmp_path / "trace.json")))
    assert words(picture.svg)[0] == "training loop"
    assert "GPU" not in words(picture.svg)
    assert picture.caption.endswith("waits 30.0 % of the time for data. The trace holds no GPU.")
    assert picture.headers == ["step", "from (ms)", "loop waits (ms)", "to (ms)"]


def test_a_job_that_was_watched_has_no_steps_to_draw():
    with pytest.raises(InputError, match="draws the steps of a trace, and this JobFinding holds none"):
        trace_timeline(watch([], batch_size=1, workers=1, progress=False).result)
