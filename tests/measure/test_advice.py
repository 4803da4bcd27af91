"""`advise`: jobs whose times are known, and what other numbers of workers bring to them."""

from __future__ import annotations

import pytest

from starvelab.errors import InputError
from starvelab.measure import advise
from starvelab.measure.watching.times import LoopTimes


def found(*, workers, wait, step, cpu=None, batches=40, batch_size=32):
    """What `watch` says of a job whose batches all take the same times [s]."""
    times = LoopTimes(batch_size=batch_size, workers=workers)
    for _ in range(batches):
        times.waits.add(wait, step)
    if cpu is not None:
        times.cpu.add(cpu, 1.0)
    return times.finding()


def test_more_workers_until_the_step_binds():
    # Two workers deliver a batch each 50 ms, so a batch takes one of them 100 ms; a step takes 20 ms.
    advice = advise(found(workers=2, wait=0.03, step=0.02, cpu=1.0), cores=8)
    assert advice.best.workers == 5
    assert advice.best.throughput.m_as("img/s") == pytest.approx(32 / 0.02)
    assert advice.best.bottleneck == "the training step"
    assert advice.gain == pytest.approx(1.5)
    assert advice.best.low < advice.best.throughput < advice.best.high
    assert advice.options[4].throughput.m_as("img/s") == pytest.approx(32 * 4 / 0.1)
    assert advice.summary.startswith("5 workers instead of 2: 1600 img/s (")
    assert "instead of 640 img/s, then the training step binds." in advice.summary


def test_work_of_the_cpu_stops_at_the_cores():
    advice = advise(found(workers=1, wait=0.09, step=0.01, cpu=1.0), cores=3)
    assert advice.best.workers == 3
    assert advice.options[6].throughput.m_as("img/s") == pytest.approx(32 * 3 / 0.1, rel=0.01)
    assert advice.options[6].bottleneck == "the CPU"


def test_waiting_for_storage_does_not_stop_at_the_cores():
    advice = advise(found(workers=1, wait=0.09, step=0.01, cpu=0.05), cores=2)
    assert advice.best.workers == 10
    assert advice.best.throughput.m_as("img/s") == pytest.approx(3200)


def test_without_workers_the_wait_is_what_a_batch_takes():
    advice = advise(found(workers=0, wait=0.03, step=0.01, cpu=1.0), cores=8)
    assert advice.now.throughput.m_as("img/s") == pytest.approx(800)
    assert advice.best.workers == 4  # three, and what handing over costs
    assert advice.best.throughput.m_as("img/s") == pytest.approx(3200)


def test_a_job_that_does_not_wait_keeps_its_workers():
    advice = advise(found(workers=4, wait=0.0001, step=0.05), cores=8)
    assert advice.best == advice.now
    assert advice.summary == "Keep the 4 workers: more or fewer would bring less than 5 %."


def test_where_batches_are_ready_more_workers_bring_nothing():
    times = LoopTimes(batch_size=32, workers=6)
    for _ in range(40):
        times.waits.add(0.01, 0.02)
        times.ready.add(5)
    assert advise(times.finding(), cores=8).summary.startswith("Keep the 6 workers")


def test_what_is_not_known_widens_the_range():
    job = {"workers": 1, "wait": 0.09, "step": 0.01}
    known, open_ = (advise(found(**job, cpu=cpu), cores=2).options[4] for cpu in (0.5, None))
    assert open_.low < 0.6 * known.low  # all of it may be work of the CPU, of which there are two cores
    assert known.high.m_as("img/s") == pytest.approx(open_.high.m_as("img/s"))


def test_fewer_are_enough_for_most_of_it():
    advice = advise(found(workers=1, wait=0.963, step=0.04, cpu=0.0), cores=64)
    assert advice.enough.workers < advice.best.workers
    assert f"; {advice.enough.workers} are enough for 95 % of it." in advice.summary
    assert advice.enough.throughput >= 0.95 * advice.best.throughput


def test_without_a_batch_size_batches_are_counted():
    advice = advise(found(workers=1, wait=0.03, step=0.01, cpu=1.0, batch_size=None), cores=8)
    assert advice.best.throughput.m_as("1/s") == pytest.approx(100)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"workers": None},
            r"advise needs the number of workers, and this finding has none. Pass it: watch\(",
        ),
        ({"batches": 3}, "advise needs 8 watched batches, got 3. Watch a longer run."),
    ],
)
def test_too_little_is_known(changes, message):
    with pytest.raises(InputError, match=message):
        advise(found(**{"workers": 2, "wait": 0.1, "step": 0.1} | changes))
