"""Cases small enough to be followed by hand, and the stragglers that were measured.

That each order and each wait is right is what test_against_simpy.py and tests/test_pipeline.py hold.
"""

import numpy as np
import pytest

from starvelab import Q_, Jitter, Pipeline, Samples

# A worker takes 50 ms for a batch of one sample.
SLOW = Pipeline(batch_size=1, hardware="20 ms", dataset=Samples(cpu_time="50 ms"), workers=2)
DELAYED = SLOW.replace({"workers.handover.way": "7 ms"})
LATE = SLOW.replace({"workers.start_up": "1 s"})
INLINE = SLOW.replace(workers=0)


def run(pipeline, batches=5, warm_up=0, **options):
    return pipeline.simulate(batches=batches, warm_up=warm_up, replicas=1, **options)


@pytest.mark.parametrize(
    ("pipeline", "column", "times"),
    [
        # Ready at 50, 50, 100, 100, 150; the second of each pair waits for the first one's step.
        (SLOW, "step_end", [70, 90, 120, 140, 170]),
        (DELAYED, "received", [57, 57, 107, 107, 157]),
        (LATE, "prepared", [1050, 1050, 1100]),
    ],
)
def test_each_batch_has_its_times(pipeline, column, times):
    assert getattr(run(pipeline).trace(), column)[: len(times)] == pytest.approx(times)


def test_the_accelerator_is_not_starved_whenever_the_loop_waits():
    # One step ahead: the loop waits 50 of every 50 ms in next(), and the accelerator 30 of them.
    found = run(INLINE, 400, 200)
    assert found.host_wait == pytest.approx(1, abs=0.003)  # but for the last step, which nobody waits out
    assert found.stall == pytest.approx(0.6)


# --- stragglers -------------------------------------------------------------------------------------
#
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
    found = run(STRAGGLERS, prepare_times=Q_(every, "ms"))
    assert found.utilization == pytest.approx(250 / (250 + 313.25), abs=5e-4)
    assert f"Mean times alone allow {8 * 0.884 / 0.02:.1f} img/s: late batches take" in found.note


@pytest.mark.parametrize(
    ("changes", "utilization"),
    [
        ({}, 0.472),
        ({"workers.in_order": False}, 0.706),
        ({"workers.prefetch": 8}, 0.622),
        ({"workers.prefetch": 8, "workers.in_order": False}, 0.770),
    ],
    ids=["in order", "as it comes", "deep", "deep and as it comes"],
)
def test_stragglers_at_random_do_the_same_and_both_levers_help(changes, utilization):
    found = STRAGGLERS.replace(changes).simulate(batches=200, replicas=500, warm_up=0)
    # Three standard errors: 0.09 from run to run, over the root of 500.
    assert found.utilization == pytest.approx(utilization, abs=0.012)


@pytest.mark.parametrize("workers", [2, 3, 6])
@pytest.mark.parametrize("prefetch", [1, 2, 8])
def test_among_stragglers_it_is_faster_on_average_to_take_what_is_ready(workers, prefetch):
    waits, takes = (
        STRAGGLERS.replace(
            {"workers.prefetch": prefetch, "workers.in_order": order}, workers=workers
        ).simulate(batches=200, replicas=200, warm_up=0)
        for order in (True, False)
    )
    assert takes.utilization > waits.utilization
