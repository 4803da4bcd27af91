"""What a simulation returns, shows and rejects, how its chance is drawn, and where an epoch begins."""

from dataclasses import replace

import numpy as np
import pytest

from starvelab import Q_, InputError
from starvelab.simulate.simulation import draw, simulate
from starvelab.simulate.timeline import LoaderInputs
from tests.rejected import message, not_positive, not_whole

SLOW = LoaderInputs(step_time=20, prepare_time=50)
UNEVEN = replace(SLOW, spread=0.4, slow_share=0.01, slow_time=200)


def drawn(inputs, batches=400, replicas=400, seed=0):
    """What a worker takes for each batch."""
    return draw(inputs, batches, replicas, seed)[0]


def test_without_chance_every_batch_takes_the_mean():
    assert drawn(replace(SLOW, read_wait=3, workers=4), 3, 2).tolist() == [[53, 53]] * 3


def test_jitter_keeps_the_mean_and_has_the_spread_that_was_asked_for():
    times = drawn(replace(SLOW, spread=0.4))
    # 160,000 draws: the mean is known to 50 * 0.4 / 400.
    assert times.mean() == pytest.approx(50, abs=0.2)
    assert times.std() == pytest.approx(20, rel=0.02)
    assert times.min() > 0


def test_stragglers_take_whole_multiples_longer_as_often_as_they_should_and_leave_the_jitter_as_it_was():
    late = (drawn(UNEVEN) - drawn(replace(UNEVEN, slow_share=0))) / 200
    assert np.allclose(late, late.round())
    assert 200 * late.mean() == pytest.approx(UNEVEN.mean_delay, rel=0.01)


def test_memory_serves_whole_samples_as_often_as_it_should():
    half = replace(SLOW, read_time=64, read_wait=32, cached_share=0.75)
    times, reads = draw(half, 400, 400, 0)
    # A batch of 32 occupies the storage for 2 ms a sample, and 8 of them are read on average.
    assert set(np.unique(reads)) <= {2.0 * misses for misses in range(33)}
    assert reads.mean() == pytest.approx(16, rel=0.01)
    # Its worker waits for the same samples.
    assert np.allclose(times, 50 + reads / 2)


def test_what_memory_serves_altogether_is_never_read_and_jitter_and_stragglers_stay():
    cold = replace(UNEVEN, workers=4, read_time=100, read_wait=3)
    warm, reads = draw(replace(cold, cached_share=1), 50, 2, 0)
    assert np.allclose(warm + 3, drawn(cold, 50, 2))
    assert not reads.any()


def test_more_replicas_add_to_those_that_were_there_and_more_workers_meet_the_same_batches():
    few, many = (simulate(UNEVEN, replicas=count) for count in (3, 7))
    assert many.utilizations[:3].tolist() == few.utilizations.tolist()
    assert len(set(many.utilizations)) == 7
    assert simulate(replace(UNEVEN, workers=5, prefetch=5)).times[:, 0].tolist() == few.times[:, 0].tolist()
    assert simulate(UNEVEN, seed=1).utilization == simulate(UNEVEN, seed=1).utilization
    assert simulate(UNEVEN, seed=1).utilization != simulate(UNEVEN, seed=2).utilization


def test_numbers_are_means_over_replicas_and_any_replica_can_be_traced():
    found = simulate(replace(UNEVEN, in_order=False), replicas=5, batches=40)
    assert found.utilizations.shape == found.throughputs.shape == found.host_waits.shape == (5,)
    assert found.utilization == pytest.approx(found.utilizations.mean())
    assert found.spread == pytest.approx(found.utilizations.std(ddof=1))
    assert found.throughput.m_as("img/s") == pytest.approx(found.throughputs.m_as("img/s").mean())
    assert (found.batches, found.replicas, found.warm_up) == (40, 5, 0)
    for replica in range(5):
        trace = found.trace(replica)
        assert trace.utilization == pytest.approx(found.utilizations[replica])
        assert (len(trace), trace.batch_size, trace.source) == (40, 32, "simulated")
    assert simulate(UNEVEN).spread == 0


def test_replicas_beyond_those_that_are_followed_together_are_not_forgotten():
    found = simulate(UNEVEN, batches=3, replicas=1030)
    last = simulate(UNEVEN, prepare_times=Q_(found.times[:, 1029], "ms"))
    assert found.utilizations[1029] == pytest.approx(last.utilization)


def test_own_times_decide_how_many_batches_and_replicas_there_are():
    found = simulate(UNEVEN, prepare_times=Q_([[50, 60, 70], [10, 20, 30]], "ms"))
    assert (found.batches, found.replicas) == (3, 2)
    assert found.times.tolist() == [[50, 10], [60, 20], [70, 30]]
    assert simulate(SLOW, prepare_times=Q_([0.05, 0.06], "s")).times.tolist() == [[50], [60]]


def test_a_warm_up_leaves_the_wait_for_the_first_batch_out():
    late = replace(SLOW, workers=4, start_up=2000)
    assert simulate(late, batches=100).utilization < 0.6
    assert simulate(late, batches=100, warm_up=8).utilization == pytest.approx(1)


def test_of_replicas_it_shows_how_far_they_lie_apart():
    found = simulate(UNEVEN, replicas=20)
    assert found.summary == (
        f"200 batches, 20 times: the GPU is busy {100 * found.utilization:.1f} %, give or take "
        f"{100 * found.spread:.1f} %, at {found.throughput.m_as('img/s'):.4g} img/s"
    )
    shown, periods = {name: rest for name, *rest in found.rows}, 20 / found.utilizations
    extremes = np.mean, np.min, np.max
    assert shown["utilization"] == [f"{100 * of(found.utilizations):.1f} %" for of in extremes]
    assert shown["time from batch to batch"] == [f"{of(periods):.4g} ms" for of in extremes]


WHOLE = "{} must be a whole number from 0 {}, got {!r}. {}"
TABLE = (
    "prepare_times has a row for each replica and a column for each batch, got shape {}. "
    'Pass for example Q_([[12, 15, 11]], "ms").'
)
LEFT = "Of 10 batches one must be left."


@pytest.mark.parametrize(("arguments", "expected"), [
    *(not_positive(**{name: 0}) for name in ("batches", "replicas")),
    *(not_whole(**{name: 1.5}) for name in ("batches", "replicas")),
    *(
        ({"seed": seed}, WHOLE.format("seed", "on", seed, "Pass for example seed=1."))
        for seed in (-1, 0.5, "one", None, True)
    ),
    *(
        ({"warm_up": skipped, "batches": 10}, WHOLE.format("warm_up", "to 9", skipped, LEFT))
        for skipped in (-1, 10, 2.0, True)
    ),
    *(
        ({"prepare_times": Q_(np.ones(shape), "ms")}, TABLE.format(shape))
        for shape in ((), (0,), (2, 0), (1, 2, 3))
    ),
    ({"prepare_times": [1.0]},
     'prepare_times needs a unit, got the bare list [1.0]. Write for example Q_(5, "ms").'),
    ({"prepare_times": Q_([1, -2], "ms")},
     "prepare_times must be finite and not negative, got -2 ms. Check the value and its sign."),
])  # fmt: skip
def test_what_cannot_be_followed_is_rejected(arguments, expected):
    assert message(InputError, simulate, SLOW, **arguments) == expected


@pytest.mark.parametrize("replica", [-1, 2, 0.5])
def test_a_replica_that_there_is_not_is_rejected(replica):
    expected = WHOLE.format("replica", "to 1", replica, "Pass one of these.")
    assert message(InputError, simulate(SLOW, replicas=2).trace, replica) == expected
