"""Ranks that end each step together: the slowest sets it, and its queue is the empty one."""

from math import log, pi, sqrt
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starvelab import Accelerator, InputError, Pipeline, Ranks, Samples
from starvelab.model.stages.barrier import mean_of_largest
from tests.rejected import message

# 32 ms of one worker for a batch, 4 ms of eight; 40 ms of each accelerator.
JOB = Pipeline(
    hardware=Accelerator(rate="40 ms", ranks=Ranks(4)),
    batch_size=32,
    dataset=Samples(cpu_time="1 ms"),
    workers=8,
)
SCATTERED = JOB.replace({"hardware.ranks.spread": 0.5})
SLOW = JOB.replace({"hardware.ranks.slow": 12})  # 48 ms on one host


def ms(step):
    return step.step_time.m_as("ms")


def test_the_mean_of_the_largest_is_that_of_closed_forms():
    # Of two lognormal numbers of mean 1: 2 Phi(s / sqrt 2). Of hardly scattered ones: 1 + d / sqrt pi.
    assert mean_of_largest(1, 0.7) == pytest.approx(1, abs=1e-9)
    assert mean_of_largest(2, 1.0) == pytest.approx(2 * NormalDist().cdf(sqrt(log(2) / 2)), abs=1e-9)
    assert mean_of_largest(2, 1e-3) == pytest.approx(1 + 1e-3 / sqrt(pi), abs=1e-6)
    assert mean_of_largest(3, 1e-3) == pytest.approx(1 + 1.5e-3 / sqrt(pi), abs=2e-6)
    # The normal order statistics of 4 and 8: 1.02938 and 1.42360.
    assert [mean_of_largest(n, 1e-3) for n in (4, 8)] == pytest.approx([1.00102938, 1.0014236], abs=2e-6)


@pytest.mark.parametrize(("hosts", "count", "spread"), [(2, 2, 0.5), (4, 1, 0.1), (16, 1, 0.5)])
def test_ranks_that_are_followed_step_by_step_take_what_the_order_statistic_says(hosts, count, spread):
    job = SCATTERED.replace({"hardware.ranks": Ranks(hosts, spread=spread), "hardware.count": count})
    run = job.simulate(batches=1500, replicas=64 // hosts, warm_up=50)
    assert run.periods.mean() == pytest.approx(ms(job.solve()), rel=0.01)
    assert run.utilization == pytest.approx(job.solve().utilization, rel=0.01)
    assert run.throughput.m_as("img/s") == pytest.approx(job.solve().throughput.m_as("img/s"), rel=0.01)


def test_the_accelerators_of_all_hosts_train_and_wait_at_the_barrier():
    step = SCATTERED.solve()
    assert ms(step) == pytest.approx(40 * mean_of_largest(4, 0.5))
    assert step.stage_times["barrier"].m_as("ms") == pytest.approx(ms(step) - 40)
    assert step.throughput.m_as("img/s") == pytest.approx(4 * 32e3 / ms(step))
    assert step.utilization == pytest.approx(40 / ms(step))
    assert JOB.solve().step_time == JOB.solve({"hardware.ranks.hosts": 1}).step_time
    swept = SCATTERED.solve({"hardware.ranks.hosts": [1, 4]})
    assert swept.step_time.m_as("ms").tolist() == pytest.approx([40, ms(step)])


def test_one_slow_host_holds_up_all_whose_queues_are_full():
    run = SLOW.simulate(replicas=1, batches=400, warm_up=100)
    assert run.periods[0] == pytest.approx(48, rel=0.01) == pytest.approx(ms(SLOW.solve()), rel=0.01)
    *fast, slow = run.queues[0]
    # 8 workers with 2 batches each; batches of the slow one come in bursts of 8, and its mean is not 0.
    assert min(fast) > 15
    assert slow < 3
    assert "batches ready at rank 3" in repr(run)
    slow, fast = (run.trace(rank=rank).after(100) for rank in (3, 0))
    assert fast.utilization == pytest.approx(slow.utilization, rel=0.02) == pytest.approx(40 / 48, rel=0.02)
    assert SLOW.workers_needed().workers == 10  # 384 / 40


@settings(max_examples=30)
@given(
    st.integers(2, 5),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
    st.floats(1, 3),
    st.sampled_from([1, 2, np.inf]),
)
def test_without_jitter_ranks_are_solved_as_they_are_simulated(
    hosts, workers, ahead, in_order, slow, in_flight
):
    job = JOB.replace(
        {"hardware.ranks": Ranks(hosts, slow=slow), "hardware.in_flight": in_flight}, workers=workers
    )
    job = job.replace(
        {"workers.in_order": in_order, "storage.of": "2 GB/s"}, dataset=Samples(cpu_time="2 ms")
    )
    job = job.replace({"storage.read_ahead": ahead, "hardware.rate": "20 ms"})
    run = job.simulate(batches=40 * workers + 60, warm_up=60, replicas=2)
    assert run.periods == pytest.approx(ms(job.solve()), rel=0.01)


def test_who_waits_and_what_it_costs_is_said():
    assert "bring the slowest host to the pace of the others (1.2 times)" in SLOW.explain()
    assert "halve the spread of the steps' times (1.21 times)" in SCATTERED.explain()
    # Behind slower workers nobody waits longer for a barrier, and half of it would help nobody.
    behind = SCATTERED.replace(dataset=Samples(cpu_time="1 s"))
    assert behind.solve().step_time == behind.solve({"hardware.ranks.spread": 0}).step_time
    assert "ranks" not in behind.explain()
    bill = SLOW.bill(price="2 USD/h", samples=10**6)
    assert bill.hour.m_as("USD") == pytest.approx(8)
    assert bill.hour_waiting.m_as("USD") == pytest.approx(8 / 6)


def test_what_looks_at_one_host_says_so():
    assert message(InputError, SLOW.epochs) == (
        "epochs looks at one host, got Ranks(hosts=4, slow=12). Leave ranks out."
    )
