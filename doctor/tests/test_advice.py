"""`advise`: jobs whose times are known, and what other numbers of workers bring to them."""

from __future__ import annotations

import pytest

from starvelab.errors import InputError
from starvelab.simulate.timeline import LoaderInputs
from starvelab.units import Q_
from starvelab_doctor import advise
from starvelab_doctor.contents import BatchContents
from starvelab_doctor.finding.stages import StageSamples
from starvelab_doctor.judging import advice as judging
from starvelab_doctor.judging.remedies import remedies_of
from starvelab_doctor.judging.times import JobTimes
from starvelab_doctor.watching.recorder import Recorder


class KnownStages:
    """A probe that found these times [s]."""

    def __init__(self, workers, *, copy=None, sampler=0.0, **seconds):
        self.workers, self.samples = workers, StageSamples()
        for _ in range(40):
            self.samples.add(**seconds)
            self.samples.draw(sampler)
        self.samples.copies.extend([copy] if copy else [])

    def costs(self, release=0.0):
        return self.samples.costs(self.workers, release=release)


def found(*, workers, wait, step, cpu=None, batches=40, batch_size=None, ready=None, first=(), **stages):
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


def per_second(option):
    return option.throughput.m_as("1/s")


# Receiving takes nothing here, unless a test is about it.
AT_ONCE = {"items": 0.1, "collate": 0.0, "unpacking": 0.0}
# Two workers deliver a batch each 50 ms, so a batch takes one of them 100 ms; a step takes 20 ms.
TWO = {"workers": 2, "wait": 0.03, "step": 0.02}
# One worker, and a step of 10 ms of the 100 from batch to batch.
ONE = {"workers": 1, "wait": 0.09, "step": 0.01}


def test_more_workers_until_the_step_binds():
    advice = advise(found(**TWO, cpu=1.0, batch_size=32, **AT_ONCE), cores=1e6)
    assert advice.best.workers == 6  # five would only just do
    assert advice.best.throughput.m_as("img/s") == pytest.approx(32 / 0.02)
    assert advice.best.bottleneck == "the training step"
    assert advice.gain == pytest.approx(1.5)
    assert advice.best.low < advice.best.throughput < advice.best.high
    assert advice.options[4].throughput.m_as("img/s") == pytest.approx(32 * 4 / 0.1)
    assert advice.summary.startswith("6 workers instead of 2: 1600 img/s (")
    assert advice.summary.endswith(
        "instead of 640 img/s, then the training step binds; 5 are enough for 95 % of it."
    )


def test_work_of_the_cpu_stops_at_the_cores_and_waiting_for_storage_does_not():
    computing, reading = (advise(found(**ONE, cpu=cpu, **AT_ONCE), cores=3) for cpu in (1.0, 0.01))
    assert 3 <= computing.best.workers <= 5
    assert per_second(computing.options[6]) == pytest.approx(3 / 0.1, rel=0.01)
    assert computing.options[6].bottleneck == "the CPU"
    assert reading.best.workers == 12
    assert per_second(reading.best) == pytest.approx(100)


def test_a_process_whose_other_threads_do_little_uses_one_core():
    # 2 cores by 1.02 of each worker are 1.96: one worker was advised, and two brought twice as much.
    assert advise(found(**ONE, cpu=1.02, **AT_ONCE), cores=2).best.workers == 2


@pytest.mark.parametrize(("workers", "shown"), [(1, 4), (2, 4), (6, 6)])
def test_two_hardware_threads_of_a_core_are_promised_as_little_more_than_one(monkeypatch, workers, shown):
    # Four cores with two threads each. As many as compute at once already are shown to find one.
    monkeypatch.setattr(judging, "usable_cores", lambda physical=False: 4 if physical else 8)
    busy = {"items": 0.1 * workers, "collate": 0.0, "unpacking": 0.0}
    advice = advise(found(workers=workers, wait=0.09, step=0.01, cpu=1.0, **busy))
    assert advice.best.workers == shown
    likely, high = (
        workers * (getattr(advice.options[8], name) / advice.now.throughput).m_as("")
        for name in ("throughput", "high")
    )
    assert (likely, high) == (pytest.approx(shown, rel=0.02), pytest.approx(8, rel=0.15))


@pytest.mark.parametrize("workers", [0, 1, 3, 8])
def test_while_cores_are_idle_the_rate_is_that_of_a_simulated_loader(workers):
    times = JobTimes(step=10, wait=40, compute=20, receive=3, pack=0, loop_compute=0, cores=1e6)
    inputs = LoaderInputs(
        step_time=10, prepare_time=20, read_wait=40, handover_loop=3 if workers else 0, workers=workers,
        batch_size=1, in_flight=1,
    )  # fmt: skip
    assert times.period(workers) == pytest.approx(inputs.mean_period)


def test_what_the_loop_computes_takes_cores_from_the_workers():
    job = found(**ONE, cpu=1.0, **AT_ONCE)
    busy = job.replace(loop_cpu=0.5)  # 50 ms of each 100
    alone, beside = (per_second(advise(one, cores=3).options[6]) for one in (job, busy))
    assert beside == pytest.approx(alone * 100 / 150, rel=0.01)


def test_waiting_for_a_core_is_no_work():
    job = found(**TWO, cpu=1.0, **AT_ONCE)
    queued = job.replace(prepare_queued=0.2)
    plain, freed = (per_second(advise(one, cores=64).options[1]) for one in (job, queued))
    assert freed == pytest.approx(plain / 0.8, rel=0.001)
    # As many workers as there are is no advice, though they would bring more with free cores.
    busy = found(workers=2, wait=0.01, step=0.03, cpu=1.0, **AT_ONCE).replace(prepare_queued=0.5)
    advice = advise(busy, cores=64)
    assert per_second(advice.options[2]) > 1.05 * per_second(advice.now)
    assert advice.best == advice.now


def test_what_is_waited_for_may_serve_one_worker_at_a_time():
    advice = advise(found(**TWO, cpu=0.0, batch_size=32, **AT_ONCE), cores=8)
    assert advice.best.low.m_as("img/s") < advice.now.throughput.m_as("img/s")  # two may be one too many
    assert advice.best.high.m_as("img/s") > 32 / 0.02
    assert advice.summary.startswith("6 workers instead of 2: at most ")
    assert advice.summary.endswith(
        "5 are enough for 95 % of it. That depends on whether what they wait for, such as storage, serves 6 "
        "at once: a short run with 4 workers decides, or starvelab-doctor --try."
    )
    # Without workers even one of them prepares beside the step: so much is certain.
    alone = advise(found(workers=0, wait=0.03, step=0.03, cpu=0.0), cores=8)
    assert per_second(alone.best) > 1.5 * per_second(alone.now)
    assert alone.best.low.m_as("1/s") > 1.5 * per_second(alone.now)
    assert alone.best.condition == ""


def test_threads_under_one_lock_are_not_processes():
    job = found(workers=4, wait=0.09, step=0.01).replace(processes=False)
    advice = advise(job, cores=16)
    assert advice.best.low.m_as("1/s") <= per_second(advice.now)
    assert "at most" in advice.summary
    assert advice.summary.endswith("threads that wait for Python's lock: processes have one each.")


@pytest.mark.parametrize("queued", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_gain_is_no_more_than_the_resources_behind_it(workers, queued):
    busy = {"prepare_queued": queued, "others_cpu": 0.8}
    for known in (busy, {"prepare_queued": queued}):
        job = found(workers=workers, wait=0.95, step=0.05, cpu=1.0, **AT_ONCE).replace(**known)
        advice = advise(job, cores=2)
        for one in advice.options[workers + 1 :]:
            times = one.workers / workers if workers else one.workers + 1
            assert one.high.m_as("1/s") <= 1.1 * times * per_second(advice.now)


def test_beside_other_programs_more_workers_get_a_larger_part_of_the_cores():
    # Two others on two cores: one process of three gets two thirds of a core, two of four get one core.
    job = found(workers=1, wait=0.148, step=0.002, cpu=1.0, **AT_ONCE)
    busy = job.replace(prepare_queued=1 / 3, others_cpu=0.66)
    assert busy.busy == "Other programs used 66 % of the cores meanwhile: all of this holds while they do."
    options = advise(busy, cores=2).options
    assert per_second(options[1]) == pytest.approx(1 / 0.15, rel=0.02)
    assert per_second(options[2]) == pytest.approx(1.5 / 0.15, rel=0.02)
    assert options[2].low.m_as("1/s") <= per_second(options[1])  # the others may keep what they have
    assert options[2].high > options[2].throughput
    assert options[2].condition == "It is less where the other programs keep what they have of the cores."
    assert advise(busy, cores=2).best.workers == 2  # not more than there are cores


def test_a_machine_is_busy_where_others_use_cores_and_the_job_waits_for_one():
    job = found(**ONE, cpu=1.0)
    for known in ({}, {"others_cpu": 0.05}, {"others_cpu": 0.9, "prepare_queued": 0.0}):
        assert job.replace(**known).busy == ""
    assert job.replace(others_cpu=0.9).busy in job.replace(others_cpu=0.9).summary


@pytest.mark.parametrize("workers", [0, 2])
def test_no_worker_takes_the_sampler_over(workers):
    # 60 ms of the 100 from batch to batch pass in the sampler, 20 in the step.
    stages = {"items": 0.02, "collate": 0.0, "unpacking": 0.0, "sampler": 0.06}
    job = found(workers=workers, wait=0.08, step=0.02, cpu=0.0, **stages)
    assert job.loader.stages.largest == "sampler"
    first = remedies_of(job, cores=8)[0]
    assert (first.name, first.at_most) == ("sampler", True)
    assert first.gain == pytest.approx((1.0, 2.5, 1 / (1 - 0.6 * 1.16)))
    assert first.text == (
        "The sampler takes 60 ms for each batch in the training loop, which no worker takes over: draw the "
        "indices of a pass at once, or before it. That brings 2.5 times the throughput at most."
    )
    assert all(one.high.m_as("1/s") < 13.5 for one in advise(job, cores=8).options)  # 80 ms are left
    # Beside other programs a sampler of 68 ms of 87 lacked a core, as all did: without it the job was ten
    # times as fast, and at most 4.5 had been said.
    crowded = remedies_of(job.replace(core_waits=0.4), cores=8)[0]
    assert (crowded.name, crowded.gain) == ("sampler", None)
    assert crowded.text.endswith("or before it. Only a trial can tell what that brings.")


def test_a_step_that_has_no_core_bounds_no_gain():
    # Beside two busy loops a batch of 113 tensors took 250 ms, half of it in a step that takes 2 ms alone.
    # One buffer for all of them then brought 12.7 times the throughput, and at most 4.2 had been said.
    stages = {"items": 0.03, "collate": 0.03, "packing": 0.1, "unpacking": 0.12}
    job = found(workers=2, wait=0.124, step=0.126, cpu=0.7, **stages)
    contents = BatchContents(113, Q_("1 MB"), "float32")
    busy = job.replace(others_cpu=0.77, prepare_queued=0.45, contents=contents)
    for core_waits, told in ((None, "at most"), (0.53, "one buffer. Only a trial can tell")):
        first = remedies_of(busy.replace(core_waits=core_waits), cores=2)[0]
        assert (first.name, first.gain is None) == ("packing", core_waits is not None)
        assert told in first.text


def test_two_lines_do_not_contradict_each_other():
    # Preparing takes less than receiving from a worker would.
    job = found(workers=0, wait=0.002, step=0.004, cpu=1.0)
    assert job.verdict == "highly input-bound"
    assert advise(job, cores=8).summary.startswith("Keep the 0 workers")
    assert "Give the DataLoader workers" not in job.summary
    # By the probe a batch takes so little that one of both workers that the loop waits for is enough.
    job = found(workers=2, wait=0.11, step=0.06, cpu=0.0, items=0.02, collate=0.0, unpacking=0.0)
    advice = advise(job, cores=8)
    assert (advice.best.workers, advice.enough.workers) == (2, 2)
    # A job that waits for what the loop receives is not told that fewer workers are enough.
    job = found(workers=2, wait=0.02, step=0.02, ready=3, items=0.002, collate=0.0, unpacking=0.019)
    assert (job.verdict, advise(job, cores=8).summary) == (
        "highly input-bound", "Keep the 2 workers: more would bring less than 5 %.",
    )  # fmt: skip


def test_what_receiving_a_batch_takes_is_part_of_the_loop():
    advice = advise(found(**ONE, cpu=0.0, items=0.1, collate=0.0, unpacking=0.006), cores=8)
    assert per_second(advice.best) == pytest.approx(1 / 0.016)
    # Without a probe 2 ms are assumed, and the range holds what it may be instead.
    assumed = advise(found(**ONE, cpu=0.0), cores=8).best
    assert per_second(assumed) == pytest.approx(1 / 0.012)
    assert assumed.low.m_as("1/s") < 1 / 0.014
    assert assumed.high.m_as("1/s") > 1 / 0.0104


def test_without_workers_the_wait_is_what_a_batch_takes():
    advice = advise(found(workers=0, wait=0.03, step=0.01, cpu=1.0), cores=8)
    assert per_second(advice.now) == pytest.approx(25)
    assert per_second(advice.options[0]) == pytest.approx(25)
    assert per_second(advice.options[2]) == pytest.approx(1 / 0.0155, rel=0.01)  # packing: 1 ms
    assert advice.best.workers == 4
    assert per_second(advice.best) == pytest.approx(1 / 0.012, rel=0.01)


@pytest.mark.parametrize(("job", "stages", "enough"), [
    ({"workers": 4}, {}, ""),
    ({"workers": 1}, {}, ""),
    # A batch takes a worker 55 ms, and a step 50: a probe says how many were enough.
    ({"workers": 6, "ready": 10}, {"items": 0.05, "collate": 0.005}, "; 2 are enough"),
    ({"workers": 2, "ready": 3}, {"items": 0.02, "collate": 0.001}, "; 1 is enough"),
])  # fmt: skip
def test_a_job_that_does_not_wait_keeps_its_workers(job, stages, enough):
    stages = stages and {**stages, "unpacking": 0.0001}
    advice = advise(found(wait=0.0001, step=0.05, cpu=0.0, **job, **stages), cores=8)
    assert advice.best == advice.now
    counted = f"{job['workers']} worker{'s' * (job['workers'] > 1)}"
    assert advice.summary == f"Keep the {counted}: more would bring less than 5 %{enough}."


def test_where_batches_are_ready_more_workers_bring_nothing():
    advice = advise(found(workers=6, wait=0.01, step=0.02, ready=5), cores=8)
    assert advice.summary.startswith("Keep the 6 workers")
    # What the loop waits for is no worker but its own receiving of a batch.
    assert per_second(advice.options[-1]) == pytest.approx(1 / 0.03, rel=0.001)


def test_what_is_not_known_widens_the_range():
    known, open_ = (advise(found(**ONE, cpu=cpu), cores=2).options[4] for cpu in (0.5, None))
    assert open_.low < 0.6 * known.low  # all of it may be work of the CPU, of which there are two cores
    assert open_.high > known.high


def test_workers_bind_where_there_cannot_be_more(monkeypatch):
    monkeypatch.setattr(judging, "MAX_WORKERS", 3)
    advice = advise(found(workers=1, wait=0.99, step=0.01, cpu=0.0), cores=8)
    assert "then the workers bind." in advice.summary


def lever(advice, name):
    return next(one for one in advice.levers if one.name == name)


# A batch takes the only worker 80 ms in the dataset and 20 to collate, and half of that is waiting.
PROBED = {"items": 0.08, "collate": 0.02, "unpacking": 0.004}
WORKERS_BIND = {"workers": 1, "wait": 0.074, "step": 0.026, "cpu": 0.5, **PROBED}
LOOP_BINDS = {"workers": 8, "wait": 0.004, "step": 0.03, "cpu": 0.0, "ready": 9, "copy": 0.015, **PROBED}


@pytest.mark.parametrize(("job", "name", "period"), [
    (WORKERS_BIND, "a cache in memory", 0.030),  # a step of 26 ms and 4 to receive
    (WORKERS_BIND, "faster or nearer storage", 0.050),
    (WORKERS_BIND | {"copy": 0.015}, "pinned memory and copies beside the computation", 0.1),
    (WORKERS_BIND, "uint8 instead of float32", 0.085),  # 20 ms of collating follow the bytes
    (LOOP_BINDS, "a cache in memory", 0.03 + 0.004),
    (LOOP_BINDS, "pinned memory and copies beside the computation", 0.015 + 0.004),
    (LOOP_BINDS, "uint8 instead of float32", 0.03 + 0.001),
    (LOOP_BINDS, "a deeper queue", 0.03 + 0.004),
])  # fmt: skip
def test_each_lever_relieves_what_it_is_about(job, name, period):
    advice = advise(found(**job), cores=64)
    assert per_second(lever(advice, name)) == pytest.approx(1 / period, rel=0.001)
    assert lever(advice, name).low < lever(advice, name).throughput < lever(advice, name).high
    if job is WORKERS_BIND:
        worth = [one.name for one in advice.worthwhile]
        assert worth == ["a cache in memory", "faster or nearer storage", "uint8 instead of float32"]
        assert lever(advice, "a cache in memory").summary.startswith("a cache in memory: 33.33 1/s (")


def test_a_lever_that_relieves_nothing_brings_nothing():
    # The probe says that a batch takes a worker 20 ms, and yet one comes each 50 ms.
    stages = {"items": 0.02, "collate": 0.0, "unpacking": 0.0}
    job = found(workers=1, wait=0.03, step=0.02, cpu=1.0, ready=2, **stages)
    assert per_second(lever(advise(job, cores=8), "faster or nearer storage")) == pytest.approx(20)


def test_what_was_not_measured_is_not_predicted():
    advice = advise(found(workers=2, wait=0.04, step=0.01, first=(3.0,)), cores=8)
    reasons = {one.name: one.assumed for one in advice.levers if one.throughput is None}
    assert reasons == {
        "a cache in memory": "the dataset was not timed: watch with probe=True",
        "faster or nearer storage": "it is not known how much of the workers' time is waiting",
        "pinned memory and copies beside the computation": "the copy to the device was not timed: watch with "
        'probe=True and device="cuda"',
        "uint8 instead of float32": "the hand-over was not timed: watch with probe=True",
        "persistent_workers=True": "only one pass was watched, and it acts between passes",
    }
    assert lever(advice, "a cache in memory").summary == (
        "a cache in memory: cannot be predicted, because the dataset was not timed: watch with probe=True."
    )
    alone = advise(found(workers=0, wait=0.04, step=0.01), cores=8)
    assert "persistent_workers=True" not in {one.name for one in alone.levers}


@pytest.mark.parametrize(("changes", "message"), [
    ({"workers": None}, r"advise needs the number of workers, and this finding has none. Pass it: watch\("),
    ({"batches": 3}, "advise needs 8 watched batches, got 3. Watch a longer run."),
])  # fmt: skip
def test_too_little_is_known(changes, message):
    with pytest.raises(InputError, match=message):
        advise(found(**{"workers": 2, "wait": 0.1, "step": 0.1} | changes))
