"""Batches that are late: a loader in order with so many batches ahead, by times that are known."""

from dataclasses import replace

import pytest

from doctor.tests.test_advice import KnownStages, found
from starvelab_doctor import advise
from starvelab_doctor.judging.lateness import MIN_TIMED, Lateness
from starvelab_doctor.judging.remedies import remedies_of
from starvelab_doctor.judging.times import JobModel, JobTimes
from starvelab_doctor.watching.recorder import Recorder

# Every thirteenth batch takes 128 ms and the others 16: two workers give one each 12.3 ms on average.
LATE = [128.0 if number % 13 == 12 else 16.0 for number in range(260)]


def test_batches_that_are_alike_are_not_late():
    assert Lateness([20.0] * 100, 1).factor(4, 1.0) == pytest.approx(1, abs=0.02)
    assert Lateness([20.0] * 100, 2).factor(1, 30.0) == pytest.approx(1, abs=0.02)
    assert Lateness(LATE[:20], 1).factor(2, 15.0) == 1.0  # too few to tell
    assert Lateness(LATE, 1).factor(0, 15.0) == 1.0


def test_a_late_batch_holds_up_the_others_and_more_of_them_ahead_hide_it():
    late = Lateness(LATE, 1)
    # While one takes 128 ms, the other worker has one batch ahead: 128 - 2 * 15 ms are waited in each 13.
    assert late.factor(2, 15.0) == pytest.approx(1 + (128 - 30) / (13 * 15), abs=0.05)
    assert late.factor(2, 15.0, 8) < 1.1
    assert late.best_prefetch(2, 15.0) in (4, 8)


def test_prefetching_more_is_the_first_remedy_for_late_batches():
    # They wait as for storage; the loop waits 98 of each 293 ms, as it must with one batch ahead.
    job = found(workers=2, wait=0.00754, step=0.015, cpu=0.0, items=0.0246, collate=0.0, unpacking=0.0)
    job = job.replace(prefetch=1, stages=replace(job.loader.stages, prepared=tuple(LATE)))
    first, *_ = remedies_of(job, cores=8)
    assert (first.name, first.at_most) == ("prefetch", False)
    assert first.gain[1] == pytest.approx(22.54 / 15, rel=0.1)
    assert first.text.startswith(f"prefetch_factor={first.value} instead of 1. That brings ")
    # More workers shorten what is late only as far as they have more batches ahead.
    assert advise(job, cores=8).options[3].throughput.m_as("1/s") < 1.2 * 1000 / 22.54


def test_without_the_times_of_batches_more_workers_are_a_bound():
    job = found(workers=2, wait=0.03, step=0.02, cpu=1.0).replace(prefetch=1)
    advice = advise(job, cores=16)
    assert advice.best.low <= advice.now.throughput
    assert advice.summary.endswith("each worker having one ahead: a probe decides.")


def test_more_ahead_is_not_advised_where_it_changes_nothing():
    job = found(workers=2, wait=0.01, step=0.02, cpu=0.9, ready=3, items=0.01, collate=0.0, unpacking=0.01)
    job = job.replace(prefetch=2, stages=replace(job.loader.stages, prepared=(10.0,) * 100))
    assert "prefetch" not in [one.name for one in remedies_of(job, cores=8)]


# Eight batches share a step of the optimizer: 15 ms a batch on average, and a worker takes 12.5 for one.
SHARED = [5.0] * 7 + [85.0]


def test_workers_that_are_quick_enough_on_average_are_late_after_a_long_step():
    late = Lateness([12.5] * 96, 2, [each / 15 for each in SHARED])
    # While the optimizer steps, two batches get ready: it waits 7.5 ms for most others.
    assert late.factor(1, 15.0) == pytest.approx((120 + 5 * 7.5 + 5) / 120, abs=0.05)
    assert late.factor(2, 15.0) < 1.03
    assert (late.best_prefetch(1, 15.0), late.best_prefetch(2, 15.0)) == (8, 2)


def test_more_workers_or_batches_ahead_help_where_several_batches_share_a_long_step():
    probe = KnownStages(1, items=0.0125, collate=0.0, unpacking=0.0)
    for _ in range(MIN_TIMED):
        probe.samples.add(items=0.0125, collate=0.0)
    recorder = Recorder(workers=1, probe=probe)
    recorder.prefetch = 2
    waits = [0.0, 0.005, *[0.0075] * 5, 0.0]
    recorder.replay(None, waits * 20, [each / 1000 for each in SHARED] * 20)
    recorder.use.add(0.0, 1.0)
    recorder.asked, recorder.ready = 8, 3
    finding = recorder.finding()
    assert finding.waits.uneven[:8] == pytest.approx([each / 15 for each in SHARED])
    found_ = {one.name: one for one in remedies_of(finding, cores=2)}
    assert (found_["workers"].value, found_["prefetch"].value) == (2, 8)
    for name in ("workers", "prefetch"):
        assert found_[name].gain[1] == pytest.approx(162.5 / 120, rel=0.05)
    assert found(workers=1, wait=0.01, step=0.02).waits.uneven == ()


def test_batches_that_are_ready_out_of_turn_do_not_hide_that_the_next_one_is_late():
    # Each twelfth batch takes 260 ms, the others 20; the loop waits 17 of 32 ms, while later ones lie there.
    prepared = tuple(20.0 + 240.0 * (number % 12 == 0) for number in range(600))
    job = found(
        workers=2, wait=0.0172, step=0.015, cpu=0.0, ready=2.5, items=0.04, collate=0.0, unpacking=0.0
    )
    job = job.replace(prefetch=2, stages=replace(job.loader.stages, prepared=prepared))
    remedies = {one.name: one for one in remedies_of(job, cores=2)}
    first, second = remedies["workers"], remedies["prefetch"]
    assert first.value == 4
    assert first.gain[1] == pytest.approx(1.19, rel=0.05)  # as a loader does that is followed batch by batch
    assert second.gain[1] < first.gain[1]
    assert [*remedies][:2] == ["prefetch", "workers"]  # more workers may bring nothing at all


def test_late_batches_hold_up_nobody_where_the_cores_bind():
    # A batch computes for 20 ms, and each thirteenth waits for 80 besides: two cores give one each 10 ms.
    late = Lateness([100.0 if number % 13 == 12 else 20.0 for number in range(260)], 1)
    times = JobTimes(step=1, wait=6, compute=20, receive=0, pack=0, loop_compute=0, cores=2)
    assert JobModel(times, times, times, 1, None, late).lateness(32) == pytest.approx(1, abs=0.02)
