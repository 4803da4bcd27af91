"""What is true of every inputs, whatever its times, and what stragglers did that were measured.

That each order and each wait is right is what test_against_simpy.py and tests/test_pipeline.py hold.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import Q_, Jitter, Pipeline, Samples
from tests.simulate.test_against_simpy import followed, loaders, own_times

seeds = st.integers(0, 10_000)


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


@given(loaders, st.integers(1, 5))
def test_each_replica_goes_as_it_would_alone(inputs, replicas):
    times = np.array([own_times(seed, 25) for seed in range(replicas)])
    together = followed(inputs, times)
    alone = [followed(inputs, row).utilization for row in times]
    np.testing.assert_allclose(together.utilizations, alone, rtol=1e-12)


# One sample in a hundred takes 0.4 s; batches of 8, a step of 20 ms, two workers with two batches each. On
# average a batch then takes 8 * 0.01 * 400 = 32 ms longer. Mean rates predict a utilization of 0.884, so
# 2 * 20 / (base + 32) = 0.884, and a batch without stragglers takes 13.25 ms.
STRAGGLERS = Pipeline(
    batch_size=8,
    hardware="20 ms",
    dataset=Samples(cpu_time="1.65625 ms", jitter=Jitter(slow_share=0.01, slow_time="400 ms")),
    workers=2,
)


def test_a_straggler_in_every_hundred_samples_starves_half_the_time_though_means_allow_0884():
    """Measured: 0.443.

    Batch j is sent when batch j-4 is received, and with one step ahead that is when the step of batch j-5
    begins. Five steps, 100 ms, are then left to do without batch j. If that is the straggler it takes 413.25
    ms, so the accelerator waits 313.25. Stragglers are 12.5 batches apart, which is 250 ms of steps.
    """
    number = np.arange(8 * 2000).reshape(2000, 8)
    every = 13.25 + 400 * (number % 100 == 37).sum(axis=1)
    found = STRAGGLERS.simulate(prepare_times=Q_(every, "ms"), warm_up=0)
    assert found.utilization == pytest.approx(250 / (250 + 313.25), abs=5e-4)
    assert f"Mean times alone allow {8 * 0.884 / 0.02:.1f} img/s: late batches take" in found.note


@pytest.mark.parametrize(("changes", "utilization"), [
    ({}, 0.472),
    ({"workers.in_order": False}, 0.706),
    ({"workers.prefetch": 8}, 0.622),
    ({"workers.prefetch": 8, "workers.in_order": False}, 0.770),
], ids=["in order", "as it comes", "deep", "deep and as it comes"])  # fmt: skip
def test_stragglers_at_random_do_the_same_and_both_levers_help(changes, utilization):
    found = STRAGGLERS.replace(changes).simulate(batches=200, replicas=500, warm_up=0)
    # Three standard errors: 0.09 from run to run, over the root of 500.
    assert found.utilization == pytest.approx(utilization, abs=0.012)
