"""`watch`: what it says of loops whose waits are known, and that it changes nothing of them."""

from __future__ import annotations

import time

import pytest

from starvelab.errors import InputError
from starvelab.jobs import torch_internals, watch
from tests.jobs.loops import Loader


def train(clock, loader, step):
    for _ in loader:
        clock.sleep(step)


@pytest.mark.parametrize(
    ("wait", "step", "verdict"),
    [
        (0.001, 0.099, "not input-bound"),
        (0.010, 0.090, "moderately input-bound"),
        (0.030, 0.070, "highly input-bound"),
    ],
)
def test_the_share_of_waiting_and_its_verdict(clock, wait, step, verdict):
    watched = watch(Loader(clock, wait), progress=False)
    train(clock, watched, step)
    assert watched.result.host_wait == pytest.approx(wait / (wait + step))
    assert watched.result.verdict == verdict
    assert watched.result.interval == pytest.approx((wait / (wait + step),) * 2)


def test_batches_arrive_unchanged_and_in_order():
    batches = [object() for _ in range(5)]
    assert list(watch(batches, progress=False)) == batches


def test_rates_and_percentiles(clock):
    watched = watch(Loader(clock, 0.02, 101), batch_size=32, progress=False)
    train(clock, watched, 0.03)
    result = watched.result
    assert result.batch_rate.m_as("1/s") == pytest.approx(20)
    assert result.throughput.m_as("img/s") == pytest.approx(640)
    assert [result.wait_p50.m_as("ms"), result.wait_p99.m_as("ms")] == pytest.approx([20, 20])
    assert (result.batches, result.counted) == (101, 100)


def test_the_start_and_the_first_batch_of_each_pass_stand_apart(clock):
    watched = watch(Loader(clock, 0.01, 20, start=5, first=3), progress=False)
    for _ in range(3):
        train(clock, watched, 0.03)
    assert [wait.m_as("s") for wait in watched.result.first_waits] == pytest.approx([8, 8, 8])
    assert watched.result.host_wait == pytest.approx(0.25)
    assert watched.result.batches == 60


def test_the_result_can_be_asked_while_the_loop_runs(clock):
    watched = watch(Loader(clock, 0.01, 30), progress=False)
    shares = []
    for number in watched:
        clock.sleep(0.01)
        shares.append((number, watched.result.verdict, watched.result.host_wait))
    assert shares[3][1] == "cannot tell"
    assert shares[20][1:] == ("highly input-bound", pytest.approx(0.5))


def test_before_the_first_batch_nothing_is_known():
    result = watch([], progress=False).result
    assert (result.verdict, result.host_wait, result.batches) == ("cannot tell", 0.0, 0)


def test_an_evaluation_between_passes_is_no_part_of_the_loop(clock):
    watched = watch(Loader(clock, 0.01), progress=False)
    for _ in range(2):
        train(clock, watched, 0.03)
        train(clock, Loader(clock, 0.5), 0.1)
    assert watched.result.host_wait == pytest.approx(0.25)


def test_an_evaluation_in_the_middle_of_a_pass_is_left_out_and_counted(clock):
    watched = watch(Loader(clock, 0.01, 101), progress=False)
    for number in watched:
        clock.sleep(0.03)
        if number % 25 == 24:
            train(clock, Loader(clock, 0.5), 0.1)
    result = watched.result
    assert result.host_wait == pytest.approx(0.25)
    assert result.interruptions == 4
    assert result.interrupted.m_as("s") == pytest.approx(4 * (2 + 1 + 39 * 0.5 + 4 + 0.04), rel=0.1)


def test_a_watched_evaluation_within_a_step_is_no_part_of_the_step(clock):
    watched = watch(Loader(clock, 0.01, 30), progress=False)
    for number in watched:
        clock.sleep(0.03)
        if number % 2:  # too often to be taken for an interruption
            inner = watch(Loader(clock, 0.02, 20), progress=False)
            train(clock, inner, 0.02)
    assert watched.result.host_wait == pytest.approx(0.25)
    assert inner.result.host_wait == pytest.approx(0.5)


def test_two_loaders_that_are_read_side_by_side_keep_their_own_waits(clock):
    first = watch(Loader(clock, 0.01, 30), progress=False)
    second = watch(Loader(clock, 0.03, 30), progress=False)
    for _ in zip(first, second, strict=True):
        clock.sleep(0.06)
    assert first.result.host_wait == pytest.approx(0.1)
    assert second.result.host_wait == pytest.approx(0.3, abs=0.01)  # the last step lacks a wait


def test_gradient_accumulation_needs_no_care(clock):
    watched = watch(Loader(clock, 0.02, 81), progress=False)
    for number in watched:
        clock.sleep(0.01 if number % 8 else 0.09)  # each eighth batch the optimizer steps
    assert watched.result.host_wait == pytest.approx(0.5, abs=0.01)
    assert watched.result.interruptions == 0


def test_batches_that_are_collected_for_one_long_step_are_no_interruptions(clock):
    watched = watch(Loader(clock, 0.01, 193), progress=False)
    for number in watched:
        clock.sleep(1e-6 if number % 32 else 0.32)
    assert watched.result.host_wait == pytest.approx(0.5, abs=0.01)
    assert watched.result.interruptions == 0


def test_a_loop_that_is_left_early_loses_only_the_batch_in_use(clock):
    watched = watch(Loader(clock, 0.01), progress=False)
    for number in watched:
        if number == 20:
            break
        clock.sleep(0.03)
    clock.sleep(1000)
    assert watched.result.batches == 21
    assert watched.result.counted == 19
    assert watched.result.host_wait == pytest.approx(0.25)


def test_a_loader_that_raises_raises_as_before_and_may_go_on(clock):
    class Broken(Loader):
        def batches(self):
            return self

        def __next__(self):
            clock.sleep(0.01)
            self.number = getattr(self, "number", 0) + 1
            if self.number == 10:
                clock.sleep(100)
                raise ValueError("a broken file")
            if self.number == 41:
                raise StopIteration
            return self.number

    watched = watch(Broken(clock, 0.01), progress=False)
    iterator = iter(watched)
    for number in range(1, 10):
        assert next(iterator) == number
        clock.sleep(0.03)
    with pytest.raises(ValueError, match="a broken file"):
        next(iterator)
    for number in range(11, 41):
        assert next(iterator) == number
        clock.sleep(0.03)
    with pytest.raises(StopIteration):
        next(iterator)
    assert watched.result.host_wait == pytest.approx(0.25)


def test_an_error_of_the_step_ends_the_pass(clock, capsys):
    def fail_at_batch_15():
        for number in watch(Loader(clock, 0.01)):
            clock.sleep(0.03)
            if number == 15:
                raise RuntimeError("of the step")

    with pytest.raises(RuntimeError, match="of the step"):
        fail_at_batch_15()
    assert "highly input-bound" in capsys.readouterr().err


def test_the_end_of_a_pass_says_three_sentences(clock, capsys):
    train(clock, watch(Loader(clock, 0.01), workers=0), 0.01)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.strip().endswith(
        "The training loop waits 50.0 % of its time for data (95 % interval 50.0 % to 50.0 %). This job is "
        "highly input-bound. Give the DataLoader workers (num_workers=2 or more): without them the loop "
        "prepares each batch itself."
    )


def test_the_line_says_what_happens_now(clock, capsys):
    train(clock, watch(Loader(clock, 0.1, 20), batch_size=4), 0.1)
    assert "50% waiting, 20 samples/s, waits 100, 100, 100 ms (50, 95, 99 %)" in capsys.readouterr().err


def test_too_few_batches_are_no_verdict(clock):
    watched = watch(Loader(clock, 0.01, 5), progress=False)
    train(clock, watched, 0.01)
    assert watched.result.verdict == "cannot tell"
    assert "only 4 batches count, and it takes 8. Watch more batches" in watched.result.summary


def test_what_differs_too_much_is_no_verdict(clock):
    watched = watch(Loader(clock, 0.0, 40), progress=False)
    for number in watched:
        clock.sleep(0.05)
        if number == 20:
            watched.loader.wait = 1.0
        elif number == 21:
            watched.loader.wait = 0.0
    assert watched.result.verdict == "cannot tell"
    assert "the batches differ too much" in watched.result.summary


def test_queued_batches_are_counted_where_pytorch_keeps_them():
    class Queue:
        def qsize(self):
            return 3

    class Source(list):
        _data_queue = Queue()
        _task_info = {0: (0,), 1: (1, "data")}  # noqa: RUF012

        def __iter__(self):
            return self

        def __next__(self):
            if self:
                return self.pop()
            raise StopIteration

    watched = watch(Source(range(10)), progress=False)
    list(watched)
    assert watched.result.queue_depth == 4


def test_without_a_queue_the_depth_is_not_known(monkeypatch):
    class Queue:
        def qsize(self):
            raise NotImplementedError  # as on macOS

    assert torch_internals.ready_batches(iter([])) is None
    assert torch_internals.ready_batches(type("Source", (), {"_data_queue": Queue()})()) is None


def test_a_generator_needs_no_length(capsys):
    assert list(watch(number for number in range(3))) == [0, 1, 2]
    with pytest.raises(TypeError, match="generator"):
        len(watch(number for number in range(3)))


def test_real_time_is_what_is_measured():
    def batches():
        for number in range(12):
            time.sleep(0.004)
            yield number

    watched = watch(batches(), progress=False)
    for _ in watched:
        pass
    assert watched.result.host_wait > 0.5
    assert watched.result.wait_p50.m_as("ms") >= 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loader": 5}, "watch takes something to loop over, such as a DataLoader, got int. Pass the loader"),
        ({"loader": [], "batch_size": 0}, "batch_size must be a whole number from 1 on, got 0. Pass one"),
        ({"loader": [], "workers": -1}, "workers must be a whole number from 0 on, got -1. Pass one"),
        ({"loader": [], "batch_size": True}, "batch_size must be a whole number from 1 on, got True"),
    ],
)
def test_what_cannot_be_watched(arguments, message):
    with pytest.raises(InputError, match=message):
        watch(**arguments)
