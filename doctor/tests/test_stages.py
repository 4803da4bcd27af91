"""Which stage is the largest, from times that are known."""

import pytest

from starvelab_doctor.finding.stages import StageSamples
from starvelab_doctor.watching.recorder import Recorder


def samples(count=40, **seconds):
    found = StageSamples()
    for _ in range(count):
        found.add(**seconds)
    return found


def test_what_workers_do_is_shared_by_them_and_what_the_loop_does_is_not():
    costs = samples(items=0.04, collate=0.004, packing=0.002, unpacking=0.001).costs(4)
    assert {stage: cost.m_as("ms") for stage, cost in costs.costs.items()} == pytest.approx(
        {"dataset": 10, "collate": 1, "hand-over": 1.5}
    )
    assert costs.shares["dataset"] == pytest.approx(10 / 12.5)
    assert costs.intervals["dataset"] == pytest.approx((10 / 12.5,) * 2)
    assert (costs.largest, costs.runner_up, costs.certain) == ("dataset", "hand-over", True)


def test_without_workers_nothing_is_handed_over():
    costs = samples(items=0.001, collate=0.003).costs(0)
    assert list(costs.shares) == ["dataset", "collate"]
    assert costs.summary == (
        "The largest stage is collating (collate_fn): 75.0 % of what a batch costs (95 % interval 75.0 % to "
        "75.0 %), or 3 ms; next comes the dataset (__getitem__) with 25.0 %."
    )


def test_two_stages_that_are_alike_are_not_told_apart():
    found = StageSamples()
    for number in range(60):
        found.add(0.010 + 0.004 * (number % 7 == 0), 0.010 + 0.005 * (number % 9 == 0))
    costs = found.costs(0, stream=True)
    assert not costs.certain
    assert "the dataset (__iter__)" in costs.summary
    assert "Which of these two is larger is not certain." in costs.summary


def test_few_batches_and_none_are_said():
    assert "only 5 batches were timed, and it takes 8." in samples(5, items=1.0, collate=0.1).costs(1).summary
    costs = StageSamples().costs(2)
    assert (costs.largest, costs.runner_up, costs.timed) == ("", "", 0)


def test_old_batches_are_forgotten():
    assert samples(100_010, items=1.0, collate=1.0).costs(1).timed == 100_000


@pytest.mark.parametrize(("seconds", "cpu", "lever"), [
    ({"items": 0.1, "collate": 0.01}, 0.1, "more requests at once"),
    ({"items": 0.1, "collate": 0.01}, 0.9, "prepare offline"),
    ({"items": 0.1, "collate": 0.01}, None, "prepare offline"),
    ({"items": 0.01, "collate": 0.1}, 0.1, "compiled or vectorized stages"),
    ({"items": 0.01, "collate": 0.01, "unpacking": 0.1}, 0.9, "uint8 instead of float32"),
])  # fmt: skip
def test_each_stage_has_its_lever(seconds, cpu, lever):
    costs = samples(**seconds).costs(2)
    assert costs.remedy(cpu).startswith(f"try {lever}: ")
    recorder = Recorder(batch_size=4, workers=2, probe=type("Probe", (), {"costs": lambda self: costs})())
    recorder.replay(None, [0.05] * 40, [0.01] * 40)
    if cpu is not None:
        recorder.use.add(cpu, 1.0)
    found = recorder.finding()
    assert f"{costs.summary} For that stage, try {lever}: " in found.summary
