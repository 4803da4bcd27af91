"""Preparing on the CPU: set beside the accelerator, and by a count of workers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import PUBLISHED, Q_, InputError, TransformationModel
from tests.strategies import batch_sizes, quantities, sample_sizes, supply_rates

STEP = Q_("10 ms")


def wall(solver=None, /, **arguments):
    known = {"batch_size": 64, "sample_size_bytes": Q_("500 KB"), "accelerator_step_time": STEP}
    return (solver or TransformationModel()).solve(**{**known, **arguments})


def message(**arguments):
    with pytest.raises(InputError) as caught:
        wall(**arguments)
    return str(caught.value)


def test_a_slow_cpu_is_the_bottleneck_and_starves_the_accelerator():
    found = wall(cpu_throughput="2 GB/s")
    assert found.transform_time.m_as("ms") == 16
    assert found.accelerator_step_time.m_as("ms") == 10
    assert found.is_bottleneck is True
    assert found.accelerator_utilization == pytest.approx(10 / 16)
    assert found.slowdown_factor == pytest.approx(1.6)


def test_a_fast_cpu_is_none_and_the_accelerator_is_always_busy():
    found = wall(cpu_throughput="50 GB/s")
    assert (found.is_bottleneck, found.accelerator_utilization, found.slowdown_factor) == (False, 1.0, 1.0)


@given(batch_sizes, sample_sizes, supply_rates)
def test_a_tie_is_no_bottleneck(batch, size, rate):
    cost = TransformationModel().cost(sample_size=size, cpu_throughput=rate).at(batch)
    found = wall(
        batch_size=batch, sample_size_bytes=size, cpu_throughput=rate, accelerator_step_time=Q_(cost, "s")
    )
    assert not found.is_bottleneck
    assert found.accelerator_utilization == pytest.approx(1)


@given(batch_sizes, sample_sizes, supply_rates, quantities(0.01, 1000, "ms"))
def test_utilization_and_slowdown_are_each_others_inverse(batch, size, rate, step):
    found = wall(batch_size=batch, sample_size_bytes=size, cpu_throughput=rate, accelerator_step_time=step)
    assert 0 < found.accelerator_utilization <= 1
    assert found.accelerator_utilization * found.slowdown_factor == pytest.approx(1)


def test_workers_supply_their_number_times_the_rate_of_one():
    assert wall(workers=8).transform_time == wall(cpu_throughput="2 GB/s").transform_time
    assert wall(workers=8, worker_rate="100 MB/s").transform_time.m_as("ms") == pytest.approx(40)


def test_a_rate_in_samples_does_not_look_at_bytes():
    found = wall(workers=8, worker_rate="100 img/s", sample_size_bytes=None)
    assert found.transform_time.m_as("ms") == pytest.approx(80)


def test_published_workers_get_in_each_others_way():
    eight = wall(TransformationModel(PUBLISHED), workers=8).transform_time.m_as("ms")
    assert eight == pytest.approx(64 / 1090 * 1e3, rel=1e-3)


def test_arrays_broadcast_and_keep_their_shape():
    found = wall(batch_size=np.array([[32], [64]]), workers=[1, 2, 4])
    assert found.transform_time.shape == found.is_bottleneck.shape == found.slowdown_factor.shape == (2, 3)
    assert found.transform_time.m_as("ms").tolist() == [[64, 32, 16], [128, 64, 32]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "The CPU's supply is cpu_throughput or a number of workers, got neither. Pass one of them."),
        (
            {"cpu_throughput": "2 GB/s", "workers": 8},
            "The CPU's supply is cpu_throughput or a number of workers, got both. Pass one of them.",
        ),
        (
            {"cpu_throughput": "2 GB/s", "worker_rate": "250 MB/s"},
            "worker_rate goes with workers, got it with cpu_throughput. Pass workers=... instead.",
        ),
        (
            {"cpu_throughput": "2 GB/s", "sample_size_bytes": None},
            "A cpu_throughput in bytes needs the size of a sample, got none. Pass it, or a rate in img/s.",
        ),
        (
            {"workers": 8, "sample_size_bytes": None},
            "A worker_rate in bytes needs the size of a sample, got none. Pass it, or a rate in img/s.",
        ),
        (
            {"cpu_throughput": 2},
            "cpu_throughput must be a rate in samples or in bytes, got 2. "
            'Write for example Q_("100 img/s") or Q_("250 MB/s").',
        ),
        (
            {"cpu_throughput": "0 GB/s"},
            "cpu_throughput must be finite and positive, got 0 GB/s. Check the figure and its sign.",
        ),
        (
            {"cpu_throughput": "2 GB/s", "sample_size_bytes": 500_000},
            'sample_size_bytes needs a unit, got the bare int 500000. Write for example Q_(500000, "KB").',
        ),
        (
            {"cpu_throughput": "2 GB/s", "accelerator_step_time": 10},
            'accelerator_step_time needs a unit, got the bare int 10. Write for example Q_(10, "ms").',
        ),
        (
            {"cpu_throughput": "2 GB/s", "batch_size": -64},
            "batch_size must be finite and positive, got -64. Check the figure and its sign.",
        ),
        ({"workers": 2.5}, "workers must be a whole number, got 2.5. Round it to the one you mean."),
    ],
)
def test_bad_input_is_refused(arguments, expected):
    assert message(**arguments) == expected


@given(st.integers(1, 200))
def test_solving_and_the_cost_of_a_batch_say_the_same(workers):
    cost = TransformationModel().cost(sample_size="500 KB", workers=workers)
    assert wall(workers=workers).transform_time.m_as("s") == pytest.approx(cost.at(64))
