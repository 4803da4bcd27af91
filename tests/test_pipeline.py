"""One description, solved and simulated: the two verbs come to one rate."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from starvelab import (
    PUBLISHED,
    Q_,
    Accelerator,
    Cache,
    Drive,
    Handover,
    InputError,
    Jitter,
    Link,
    Pipeline,
    Samples,
    Workers,
)
from starvelab.measure import SimulatedClock
from tests.rejected import message, not_positive
from tests.strategies import handovers, pipelines, quantities

SLOW = Pipeline(hardware="20 ms", batch_size=32, dataset=Samples(cpu_time="1.5625 ms"), workers=2)


def images(found):
    return found.throughput.m_as("img/s")


def in_the_long_run(pipeline, **options):
    workers = getattr(pipeline.workers, "count", 1)
    warm_up = 4 * max(1, workers) + 20
    batches = warm_up + 60 * max(1, workers)  # whole rounds of what may be under way
    return pipeline.simulate(**{"batches": batches, "warm_up": warm_up, "replicas": 1, **options})


@pytest.mark.programs
@settings(max_examples=200)
@given(
    pipelines(
        workers=st.builds(
            Workers,
            st.integers(0, 24),
            cores=st.integers(1, 32),
            handover=handovers,
            prefetch=st.integers(1, 3),
        )
    ),
)
def test_solving_and_simulating_come_to_one_rate(pipeline):
    # Of a cache each read is served by chance or not; the mean is what is solved.
    assume(pipeline.storage is None or pipeline.storage.cache is None)
    step, run = pipeline.solve(), in_the_long_run(pipeline)
    assert images(run) == pytest.approx(images(step), rel=0.01)
    assert run.utilization == pytest.approx(step.utilization, rel=0.01)


@pytest.mark.parametrize(
    ("workers", "prefetch", "period"),
    # A worker takes 10 ms, each batch is 30 ms under way, and a step takes 5 ms.
    [(1, 1, 40), (1, 2, 20), (2, 2, 10), (4, 2, 5), (0, 2, 10)],
)
def test_batches_that_are_long_under_way_keep_workers_from_the_next_one(workers, prefetch, period):
    far = Workers(workers, prefetch=prefetch, handover=Handover(way="30 ms"))
    pool = Pipeline(hardware="5 ms", batch_size=10, dataset=Samples(cpu_time="1 ms"), workers=far)
    assert pool.solve().step_time.m_as("ms") == pytest.approx(period)
    assert images(in_the_long_run(pool)) == pytest.approx(images(pool.solve()))
    if period > 10:
        assert "a batch's way to the loop 30 ms." in pool.explain()
    if not workers:
        # One worker would take 40 ms for each batch, so it is not advised.
        assert "start 8 workers (" in pool.replace({"workers.prefetch": 1}).explain()


@pytest.mark.programs
@settings(max_examples=50)
@given(pipelines(workers=st.integers(1, 16)), st.floats(0.05, 1))
def test_jitter_never_raises_the_rate_and_the_gap_is_shown(pipeline, spread):
    scattered = pipeline.replace({"dataset.jitter": Jitter(spread)})
    run = in_the_long_run(scattered, replicas=4)
    assert images(run) <= images(pipeline.solve()) * (1 + spread / 4)
    if images(run) < 0.99 * images(pipeline.solve()):
        assert "Mean times alone allow" in repr(run)


def test_each_field_that_only_a_simulation_reads_changes_it():
    base = SLOW.replace({"workers.handover": Handover(way="1 ms")}, storage="1 GB/s", link="1 GB/s")
    for changes in (
        {"workers.prefetch": 1},
        {"workers.handover.way": "100 ms"},
        {"workers.start_up": "1 s"},
        {"hardware.in_flight": 1},
        {"dataset.jitter.spread": 0.5},
        {"dataset.jitter": Jitter(slow_share=0.1, slow_time="100 ms")},
    ):
        assert repr(base.replace(changes).simulate()) != repr(base.simulate()), changes
    late = base.replace({"dataset.jitter.spread": 1})
    assert repr(late.replace({"workers.in_order": False}).simulate()) != repr(late.simulate())
    epochs = base.replace({"workers.start_up": "1 s"})
    kept = epochs.replace({"workers.persistent": True})
    assert images(kept.simulate(epoch_batches=20)) > images(epochs.simulate(epoch_batches=20))


def test_a_loop_that_prepares_its_batches_itself_and_waits_for_each_step_does_one_thing_after_the_other():
    alone = SLOW.replace({"hardware.in_flight": 1}, workers=0)
    # 50 ms of preparing and 20 ms of computing.
    assert alone.solve().step_time.m_as("ms") == pytest.approx(70)
    assert images(in_the_long_run(alone)) == pytest.approx(32 / 0.07)
    said = alone.explain()
    assert said.startswith(
        "The training loop prepares its batches itself, so a step takes 70 ms, and the GPU"
    )
    assert "start a worker (1.4 times)" in said
    assert alone.workers_needed().workers == 3
    assert message(InputError, alone.crossover) == (
        "crossover looks at stages that overlap, got a loop without workers: then it prepares "
        "between its steps. Pass workers=1."
    )
    ahead = alone.replace({"hardware.in_flight": inf})
    assert ahead.solve().step_time.m_as("ms") == pytest.approx(50)


def test_what_memory_serves_is_left_to_chance_and_a_worker_that_reads_waits_for_its_samples():
    cached = SLOW.replace(
        storage=Drive("20 MB/s", cache=Cache(0.35)), workers=8, dataset=Samples(size="100 KB")
    )
    assert cached.solve().bottleneck == "storage"
    assert images(in_the_long_run(cached, replicas=20)) == pytest.approx(images(cached.solve()), rel=0.02)
    # 32 samples of 100 KB: 32 ms of storage and 50 ms of a core.
    drive = Drive("100 MB/s", read_ahead=False)
    reads = SLOW.replace(storage=drive, dataset=Samples(size="100 KB", cpu_time="1.5625 ms"))
    assert reads.solve().step_time.m_as("ms") == pytest.approx(82 / 2)
    assert reads.solve({"storage.read_ahead": True}).step_time.m_as("ms") == pytest.approx(32)
    assert images(in_the_long_run(reads)) == pytest.approx(images(reads.solve()), rel=0.01)
    # A result that waits for launches does not count as busy.
    small = Pipeline(hardware="100 img/s", batch_size=1, assumptions=PUBLISHED, workers="1e6 img/s")
    small = small.replace({"hardware.host.time": "10 ms"}, model=None)
    assert in_the_long_run(small).utilization == pytest.approx(0.5)


def test_what_is_swept_is_called_by_its_whole_path_and_a_simulation_is_of_one_point():
    swept = SLOW.replace(storage=Drive("20 MB/s", cache=Cache([0.1, 0.2])), workers=[1, 2])
    assert swept.swept == ("storage.cache.share", "workers")
    # The share of a cache does not matter where its memory is given.
    one = swept.replace(workers=8)
    assert one.epochs(memory="1 GB", samples=1000) == one.replace({"storage.cache": None}).epochs(
        memory="1 GB", samples=1000
    )
    assert message(InputError, SLOW.replace(workers=[1, 2]).simulate) == (
        "simulate looks at one point, got several values of workers. Pass one value of each."
    )
    assert message(InputError, SLOW.simulate, epoch_batches=0) == not_positive(epoch_batches=0)[1]


def milliseconds(highest, lowest=0):
    return st.integers(lowest, highest).map(lambda ms: Q_(ms, "ms"))


@pytest.mark.programs
@given(
    st.builds(
        Pipeline,
        batch_size=st.integers(1, 64),
        dataset=st.builds(Samples, size=st.just("1 MB"), cpu_time=milliseconds(20, 1)),
        storage=st.none() | st.builds(Drive, quantities(50, 2000, "MB/s"), read_ahead=st.just(False)),
        workers=st.builds(
            Workers,
            st.integers(0, 8),
            prefetch=st.integers(1, 4),
            handover=st.builds(Handover, loop=milliseconds(100)),
        ),
        link=st.none() | st.builds(Link, quantities(0.1, 4, "GB/s"), overlaps=st.booleans()),
        hardware=st.builds(
            Accelerator, rate=milliseconds(300, 10), in_flight=st.sampled_from([1, 2, 3, inf])
        ),
    )
)
def test_what_is_solved_simulated_and_measured_by_a_known_clock_is_one_rate(pipeline):
    clock = SimulatedClock(
        {"decode": pipeline.dataset.cpu_time}, sample_size="1 MB", transfer_size=pipeline.transferred
    )
    step = pipeline.solve()
    measured = pipeline.measure(clock=clock, seconds=400 * step.step_time, progress=False)
    assert measured.pipeline == pipeline
    assert images(measured) == pytest.approx(images(in_the_long_run(pipeline)), rel=0.02)
    assert images(measured) == pytest.approx(images(step), rel=0.02)
