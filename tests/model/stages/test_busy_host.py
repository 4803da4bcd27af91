"""Launches on a busy host: they take longer as the CPU fills, and a worker fewer can be faster."""

import numpy as np
import pytest

from starvelab import PUBLISHED, Accelerator, Hardware, Models, Pipeline, Workers
from starvelab.model.rates import slowdown

# A batch of 16 takes 50 x 0.2556 ms x 3 x 8.33 / 12.78 = 24.99 ms to launch, and 6.5 ms to compute.
CALM = Pipeline(
    model=Models.ResNet50, hardware=Accelerator(Hardware.Cloud.A100), batch_size=16,
    workers=Workers(8, cores=8), assumptions=PUBLISHED,
)  # fmt: skip
BUSY = CALM.replace({"hardware.host.busy": 0.5})


def ms(step):
    return step.step_time.m_as("ms")


def test_a_step_that_launches_set_has_the_length_at_which_the_workers_are_as_busy_as_it_lets_them_be():
    step = BUSY.solve()
    assert step.bottleneck == "accelerator"
    # 8 of 16 hardware threads, for the CPU's 15.62 ms of each step.
    use = 0.5 + 0.5 * step.resource_times["CPU"].m_as("ms") / ms(step)
    assert ms(step) == pytest.approx(ms(CALM.solve()) * slowdown(use), rel=1e-6)
    assert ms(BUSY.solve({"hardware.host.busy": 0.0}, workers="1 GB/s")) == pytest.approx(ms(CALM.solve()))
    full = BUSY.solve({"hardware.host.busy": 1.0})
    assert ms(full) == pytest.approx(ms(CALM.solve()) * 1.396)
    assert full.utilization == pytest.approx(CALM.solve().utilization / 1.396)


def test_nothing_changes_where_no_launch_is_waited_for_or_a_pipeline_says_nothing_of_its_host():
    assert CALM.replace(batch_size=256).solve().step_time == BUSY.replace(batch_size=256).solve().step_time
    assert (
        CALM.solve({"hardware.rate": "40 ms"}).step_time == BUSY.solve({"hardware.rate": "40 ms"}).step_time
    )


def test_a_sweep_is_solved_like_each_of_its_points_and_simulated_alike():
    counts = np.array([2, 5, 8, 16])
    swept = BUSY.solve(workers=counts).step_time.m_as("ms")
    assert swept == pytest.approx([ms(BUSY.solve(workers=int(n))) for n in counts])
    run = BUSY.simulate(batches=400, warm_up=80, replicas=1)
    assert run.throughput.m_as("img/s") == pytest.approx(BUSY.solve().throughput.m_as("img/s"), rel=0.01)


def test_one_worker_fewer_can_be_faster_and_is_advised_where_it_was_tried():
    crowded = CALM.replace({"hardware.host.busy": 0.5}, workers=24)
    assert ms(crowded.solve(workers=5)) < ms(crowded.solve(workers=23)) <= ms(crowded.solve())
    said = (
        "The CPU is 92 % in use, which slows launching: on a calm host a step would take 24.99 ms. With 5 "
        "workers instead of 24 a step would take 25.79 ms instead of 28.95 ms: launching slows as the CPU "
        "fills."
    )
    assert crowded.explain().endswith(said)
    assert "instead of" not in crowded.replace(workers=5).explain()
    assert crowded.workers_needed().workers == 5
    # All workers are busy where the CPU takes over, so the crossover is exact.
    first = crowded.crossover().starves_from
    assert crowded.solve(batch_size=first).bottleneck == "CPU"
    assert crowded.solve(batch_size=first - 1).bottleneck == "accelerator"


def test_a_full_cpu_is_said_to_slow_launching_at_least_so_much():
    said = BUSY.replace({"hardware.host.busy": 1.0}).explain()
    assert (
        "in use, which slows launching, and more than that where others wait for a thread: on a calm" in said
    )
    assert "others wait" not in BUSY.explain()
