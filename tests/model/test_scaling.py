"""Workers scale within the cores of their host, by a law that belongs to their kind of loader."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import PUBLISHED, Accelerator, Hardware, Models, Pipeline
from starvelab.model.assumptions import KINDS, loader_kinds

HOST = Pipeline(
    model=Models.ResNet50, hardware=Accelerator(Hardware.Cloud.A100, rate="1e9 img/s"), assumptions=PUBLISHED
)


def rate(changes=None, **fields):
    return HOST.solve(changes, **fields).throughput.m_as("img/s")


@pytest.mark.parametrize(("workers", "measured"), [(1, 145.6), (8, 1090), (28, 2487)])
def test_the_law_goes_through_what_was_measured_on_16_cores(workers, measured):
    assert rate({"workers.cores": 16}, workers=workers) == pytest.approx(measured, rel=3e-3)


def test_the_cores_of_the_host_are_known_from_the_catalogue_and_can_be_given():
    assert rate(workers=64) == rate({"workers.cores": 16}, workers=64)
    assert rate({"hardware.count": 2}, workers=64) == pytest.approx(rate({"workers.cores": 32}, workers=64))
    assert rate({"workers.cores": 64}, workers=64) > rate(workers=64)


def test_threads_of_one_process_share_a_lock_whatever_the_host():
    assert rate({"workers.kind": "threads", "workers.cores": 64}, workers=2) / rate(
        workers=1
    ) == pytest.approx(1.62, rel=0.01)
    assert rate({"workers.kind": "threads", "workers.cores": 64}, workers=64) < 5 * rate(workers=1)


@pytest.mark.parametrize("loader", KINDS)
def test_a_loader_does_not_take_away_a_law_that_the_user_assumes(loader):
    mine = PUBLISHED.replace(contention=0.1, coherency=0.001, crowding=0.5, second_thread=0.2)
    times = [
        HOST.solve({"workers.cores": 6, "workers.kind": loader}, workers=n, assumptions=mine).throughput
        for n in (8, 1)
    ]
    assert (times[0] / times[1]).m_as("") == pytest.approx(mine.speedup(8, 6))


@given(st.sampled_from(KINDS), st.integers(1, 200), st.integers(1, 128), st.integers(1, 50))
def test_more_workers_and_more_cores_never_prepare_less(loader, workers, cores, more):
    scaling = loader_kinds()[loader].scaling
    now = scaling.speedup(workers, cores)
    assert scaling.speedup(workers + more, cores) >= now * (1 - 1e-12)
    assert scaling.speedup(workers, cores + more) >= now * (1 - 1e-12)
    assert now <= workers * (1 + 1e-12)


def test_every_kind_of_loader_says_where_its_law_comes_from():
    assert tuple(loader_kinds()) == KINDS
    for kind in loader_kinds().values():
        assert kind.facts.keys() >= {"contention", "coherency", "crowding", "second_thread"}
