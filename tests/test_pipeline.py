"""One description, three verbs: a pipeline is solved, simulated and measured, and these agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starvelab import Accelerator, Drive, Handover, InputError, Jitter, Link, Pipeline, Samples, Workers
from starvelab.measure import SimulatedClock
from starvelab.model.assumptions import TUTORIAL

ms = st.floats(0.5, 60).map(lambda value: f"{value} ms")
described = st.builds(
    Pipeline,
    batch_size=st.integers(1, 64),
    dataset=st.builds(Samples, cpu_time=ms, transfer=st.just("600 KB")),
    workers=st.builds(
        Workers, st.integers(1, 12), cores=st.none() | st.integers(1, 16), handover=st.builds(Handover, ms)
    ),
    link=st.sampled_from([None, "1 GB/s", Link("0.5 GB/s", overlaps=False)]),
    hardware=st.builds(Accelerator, rate=ms, count=st.integers(1, 3), host_time=st.none() | ms),
    assumptions=st.sampled_from([TUTORIAL, TUTORIAL.replace(contention=0.2)]),
)


@given(described)
@settings(max_examples=40, deadline=None)
def test_without_chance_and_a_drive_solved_and_simulated_rates_agree(pipeline):
    simulated = pipeline.simulate(batches=600, warm_up=100, replicas=1)
    assert simulated.throughput.m_as("img/s") == pytest.approx(
        pipeline.solve().throughput.m_as("img/s"), rel=0.01
    )


SLOW = Pipeline(batch_size=32, dataset=Samples(cpu_time="8 ms"), workers=2, hardware="64 ms")


def test_a_simulation_and_a_simulated_clock_say_the_same():
    clock = SimulatedClock({"decode": "8 ms"})
    assert SLOW.simulate().throughput.m_as("img/s") == pytest.approx(250)
    assert SLOW.measure(clock=clock).throughput.m_as("img/s") == pytest.approx(250)


def test_what_only_the_simulation_reads_changes_its_rate_alone():
    scattered = SLOW.replace({"dataset.jitter": Jitter(0.5)}, hardware="120 ms")
    assert scattered.simulate().utilization < scattered.solve().utilization
    waits = SLOW.replace(storage=Drive(wait="8 ms"))
    assert waits.simulate().throughput.m_as("img/s") == pytest.approx(125, rel=1e-3)
    alone = SLOW.replace(workers=0, hardware=Accelerator(rate="64 ms", in_flight=1))
    assert alone.simulate().throughput.m_as("img/s") == pytest.approx(100, rel=1e-3)  # 256 + 64 ms


@pytest.mark.parametrize(
    ("fields", "came"),
    [({"workers": [1, 2]}, "got arrays of workers"), ({"workers": "200 img/s"}, "what all workers supply")],
)
def test_a_simulation_counts_workers_of_one_pipeline(fields, came):
    with pytest.raises(InputError, match=came):
        SLOW.replace(**fields).simulate()
