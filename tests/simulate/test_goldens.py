"""Cases small enough to be followed by hand, and the stragglers that were measured."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from starvelab import Q_
from starvelab.simulate import Loader, simulate
from tests.simulate.test_rules import STRAGGLERS

SLOW = Loader(step_time="20 ms", prepare_time="50 ms")


def times(loader, column, batches=5):
    return list(getattr(simulate(loader, batches=batches).trace(), column))


def long_run(loader, batches=1200):
    return simulate(loader, batches=batches, warm_up=batches // 2).utilization


def test_two_workers_deliver_two_batches_every_50_ms():
    # Ready at 50, 50, 100, 100, 150; the second of each pair waits for the first one's step.
    assert times(SLOW, "received") == [50, 50, 100, 100, 150]
    assert times(SLOW, "step_end") == [70, 90, 120, 140, 170]
    # 40 of each 50 ms.
    assert long_run(SLOW) == pytest.approx(0.8)


def test_three_workers_are_enough():
    # A batch every 50/3 = 16.7 ms against a step of 20.
    assert long_run(SLOW.replace(workers=3)) == pytest.approx(1)


def test_inline_with_one_step_ahead_hides_the_step_behind_the_preparation():
    # While the accelerator computes for 20 ms the loop prepares for 50.
    assert times(SLOW.replace(workers=0), "step_end", 3) == [70, 120, 170]
    assert long_run(SLOW.replace(workers=0)) == pytest.approx(20 / 50)


def test_inline_that_waits_for_each_step_adds_them_up():
    assert times(SLOW.replace(workers=0, in_flight=1), "step_end", 3) == [70, 140, 210]
    assert long_run(SLOW.replace(workers=0, in_flight=1)) == pytest.approx(20 / 70)


def test_waiting_for_every_step_adds_fetch_and_copy_to_it():
    loader = SLOW.replace(workers=8, copy_time="4 ms", fetch_time="1 ms")
    assert long_run(loader.replace(in_flight=1)) == pytest.approx(20 / 25)
    assert long_run(loader) == pytest.approx(1)


def test_a_copy_that_takes_its_turn_between_steps_keeps_the_accelerator_waiting():
    loader = SLOW.replace(workers=8, copy_time="4 ms")
    assert long_run(loader.replace(copy_overlaps=False)) == pytest.approx(20 / 24)
    assert long_run(loader) == pytest.approx(1)
    assert long_run(loader.replace(copy_time="25 ms")) == pytest.approx(20 / 25)


def test_the_hand_over_delays_a_batch_and_keeps_no_worker():
    assert times(SLOW.replace(handover_time="7 ms"), "received") == [57, 57, 107, 107, 157]
    assert long_run(SLOW.replace(handover_time="7 ms")) == pytest.approx(0.8)


def test_without_room_for_another_batch_a_worker_waits_out_the_hand_over():
    # One batch per worker: begun when the last one was received, so each round takes 50 + 7 ms.
    assert long_run(SLOW.replace(handover_time="7 ms", prefetch=1)) == pytest.approx(40 / 57)


def test_workers_that_start_late_delay_the_first_batches_only():
    assert times(SLOW.replace(start_up="1 s"), "prepared", 3) == [1050, 1050, 1100]
    assert long_run(SLOW.replace(start_up="1 s")) == pytest.approx(0.8)


def test_without_workers_nothing_has_to_start():
    assert times(SLOW.replace(workers=0, start_up="1 s"), "prepared", 1) == [50]


def test_shared_storage_serves_workers_one_after_the_other():
    # Four ask at once; each read takes 30 ms, and then 50 ms of work.
    loader = SLOW.replace(workers=4, read_time="30 ms")
    assert times(loader, "prepared", 4) == [80, 110, 140, 170]
    # In the long run one batch every 30 ms, however many workers there are.
    assert long_run(loader) == pytest.approx(20 / 30)
    assert long_run(loader.replace(workers=16)) == pytest.approx(20 / 30)


def test_a_wait_for_storage_is_shared_by_nobody():
    # Asleep in turn: more workers hide it, as 8 of them prepare a batch every 10 ms.
    loader = SLOW.replace(read_wait="30 ms")
    assert long_run(loader) == pytest.approx(40 / 80)
    assert long_run(loader.replace(workers=8)) == pytest.approx(1)


def test_more_workers_than_cores_prepare_no_more():
    assert long_run(SLOW.replace(cores=2)) == pytest.approx(0.8)
    # Eight on two cores: each takes 200 ms, eight batches come every 200 ms.
    assert long_run(SLOW.replace(workers=8, cores=2)) == pytest.approx(0.8)
    # What a worker sleeps through is not stretched.
    assert long_run(
        SLOW.replace(workers=8, cores=2, prepare_time="10 ms", read_wait="120 ms")
    ) == pytest.approx(1)


def test_one_slow_batch_holds_up_the_ones_behind_it_only_in_order():
    # Batch 0 takes 400 ms, all others 10; two workers with two batches each.
    own = Q_([400, 10, 10, 10, 10, 10, 10, 10], "ms")
    loader = Loader(step_time="20 ms", prepare_time="10 ms", in_flight=inf)
    waits, takes = (
        simulate(loader.replace(in_order=order), prepare_times=own).trace() for order in (True, False)
    )
    # Worker 1 has its two batches done at 20 ms, and gets no other index before batch 0 is back.
    assert list(waits.received[:4]) == [400, 400, 410, 410]
    assert waits.step_start[0] == 400
    # As it comes: worker 1 delivers 1, 3, 4, 5, 6, 7, and batch 0 arrives last but one, then batch 2.
    assert list(takes.batch) == [1, 3, 4, 5, 6, 7, 0, 2]
    assert list(takes.worker) == [1, 1, 1, 1, 1, 1, 0, 0]
    assert list(takes.received[:3]) == [10, 20, 30]


def test_the_accelerator_is_not_starved_whenever_the_loop_waits():
    # One step ahead: the loop waits 50 of every 50 ms in next(), and the accelerator 30 of them.
    found = simulate(SLOW.replace(workers=0), batches=400, warm_up=200)
    assert found.host_wait == pytest.approx(1, abs=0.003)  # but for the last step, which nobody waits out
    assert found.stall == pytest.approx(0.6)


# --- stragglers -------------------------------------------------------------------------------------
#
# One sample in a hundred takes 0.4 s; batches of 8, a step of 20 ms, two workers with two batches each. On
# average a batch then takes 8 * 0.01 * 400 = 32 ms longer. Mean rates predict a utilization of 0.884, so
# 2 * 20 / (base + 32) = 0.884, and a batch without stragglers takes 13.25 ms.


def test_mean_rates_predict_0884_for_the_measured_stragglers():
    assert STRAGGLERS.mean_utilization == pytest.approx(0.884, abs=5e-4)


def test_a_straggler_in_every_hundred_samples_starves_half_the_time_though_means_allow_0884():
    """Measured: 0.443.

    Batch j is sent when batch j-4 is received, and with one step ahead that is when the step of batch j-5
    begins. Five steps, 100 ms, are then left to do without batch j. If that is the straggler it takes 413.25
    ms, so the accelerator waits 313.25. Stragglers are 12.5 batches apart, which is 250 ms of steps.
    """
    number = np.arange(8 * 2000).reshape(2000, 8)
    every = 13.25 + 400 * (number % 100 == 37).sum(axis=1)
    found = simulate(STRAGGLERS, prepare_times=Q_(every, "ms"))
    assert found.utilization == pytest.approx(250 / (250 + 313.25), abs=5e-4)


@pytest.mark.parametrize(
    ("changes", "utilization"),
    [
        ({}, 0.472),
        ({"in_order": False}, 0.706),
        ({"prefetch": 8}, 0.622),
        ({"prefetch": 8, "in_order": False}, 0.770),
    ],
    ids=["in order", "as it comes", "deep", "deep and as it comes"],
)
def test_stragglers_at_random_do_the_same_and_both_levers_help(changes, utilization):
    found = simulate(STRAGGLERS.replace(**changes), replicas=500)
    # Three standard errors: 0.09 from run to run, over the root of 500.
    assert found.utilization == pytest.approx(utilization, abs=0.012)
    assert found.utilization < STRAGGLERS.mean_utilization
