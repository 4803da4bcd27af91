"""The training loop's own thread: what receiving a batch takes, and what only moving work out of it helps."""

import pytest

from starvelab import Accelerator, Handover, Pipeline, Samples, Workers
from starvelab.model.assumptions import loader_kinds

# 32 samples of 150 KB: 6.25 ms of eight workers, and 20 ms of the accelerator.
FED = Pipeline(
    hardware="20 ms", batch_size=32, dataset=Samples(cpu_time="1.5625 ms", transfer="150 KB"), workers=8
)
PACKER = FED.replace({"workers.handover.loop": "30 ms"})
TENSORS = FED.replace({"workers.handover.objects": 113})


def step_ms(pipeline, changes=None):
    return pipeline.solve(changes).step_time.m_as("ms")


def test_a_packer_of_30_ms_sets_the_step_and_more_of_anything_else_changes_nothing():
    step = PACKER.solve()
    assert (step.bottleneck, step.next_bottleneck) == ("loop", "accelerator")
    assert step.step_time.m_as("ms") == pytest.approx(30)
    assert step.utilization == pytest.approx(20 / 30)
    for changes in (
        {"workers": 64},
        {"hardware": "5 ms"},
        {"hardware.in_flight": 8},
        {"workers.prefetch": 9},
    ):
        assert step_ms(PACKER, changes) == pytest.approx(30)
    moved = {"workers.handover.loop": "0 ms", "workers.handover.worker": "30 ms"}
    # (50 + 30) / 8 = 10 ms of the workers, behind 20 ms of the accelerator.
    assert step_ms(PACKER, moved) == pytest.approx(20)


def test_113_small_tensors_take_the_loop_what_was_measured_of_each_object_and_each_byte():
    kind = loader_kinds()["processes"]
    # 113 objects and 32 x 150 KB.
    expected = 113 * kind.object_time + 4.8e6 * kind.byte_time
    assert TENSORS.solve().stage_times["receive"].m_as("s") == pytest.approx(expected)
    assert expected == pytest.approx(113 * 1.8e-4 + 4.8e6 * 4.3e-10)
    assert step_ms(TENSORS, {"workers.handover.objects": 1}) == pytest.approx(20)
    # Threads share the memory of the loop, and "torch" are processes.
    assert TENSORS.solve({"workers.kind": "threads"}).stage_times["receive"].m_as("ms") == 0
    assert step_ms(TENSORS, {"workers.kind": "torch"}) == step_ms(TENSORS, {"workers.kind": "processes"})


def test_each_accelerator_has_a_loop_of_its_own():
    assert step_ms(PACKER, {"hardware.count": 4, "workers": 32}) == pytest.approx(30)


@pytest.mark.parametrize(("changes", "expected"), [
    ({"hardware.in_flight": 1}, 50),  # the loop waits for each step: 30 + 20
    ({"hardware.in_flight": 1, "hardware.host.time": "5 ms"}, 55),
    ({"hardware.in_flight": 2, "link": "0.16 GB/s"}, 40),  # 30 + 30 + 20 of two steps
    ({"workers": 0, "hardware": "70 ms"}, 80),  # one thread prepares, 50 ms, and packs
    ({"workers": 0, "hardware.in_flight": 1}, 100),
    ({"workers": 2, "workers.prefetch": 1}, 40),  # 50 / 2, and each worker waits until its batch is packed
    ({"overlap": False}, 20 + 30 + 6.25),
])  # fmt: skip
def test_what_does_not_overlap_adds_up(changes, expected):
    changes = {"overlap": True, **changes}
    pipeline = PACKER.replace(
        {k: v for k, v in changes.items() if k != "overlap"}, overlap=changes["overlap"]
    )
    run = pipeline.simulate(batches=400, warm_up=80, replicas=1)
    assert step_ms(pipeline) == pytest.approx(expected)
    assert 32e3 / run.throughput.m_as("img/s") == pytest.approx(expected, rel=0.01)


def test_a_crossover_is_where_the_accelerator_begins_to_wait_for_round_trips():
    # A batch of b takes 10 + 0.1 b ms of the accelerator, 8 ms of the loop, and 0.15 b ms of the link.
    tight = Pipeline(
        hardware=Accelerator(rate="10000 img/s", step_overhead="10 ms"),
        dataset=Samples(cpu_time="0.1 ms", transfer="150 KB"),
        workers=Workers(8, handover=Handover(loop="8 ms")),
        link="1 GB/s",
    )
    found = tight.crossover()
    # Two steps in flight: (8 + 0.15 b + 10 + 0.1 b) / 2 ms.
    assert (found.batch, found.resource) == (40, "loop")
    stalls = [tight.solve(batch_size=batch).stall for batch in (40, 41)]
    assert stalls == pytest.approx([0, 0.0018], abs=1e-4)
    said = tight.replace(batch_size=10).explain()
    assert "From batch 41 on parts of a step would wait for each other." in said
    assert tight.crossover() != tight.replace({"hardware.in_flight": 3}).crossover()
    assert tight.replace({"hardware.in_flight": 1}).crossover().starves_from == 1


def test_workers_that_keep_up_do_not_make_the_loop_faster():
    needed = PACKER.workers_needed()
    assert (needed.workers, needed.feasible) == (3, False)
    assert needed.obstacles == ("The training loop takes 30 ms for a batch, and the GPU 20 ms.",)
    assert FED.workers_needed().feasible


def test_work_that_moves_into_the_workers_costs_them():
    few = PACKER.replace(workers=3)  # (50 + 30) / 3 ms
    assert "move the training loop's own work into the workers (1.12 times)" in few.explain()
