"""Preparing on the CPU: set beside the accelerator, and by a count of workers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import PUBLISHED, Q_, TUTORIAL, InputError, Pipeline, Samples, TransformationModel
from tests.rejected import message
from tests.strategies import batch_sizes, quantities, sample_sizes, supply_rates

STEP = Q_("10 ms")


def wall(solver=None, /, **arguments):
    known = {"batch_size": 64, "sample_size_bytes": Q_("500 KB"), "accelerator_step_time": STEP}
    return (solver or TransformationModel()).solve(**{**known, **arguments})


def test_a_slow_cpu_starves_the_accelerator_and_a_fast_one_does_not():
    found = wall(cpu_throughput="2 GB/s")
    assert (found.transform_time.m_as("ms"), found.accelerator_step_time.m_as("ms")) == (16, 10)
    assert found.is_bottleneck is True
    assert found.accelerator_utilization == pytest.approx(10 / 16)
    assert found.slowdown_factor == pytest.approx(1.6)
    found = wall(cpu_throughput="50 GB/s")
    assert (found.is_bottleneck, found.accelerator_utilization, found.slowdown_factor) == (False, 1.0, 1.0)


@given(batch_sizes, sample_sizes, supply_rates, quantities(0.01, 1000, "ms"))
def test_a_tie_is_no_bottleneck_and_utilization_and_slowdown_are_each_others_inverse(batch, size, rate, step):
    given = {"batch_size": batch, "sample_size_bytes": size, "cpu_throughput": rate}
    cost = seconds(batch, cpu_time=None, size=size, workers=rate)
    tied = wall(**given, accelerator_step_time=Q_(cost, "s"))
    assert (tied.is_bottleneck, tied.accelerator_utilization) == (False, pytest.approx(1))
    found = wall(**given, accelerator_step_time=step)
    assert 0 < found.accelerator_utilization <= 1
    assert found.accelerator_utilization * found.slowdown_factor == pytest.approx(1)


def test_workers_supply_their_number_times_the_rate_of_one():
    for rate, size, ms in (("250 MB/s", "500 KB", 16), ("100 MB/s", "500 KB", 40), ("100 img/s", "1 KB", 80)):
        found = seconds(64, workers=8, rate=rate, size=size, cpu_time=None)
        assert 1000 * found == pytest.approx(ms)
    assert 1000 * seconds(64, workers=8, size="500 KB", cpu_time=None) == pytest.approx(16)


def test_arrays_broadcast_and_keep_their_shape():
    found = wall(batch_size=np.array([[32], [64]]), cpu_throughput=Q_([250, 500, 1000], "MB/s"))
    assert found.transform_time.shape == found.is_bottleneck.shape == found.slowdown_factor.shape == (2, 3)
    assert found.transform_time.m_as("ms").tolist() == [[64, 32, 16], [128, 64, 32]]


NAMES = {
    "cpu_time": "dataset.cpu_time", "size": "dataset.size", "rate": "workers.rate", "cores": "workers.cores",
    "handover": "workers.handover.worker", "wait": "storage.requests.latency",
}  # fmt: skip


def seconds(batch=100, assumed=TUTORIAL, exact=False, **fields):
    known = Pipeline(hardware="1 img/s", workers=4, dataset=Samples(cpu_time="10 ms"), assumptions=assumed)
    pipe = known.replace({NAMES.get(name, name): value for name, value in fields.items()})
    return pipe.costs(exact=exact)["transform"].at(batch)


@given(st.integers(1, 100), st.integers(1, 32), st.integers(1, 30), st.integers(0, 50), st.integers(0, 50))
def test_a_batch_takes_what_its_cores_or_its_workers_take(workers, cores, cpu, wait, joining):
    """The rule in words, in milliseconds: more workers than cores can wait, but not work."""
    found = seconds(
        workers=workers, cores=cores, cpu_time=f"{cpu} ms", wait=f"{wait} ms", handover=f"{joining} ms",
        exact=True,
    )  # fmt: skip
    work = 100 * cpu + joining
    assert found * 1000 == max(Fraction(work, min(workers, cores)), Fraction(work + 100 * wait, workers))


@given(st.integers(1, 60), st.integers(1, 32))
def test_contention_stretches_work_and_not_waits(workers, cores):
    waits = seconds(assumed=PUBLISHED, workers=workers, cores=cores, wait="1000 s", cpu_time="1 ms")
    assert waits == pytest.approx(100 * 1000 / workers, rel=1e-4)
    work = seconds(assumed=PUBLISHED, workers=workers, cores=cores)
    assert work == pytest.approx(1 / PUBLISHED.scaling.speedup(workers, cores))


def test_every_figure_of_a_worker_may_be_an_array():
    found = seconds(
        10, cpu_time=Q_([5, 10], "ms"), workers=np.array([[1], [8]]), cores=np.array([4, 16]),
        wait=Q_([0, 1], "ms"), handover=Q_([0, 10], "ms"),
    )  # fmt: skip
    assert found.shape == (2, 2)
    assert found[1, 0] == pytest.approx(0.05 / 4)
    assert found[1, 1] == pytest.approx(0.12 / 8)


def test_a_worker_has_one_speed():
    assert message(InputError, seconds, rate="100 img/s") == (
        "One worker's speed is Workers.rate or Samples.cpu_time, got both. Pass one of them."
    )
