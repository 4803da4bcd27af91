"""`watch`: what it says of loops whose waits are known, and that it changes nothing of them."""

import queue
import threading
import time

import pytest

from doctor.tests.loops import Iterating, Loader, train
from starvelab.errors import InputError
from starvelab_doctor import torch_internals, watch
from starvelab_doctor.judging.remedies import remedies_of


@pytest.mark.parametrize(("wait", "step", "verdict"), [
    (0.001, 0.099, "not input-bound"),
    (0.010, 0.090, "moderately input-bound"),
    (0.030, 0.070, "highly input-bound"),
])  # fmt: skip
def test_the_share_of_waiting_and_its_verdict(clock, wait, step, verdict):
    watched = watch(Loader(clock, wait, 101), batch_size=32, progress=False)
    assert (watched.result.verdict, watched.result.waits.host_wait, watched.result.waits.batches) == (
        "cannot tell",
        0,
        0,
    )
    train(clock, watched, step)
    result = watched.result
    assert result.verdict == verdict
    assert result.waits.host_wait == pytest.approx(wait * 10)  # of 0.1 s
    assert result.waits.interval == pytest.approx((wait * 10,) * 2)
    assert result.waits.batch_rate.m_as("1/s") == pytest.approx(10)
    assert result.waits.throughput.m_as("img/s") == pytest.approx(320)
    assert (result.waits.batches, result.waits.counted) == (101, 100)


def test_the_start_and_the_first_batch_of_each_pass_stand_apart(clock):
    watched = watch(Loader(clock, 0.01, 20, start=5, first=3), progress=False)
    for _ in range(3):
        train(clock, watched, 0.03)
        train(clock, Loader(clock, 0.5), 0.1)  # an evaluation between passes is no part of the loop
    result = watched.result
    assert [wait.m_as("s") for wait in result.waits.first_waits] == pytest.approx([8, 8, 8])
    assert result.waits.host_wait == pytest.approx(0.25)
    # Passes that are alike are taken together.
    assert (result.waits.batches, result.waits.left_out, result.waits.counted) == (60, (), 57)
    assert "the later ones" not in result.state


def test_the_result_can_be_asked_while_the_loop_runs(clock):
    watched = watch(Loader(clock, 0.01, 30), progress=False)
    told = []
    for _ in watched:
        clock.sleep(0.01)
        told.append(watched.result)
    assert told[5].verdict == "cannot tell"
    cannot = "Cannot tell whether this job is input-bound: only"
    watch_more = "and 8 are needed. Watch more batches of a longer run."
    # The first wait and step say nothing, and few batches have no interval.
    assert told[0].summary == told[1].summary == f"{cannot} 0 batches counted, {watch_more}"
    waits = "The training loop waits 50.0 % of its time for data."
    assert told[2].summary == f"{waits} {cannot} 1 batch counted, {watch_more}"
    assert told[5].summary == f"{waits} {cannot} 4 batches counted, {watch_more}"
    assert (told[20].verdict, told[20].waits.host_wait) == ("highly input-bound", pytest.approx(0.5))


@pytest.mark.parametrize(
    ("count", "wait", "step", "share", "interruptions"),
    [
        (101, 0.01, lambda number: 0.03 + 26.54 * (number % 25 == 24), 0.25, 4),
        (81, 0.02, lambda number: 0.01 if number % 8 else 0.09, 0.5, 0),
        (193, 0.01, lambda number: 1e-6 if number % 32 else 0.32, 0.5, 0),
    ],
    ids=["evaluations", "the optimizer at each eighth batch", "batches collected for a long step"],
)
def test_rare_long_steps_are_left_out_and_counted(clock, count, wait, step, share, interruptions):
    watched = watch(Loader(clock, wait, count), progress=False)
    for number in watched:
        clock.sleep(step(number))
    result = watched.result
    assert result.waits.host_wait == pytest.approx(share, abs=0.01)
    assert result.waits.interruptions == interruptions
    assert result.waits.interrupted.m_as("s") == pytest.approx(interruptions * 26.58)
    said = "such as an evaluation or a checkpoint, took 96.5 % of the time, "
    assert (said in result.state) is bool(interruptions)


def test_the_waits_of_a_thread_that_fetches_for_the_loop_are_not_those_of_the_loop(clock):
    watched, batches = watch(Loader(clock, 0.07), progress=False), queue.Queue()

    def fetch():
        for batch in watched:
            clock.sleep(0.03)  # the queue is full
            batches.put(batch)

    thread = threading.Thread(target=fetch)
    thread.start()
    thread.join()
    assert watched.result.verdict == "cannot tell"
    assert watched.result.summary == (
        "A thread beside the training loop waits 70.0 % of its time for data. Cannot tell whether this "
        "job is input-bound: another thread fetches the batches, and the loop takes them from it. "
        "Put watch(...) around what the training loop itself goes over."
    )


def test_a_pass_that_differs_from_the_later_ones_is_left_out(clock):
    loader = Loader(clock, 0.09, 20, start=0, first=0.09)
    watched = watch(loader, progress=False)
    for _ in range(4):
        train(clock, watched, 0.01)
        loader.wait = 0.0001  # a cache of its own
    result = watched.result
    assert (result.verdict, result.waits.left_out) == ("not input-bound", (pytest.approx(0.9),))
    assert result.waits.host_wait == pytest.approx(0.0001 / 0.0101)
    assert result.waits.counted == 57
    assert (
        "The first pass differs from the later ones, as if a cache fills, and does not count: the loop "
        "waited 90.0 % of it."
    ) in result.summary


def test_a_watched_evaluation_within_a_step_is_no_part_of_the_step(clock):
    watched = watch(Loader(clock, 0.01, 30), progress=False)
    for number in watched:
        clock.sleep(0.03)
        if number % 2:  # too often to be taken for an interruption
            inner = watch(Loader(clock, 0.02, 20), progress=False)
            train(clock, inner, 0.02)
    assert watched.result.waits.host_wait == pytest.approx(0.25)
    assert inner.result.waits.host_wait == pytest.approx(0.5)


def test_a_loop_that_is_left_early_loses_only_the_batch_in_use(clock):
    watched = watch(Loader(clock, 0.01), progress=False)
    for number in watched:
        if number == 20:
            break
        clock.sleep(0.03)
    clock.sleep(1000)
    assert (watched.result.waits.batches, watched.result.waits.counted) == (21, 19)
    assert watched.result.waits.host_wait == pytest.approx(0.25)


def test_a_loader_that_raises_raises_as_before_and_may_go_on(clock):
    class Broken(Iterating):
        def __next__(self):
            number = super().__next__()
            if number == 31:
                clock.sleep(100)
                raise ValueError("a broken file")
            return number

    watched = watch(Broken(clock, 0.01, 41), progress=False)
    iterator, seen = iter(watched), []

    def go_on():
        for number in iterator:
            seen.append(number)
            clock.sleep(0.03)

    with pytest.raises(ValueError, match="a broken file"):
        go_on()
    go_on()
    assert seen == [*range(40, 31, -1), *range(30, 0, -1)]
    assert watched.result.waits.host_wait == pytest.approx(0.25)


def test_the_end_of_a_pass_says_three_sentences_also_after_an_error(clock, capsys):
    def fail_at_batch_15():
        for number in watch(Loader(clock, 0.01), workers=0):
            clock.sleep(0.01)
            if number == 15:
                raise RuntimeError("of the step")

    train(clock, watch(Loader(clock, 0.01), workers=0), 0.01)
    with pytest.raises(RuntimeError, match="of the step"):
        fail_at_batch_15()
    told = capsys.readouterr()
    assert told.out == ""
    said = (
        "The training loop waits 50.0 % of its time for data (95 % interval 50.0 % to 50.0 %). This job is "
        "highly input-bound. Without workers the loop prepares each batch itself: advise says what "
        "num_workers brings."
    )
    assert told.err.count(said) == 2


def test_what_differs_too_much_is_no_verdict(clock):
    watched = watch(Loader(clock, 0.0, 40), progress=False)
    for number in watched:
        clock.sleep(0.05)
        watched.loader.wait = 1.0 if number == 20 else 0.0
    assert watched.result.verdict == "cannot tell"
    assert "the batches differ too much" in watched.result.summary


def test_queued_batches_are_counted_where_pytorch_keeps_them(clock):
    class Queue:
        def qsize(self):
            return 3

    class Source(Iterating):
        _data_queue = Queue()
        _task_info = {0: (0,), 1: (1, "data")}  # noqa: RUF012

    watched = watch(Source(clock, 0.0, 10), progress=False)
    list(watched)
    assert watched.result.loader.queue_depth == 4


def test_batches_that_arrive_before_their_turn_mark_the_wait_for_a_late_one(clock):
    class Source(Iterating):
        _data_queue, _task_info = queue.Queue(), {}

        def __next__(self):
            late = self.count % 4 == 1
            self.wait = 0.4 if late else 0.01
            self._task_info = dict.fromkeys(range(3 * late), (1, "data"))
            return super().__next__()

    Source._data_queue.put("a later batch")

    watched = watch(Source(clock, 0.0, 41), progress=False)
    for _ in watched:
        watched.loader._task_info.clear()
    assert watched.result.loader.queue_depth == 1
    assert watched.result.loader.overtaken == pytest.approx(0.4 / 0.43, rel=0.05)
    assert not watched.result.ready


def test_without_a_queue_the_depth_is_not_known():
    class Queue:
        def qsize(self):
            raise NotImplementedError  # as on macOS

    assert torch_internals.ready_batches(iter([])) is None
    assert torch_internals.ready_batches(type("Source", (), {"_data_queue": Queue()})()) is None


def test_a_generator_needs_no_length_and_real_time_is_measured(capsys):
    def batches():
        for number in range(12):
            time.sleep(0.004)
            yield number

    watched = watch(batches())
    assert list(watched) == list(range(12))
    with pytest.raises(TypeError, match="generator"):
        len(watched)
    assert watched.result.waits.host_wait > 0.5


@pytest.mark.parametrize(("arguments", "message"), [
    ({"loader": 5}, "watch takes something to loop over, such as a DataLoader, got int. Pass the loader"),
    ({"loader": [], "batch_size": 0}, "batch_size must be a whole number from 1 on, got 0. Pass one"),
    ({"loader": [], "workers": -1}, "workers must be a whole number from 0 on, got -1. Pass one"),
    ({"loader": [], "batch_size": True}, "batch_size must be a whole number from 1 on, got True"),
])  # fmt: skip
def test_what_cannot_be_watched(arguments, message):
    with pytest.raises(InputError, match=message):
        watch(**arguments)


@pytest.mark.programs
def test_a_dataloader_is_asked_for_its_batch_size_and_workers():
    data = pytest.importorskip("torch").utils.data
    loader = data.DataLoader(list(range(64)), batch_size=4, shuffle=True)
    watched = watch(loader, progress=False)
    assert sum(len(batch) for batch in watched) == 64
    assert (len(watched), watched.dataset, watched.result.loader.workers) == (16, loader.dataset, 0)
    assert watched.result.waits.throughput.m_as("img/s") > 0
    sampler = data.BatchSampler(data.SequentialSampler(range(64)), 8, False)
    watched = watch(data.DataLoader(list(range(64)), batch_sampler=sampler), progress=False)
    assert len(list(watched)) == 8
    assert watched._recorder.batch_size == 8


def test_passes_that_end_with_their_first_batch_are_judged_by_it(clock):
    watched = watch(Loader(clock, 0.01, start=0.08, first=0.01), workers=2, progress=False)
    for _ in range(20):
        next(iter(watched))
        clock.sleep(0.01)
        if len(watched._recorder.passes) == 5:
            assert watched.result.verdict == "cannot tell"
            assert watched.result.next_step.startswith("Make the iterator once")
    result = watched.result
    assert (result.verdict, result.waits.host_wait) == ("highly input-bound", pytest.approx(0.9))
    assert result.next_step == (
        "Make the iterator once, before the loop: each pass ends with its first batch, and another begins."
    )
    (only,) = remedies_of(result)
    # The end of workers is no wait that is timed, so nobody knows what the job would gain.
    said = "Beginning a pass takes 90 ms on average, and ending its workers takes more."
    assert only.text == f"{said} {result.next_step}"
    assert only.gain is None
    quick = watch(Loader(clock, 0.01, start=0.0001, first=0.0001), progress=False)
    for _ in range(20):
        next(iter(quick))
        clock.sleep(0.01)
    assert (quick.result.verdict, remedies_of(quick.result)) == ("not input-bound", ())


def test_an_iterable_dataset_is_said_to_be_repeated_by_more_workers(clock):
    class Stream(Iterating):
        _dataset_kind = 1  # as PyTorch has it

    said = "each worker goes over all of it, so more workers repeat its items unless it divides them"
    for step, warns in ((0.01, True), (1.0, False)):  # nobody gives a job workers that does not wait
        watched = watch(Stream(clock, 0.01), workers=1, progress=False)
        train(clock, watched, step)
        assert (said in watched.result.state) is warns
