"""Measurements and diagnoses by a simulated clock, each value derived by hand."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import Drive, Pipeline, Requests
from starvelab.measure import PARTS, SimulatedClock, Transform, session, simulated
from starvelab.measure.devices import VirtualAccelerator, VirtualLink
from starvelab.measure.diagnosis import climb_ladder
from starvelab.measure.session import run
from starvelab.runtime import GRADING, Runtime, use
from tests.measure.scenes import STORED, described, pipeline

STEP = VirtualAccelerator(0.064)
PIPE = described(device=STEP, workers=2)  # batches of 32
# 8 ms of CPU work a sample are 256 ms a batch.
WORK = SimulatedClock({"decode": "5 ms", "transform": "3 ms"})


def values_of(pipe, clock):
    """Time between batches [ms], utilization, share of waiting in next()."""
    record = run(pipe, clock=clock)
    return record.period.m_as("ms"), record.utilization, record.host_wait


def period(pipe, clock):
    return values_of(pipe, clock)[0]


def test_any_number_of_workers_divides_the_time_exactly():
    fast = VirtualAccelerator(0.001)
    for workers in (1, 7, 64):
        pipe = PIPE.replace(workers=workers, device=fast)
        assert period(pipe, WORK) == pytest.approx(256 / workers)
        found = climb_ladder(pipe, clock=WORK)
        assert found.periods["nothing"].m_as("ms") == pytest.approx(256 / workers)
        assert found.periods["decoded sample"].m_as("ms") == pytest.approx(96 / workers)


def behind(requests):
    """A pipeline that waits for each of its requests, whose bytes take next to nothing."""
    return Pipeline(hardware="64 ms", storage=Drive("100 TB/s", requests=requests))


COPY = 32 * 602112 / 0.2e6
EIGHT = PIPE.replace(workers=8)
ALONE = PIPE.replace(workers=0, device=VirtualAccelerator(0.064, in_flight=1))


@pytest.mark.parametrize(("pipe", "clock", "values"), [
    # 256 / 2 = 128 ms. Two batches come together every 256: the loop asks for the third when the first
    # step is done, after 64, and waits 192 of 256.
    (PIPE, WORK, (128, 0.5, 0.75)),
    # 256 / 8 = 32 ms are less than a step of 64. The loop finds a batch whenever it asks.
    (EIGHT, WORK, (64, 1, 0)),
    # A loop that waits for each step.
    (ALONE, WORK, (320, 0.2, 0.8)),
    # A latency keeps a worker and no core, 32 x (8 + 2) / 2; the bytes take next to nothing.
    (PIPE.replace(description=behind(Requests("2 ms"))), WORK, (160,)),
    # Four requests at a time wait side by side: 32 x (8 + 2 / 4) / 2.
    (PIPE.replace(description=behind(Requests("2 ms", open=4))), WORK, (136,)),
    # A copy beside the step, 32 x 602,112 bytes over 0.2 GB/s, counts if it is the longer one.
    (EIGHT.replace(link=VirtualLink(2e08)), SimulatedClock(), (COPY, 64 / COPY, 0)),
    # Handing over takes the worker; two workers on one core are one.
    (PIPE, SimulatedClock(WORK.costs, handover="32 ms"), ((256 + 32) / 2,)),
    (PIPE, SimulatedClock(WORK.costs, cores=1), (256,)),
])  # fmt: skip
def test_each_value_is_that_derived_by_hand(pipe, clock, values):
    assert values_of(pipe, clock)[: len(values)] == pytest.approx(values, rel=1e-4, abs=1e-9)


def test_the_same_seed_gives_the_same_measurement():
    clock = SimulatedClock(WORK.costs, jitter=0.2, seed=3)
    assert repr(run(PIPE, clock=clock)) == repr(run(PIPE, clock=clock))
    other = SimulatedClock(WORK.costs, jitter=0.2, seed=4)
    assert period(PIPE, clock) != period(PIPE, other)


PLANTED = {
    "read": (PIPE, SimulatedClock({"read": "20 ms", "decode": "2 ms", "transform": "1 ms"})),
    "decode": (PIPE, SimulatedClock({"read": "1 ms", "decode": "20 ms", "transform": "2 ms"})),
    "transform": (PIPE, SimulatedClock({"read": "1 ms", "decode": "2 ms", "transform": "20 ms"})),
    "collate": (PIPE, SimulatedClock({"read": "1 ms", "decode": "2 ms", "collate": "9 ms"})),
    "copy": (PIPE.replace(link=VirtualLink(5e07)), WORK),
    "compute": (PIPE.replace(device=VirtualAccelerator(0.2)), WORK),
}


def test_a_longer_run_has_more_batches():
    # Batches of 128 ms: 100 s hold 781 of them; of a short run there are 40, of a very long one 2000.
    assert len(run(PIPE, clock=WORK, seconds="100 s").trace) == 781
    assert len(run(PIPE, clock=WORK, seconds="1 s").trace) == 40
    assert len(run(PIPE, clock=WORK, seconds="1 h").trace) == 2000


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("workers", [0, 2])
def test_each_part_is_found_where_it_was_planted_also_through_jitter(part, workers):
    pipe, clock = PLANTED[part]
    if part == "compute" and workers < 2:
        pipe = pipe.replace(device=VirtualAccelerator(0.9))
    found = climb_ladder(pipe.replace(workers=workers), clock=clock)
    assert (found.bottleneck, found.source, found.confident) == (part, "simulated", True)
    if workers and part in PARTS[:4]:
        noisy = SimulatedClock(clock.costs, jitter=0.3, handover="1 ms", cores=2, seed=5)
        assert climb_ladder(pipe, clock=noisy).bottleneck == part


costs = st.lists(st.integers(0, 60), min_size=5, max_size=5, unique=True)


@given(costs, st.integers(1, 400))
def test_where_one_thing_is_done_after_the_other_the_dearest_is_named(times, step):
    # In the loop itself, waiting for each step: every cost shows in full.
    *prepared, copy = times
    pipe = PIPE.replace(
        batch_size=1,
        workers=0,
        device=VirtualAccelerator(step / 1e3, in_flight=1),
        link=VirtualLink(602112e3 / copy) if copy else None,
    )
    clock = SimulatedClock({part: f"{ms} ms" for part, ms in zip(PARTS[:4], prepared, strict=True)})
    found = climb_ladder(pipe, clock=clock)
    assert [found.evidence[part].m_as("ms") for part in PARTS] == pytest.approx([*times, step], abs=1e-6)
    starved = sum(times) / (sum(times) + step) >= 0.05
    assert found.bottleneck == (PARTS[times.index(max(times))] if starved else "compute")


@given(st.permutations([1, 2, 4, 8]), st.integers(1, 12))
def test_with_any_number_of_workers_the_dearest_part_is_named(times, workers):
    pipe = PIPE.replace(workers=workers, device=VirtualAccelerator(0.0001))
    clock = SimulatedClock({part: f"{ms} ms" for part, ms in zip(PARTS[:4], times, strict=True)})
    found = climb_ladder(pipe, clock=clock)
    assert (found.bottleneck, found.runner_up) == (PARTS[times.index(8)], PARTS[times.index(4)])


def test_a_clock_learns_the_parts_from_one_batch(tmp_path):
    def slow(raw):
        time.sleep(0.01)
        return np.zeros((3, 4, 4), np.uint8)

    pipe = pipeline(
        tmp_path, transforms=[Transform("slow", slow, part="decode"), Transform("same", lambda image: image)]
    )
    clock = SimulatedClock.of(pipe)
    assert clock.costs.keys() == {"read", "decode", "transform", "collate"}
    assert clock.costs["decode"].m_as("ms") >= 10 > clock.costs["transform"].m_as("ms")
    assert clock.sample_size.m_as("B") == STORED
    assert clock.transfer_size.m_as("B") == 3 * 4 * 4
    assert climb_ladder(pipe, clock=clock).bottleneck == "decode"
    # As a run does, it says what each transform takes.
    stages = run(pipe, clock=clock).stage_times
    assert list(stages) == ["read", "slow", "same", "collate"]
    assert stages["slow"] == clock.costs["decode"] > stages["same"]


@pytest.mark.parametrize("measure", [run, climb_ladder])
def test_a_grader_gets_every_measurement_without_starting_a_worker(tmp_path, monkeypatch, measure):
    monkeypatch.setattr(session, "open_loader", lambda pipe: pytest.fail("a loader was opened"))
    with use(GRADING):
        result = measure(pipeline(tmp_path, kind="processes", workers=4), progress=False)
    assert getattr(result, "source", "simulated") == "simulated"


def test_a_clock_that_is_passed_counts_more_than_the_graders():
    with use(GRADING):
        assert values_of(PIPE, WORK) == pytest.approx((128, 0.5, 0.75))


def test_a_browser_simulates_and_says_where_to_measure(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(session, "open_loader", lambda pipe: pytest.fail("a loader was opened"))
    monkeypatch.setattr(simulated, "has_processes", lambda: False)
    simulated.announce.cache_clear()
    with use(Runtime(clock="live")):
        result, _ = (run(pipeline(tmp_path, kind="processes", workers=4)) for _ in range(2))
    assert result.source == "simulated"
    # Once: a cell of a notebook measures six pipelines.
    assert capsys.readouterr().out == (
        "Simulated from one batch: Python in a browser starts no workers, so nothing was measured. To "
        "measure, run this notebook in JupyterLab on your own machine (make lab) or on Binder.\n"
    )
