"""What is true of every inputs, whatever its times: more help never hurts, and means are never beaten."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab.simulate.rules import follow_events, follow_in_order, follow_out_of_order
from starvelab.simulate.simulation import simulate
from starvelab.simulate.timeline import LoaderInputs, Start
from tests.simulate.test_against_simpy import followed, loaders, own_times

CLOCK = ("prepare_start", "prepared", "received", "copy_start", "copied", "step_start", "step_end")
seeds = st.integers(0, 10_000)
# Nothing here is in the way of anything else but by order and depth.
orderly = loaders.map(lambda inputs: replace(inputs, in_order=True, read_time=0))


def ends(inputs, seed, batches=40):
    """When each step is done."""
    return followed(inputs, own_times(seed, batches)).trace().step_end


def no_later(one, other):
    return np.all(one <= other + 1e-9)


# --- every batch ------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_order", [True, False])
@given(loaders, seeds)
def test_batches_workers_storage_and_accelerator_keep_their_order(in_order, inputs, seed):
    inputs = replace(inputs, in_order=in_order)
    times = own_times(seed, 40)
    trace = followed(inputs, times).trace()
    for earlier, later in pairwise(CLOCK):
        assert no_later(getattr(trace, earlier), getattr(trace, later)), (earlier, later)
    assert sorted(trace.batch) == list(range(40))
    assert no_later(trace.step_end[:-1], trace.step_start[1:]), "the accelerator computes on one batch"
    assert no_later(trace.copied[:-1], trace.copy_start[1:])
    if inputs.in_order or inputs.workers == 0:
        assert list(trace.batch) == list(range(40))
    else:
        assert np.all(np.diff(trace.prepared) >= 0), "they arrive as they are ready"
    if inputs.workers:
        read_end = np.sort(trace.prepared - times[trace.batch])
        assert np.all(np.diff(read_end) >= inputs.read_time - 1e-9), "storage serves one read at a time"
    for worker in set(trace.worker):
        its = trace.worker == worker
        asked = np.argsort(trace.batch[its])
        assert no_later(trace.prepared[its][asked][:-1], trace.prepare_start[its][asked][1:])
        if inputs.workers:
            # Its batch number k is only begun once number k - prefetch was received.
            begun = np.sort(trace.prepare_start[its])
            assert no_later(trace.received[its][: -inputs.prefetch], begun[inputs.prefetch :])


# --- shares -----------------------------------------------------------------------------------------


@given(loaders, seeds, st.integers(0, 29))
def test_the_accelerator_is_busy_or_waits_and_a_trace_counts_as_the_simulation_does(inputs, seed, warm_up):
    found = followed(inputs, own_times(seed, 30), warm_up=warm_up)
    trace = found.trace().after(warm_up) if warm_up else found.trace()
    assert trace.utilization == pytest.approx(found.utilization)
    assert found.utilization + found.stall == 1
    assert 0 < found.utilization <= 1 + 1e-12
    assert -1e-12 <= found.host_wait <= 1 + 1e-12
    assert found.throughput.m_as("img/s") / inputs.batch_size * inputs.step_time == pytest.approx(
        1000 * found.utilization
    )


# --- more help never hurts --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "helped"),
    [
        ("prefetch", lambda value: value + 1),
        ("in_flight", lambda value: value + 1),
        ("in_flight", lambda _: inf),
        ("copy_overlaps", lambda _: True),
        *(
            (name, lambda value: max(0, value - 5))
            for name in ("copy_time", "handover_way", "handover_loop", "start_up")
        ),
        ("step_time", lambda value: value / 2),
    ],
)
@given(orderly, seeds)
def test_in_order_more_help_never_hurts(name, helped, inputs, seed):
    better = replace(inputs, **{name: helped(getattr(inputs, name))})
    assert no_later(ends(better, seed), ends(inputs, seed))


@given(orderly.filter(lambda inputs: inputs.workers > 0), st.integers(0, 90))
def test_with_even_times_one_more_worker_never_hurts(inputs, milliseconds):
    even = np.full(40, float(milliseconds))
    fewer, more = (
        followed(replace(inputs, workers=inputs.workers + extra), even).trace().step_end for extra in (0, 1)
    )
    assert no_later(more, fewer)


# --- what means allow -------------------------------------------------------------------------------


@given(loaders, seeds)
def test_no_order_of_events_beats_the_rate_that_mean_times_allow(inputs, seed):
    times = own_times(seed, 40)
    found = followed(inputs, times)
    assert found.periods[0] >= replace(inputs, prepare_time=times.mean()).mean_period * (1 - 1e-9)


@given(orderly, st.integers(0, 90))
def test_with_even_times_the_long_run_reaches_it(inputs, milliseconds):
    inputs = replace(inputs, prepare_time=milliseconds)
    # Batches come in bursts of a round, so whole rounds are counted.
    rounds = 10 * max(1, inputs.workers) * inputs.prefetch
    rounds *= 1 if inputs.in_flight == inf else inputs.in_flight
    found = simulate(inputs, batches=2 * rounds, warm_up=rounds)
    assert found.periods[0] == pytest.approx(inputs.mean_period, rel=0.02)


@pytest.mark.parametrize(
    ("changes", "period"),
    [
        ({"workers": 8}, 20),  # the step
        ({"workers": 8, "copy_time": 5, "copy_overlaps": False}, 25),  # the step and the copy in turn
        ({"workers": 8, "copy_time": 30}, 30),  # the copy
        ({"workers": 8, "handover_loop": 40}, 40),  # receiving
        ({}, 25),  # 50 ms over two workers
        ({"read_wait": 30}, 40),  # and what they sleep
        ({"slow_share": 0.01, "slow_time": 100}, 41),  # 32 samples: 32 ms more
        ({"workers": 8, "read_time": 35}, 35),  # the storage
        ({"workers": 8, "read_time": 70, "cached_share": 0.5}, 35),  # what memory does not serve
        ({"read_wait": 60, "cached_share": 0.5}, 40),
        ({"read_time": 30}, 40),  # a worker that reads itself
        ({"read_time": 30, "read_ahead": True}, 30),
        ({"handover_way": 150}, 50),  # the way of a batch, four under way
        ({"workers": 8, "in_flight": 1, "copy_time": 3, "handover_loop": 2}, 25),  # each step waited for
        ({"workers": 0}, 50),
        ({"workers": 0, "in_flight": 1}, 70),
        ({"workers": 0, "in_flight": inf, "prepare_time": 5}, 20),
    ],
)
def test_means_allow_what_the_slowest_part_does(changes, period):
    slow = LoaderInputs(step_time=20, prepare_time=50)
    assert replace(slow, **changes).mean_period == pytest.approx(period)


# --- many replicas ----------------------------------------------------------------------------------


@given(loaders, st.integers(1, 5))
def test_each_replica_goes_as_it_would_alone(inputs, replicas):
    times = np.array([own_times(seed, 25) for seed in range(replicas)])
    together = followed(inputs, times)
    alone = [followed(inputs, row).utilization for row in times]
    np.testing.assert_allclose(together.utilizations, alone, rtol=1e-12)


@pytest.mark.parametrize("rule", [follow_in_order, follow_out_of_order])
@given(loaders.filter(lambda inputs: inputs.workers > 0), seeds, st.integers(1, 40))
def test_both_rules_give_the_same_times_as_event_by_event(rule, inputs, seed, batches):
    inputs = replace(inputs, in_order=rule is follow_in_order, read_time=0)
    times = np.array([own_times(seed + i, batches) for i in range(3)]).T
    start = Start.of_run(inputs, batches, 3)
    one, other = rule(inputs, times, start), follow_events(inputs, times, np.zeros(times.shape), start)
    for name, column in vars(one).items():
        np.testing.assert_allclose(column, getattr(other, name), rtol=1e-12, atol=1e-9, err_msg=name)
