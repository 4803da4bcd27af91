"""The work of a loop's own thread: which line of the loop it is at, and whether that is its training."""

import inspect
import io
import sys
import time

import pytest

from starvelab_doctor.host import core_times
from starvelab_doctor.watching import loop_sampler as loop_work
from starvelab_doctor.watching.loop_sampler import LoopSampler, loop_of

pytestmark = pytest.mark.skipif(core_times("thread-self") is None, reason="no system that tells")


def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return f"test_loop_work.py:{first + next(n for n, line in enumerate(lines) if text in line)}"


def train(sampler):
    for _ in range(8):
        sampler.at(None)
        compute(0.01)  # the loader
        sampler.at(LOOP)
        compute(0.05)  # an augmentation
        time.sleep(0.02)  # the accelerator


def packed(sampler):
    for _ in range(8):
        sampler.at(PACKER)
        compute(0.05)  # packs
        yield


def over(sampler):
    for _ in packed(sampler):
        compute(0.02)


LOOP, PACKER = (train.__code__, 0), (packed.__code__, 0)


def test_the_line_at_which_the_loop_computes_is_named():
    sampler, begun = LoopSampler(), time.perf_counter()
    with sampler.watching():
        train(sampler)
    first, *_ = sampler.work(train.__code__, time.perf_counter() - begun)
    assert (first.place, first.certain) == (line_of(train, "an augmentation"), False)
    assert first.share == pytest.approx(5 / 8, abs=0.25)


@pytest.mark.parametrize("held", [0.0, 0.006])
def test_a_share_is_right_whenever_a_look_comes(monkeypatch, held):
    # 1 ms in which a batch is asked for, 15 of augmentation and 8 of the accelerator, by a clock of the test:
    # as short as the time between two looks. A look comes late where the lock of Python is held.
    whole, asks, computes = 0.024, 0.001, 0.015

    class Clock:
        now = 0.0

        def wait(self, seconds):
            self.now += seconds
            late = asks + computes - self.now % whole
            self.now += late if 0 < late < held else 0.0
            return self.now > 30

        def cpu(self):
            rounds, within = divmod(self.now, whole)
            return rounds * computes + min(max(within - asks, 0.0), computes)

    class Sampler(LoopSampler):
        loop = property(lambda self: None if clock.now % whole < asks else LOOP, lambda self, loop: None)

    clock = Clock()
    monkeypatch.setattr(loop_work.time, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(loop_work, "core_times", lambda task: (clock.cpu(), 0.0))
    at = {True: ("job.py:1", False), False: ("job.py:2", False)}
    monkeypatch.setattr(loop_work, "_place", lambda *_: at[clock.now % whole < asks + computes])
    sampler = Sampler()
    sampler._look(clock)
    sampler.spent[train.__code__] = clock.cpu()
    first, *others = sampler.work(train.__code__, clock.now)
    assert first.share == pytest.approx(computes / whole, abs=0.03)
    assert sum(one.share for one in others) < 0.03
    # Who lacks a core in most of the time is not measured by what it computes: the looks count.
    crowded = LoopSampler()
    crowded.computed[train.__code__][at[True]], crowded.seen[train.__code__] = 8.0, 3.0
    crowded.spent[train.__code__] = 2.0
    assert crowded.work(train.__code__, 10.0)[0].share == pytest.approx(0.8)
    # A thread that slept waits for a core, too: what it computes then takes no more than four times as long.
    crowded.spent[train.__code__] = 0.1
    assert crowded.work(train.__code__, 10.0)[0].share == pytest.approx(0.04)
    # On a quiet machine a thread waits a little for a core, too, since the one that looks wants one.
    crowded.seen[train.__code__], crowded.spent[train.__code__] = 7.0, 8.4
    assert crowded.work(train.__code__, 10.0)[0].share == pytest.approx(0.96)
    # What is spent on the release of batches is of no line, nor what the loader computes until a late look.
    (half, *_) = sampler.work(train.__code__, clock.now, clock.cpu() / 2)
    assert half.share == pytest.approx(first.share / 2)
    sampler.spent[train.__code__] = 0.0
    assert not any(one.share for one in sampler.work(train.__code__, clock.now))


def test_what_a_generator_between_loader_and_training_computes_is_input_work():
    sampler, begun = LoopSampler(), time.perf_counter()
    with sampler.watching():
        over(sampler)
    (only,) = sampler.work(packed.__code__, time.perf_counter() - begun)
    assert (only.place, only.certain) == (line_of(packed, "packs"), True)
    assert only.share == pytest.approx(5 / 7, abs=0.3)


def test_a_function_that_is_called_step_is_no_input_work_nor_is_the_release_of_a_batch():
    def training_step():
        return loop_work._place(sys._getframe(), here.f_code, 0)

    here = sys._getframe()
    assert training_step() is None
    assert loop_work._place(here, here.f_code, here.f_lineno) is None
    assert loop_work._place(here, here.f_code, 0) == (f"test_loop_work.py:{here.f_lineno}", False)


def test_a_line_that_trains_or_waits_for_a_result_is_no_input_work(tmp_path):
    # Waiting for a GPU may look like computing. A line that trained and slept was named in a fed job.
    lines = ["def train(place, loss):", " place(); loss.backward()", " place(); loss.item()", " place()"]
    path, found = tmp_path / "job.py", []
    path.write_text("\n".join(lines), encoding="utf-8")
    names: dict = {}
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), names)
    loss = type("Loss", (), {"backward": lambda _: None, "item": lambda _: None})()
    names["train"](lambda: found.append(loop_work._place(sys._getframe(), names["train"].__code__, 0)), loss)
    assert found == [None, None, ("job.py:4", False)]


def test_what_pytorch_trains_is_no_input_work(monkeypatch):
    monkeypatch.setattr(loop_work, "TRAINING", ("test_loop_work",))
    assert loop_work._place(sys._getframe(), train.__code__, 0) is None
    assert loop_work._place(None, train.__code__, 0) is None


def test_a_progress_bar_around_the_loader_is_not_the_loop():
    from tqdm import tqdm

    class Source:
        def __iter__(self):
            return self

        def __next__(self):
            codes.append(loop_of(sys._getframe(1)))
            if len(codes) > 2:
                raise StopIteration

    codes = []
    for _ in tqdm(Source(), file=io.StringIO()):
        pass
    assert codes[0][0] is sys._getframe().f_code
