"""How often something may be measured, by a clock that only moves when a test says so."""

from __future__ import annotations

import pytest

from starvelab.jobs.probe import Budget
from tests.jobs.loops import Clock


@pytest.mark.parametrize("batch", [0.0002, 0.004, 0.1])
@pytest.mark.parametrize("cost", [0.00005, 0.003, 0.5])
def test_what_is_measured_stays_below_the_share(batch, cost):
    clock = Clock()
    budget = Budget(0.05, cost, clock.perf_counter)
    begun, measured = clock.now, 0
    for _ in range(int(40 * max(cost, 0.01) / batch)):
        clock.sleep(batch)
        if budget.allows():
            clock.sleep(cost)
            budget.spend(cost)
            measured += 1
            assert measured * cost <= 0.05 * (clock.now - begun)
    # It is used as well: the next one would be too much.
    assert (measured + 1) * cost > 0.05 * (clock.now - begun) - 0.05 * batch or cost < 0.05 * batch


def test_one_that_took_longer_than_expected_is_paid_for_before_the_next():
    clock = Clock()
    budget = Budget(0.05, clock=clock.perf_counter)
    assert budget.allows()  # nothing is known of its cost
    clock.sleep(1.0)
    budget.spend(1.0)
    waited = 0
    while not budget.allows():
        clock.sleep(1.0)
        waited += 1
    assert waited == 39  # the first and the next, 1 s each, in 40 s
