"""The accelerator alone: arithmetic, memory traffic, overhead, and whether the batch fits."""

import pytest
from hypothesis import given

from starvelab import PUBLISHED, Q_, TUTORIAL, Hardware, MissingValueError, Models, SingleNodeModel
from starvelab.model.catalogue import Entry
from tests.rejected import message
from tests.strategies import accelerators, assumptions, batch_sizes, models

A100, RESNET50 = Hardware.Cloud.A100, Models.ResNet50


def step(solver=None, /, **arguments):
    known = {"model": RESNET50, "hardware": A100, "batch_size": 256}
    return (solver or SingleNodeModel()).solve(**{**known, **arguments})


@given(models, accelerators, batch_sizes, assumptions)
def test_a_step_is_the_larger_of_arithmetic_and_memory_traffic_plus_overhead(model, hardware, batch, assumed):
    found = step(SingleNodeModel(assumed), model=model, hardware=hardware, batch_size=batch)
    assert (found.throughput * found.latency).m_as("img") == pytest.approx(batch)
    assert 0 < found.mfu <= 1
    if assumed.measured_rates:
        return
    parts = {name: getattr(found, f"{name}_time").m_as("ms") for name in ("compute", "memory", "overhead")}
    compute, memory, overhead = parts.values()
    assert found.latency.m_as("ms") == pytest.approx(max(compute, memory) + overhead)
    assert found.bottleneck == ("Compute" if compute >= memory else "Memory")
    assert parts[found.cause] == max(parts.values())


@given(models, accelerators, batch_sizes)
def test_training_takes_longer_than_the_forward_pass_and_at_most_three_times_as_long(model, hardware, batch):
    forward, training = (
        step(model=model, hardware=hardware, batch_size=batch, phase=phase).latency.m_as("ms")
        for phase in ("forward", "training")
    )
    assert forward < training <= 3 * forward


def test_90_percent_of_a_step_of_22_images_is_overhead_and_5_percent_of_the_peak_is_used():
    found = step(batch_size=22)
    assert found.cause == "overhead"
    assert (found.overhead_time / found.latency).m_as("") == pytest.approx(0.90, abs=5e-3)
    assert found.mfu == pytest.approx(0.05, abs=5e-3)


def test_a_macs_worth_of_two_flop_doubles_the_arithmetic_and_nothing_else():
    twice = step(SingleNodeModel(TUTORIAL.replace(flop_per_mac=2)))
    assert twice.compute_time.m_as("ms") == pytest.approx(2 * step().compute_time.m_as("ms"))
    assert twice.overhead_time == step().overhead_time
    assert twice.work.m_as("GFLOP") == pytest.approx(8.2)


def test_full_precision_has_a_lower_peak_and_moves_more_bytes():
    half, full = step(precision="fp16"), step(precision="fp32")
    assert full.peak == Q_("19.5 TFLOP/s")
    assert full.compute_time.m_as("ms") == pytest.approx(half.compute_time.m_as("ms") * 16)
    assert full.memory_time.m_as("ms") == pytest.approx(half.memory_time.m_as("ms") * 2)


def test_what_is_not_given_is_that_of_the_assumptions_or_the_counted_figure():
    assert step(phase="forward").latency == step().latency
    trained = SingleNodeModel(TUTORIAL.replace(phase="training"))
    assert step(trained).latency == step(phase="training").latency
    assert step(model=Models.ResNet18).work == Q_("1.814 GFLOP")


UNKNOWN = Entry("Models", "Mine", "mine", {k: f for k, f in RESNET50.facts.items() if k != "activation_size"})


def test_a_measured_rate_comes_before_peak_times_efficiency():
    found = step(SingleNodeModel(PUBLISHED))
    assert found.latency.m_as("ms") == pytest.approx(256 / 2470 * 1e3)
    assert found.basis.startswith("measured: PyTorch, NVIDIA/DeepLearningExamples@729963dd")
    # The published efficiency reproduces the rate that it comes from.
    computed = step(SingleNodeModel(PUBLISHED.replace(measured_rates=False)))
    assert computed.throughput.m_as("img/s") == pytest.approx(2470, rel=5e-3)
    assert step(SingleNodeModel(PUBLISHED), phase="forward").basis.startswith("extrapolated from ")
    assert step(SingleNodeModel(PUBLISHED), model=UNKNOWN).basis == step().basis == "peak x efficiency"


def test_training_holds_the_parameters_with_their_state_and_every_activation():
    found = step(batch_size=100, phase="training")
    assert found.memory_needed.m_as("GB") == pytest.approx(25557032 * 16e-9 + 100 * 43.8e-3)
    assert (found.feasible, found.infeasible_reason) == (True, "")
    assert step(batch_size=100, phase="forward").memory_needed < 0.2 * found.memory_needed


def test_a_batch_that_does_not_fit_is_flagged_with_the_largest_that_does():
    sizes = [step(batch_size=n, phase="training", hardware=Hardware.Cloud.T4) for n in (355, 356, 4096)]
    assert [found.feasible for found in sizes] == [True, False, False]
    assert sizes[-1].infeasible_reason == (
        "The step needs about 179.8 GB of memory, and NVIDIA T4 has 16 GB. Use a batch of at most 355."
    )
    small = Hardware.Cloud.T4.replace(memory_capacity="0.3 GB")
    assert step(batch_size=1, phase="training", hardware=small).infeasible_reason == (
        "The step needs about 0.4527 GB of memory, and NVIDIA T4 has 0.3 GB. "
        "No batch fits: use a GPU with more memory."
    )
    unknown = step(model=UNKNOWN, batch_size=10**6)
    assert (unknown.memory_needed, unknown.feasible, unknown.infeasible_reason) == (None, True, "")


def test_a_precision_that_an_accelerator_does_not_list_is_refused_with_those_it_does():
    assert message(MissingValueError, step, hardware=Hardware.Cloud.T4, precision="bf16") == (
        "SingleNodeModel needs peak_bf16_dense, and NVIDIA T4 lists none. "
        "It lists fp16, fp32: pass one of them as precision."
    )
