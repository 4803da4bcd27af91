"""Which stage is the largest, from times that are known."""

import pytest

from starvelab_doctor.finding.stages import StageSamples


def samples(count=40, **seconds):
    stages = StageSamples()
    for _ in range(count):
        stages.add(**seconds)
    return stages


def test_what_workers_do_is_shared_by_them_and_what_the_loop_does_is_not():
    costs = samples(items=0.04, collate=0.004, packing=0.002, unpacking=0.001).costs(4)
    times = {stage: cost.m_as("ms") for stage, cost in costs.costs.items()}
    assert times == pytest.approx({"dataset": 10, "collate": 1, "hand-over": 1.5})
    assert costs.shares["dataset"] == pytest.approx(10 / 12.5)
    assert (costs.largest, costs.certain) == ("dataset", True)


def test_without_workers_nothing_is_handed_over():
    costs = samples(items=0.001, collate=0.003).costs(0)
    assert list(costs.shares) == ["dataset", "collate"]
    assert costs.summary == ("Stages of a batch: collating (collate_fn) 75.0 % (3 ms), the dataset 25.0 %.")


def test_two_stages_that_are_alike_are_not_told_apart():
    stages = StageSamples()
    for number in range(60):
        stages.add(0.010 + 0.004 * (number % 7 == 0), 0.010 + 0.005 * (number % 9 == 0))
    costs = stages.costs(0)
    assert not costs.certain
    assert "Which of the first two is larger is not certain." in costs.summary


def test_few_batches_and_none_are_said():
    few, none = samples(5, items=1.0, collate=0.1).costs(1), StageSamples().costs(2)
    assert "only 5 batches were timed, and 8 are needed." in few.summary
    assert (none.largest, none.timed) == ("", 0)


def test_old_batches_are_forgotten():
    assert samples(100_010, items=1.0, collate=1.0).costs(1).timed == 100_000
