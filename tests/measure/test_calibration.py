"""A calibrated pipeline has what one worker takes here, and how several of them get in each other's way."""

import time

import numpy as np
import pytest

from starvelab import Q_, Drive, Pipeline, Requests, Samples
from starvelab.measure import SimulatedClock, Transform, disturbance, session
from starvelab.measure.devices import VirtualAccelerator
from starvelab.measure.session import run

from .scenes import STORED, tiny_samples, zeros


@pytest.fixture
def tiny(tmp_path):
    samples = Samples(source=tiny_samples(tmp_path), transforms=[zeros()])
    return Pipeline(dataset=samples, batch_size=4, workers=2, hardware="5 ms")


@pytest.mark.parametrize(("load", "reason"), [(0.0, ""), (0.4, "other programs used 40 % of the cores")])
def test_a_worker_of_known_time_is_measured_as_such_and_what_disturbed_it_is_said(
    tiny, monkeypatch, load, reason
):
    monkeypatch.setattr(session.LoadMeter, "background_load", lambda _: load)
    monkeypatch.setattr("starvelab.measure.quality.MAX_VARIATION", 9.0)

    def sleepy(raw):
        time.sleep(0.005)
        return np.zeros((3, 4, 4), np.uint8)

    slow = tiny.replace({"dataset.transforms": [Transform("sleepy", sleepy)]}, hardware="1 s")
    known = slow.calibrated(seconds="0.3 s", progress=False)
    # A sleep is never shorter than asked; how much longer is up to the machine.
    assert known.dataset.cpu_time >= Q_(5, "ms")
    assert (known.dataset.size, known.dataset.transfer) == (Q_(STORED, "B"), Q_(48, "B"))
    assert (disturbance(known), known.assumptions.name.startswith("this machine")) == (reason, True)
    assert (known.hardware, known.dataset.source) == (slow.hardware, slow.dataset.source)


def test_devices_are_left_out_of_the_measuring(tiny):
    # A thousand seconds for each sample.
    behind = tiny.replace(workers=0, storage="1 B/s", link="1 B/s")
    known = behind.calibrated(seconds="0.05 s", progress=False)
    assert known.dataset.cpu_time < Q_(1, "s")
    assert known.assumptions.contention == 0  # the training loop is alone


@pytest.fixture
def known(tiny, monkeypatch):
    """One worker takes 4 ms a batch, four take 8 each: a speed-up of 2."""
    asked = []

    def running(setup, **options):
        asked.append(setup.workers)
        fast = setup.replace(device=VirtualAccelerator(1e-05))
        return run(fast, clock=SimulatedClock({"decode": "1 ms" if setup.workers == 1 else "2 ms"}))

    monkeypatch.setattr(session, "run", running)
    monkeypatch.setattr(session, "usable_cores", lambda physical: 4)
    known = tiny.calibrated(progress=False)
    assert asked == [1, 4]
    return known


def test_contention_is_taken_from_as_many_workers_as_there_are_cores(known):
    # 4 / (1 + 3 c) = 2.
    assert known.assumptions.contention == pytest.approx(1 / 3)
    assert known.dataset.cpu_time.m_as("ms") == pytest.approx(1)
    assert known.workers.handover.worker.m_as("ms") == pytest.approx(0, abs=1e-6)
    assert known.dataset.jitter.spread == pytest.approx(0, abs=1e-9)
    assert (known.workers.count, known.workers.cores) == (2, 4)


def test_a_rest_of_a_subtraction_is_no_handover(tiny, monkeypatch):
    def running(setup, **options):
        fast = setup.replace(device=VirtualAccelerator(1e-05))
        return run(fast, clock=SimulatedClock({"decode": "3.3 ms"}))

    monkeypatch.setattr(session, "run", running)
    assert tiny.calibrated(progress=False).workers.handover.worker == Q_("0 ms")


def test_a_calibrated_pipeline_can_be_solved_with_other_parts(known):
    # Two workers reach 2 / (1 + 1/3) times the rate of one, whatever their kind.
    fast = known.replace(hardware="0.1 ms")
    assert fast.solve().throughput.m_as("img/s") == pytest.approx(1000 * 1.5)
    assert fast.replace({"workers.kind": "torch"}).solve().throughput.m_as("img/s") == pytest.approx(1500)
    assert fast.replace(workers=4).solve().throughput.m_as("img/s") == pytest.approx(2000)
    assert known.solve().bottleneck == "accelerator"
    # Four samples of 1000 bytes in 40 ms; each of two workers waits 10 ms for a sample.
    assert known.replace(storage="100 KB/s").solve().throughput.m_as("img/s") == pytest.approx(100, rel=1e-3)
    waiting = fast.replace(storage=Drive(requests=Requests("10 ms")))
    assert waiting.solve().throughput.m_as("img/s") < 200
