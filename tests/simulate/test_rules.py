"""What is true of every loader, whatever its times: more help never hurts, and means are never beaten."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import Q_
from starvelab.simulate import Loader, simulate
from starvelab.simulate.discrete_event import follow_events
from starvelab.simulate.recurrence import follow_in_order, follow_out_of_order
from starvelab.simulate.timeline import Start
from tests.simulate.test_against_simpy import loaders, own_times

CLOCK = ("prepare_start", "prepared", "received", "copy_start", "copied", "step_start", "step_end")
seeds = st.integers(0, 10_000)
# Nothing here is in the way of anything else but by order and depth.
orderly = loaders.map(lambda loader: loader.replace(in_order=True, read_time="0 ms"))


def ends(loader, seed, batches=40):
    """When each step is done."""
    return simulate(loader, prepare_times=Q_(own_times(seed, batches), "ms")).trace().step_end


def no_later(one, other):
    return np.all(one <= other + 1e-9)


# --- every batch ------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_order", [True, False])
@given(loaders, seeds)
def test_batches_workers_storage_and_accelerator_keep_their_order(in_order, loader, seed):
    loader = loader.replace(in_order=in_order)
    times = own_times(seed, 40)
    trace = simulate(loader, prepare_times=Q_(times, "ms")).trace()
    for earlier, later in pairwise(CLOCK):
        assert no_later(getattr(trace, earlier), getattr(trace, later)), (earlier, later)
    assert sorted(trace.batch) == list(range(40))
    assert no_later(trace.step_end[:-1], trace.step_start[1:]), "the accelerator computes on one batch"
    assert no_later(trace.copied[:-1], trace.copy_start[1:])
    if loader.in_order or loader.workers == 0:
        assert list(trace.batch) == list(range(40))
    else:
        assert np.all(np.diff(trace.prepared) >= 0), "they arrive as they are ready"
    if loader.workers:
        read_end = np.sort(trace.prepared - times[trace.batch])
        assert np.all(np.diff(read_end) >= loader.ms("read_time") - 1e-9), "storage serves one read at a time"
    for worker in set(trace.worker):
        its = trace.worker == worker
        asked = np.argsort(trace.batch[its])
        assert no_later(trace.prepared[its][asked][:-1], trace.prepare_start[its][asked][1:])
        if loader.workers:
            # Its batch number k is only begun once number k - prefetch was received.
            begun = np.sort(trace.prepare_start[its])
            assert no_later(trace.received[its][: -loader.prefetch], begun[loader.prefetch :])


# --- shares -----------------------------------------------------------------------------------------


@given(loaders, seeds, st.integers(0, 29))
def test_the_accelerator_is_busy_or_waits(loader, seed, warm_up):
    found = simulate(loader, prepare_times=Q_(own_times(seed, 30), "ms"), warm_up=warm_up)
    assert found.utilization + found.stall == 1
    assert 0 < found.utilization <= 1 + 1e-12
    assert -1e-12 <= found.host_wait <= 1 + 1e-12
    batches = found.throughput.m_as("img/s") / loader.batch_size
    assert batches * loader.ms("step_time") / 1000 == pytest.approx(found.utilization)


@given(loaders, seeds, st.integers(1, 29))
def test_a_trace_counts_as_the_simulation_does(loader, seed, warm_up):
    times = Q_(own_times(seed, 30), "ms")
    found = simulate(loader, prepare_times=times, warm_up=warm_up)
    assert found.trace().after(warm_up).utilization == pytest.approx(found.utilization)
    whole = simulate(loader, prepare_times=times)
    assert whole.trace().utilization == pytest.approx(whole.utilization)


# --- more help never hurts --------------------------------------------------------------------------


@given(orderly, seeds)
def test_in_order_more_prefetch_never_hurts(loader, seed):
    assert no_later(ends(loader.replace(prefetch=loader.prefetch + 1), seed), ends(loader, seed))


@given(orderly, seeds)
def test_more_steps_in_flight_never_hurt(loader, seed):
    deeper = inf if loader.in_flight == inf else loader.in_flight + 1
    assert no_later(ends(loader.replace(in_flight=deeper), seed), ends(loader, seed))


@given(orderly, seeds)
def test_a_copy_that_overlaps_is_never_later(loader, seed):
    assert no_later(
        ends(loader.replace(copy_overlaps=True), seed), ends(loader.replace(copy_overlaps=False), seed)
    )


@pytest.mark.parametrize("name", ["step_time", "copy_time", "handover_time", "fetch_time", "start_up"])
@given(orderly, seeds)
def test_in_order_what_takes_longer_is_never_done_earlier(name, loader, seed):
    longer = loader.replace(**{name: getattr(loader, name) + Q_("5 ms")})
    assert no_later(ends(loader, seed), ends(longer, seed))


@given(orderly.filter(lambda loader: loader.workers > 0), st.integers(0, 90))
def test_with_even_times_one_more_worker_never_hurts(loader, milliseconds):
    even = np.full(40, float(milliseconds))
    fewer, more = (
        simulate(loader.replace(workers=loader.workers + extra), prepare_times=Q_(even, "ms"))
        .trace()
        .step_end
        for extra in (0, 1)
    )
    assert no_later(more, fewer)


# --- what means allow -------------------------------------------------------------------------------


@given(loaders, seeds)
def test_no_order_of_events_beats_the_rate_that_mean_times_allow(loader, seed):
    times = own_times(seed, 40)
    found = simulate(loader, prepare_times=Q_(times, "ms"))
    bound = loader.replace(prepare_time=Q_(float(times.mean()), "ms")).mean_rate.m_as("img/s")
    assert found.throughput.m_as("img/s") <= bound * (1 + 1e-9)


@given(orderly, st.integers(0, 90))
def test_with_even_times_the_long_run_reaches_it(loader, milliseconds):
    loader = loader.replace(prepare_time=Q_(milliseconds, "ms"))
    # Batches come in bursts of a round, so whole rounds are counted.
    rounds = 10 * max(1, loader.workers) * loader.prefetch
    rounds *= 1 if loader.in_flight == inf else loader.in_flight
    found = simulate(loader, batches=2 * rounds, warm_up=rounds)
    assert found.throughput.m_as("img/s") == pytest.approx(loader.mean_rate.m_as("img/s"), rel=0.02)


# --- many replicas ----------------------------------------------------------------------------------


@given(loaders, st.integers(1, 5))
def test_each_replica_goes_as_it_would_alone(loader, replicas):
    times = np.array([own_times(seed, 25) for seed in range(replicas)])
    together = simulate(loader, prepare_times=Q_(times, "ms"))
    alone = [simulate(loader, prepare_times=Q_(row, "ms")).utilization for row in times]
    np.testing.assert_allclose(together.utilizations, alone, rtol=1e-12)


@pytest.mark.parametrize("rule", [follow_in_order, follow_out_of_order])
@given(loaders.filter(lambda loader: loader.workers > 0), seeds, st.integers(1, 40))
def test_both_rules_give_the_same_times_as_event_by_event(rule, loader, seed, batches):
    loader = loader.replace(in_order=rule is follow_in_order, read_time="0 ms")
    times = np.array([own_times(seed + i, batches) for i in range(3)]).T
    start = Start.of_run(loader, batches, 3)
    one, other = rule(loader, times, start), follow_events(loader, times, np.zeros(times.shape), start)
    for name, column in vars(one).items():
        np.testing.assert_allclose(column, getattr(other, name), rtol=1e-12, atol=1e-9, err_msg=name)


STRAGGLERS = Loader(
    step_time="20 ms", prepare_time="13.25 ms", batch_size=8, straggler_share=0.01, straggler_time="400 ms"
)


@pytest.mark.parametrize("workers", [2, 3, 6])
@pytest.mark.parametrize("prefetch", [1, 2, 8])
def test_among_stragglers_it_is_faster_on_average_to_take_what_is_ready(workers, prefetch):
    loader = STRAGGLERS.replace(workers=workers, prefetch=prefetch)
    waits, takes = (simulate(loader.replace(in_order=order), replicas=200) for order in (True, False))
    assert takes.utilization > waits.utilization
