"""The search of `starvelab-doctor --try`, on jobs whose pace is known for all settings."""

from itertools import product

import pytest

from starvelab_doctor.trials.ascent import MAX_TRIALS, Ascent, Setup, Turns

SETUP = Setup(workers=1, prefetch=2, persistent=False, pinned=True, stream=False)


def job(
    *, wait=0.0, compute=0.0, step=10.0, receive=1.0, serial=False, late=1.0, start=0.0, cores=2, objects=1
):
    """Return the pace of a job [ms]: what a batch takes a worker, and what starting workers costs a batch."""

    def pace(settings, setup):
        workers = settings.get("num_workers", setup.workers)
        ahead = settings.get("prefetch_factor", setup.prefetch or 2)
        loop = step + receive * (workers > 0) * objects
        if not workers:
            return 1 / (wait + compute + step), (wait + compute) / (wait + compute + step)
        prepare = max((wait + compute) / workers, wait if serial else 0.0, compute / cores)
        period = max(prepare, loop) * (late if ahead < 4 else 1.0)
        persists = settings.get("persistent_workers", setup.persistent)
        period += 0.0 if persists else start * workers
        return 1 / period, 1 - step / period

    return pace


def climb(pace, advised, setup=SETUP, *, limit=32, room=None, failing=()):
    def compare(old, new):
        if any(item in failing for item in new.items()):
            return Turns(failed="out of memory")
        (before, _), (after, waits) = pace(old, setup), pace(new, setup)
        return Turns(((before, after),), waits)

    ascent = Ascent(setup, compare, room or (lambda _: limit))
    advised = [*advised.items()] if isinstance(advised, dict) else advised
    ascent.climb(advised, cores=2)
    assert len(ascent.trials) <= MAX_TRIALS
    return ascent


def of(workers=1, **more):
    return Setup(**{**vars(SETUP), "workers": workers, **more})


JOBS = [
    (job(wait=32, step=6), of(1), {"workers": 6}),
    (job(wait=32), of(0), {"workers": 4}),
    (job(wait=40, step=8), of(2), {"workers": 6}),
    (job(wait=32, step=6, serial=True), of(2), {"workers": 12}),
    (job(wait=32, step=24, serial=True), of(0), {"workers": 2}),
    (job(compute=24, step=12), of(0), {"workers": 2}),
    (job(compute=24), of(1), {"workers": 2}),
    (job(compute=32, step=4), of(2), {"dataset": None}),
    (job(wait=24, compute=8, step=8), of(1), {"workers": 5}),
    (job(wait=16, step=14, late=1.3), of(2, prefetch=1), {"prefetch": 4}),
    (job(wait=4, step=6, start=1.0), of(2, short=True), {"persistent": None}),
    (job(wait=40, step=6, start=1.0), of(0, short=True), {"workers": 4}),
    (job(wait=60, step=4), of(0), {}),  # doctor names nothing
    (job(compute=1, step=2, receive=4, objects=100), of(2), {"packing": None}),
    (job(wait=60, step=4, late=1.2), of(1), {"workers": 3}),
]


@pytest.mark.parametrize(("pace", "setup", "named"), JOBS)
def test_six_trials_find_nine_tenths_of_what_all_settings_bring(pace, setup, named):
    ascent = climb(pace, named, setup)
    sweep = product((0, 1, 2, 3, 4, 6, 8, 12, 16), (2, 4, 8), (False, True))
    names = ("num_workers", "prefetch_factor", "persistent_workers")
    best = max(pace(dict(zip(names, values, strict=True)), setup)[0] for values in sweep)
    assert pace(ascent.best, setup)[0] >= 0.9 * best


def test_a_loop_that_waits_no_more_is_left_alone():
    assert climb(job(wait=10, step=50), {}, of(2, waits=0.02)).trials == []
    # Two workers suffice, and their number is not doubled once more.
    found = climb(job(wait=60, step=50, receive=0.0), {"workers": 2})
    assert [one.settings for one in found.trials] == [{"num_workers": 2}]


def test_what_could_change_the_training_is_not_tried():
    stream = climb(job(wait=60, step=4, late=1.3), {"workers": 8}, of(2, stream=True))
    assert [one.settings for one in stream.trials] == [{"prefetch_factor": 4}]


def test_what_fails_or_needs_more_memory_is_not_kept():
    found = climb(job(wait=60, step=4), {"workers": 8}, of(2), failing=[("num_workers", 8)])
    assert found.trials[0].turns.failed == "out of memory"
    assert found.best["num_workers"] == 5
    assert climb(job(wait=60, step=4), {"workers": 8}, of(2), limit=3).best == {"num_workers": 3}


@pytest.mark.parametrize(("workers", "named"), [(2, True), (2, False), (0, True)])
def test_no_hand_over_is_tried_where_batches_have_many_objects(workers, named):
    found = climb(job(wait=4, step=6, objects=30), {"packing": None} if named else {}, of(workers))
    assert ({"num_workers": 0} in [one.settings for one in found.trials]) == (named and workers > 0)


def test_a_gpu_is_copied_to_from_pinned_memory():
    found = climb(job(wait=60, step=4), {}, of(0, pinned=False))
    assert any("pin_memory" in one.settings for one in found.trials)


@pytest.mark.parametrize(("rates", "kept"), [
    ([(10, 13)], True),
    ([(10, 9.9)], False),
    ([(10, 10.4), (10, 10.5), (10, 10.6)], True),
    ([(10, 10.4), (10, 9.9), (10, 10.6)], False),  # one turn says no
    ([(10, 10.1), (10, 10.1), (10, 10.1)], False),  # not worth a change
    ([], False),
])  # fmt: skip
def test_a_setting_is_kept_where_each_turn_was_better(rates, kept):
    assert Turns(tuple(rates)).kept == kept


def test_what_would_not_find_room_is_not_tried():
    ascent = climb(job(wait=80), {"workers": 8}, of(1), limit=3)
    assert {one.settings["num_workers"] for one in ascent.trials} == {3}
    deeper = climb(job(wait=16, late=1.3), {"prefetch": 4}, of(2), room=lambda ahead: 6 // ahead)
    assert not [one for one in deeper.trials if "prefetch_factor" in one.settings]
    assert climb(job(wait=80), {"workers": 8}, of(0), limit=0).trials == []


def test_no_workers_are_tried_where_doctor_names_none():
    ascent = climb(job(compute=0.1, step=0.2, receive=0.8), {"workers": 0}, of(2))
    assert ascent.best == {"num_workers": 0}
    assert [one.settings for one in ascent.trials] == [{"num_workers": 0}]


def test_each_advice_about_the_workers_is_tried():
    # For minGPT's adder the advice was "without workers", and the trial tried 8 and 6 workers, never 0.
    ascent = climb(job(compute=0.1, step=0.2, receive=0.8), [("workers", 0), ("workers", 8)], of(2))
    assert [one.settings for one in ascent.trials][:1] == [{"num_workers": 0}]
    assert ascent.best == {"num_workers": 0}
    ascent = climb(job(wait=60, step=4), [("workers", 8), ("workers", 0)], of(2))
    assert {"num_workers": 0} in [one.settings for one in ascent.trials]
