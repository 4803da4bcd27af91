"""`advise`: jobs whose times are known, and what other numbers of workers bring to them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from starvelab.errors import InputError
from starvelab.jobs import advise
from starvelab.jobs.recorder import Recorder
from starvelab.jobs.stages import StageSamples
from starvelab.jobs.times import JobTimes
from starvelab.simulate import Loader


class KnownStages:
    """A probe that found these times [s]."""

    def __init__(self, workers, **seconds):
        self.workers, self.samples = workers, StageSamples()
        copy = seconds.pop("copy", None)
        for _ in range(40):
            self.samples.add(**seconds)
        if copy:
            self.samples.copies.append(copy)

    def costs(self):
        return self.samples.costs(self.workers)


def found(*, workers, wait, step, cpu=None, batches=40, batch_size=32, ready=None, first=(), **stages):
    """What `watch` says of a job whose batches all take the same times [s], and a probe of its stages."""
    probe = KnownStages(workers, **stages) if stages else None
    recorder = Recorder(batch_size=batch_size, workers=workers, probe=probe)
    recorder.replay(next(iter(first), None), [wait] * batches, [step] * batches)
    for one in first[1:]:
        recorder.replay(one, [], [])
    if ready is not None:
        recorder.asked, recorder.ready = 1, ready
    if cpu is not None:
        recorder.use.add(cpu, 1.0)
    return recorder.finding()


# Receiving takes nothing here, unless a test is about it.
AT_ONCE = {"items": 0.1, "collate": 0.0, "unpacking": 0.0}


def test_more_workers_until_the_step_binds():
    # Two workers deliver a batch each 50 ms, so a batch takes one of them 100 ms; a step takes 20 ms.
    advice = advise(found(workers=2, wait=0.03, step=0.02, cpu=0.0, **AT_ONCE), cores=8)
    assert advice.best.workers == 6  # five would only just do
    assert advice.best.throughput.m_as("img/s") == pytest.approx(32 / 0.02)
    assert advice.best.bottleneck == "the training step"
    assert advice.gain == pytest.approx(1.5)
    assert advice.best.low < advice.best.throughput < advice.best.high
    assert advice.options[4].throughput.m_as("img/s") == pytest.approx(32 * 4 / 0.1)
    assert advice.summary.startswith("6 workers instead of 2: 1600 img/s (")
    assert (
        "instead of 640 img/s, then the training step binds; 5 are enough for 95 % of it." in advice.summary
    )


def test_work_of_the_cpu_stops_at_the_cores():
    advice = advise(found(workers=1, wait=0.09, step=0.01, cpu=1.0, **AT_ONCE), cores=3)
    assert 3 <= advice.best.workers <= 5
    assert advice.options[6].throughput.m_as("img/s") == pytest.approx(32 * 3 / 0.1, rel=0.01)
    assert advice.options[6].bottleneck == "the CPU"


@pytest.mark.parametrize("workers", [0, 1, 3, 8])
def test_while_cores_are_idle_the_rate_is_that_of_a_simulated_loader(workers):
    times = JobTimes(step=10, wait=40, compute=20, receive=3, pack=0, loop_compute=0, cores=1e6)
    loader = Loader(
        step_time="10 ms",
        prepare_time="20 ms",
        read_wait="40 ms",
        fetch_time="3 ms" if workers else "0 ms",
        workers=workers,
        batch_size=1,
        in_flight=1,
    )
    assert 1e3 / times.period(workers) == pytest.approx(loader.mean_rate.m_as("img/s"))


def test_what_the_loop_computes_takes_cores_from_the_workers():
    job = found(workers=1, wait=0.09, step=0.01, cpu=1.0, **AT_ONCE)
    busy = replace(job, loop_cpu=0.5)  # 50 ms of each 100
    alone, beside = (advise(one, cores=3).options[6].throughput.m_as("img/s") for one in (job, busy))
    assert beside == pytest.approx(alone * 100 / 150, rel=0.01)


def test_work_is_stretched_where_the_cores_are_nearly_all_busy():
    # A batch takes 40 ms of waiting and 40 of a core; four workers would need 80 % of the two cores.
    times = JobTimes(10, 40, 40, 0, 0, 0, 2)
    assert times.period(1) == 80  # nothing else computes
    assert 80 / 3 < times.period(3) < 1.2 * 80 / 3
    assert times.period(4) > 1.1 * 20
    assert replace(times, cores=64).period(4) == pytest.approx(20)


def test_waiting_for_a_core_is_no_work():
    job = found(workers=2, wait=0.03, step=0.02, cpu=1.0, **AT_ONCE)
    queued = replace(job, prepare_queued=0.2)
    plain, freed = (advise(one, cores=64).options[1].throughput.m_as("img/s") for one in (job, queued))
    assert freed == pytest.approx(plain / 0.8, rel=0.001)


def test_waiting_for_storage_does_not_stop_at_the_cores():
    advice = advise(found(workers=1, wait=0.09, step=0.01, cpu=0.01, **AT_ONCE), cores=2)
    assert advice.best.workers == 12
    assert advice.best.throughput.m_as("img/s") == pytest.approx(3200)


def test_what_receiving_a_batch_takes_is_part_of_the_loop():
    job = {"workers": 1, "wait": 0.09, "step": 0.01, "cpu": 0.0, "items": 0.1, "collate": 0.0}
    advice = advise(found(**job, unpacking=0.006), cores=8)
    assert advice.best.throughput.m_as("img/s") == pytest.approx(32 / 0.016)
    # Without a probe 2 ms are assumed, and the range holds what it may be instead.
    assumed = advise(found(**{name: job[name] for name in ("workers", "wait", "step", "cpu")}), cores=8)
    assert assumed.best.throughput.m_as("img/s") == pytest.approx(32 / 0.012)
    assert assumed.best.low.m_as("img/s") < 32 / 0.014
    assert assumed.best.high.m_as("img/s") > 32 / 0.0104


def test_without_workers_the_wait_is_what_a_batch_takes():
    advice = advise(found(workers=0, wait=0.03, step=0.01, cpu=1.0), cores=8)
    assert advice.now.throughput.m_as("img/s") == pytest.approx(800)
    assert advice.options[0].throughput.m_as("img/s") == pytest.approx(800)
    assert advice.options[2].throughput.m_as("img/s") == pytest.approx(32 / 0.0155, rel=0.01)  # packing: 1 ms
    assert advice.best.workers == 4
    assert advice.best.throughput.m_as("img/s") == pytest.approx(32 / 0.012, rel=0.01)


def test_a_job_that_does_not_wait_keeps_its_workers():
    advice = advise(found(workers=4, wait=0.0001, step=0.05), cores=8)
    assert advice.best == advice.now
    assert advice.summary == "Keep the 4 workers: more would bring less than 5 %."


def test_a_probe_says_how_many_workers_were_enough():
    # A batch takes a worker 55 ms, and a step 50.
    stages = {"items": 0.05, "collate": 0.005, "unpacking": 0.0001}
    advice = advise(found(workers=6, wait=0.0001, step=0.05, cpu=0.0, ready=10, **stages), cores=8)
    assert advice.summary == "Keep the 6 workers: more would bring less than 5 %; 2 are enough."
    assert advice.options[1].throughput.m_as("img/s") == pytest.approx(32 / 0.055)


def test_one_worker_is_one():
    advice = advise(found(workers=1, wait=0.0001, step=0.05), cores=8)
    assert advice.summary == "Keep the 1 worker: more would bring less than 5 %."
    stages = {"items": 0.02, "collate": 0.001, "unpacking": 0.0001}
    advice = advise(found(workers=2, wait=0.0001, step=0.05, cpu=0.0, ready=3, **stages), cores=8)
    assert advice.summary.endswith("; 1 is enough.")


def test_as_many_workers_as_there_are_is_no_advice():
    # Half of their time the workers waited for a core. With free cores two would be enough.
    busy = replace(found(workers=2, wait=0.01, step=0.03, cpu=1.0, **AT_ONCE), prepare_queued=0.5)
    advice = advise(busy, cores=64)
    assert advice.options[2].throughput > 1.05 * advice.now.throughput
    assert advice.best == advice.now
    assert advice.summary.startswith("Keep the 2 workers: more would bring less than 5 %")


def test_where_batches_are_ready_more_workers_bring_nothing():
    advice = advise(found(workers=6, wait=0.01, step=0.02, ready=5), cores=8)
    assert advice.summary.startswith("Keep the 6 workers")
    # What the loop waits for is no worker but its own receiving of a batch.
    assert advice.options[-1].throughput.m_as("img/s") == pytest.approx(32 / 0.03, rel=0.001)


def test_what_is_not_known_widens_the_range():
    job = {"workers": 1, "wait": 0.09, "step": 0.01}
    known, open_ = (advise(found(**job, cpu=cpu), cores=2).options[4] for cpu in (0.5, None))
    assert open_.low < 0.6 * known.low  # all of it may be work of the CPU, of which there are two cores
    assert open_.high > known.high


def test_fewer_are_enough_for_most_of_it():
    advice = advise(found(workers=1, wait=0.963, step=0.04, cpu=0.0), cores=64)
    assert advice.enough.workers < advice.best.workers
    assert f"; {advice.enough.workers} are enough for 95 % of it." in advice.summary
    assert advice.enough.throughput >= 0.95 * advice.best.throughput


def test_workers_bind_where_there_cannot_be_more(monkeypatch):
    monkeypatch.setattr("starvelab.jobs.advice.MAX_WORKERS", 3)
    assert (
        "then the workers bind." in advise(found(workers=1, wait=0.99, step=0.01, cpu=0.0), cores=8).summary
    )


def test_without_a_batch_size_batches_are_counted():
    job = found(workers=1, wait=0.03, step=0.01, cpu=1.0, batch_size=None, **AT_ONCE)
    assert advise(job, cores=8).best.throughput.m_as("1/s") == pytest.approx(100, rel=0.01)


def lever(advice, name):
    return next(one for one in advice.levers if one.name == name)


def rate_of(advice, name):
    return lever(advice, name).throughput.m_as("1/s")


# A batch takes the only worker 80 ms in the dataset and 20 to collate, and half of that is waiting.
PROBED = {"items": 0.08, "collate": 0.02, "unpacking": 0.004}


@pytest.mark.parametrize(
    ("name", "changes", "period"),
    [
        ("a cache in memory", {}, 0.030),  # a step of 26 ms and 4 to receive
        ("faster or nearer storage", {}, 0.050),
        ("pinned memory and copies beside the computation", {"copy": 0.015}, 0.1),
        ("a training step 2 times as fast", {}, 0.1),
        ("uint8 instead of float32", {}, 0.1),
        ("a deeper queue", {}, 0.1),
    ],
)
def test_each_lever_relieves_what_it_is_about(name, changes, period):
    job = found(workers=1, wait=0.074, step=0.026, cpu=0.5, batch_size=None, **PROBED, **changes)
    advice = advise(job, cores=64)
    assert rate_of(advice, name) == pytest.approx(1 / period, rel=0.001)
    assert lever(advice, name).low < lever(advice, name).throughput < lever(advice, name).high
    worth = [one.name for one in advice.worthwhile]
    assert worth == ["a cache in memory", "faster or nearer storage"]
    assert lever(advice, "a cache in memory").summary.startswith("a cache in memory: 33.33 1/s (")


@pytest.mark.parametrize(
    ("name", "period"),
    [
        ("pinned memory and copies beside the computation", 0.015 + 0.004),
        ("a training step 2 times as fast", 0.015 + 0.004),
        ("uint8 instead of float32", 0.03 + 0.001),
        ("a deeper queue", 0.03 + 0.004),
        ("a cache in memory", 0.03 + 0.004),
    ],
)
def test_where_the_loop_binds_its_own_levers_bring_something(name, period):
    job = found(workers=8, wait=0.004, step=0.03, cpu=0.0, batch_size=None, ready=9, copy=0.015, **PROBED)
    assert rate_of(advise(job, cores=64), name) == pytest.approx(1 / period, rel=0.001)


def test_a_lever_that_relieves_nothing_brings_nothing():
    # The probe says that a batch takes a worker 20 ms, and yet one comes each 50 ms.
    stages = {"items": 0.02, "collate": 0.0, "unpacking": 0.0}
    job = found(workers=1, wait=0.03, step=0.02, cpu=1.0, batch_size=None, ready=2, **stages)
    assert rate_of(advise(job, cores=8), "faster or nearer storage") == pytest.approx(20)


def test_persistent_workers_save_what_each_later_pass_began_with():
    job = {"workers": 2, "wait": 0.04, "step": 0.01, "cpu": 0.0, "batches": 38, "batch_size": None}
    stages = {"items": 0.1, "collate": 0.0, "unpacking": 0.0}
    advice = advise(found(**job, first=(3.0, 2.0), **stages), cores=8)
    # A pass has 20 batches of 50 ms each; the first one takes a worker 100 ms.
    assert rate_of(advice, "persistent_workers=True") == pytest.approx(20 / (19 * 0.05 + 0.1))
    assert lever(advice, "persistent_workers=True").assumed == "over whole passes, instead of 6.78 1/s"
    once = lever(advise(found(**job, first=(3.0,)), cores=8), "persistent_workers=True")
    assert once.summary == (
        "persistent_workers=True: cannot be predicted, because only one pass was watched, and it acts "
        "between passes."
    )


def test_what_was_not_measured_is_not_predicted():
    advice = advise(found(workers=2, wait=0.04, step=0.01), cores=8)
    reasons = {one.name: one.assumed for one in advice.levers if one.throughput is None}
    assert reasons == {
        "a cache in memory": "the dataset was not timed: watch with probe=True",
        "faster or nearer storage": "it is not known how much of the workers' time is waiting",
        "pinned memory and copies beside the computation": "the copy to the device was not timed: watch with "
        'probe=True and device="cuda"',
        "uint8 instead of float32": "the hand-over was not timed: watch with probe=True",
        "persistent_workers=True": "only one pass was watched, and it acts between passes",
    }
    alone = advise(found(workers=0, wait=0.04, step=0.01), cores=8)
    assert "persistent_workers=True" not in {one.name for one in alone.levers}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"workers": None},
            r"advise needs the number of workers, and this finding has none. Pass it: watch\(",
        ),
        ({"batches": 3}, "advise needs 8 watched batches, got 3. Watch a longer run."),
    ],
)
def test_too_little_is_known(changes, message):
    with pytest.raises(InputError, match=message):
        advise(found(**{"workers": 2, "wait": 0.1, "step": 0.1} | changes))
