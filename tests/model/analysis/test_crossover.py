"""The batch size at which the accelerator begins to wait: exact, and true on both sides of it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import (
    Q_,
    TUTORIAL,
    Accelerator,
    Handover,
    InputError,
    Models,
    Pipeline,
    Samples,
    Storage,
    UnknownNameError,
    Workers,
)
from starvelab.model.analysis._supply import starves_from
from tests.cases import WALL
from tests.rejected import message
from tests.strategies import costs, pipelines


def times(pipe, batch):
    """Exact seconds of the accelerator and of the slowest of the others."""
    costs = pipe.resource_costs(exact=True)
    own = costs.pop("accelerator").at(batch)
    return own, max(cost.at(batch) for cost in costs.values())


@given(pipelines(overlap=st.just(True)))
def test_the_last_fed_batch_is_not_starved_and_the_next_one_is(pipe):
    found = pipe.crossover()
    if found.starves_from is None:
        own, others = times(pipe, 10**12)
        assert others <= own
        return
    assert found.last_fed == found.starves_from - 1
    if found.last_fed:
        own, others = times(pipe, found.last_fed)
        assert others <= own
    if found.batch is not None:
        own, others = times(pipe, found.batch)
        assert others == own
        assert found.last_fed <= found.batch < found.starves_from
    own, others = times(pipe, found.starves_from)
    assert others > own
    # The resource that takes over is the one that binds there.
    assert pipe.resource_costs(exact=True)[found.resource].at(found.starves_from) == others
    if found.starves_from < 10**6 and others > own * (1 + Fraction(1, 10**9)):
        binding = pipe.solve(batch_size=found.starves_from).resource_times
        assert binding[found.resource].m_as("s") == pytest.approx(float(others))


@given(costs, costs)
def test_of_any_two_costs_the_first_batch_that_starves_is_found(supply, own):
    tried = next((batch for batch in range(1, 2000) if supply.at(batch) > own.at(batch)), None)
    assert starves_from(supply, own) == tried


def test_the_batch_size_of_the_pipeline_does_not_matter():
    assert (
        WALL.replace(batch_size=7).crossover()
        == WALL.crossover()
        == WALL.replace(batch_size=[8, 16]).crossover()
    )


def test_one_resource_may_be_asked_for_alone():
    both = WALL.replace(storage=Storage.NVMe_Gen4)
    assert both.crossover().resource == "CPU"
    assert both.crossover(resource="storage").batch == Fraction(16107, 145)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "Up to batch 22 the accelerator binds, from 23 on the CPU: they cross at 22.4166."),
        (
            {"workers": 1000, "storage": Storage.NVMe_Gen4},
            "Up to batch 111 the accelerator binds, from 112 on storage: they cross at 111.083.",
        ),
        ({"workers": 77}, "The accelerator binds at every batch size."),
        ({"dataset.size": "500 MB"}, "The CPU binds at every batch size."),
        ({"workers": 1000, "storage": "1 MB/s"}, "Storage binds at every batch size."),
    ],
)
def test_a_crossover_says_itself_in_a_sentence(fields, said):
    assert str(WALL.replace(**fields).crossover()) == said


def test_the_accelerator_may_never_bind():
    starved = WALL.replace({"dataset.size": "500 MB"}).crossover()
    assert (starved.batch, starved.last_fed, starved.starves_from, starved.resource) == (None, 0, 1, "CPU")


def test_a_whole_number_that_is_a_tie_starves_nobody():
    # 5 ms of overhead and nothing else to speak of, against 1 ms for each sample: a tie at batch 5.
    assumed = TUTORIAL.replace(overhead_per_layer="0 ms", overhead_per_step="5 ms")
    light = Models.ResNet50.replace(macs_forward_rounded="1e-12 GMAC", parameters=1)
    pipe = WALL.replace(model=light, workers=Q_("1000 img/s"), assumptions=assumed)
    found = pipe.crossover()
    assert (found.last_fed, found.starves_from) == (5, 6)


def test_fixed_costs_move_the_crossing_exactly():
    # The accelerator takes 10 ms and 1 ms a sample, the four workers 1 ms and 2 ms a sample.
    pipe = Pipeline(
        hardware=Accelerator(rate="1000 img/s", step_overhead="10 ms"),
        dataset=Samples(cpu_time="8 ms"),
        workers=Workers(4, handover=Handover("4 ms")),
    )
    assert pipe.crossover().batch == 9
    assert pipe.replace({"hardware.count": 2}).crossover().batch == Fraction(8, 3)
    assert pipe.replace({"workers.cores": 2}).crossover().batch == Fraction(8, 3)
    assert pipe.replace({"storage.wait": "8 ms"}).crossover().batch == 3
    in_turn = pipe.replace({"dataset.transfer": "500 KB", "link.overlaps": False}, link="1 GB/s")
    assert in_turn.crossover().batch == 18


def test_a_resource_that_is_not_modeled_is_refused_with_those_that_are():
    assert (
        message(UnknownNameError, Pipeline.crossover, WALL, resource="storage")
        == "The pipeline does not model 'storage'. There is: CPU."
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"overlap": False},
            "crossover looks at stages that overlap, got overlap=False: then the accelerator always waits. "
            "Pass overlap=True.",
        ),
        (
            {"workers": [8, 16], "dataset.size": Q_([1, 2], "MB")},
            "crossover looks at one point, got several values of dataset.size, workers. Pass one value of "
            "each.",
        ),
    ],
)
def test_a_question_without_one_answer_is_refused(fields, expected):
    assert message(InputError, Pipeline.crossover, WALL.replace(**fields)) == expected
