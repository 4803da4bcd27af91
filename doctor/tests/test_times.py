"""`JobTimes`: what passes between two batches, on a machine whose cores are shared by who computes."""

from __future__ import annotations

import random
from collections import deque

import pytest

from doctor.tests.test_advice import ONE, found
from starvelab.units import Q_
from starvelab_doctor import advise
from starvelab_doctor.contents import BatchContents
from starvelab_doctor.judging.remedies import remedies_of
from starvelab_doctor.judging.times import JobTimes

COMPUTE, WAIT = "compute", "wait"


class SharedMachine:
    """Workers and a loop, who all get the same share of the cores while they compute."""

    def __init__(self, times, workers, ahead=2):
        self.times, self.workers, self.random = times, workers, random.Random(0)
        # What each has still to do, the loop last: kinds of work and their milliseconds.
        self.tasks = [deque() for _ in range(workers + 1)]
        self.prepared, self.asked = [0] * workers, [ahead] * workers
        self.received, self.now = 0, 0.0

    def period(self, batches=1000, first=50):
        """Milliseconds from batch to batch."""
        began = 0.0
        while self.received < batches:
            self.give_work()
            began = self.now if self.received == first else began
            self.work()
        return (self.now - began) / (batches - first)

    def give_work(self):
        """A worker prepares what it was asked for, and the loop takes its next batch."""
        times, loop, worker = self.times, self.tasks[-1], self.received % self.workers
        if not loop and self.prepared[worker] > self.received // self.workers:
            self.received += 1
            self.asked[worker] += 1
            computed = max(times.loop_compute, times.receive)
            loop.extend([(COMPUTE, computed), (WAIT, times.step + times.receive - computed)])
        for number, task in enumerate(self.tasks[:-1]):
            if not task and self.prepared[number] < self.asked[number]:
                uneven = self.random.uniform(0.7, 1.3)
                task.extend([(WAIT, times.wait * uneven), (COMPUTE, (times.compute + times.pack) * uneven)])

    def work(self):
        """Pass the time until one of them is done with one piece of work."""
        under_way = [task for task in self.tasks if task]
        computing = sum(
            1.0 if task is self.tasks[-1] else self.times.threads
            for task in under_way
            if task[0][0] == COMPUTE
        )
        pace = {WAIT: 1.0, COMPUTE: min(1.0, self.times.cores / max(computing, 1))}
        passed = min(task[0][1] / pace[task[0][0]] for task in under_way)
        self.now += passed
        for number, task in enumerate(self.tasks):
            if task:
                kind, left = task.popleft()
                if (left := left - passed * pace[kind]) > 1e-9:
                    task.appendleft((kind, left))
                elif not task and number < self.workers:
                    self.prepared[number] += 1


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 8])
@pytest.mark.parametrize(
    "times",
    [
        # Of the zip that was opened for each item, 1.56 times as much was said of two workers, and 1.94 came.
        JobTimes(step=10, wait=0, compute=24, receive=0.5, pack=0, loop_compute=0.6, cores=2),
        JobTimes(step=6, wait=0, compute=24, receive=0.5, pack=0, loop_compute=6.5, cores=2),
        JobTimes(step=20, wait=0, compute=24, receive=0.5, pack=0, loop_compute=20.5, cores=2),
        JobTimes(step=10, wait=40, compute=40, receive=0, pack=0, loop_compute=0, cores=2),
        JobTimes(step=10, wait=30, compute=20, receive=0, pack=0, loop_compute=10, cores=2),
        JobTimes(step=4, wait=0, compute=40, receive=0.5, pack=0, loop_compute=4, cores=4),
        JobTimes(step=3, wait=20, compute=40, receive=0.5, pack=0, loop_compute=3, cores=8),
        JobTimes(step=10, wait=0, compute=24, receive=0.5, pack=0, loop_compute=0.5, cores=2, threads=2),
        JobTimes(step=5, wait=10, compute=40, receive=0.5, pack=0, loop_compute=2, cores=8, threads=4),
    ],
    ids=[
        "decoding",
        "a short step",
        "a long step",
        "half waits",
        "loop computes",
        "four cores",
        "eight",
        "two threads each",
        "four",
    ],
)
def test_the_rate_is_that_of_a_machine_whose_cores_are_shared(times, workers):
    assert times.period(workers) == pytest.approx(SharedMachine(times, workers).period(), rel=0.05)


def test_two_threads_that_prepare_in_the_loop_are_one_in_each_worker():
    # As PyTorch's operations have them. In 100 ms two of four cores compute, and the step waits for 100.
    job = found(workers=0, wait=0.1, step=0.1, cpu=2.0, items=0.1, collate=0.0)
    advice = advise(job, cores=4)
    now, *options = (1e3 / one.throughput.m_as("1/s") for one in advice.options)
    assert now == pytest.approx(200)
    # It is as much work, so one worker does it in 200 ms.
    assert options[:2] == pytest.approx([200, 102], rel=0.03)
    # Or in 100, where two do no more than one: of two workers 1.94 was said at most, and 2.35 came.
    assert advice.options[1].high.m_as("1/s") == pytest.approx(10, rel=0.1)


def test_a_second_worker_has_the_second_core():
    # One worker computes all the time, and a step waits: nobody else wants a core.
    advice = advise(found(**ONE, cpu=1.0, items=0.1, collate=0.0, unpacking=0.001), cores=2)
    assert advice.options[2].throughput.m_as("1/s") == pytest.approx(20, rel=0.02)
    # Cores share their caches, and may be two threads of one core: decoding brought 1.6 times as much.
    assert 10 < advice.options[2].low.m_as("1/s") < 16


def test_a_hand_over_that_was_not_timed_may_be_quick():
    # A batch takes 6 ms to prepare, and 0.7 to receive. Of two workers up to 1.73 was said, and 2.01 came.
    job = found(workers=0, wait=0.006, step=0.0013, cpu=1.0)
    times = JobTimes(step=1.3, wait=0, compute=6, receive=0.7, pack=0.3, loop_compute=1, cores=2)
    assert advise(job, cores=2).options[2].high.m_as("1/s") > 1e3 / SharedMachine(times, 2).period()


def test_a_step_whose_threads_find_no_core_may_be_much_shorter():
    # Of 68 ms, a step takes 42: most take 7, and in some a thread waits for the core that the worker has.
    # Of two workers up to 1.72 was said, and 2.1 came: steps took 13 ms then.
    stages = {"items": 0.036, "collate": 0.001, "unpacking": 0.001}
    job = found(workers=1, wait=0.026, step=0.042, cpu=0.6, **stages)
    job = job.replace(loop_cpu=0.7, core_waits=0.6, prepare_queued=0.1, uneven=(0.2,) * 9 + (8.2,), prefetch=2
    )
    first, *others = remedies_of(job, cores=2)
    assert (first.name, first.value, first.at_most) == ("workers", 2, True)
    assert first.gain[0] < 1 < first.gain[1] < 2.1 < first.gain[2]
    assert first.text.endswith("threads find no core: try torch.set_num_threads(1) as well.")
    # These steps are not long because several batches share one of an optimizer.
    assert "prefetch" not in [one.name for one in others]


def test_a_loop_that_lacks_a_core_while_it_receives_need_not_lack_it_in_its_steps():
    # A batch of 113 tensors takes the loop 45 ms to receive, and 4 to train on. It lacks a core for 4.5 ms;
    # if all of that were in the steps they could take nothing. Then no number was said, and 7.5 was measured.
    stages = {"items": 0.002, "collate": 0.004, "packing": 0.045, "unpacking": 0.045}
    job = found(workers=2, wait=0.046, step=0.0045, cpu=0.9, **stages)
    contents = BatchContents(113, Q_("1 MB"), "float32")
    job = job.replace(contents=contents, core_waits=0.089, loop_cpu=0.9, prepare_queued=0.03, others_cpu=0.0)
    assert job.lacks_core
    assert not job.busy
    first, *_ = remedies_of(job, cores=2)
    assert (first.name, first.at_most) == ("packing", True)
    assert first.gain[0] < 7.5 < first.gain[2]
    # Beside other programs nobody knows when it lacks one.
    busy = remedies_of(job.replace(others_cpu=0.7, prepare_queued=0.06), cores=2)[0]
    assert (busy.name, busy.gain) == ("packing", None)


def test_a_step_of_several_threads_may_find_no_core_once_there_are_workers():
    # A step of 3 ms computes for 5, on two cores. Of two workers 1.52 at least was said, and 1.14 came.
    job = found(workers=0, wait=0.027, step=0.003, cpu=1.0, items=0.026, collate=0.001).replace(loop_cpu=0.167
    )
    first, *_ = remedies_of(job, cores=2)
    assert (first.name, first.at_most) == ("workers", True)
    assert first.gain[0] <= 1
    alone = remedies_of(job.replace(loop_cpu=0.09), cores=2)[0]
    assert not alone.at_most
    assert alone.gain[0] > 1.2


def test_it_depends_on_the_storage_where_that_is_most_of_the_doubt():
    # Storage serves one item at a time. What receiving takes is open, too: 2.24 was said without a condition,
    # and 1.74 measured.
    for step in (0.024, 0.026):
        first, *_ = remedies_of(found(workers=0, wait=0.0335, step=step, cpu=0.02), cores=2)
        assert (first.name, first.at_most) == ("workers", True)
