"""The recorder under every way of watching a loop: what its events carry beside the waits and the steps."""

import os
import sys
import types
from collections import UserDict

import numpy as np
import pytest

from doctor.tests.loops import Iterating, Loader, train
from starvelab.units import Q_
from starvelab_doctor import watch
from starvelab_doctor.contents import MAX_OBJECTS, contents_of, same_contents
from starvelab_doctor.judging.remedies import remedies_of
from starvelab_doctor.watching import recorder
from starvelab_doctor.watching.recorder import Recorder


# After short waits only the clock is looked at for most batches.
@pytest.mark.parametrize(("wait", "count"), [(0.03, 40), (3e-4, 1000)], ids=["long", "short"])
def test_each_pass_has_its_share_of_waiting(clock, wait, count):
    watched = watch(Loader(clock, wait, count), progress=False)
    train(clock, watched, wait)
    watched.loader.wait = wait / 3  # the files are in memory now
    train(clock, watched, wait)
    assert watched.result.waits.left_out == (pytest.approx(0.5),)
    assert watched.result.waits.host_wait == pytest.approx(0.25)


def test_a_pass_of_which_no_batch_counts_is_none_that_differs():
    times = Recorder(workers=2)
    times.replay(1.0, [], [])
    for _ in range(3):
        times.replay(1.0, [0.1] * 20, [0.1] * 20)
    assert times.finding().waits.left_out == ()


class Broken:
    @property
    def nbytes(self):
        raise RuntimeError("this layout has no bytes")


IMAGES, LABELS = np.zeros((4, 25), np.float32), np.zeros(4, np.int64)


@pytest.mark.parametrize(("batch", "found"), [
    ((IMAGES, LABELS), (2, 432e-6, "float32")),
    ({"x": [IMAGES], "y": UserDict(z=(LABELS, "a name"))}, (3, 432e-6, "float32")),
    (LABELS, (1, 32e-6, "int64")),
    (["a", "b"], (2, None, None)),
    (None, None),
    (Broken(), None),
    ([0] * (MAX_OBJECTS + 1), None),
    (np.zeros(500_000, np.float32), (1, 2.0, "float32")),
])  # fmt: skip
def test_what_a_batch_holds(batch, found):
    held = contents_of(batch)
    if found is None:
        assert held is None
        return
    objects, size, dtype = found
    assert (held.objects, held.dtype) == (objects, dtype)
    assert held.size is None if size is None else held.size.m_as("MB") == pytest.approx(size)


@pytest.mark.programs
def test_tensors_are_counted_like_arrays():
    torch = pytest.importorskip("torch")
    held = contents_of([torch.zeros(8, dtype=torch.bfloat16), torch.zeros(2)])
    assert (held.objects, held.size.m_as("B"), held.dtype) == (2, pytest.approx(24), "bfloat16")


def test_a_look_each_half_second_sees_the_batch_and_the_workers(clock):
    class Source(Iterating):
        _workers = [types.SimpleNamespace(pid=os.getpid())]  # noqa: RUF012

        def __next__(self):
            return np.zeros(super().__next__(), np.uint8)

    watched = watch(Source(clock, 0.1, 22), progress=False)
    train(clock, watched, 0.1)
    result = watched.result
    assert result.loader.contents.size.m_as("B") == 3  # of the last look, and not of the last batch
    if os.path.exists("/proc/self/smaps_rollup"):
        assert result.machine.memory.each > Q_("5 MB")
    assert (result.machine.prepare_queued is not None) == os.path.exists("/proc/self/schedstat")


def test_looks_take_a_fiftieth_of_the_time_however_short_passes_are(clock, monkeypatch):
    # Of passes of 50 ms, with workers that were new each time, a quarter of the time went into looks.
    looks = []

    def look(*_):
        looks.append(clock.sleep(0.02))
        clock.computed += 0.02

    monkeypatch.setattr(Recorder, "poll", look)
    watched = watch(Loader(clock, 0.001, 20, start=0.02, first=0.01), progress=False)
    begun = clock.now
    for _ in range(200):
        train(clock, watched, 0.001)
    assert 0.01 < 0.02 * len(looks) / (clock.now - begun) < 0.021


@pytest.mark.parametrize(
    ("variable", "distributed", "rank"), [("", None, None), ("3", None, 3), ("none", None, None), ("3", 5, 5)]
)
def test_the_rank_of_a_distributed_training(clock, monkeypatch, variable, distributed, rank):
    monkeypatch.setenv("RANK", variable)
    group = types.SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: distributed is not None,
        get_rank=lambda: distributed,
    )
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(distributed=group))
    watched = watch(Loader(clock, 0.01), progress=False)
    assert watched.result.ranks.rank is None  # no batch yet
    train(clock, watched, 0.01)
    assert watched.result.ranks.rank == rank


def test_old_batches_are_forgotten_and_still_counted(monkeypatch):
    monkeypatch.setattr(recorder, "MAX_KEPT", 50)
    times = Recorder()
    times.replay(1.0, [0.1] * 70, [0.1] * 70)
    times.replay(1.0, [0.11] * 70, [0.1] * 70)
    found = times.finding()
    assert (found.waits.batches, found.waits.counted) == (142, 90)
    assert found.waits.host_wait == pytest.approx((2 + 70 * 0.11) / (4 + 70 * 0.21))


@pytest.mark.programs
def test_batches_of_which_only_the_clock_is_looked_at_are_recorded_like_the_others(clock):
    waits = [1e-4 * (1 + number % 7) for number in range(3000)]
    steps = [1e-4 * (1 + number % 5) for number in range(3000)]

    class Varied:
        number = -1

        def __iter__(self):
            return self

        def __next__(self):
            self.number += 1
            if self.number == 3000:
                raise StopIteration
            if self.number == 1000:
                list(watch(Loader(clock, 0.01, 3), progress=False))  # within a wait, it is part of that
                waits[1000] += 3.02
            clock.sleep(waits[self.number] if self.number != 1000 else 1e-4 * (1 + 1000 % 7))
            if self.number == 2000:
                raise ValueError("a broken file")
            return self.number

    watched = watch(Varied(), progress=False)
    batches = iter(watched)

    def go_on():
        for number in batches:
            clock.sleep(steps[number])
            if number in (900, 901):
                train(clock, watch(Loader(clock, 0.01, 5), progress=False), 1.0)  # no part of the step
            if number % 10 == 9:
                assert watched.result.waits.batches == number + (number < 2000)

    with pytest.raises(ValueError, match="a broken file"):
        go_on()
    go_on()
    # The first wait stands apart, and those with an error in them do not count.
    counted = [number for number in range(1, 3000) if number not in (2000, 2001)]
    found, taken, passes = watched._recorder.pairs()
    assert found == pytest.approx([waits[number] for number in counted])
    assert taken == pytest.approx([steps[number] for number in counted])
    assert set(passes) == {0}


@pytest.mark.parametrize(("batches", "workers", "repeats"), [
    ([0, 0, 1, 1], 2, True),
    ([0, 0, 0, 1, 1, 1], 3, True),
    ([0, 1, 2, 3], 2, False),
    ([5, 5, 5, 5], 2, False),  # data that never changes
    ([0, 0, 1, 1], 1, False),
], ids=["each gives all", "three", "divided", "constant", "one worker"])  # fmt: skip
def test_workers_that_repeat_each_other_are_seen_by_their_first_batches(clock, batches, workers, repeats):
    recorder = Recorder(workers=workers, batch_size=4)
    stream = types.SimpleNamespace(_dataset_kind=1)  # as an iterator of PyTorch over an iterable dataset
    record = recorder.begin()
    for number in batches * 10:
        record.ask(stream)
        clock.sleep(0.01)
        record.receive([IMAGES + number, {"y": LABELS}], stream)
        clock.sleep(0.01)
    finding = recorder.finding()
    assert finding.loader.repeats is repeats
    assert ("so they repeat each other. Divide its items among them by" in finding.state) is repeats
    names = [one.name for one in remedies_of(finding, cores=4)]
    assert (names[:1] == ["divide"] and "workers" not in names) is repeats


def test_batches_that_cannot_be_compared_are_no_repetition():
    assert same_contents((IMAGES, "a"), (IMAGES, "a"))
    assert not same_contents((IMAGES, LABELS), (IMAGES,))
    assert not same_contents(types.SimpleNamespace(__array__=1), Broken())
