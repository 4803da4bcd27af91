"""Where input stops keeping up: exact, and true on both sides of the batch, the workers, the accelerators."""

from __future__ import annotations

import re
from fractions import Fraction
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import (
    Q_,
    TUTORIAL,
    Accelerator,
    Datasets,
    Handover,
    Hardware,
    Host,
    InputError,
    Links,
    OnDevice,
    Pipeline,
    Ranks,
    Samples,
    Storage,
    Workers,
)
from starvelab.model.analysis._crossover import starves_from
from starvelab.model.solver import BatchTimes
from tests.cases import WALL
from tests.rejected import message, not_whole
from tests.strategies import accelerators, costs, pipelines, quantities, workers

# With every part that a pipeline may have.
rigs = st.builds(
    Accelerator,
    accelerators,
    count=st.sampled_from([1, 2, 8]),
    rate=st.none() | quantities(1, 50_000, "img/s"),
    step_overhead=st.none() | quantities(0, 50, "ms"),
    host=st.builds(Host, time=st.none() | quantities(0, 50, "ms")),
    in_flight=st.sampled_from([1, 2, 3, inf]),
    ranks=st.builds(
        Ranks, st.sampled_from([1, 4]), spread=st.sampled_from([0.0, 0.2]), slow=st.sampled_from([1, 1.5])
    ),
)
OVERLAPPING = {"overlap": st.just(True), "hardware": rigs}


def exact_times(pipe, batch):
    """Exact seconds of each resource, or of a round trip through it where few batches are on their way."""
    times = {name: cost.at(batch) for name, cost in pipe.resource_costs(exact=True).items()}
    for name, trip in trips_of(pipe):
        times[name] = max(times[name], trip.at(batch))
    return times


def trips_of(pipe):
    return BatchTimes.of(pipe.resource_costs(exact=True), pipe.numbers).round_trips()


# ---- The batch size ----------------------------------------------------------------------------------------


def times(pipe, batch):
    """Exact seconds of the accelerator and of the slowest of the others."""
    found = exact_times(pipe, batch)
    return found.pop("accelerator"), max(found.values())


@given(pipelines(**OVERLAPPING))
def test_the_last_fed_batch_is_not_starved_and_the_next_one_is(pipe):
    found = pipe.crossover()
    own, others = times(pipe, found.last_fed or 10**12)
    # The accelerator may always bind, or never.
    assert others <= own or found.last_fed == 0
    if found.starves_from is None:
        return
    assert found.last_fed == found.starves_from - 1
    if found.batch is not None:
        own, others = times(pipe, found.batch)
        assert others == own
        assert found.last_fed <= found.batch < found.starves_from
    own, others = times(pipe, found.starves_from)
    assert others > own
    # The resource that takes over is the one that binds there.
    assert exact_times(pipe, found.starves_from)[found.resource] == others
    if not [*trips_of(pipe)] and found.starves_from < 10**6 and others > own * (1 + Fraction(1, 10**9)):
        binding = pipe.solve(batch_size=found.starves_from).resource_times
        assert binding[found.resource].m_as("s") == pytest.approx(float(others))


@given(costs, costs)
def test_of_any_two_costs_the_first_batch_that_starves_is_found(supply, own):
    tried = next((batch for batch in range(1, 2000) if supply.at(batch) > own.at(batch)), None)
    assert starves_from(supply, own) == tried


def test_the_batch_size_of_the_pipeline_does_not_matter_and_the_first_that_starves_it_counts():
    assert len({WALL.replace(batch_size=batch).crossover() for batch in (7, 256, (8, 16))}) == 1
    both = WALL.replace(storage=Storage.NVMe_Gen4)
    assert both.crossover().resource == "CPU"
    assert both.replace(workers=1000).crossover().batch == Fraction(16107, 145)


@pytest.mark.parametrize(("fields", "batch"), [
    ({}, 9),
    ({"hardware.count": 2}, Fraction(8, 3)),
    ({"workers.cores": 2}, Fraction(8, 3)),
    ({"storage.requests.latency": "8 ms"}, 3),
    ({"link": "1 GB/s", "link.overlaps": False, "dataset.transfer": "500 KB"}, 18),
])  # fmt: skip
def test_fixed_costs_move_the_crossing_exactly(fields, batch):
    # The accelerator takes 10 ms and 1 ms a sample, the four workers 1 ms and 2 ms a sample.
    pipe = Pipeline(
        hardware=Accelerator(rate="1000 img/s", step_overhead="10 ms"),
        dataset=Samples(cpu_time="8 ms"),
        workers=Workers(4, handover=Handover("4 ms")),
    )
    assert pipe.replace(**fields).crossover().batch == batch


def test_a_crossing_is_exact_where_batches_wait_for_each_other():
    # A batch of b is read in b / 2 ms and prepared in b ms, one after the other, and a step takes 30 ms.
    slow = Pipeline(
        hardware="30 ms",
        dataset=Samples(cpu_time="1 ms", size="1 MB"),
        storage="2 GB/s",
        workers=Workers(1, prefetch=1),
    )
    found = slow.crossover()
    assert (found.batch, found.last_fed, found.starves_from) == (20, 20, 21)


# ---- The workers -------------------------------------------------------------------------------------------

SCANS = WALL.replace({"dataset.size": "5 MB"})
LOADER = Pipeline(hardware="1000 img/s", batch_size=100, dataset=Samples(cpu_time="10 ms"))
GIVEN = WALL.replace({"workers.cores": 64}, storage="1 GB/s")
CORES = "A typical host has 16 physical cores for each NVIDIA A100 80GB SXM."


def slack(pipe, workers, batch):
    """Exact seconds that the accelerator takes longer than the CPU."""
    found = exact_times(pipe.replace(workers=workers), batch)
    return found["accelerator"] - found["CPU"]


@given(pipelines(**OVERLAPPING, workers=workers), st.integers(1, 10**6))
def test_that_many_workers_are_enough_and_one_less_is_not(pipe, batch):
    needed = pipe.workers_needed()
    if needed.workers is None:
        most = min(pipe.assumptions.scaling.peak_workers, 10**6)
        assert slack(pipe, most, pipe.batch_size) < 0
    else:
        assert slack(pipe, needed.workers, pipe.batch_size) >= 0
        assert needed.workers == 1 or slack(pipe, needed.workers - 1, pipe.batch_size) < 0
    if pipe.resource_costs(exact=True)["accelerator"].limit < 1e-15:
        return  # of a given time of a step, which is that of one batch
    at_any = pipe.workers_needed(batch_size="any")
    assert at_any.batch_size is None
    assert at_any.workers is None or slack(pipe, at_any.workers, batch) >= 0


SPOKEN = {"storage": "Reading|Storage", "link": "Copying|The link", "loop": "The training loop",
          "decoder": "The decoder"}  # fmt: skip


def is_fed(step):
    """True if the step takes no longer than the accelerator needs for it."""
    own = step.resource_times["accelerator"].m_as("ms")
    return step.step_time.m_as("ms") <= own * (1 + 1e-9)


@given(pipelines(**OVERLAPPING, workers=workers))
def test_so_many_workers_feed_every_pipeline_and_one_less_does_not_unless_something_else_is_named(pipe):
    needed = pipe.workers_needed()
    if needed.workers is None:
        assert not needed.feasible
        assert not is_fed(pipe.solve(workers=10**9))
        return
    step = pipe.solve(workers=needed.workers)
    assert is_fed(step) or not needed.feasible
    for name, time in step.resource_times.items():
        if time.m_as("ms") > step.resource_times["accelerator"].m_as("ms") * (1 + 1e-9) and name != "CPU":
            assert re.search(f"(^|\\. )({SPOKEN[name]}) ", str(needed)), needed
    if needed.workers > 1:
        fewer = pipe.solve(workers=needed.workers - 1)
        assert fewer.step_time > fewer.resource_times["accelerator"]


def test_a_decoder_that_is_too_slow_is_named():
    video = LOADER.replace(
        {"dataset.on_device": OnDevice(decoder_time="1 ms")}, hardware="1 ms", batch_size=8
    )
    needed = video.workers_needed()
    assert (needed.workers, needed.feasible) == (80, False)
    assert needed.obstacles[0] == "The decoder takes 8 ms for a batch, and the GPU 1 ms."
    at_any = video.replace(hardware="8000 img/s").workers_needed(batch_size="any")
    assert at_any.obstacles == ("The decoder takes longer than the GPU from batch 1 on.",)
    assert video.replace(hardware="8000 img/s").crossover().starves_from == 1


def test_at_any_batch_size_parts_that_wait_for_each_other_are_named():
    decoder = OnDevice(decoder_time="0.5 ms")
    waiting = LOADER.replace({"dataset.on_device": decoder, "hardware.in_flight": 1})
    assert waiting.workers_needed(batch_size="any").obstacles == (
        "From batch 1 on parts of a step would wait for each other.",
    )
    assert waiting.replace({"hardware.in_flight": 2}).workers_needed(batch_size="any").feasible


POOR = WALL.replace({"dataset.transfer": "1 MB"}, batch_size=22, storage="1 GB/s", link="1 GB/s")
ONE_REQUEST = TUTORIAL.replace(open_requests=1)


@pytest.mark.parametrize(("pipe", "workers", "obstacles"), [
    (WALL, 44, (CORES, "Reading would take 10.9 GB/s, and the drive gives 7 GB/s.")),
    # Several accelerators are fed by the workers of one host, and each brings the cores of its host.
    (WALL.replace({"hardware.count": 8}, batch_size=64), 153,
     (CORES, "Reading would take 38.23 GB/s, and the drive gives 7 GB/s.")),
    (WALL.replace({"hardware.count": 2}, batch_size=40), 27, ()),
    # What the catalogue does not know is no obstacle.
    (SCANS.replace(hardware=Hardware.Cloud.T4), 138, ()),
    # The pipeline's own drive, link and cores go before those of the host; the link carries decoded bytes.
    (WALL.replace(batch_size=64, storage="100 GB/s", link=Links.NVLink_C2C), 20, (CORES,)),
    (POOR, 8, ("Reading would take 1.967 GB/s, and the drive gives 1 GB/s.",
               "Copying would take 3.933 GB/s, and the link gives 1 GB/s.")),
    # A worker waits 12.7 ms for a sample, and prepares it in 2.
    (POOR.replace(storage=Storage.HDD, assumptions=ONE_REQUEST), 58,
     (CORES, "Reading would take 1967 MB/s, and the drive gives 51.14 MB/s.",
      "Copying would take 3.933 GB/s, and the link gives 1 GB/s.")),
    # The accelerator takes 21,800 images of 500 KB in a second.
    (GIVEN, 44, ("Reading would take 10.9 GB/s, and the drive gives 1 GB/s.",)),
    (GIVEN.replace({"storage.count": 11}), 44, ()),
    (GIVEN.replace({"storage.cache.share": 0.5}), 44,
     ("Reading would take 10.9 GB/s, and the drive and the cache give 2 GB/s.",)),
    # A worker begins the next batch when the loop has received its last one, and that one is read.
    (LOADER.replace({"workers.prefetch": 1, "dataset.size": "1 MB"}, storage="1.25 GB/s"), 11, ()),
    # A loop that waits for each step receives nothing meanwhile.
    (LOADER.replace({"workers.handover.loop": "20 ms", "hardware.in_flight": 1}), 10,
     ("Parts of a step would still wait for each other: it would take 120 ms.",)),
])  # fmt: skip
def test_so_many_workers_meet_these_obstacles(pipe, workers, obstacles):
    needed = pipe.workers_needed()
    assert (needed.workers, needed.obstacles, needed.feasible) == (workers, obstacles, not obstacles)


def test_the_pipelines_number_of_workers_does_not_matter_and_its_batch_only_unless_one_is_asked_for():
    needed = WALL.workers_needed()
    assert WALL.replace(workers=3).workers_needed() == WALL.replace(workers=[1, 2]).workers_needed() == needed
    assert WALL.replace(batch_size=[1, 2]).workers_needed(batch_size=64).workers == 20


@pytest.mark.parametrize(("fields", "batch", "workers"), [
    # A sample takes 10 ms of a core and 30 ms of waiting: 10 cores, and 40 workers to keep them at work.
    ({"storage.requests.latency": "30 ms", "workers.cores": 10}, None, 40),
    ({"storage.requests.latency": "30 ms", "workers.cores": 9}, None, None),
    # A hand-over weighs more on small batches.
    ({"workers.handover.worker": "100 ms"}, None, 11),
    ({"workers.handover.worker": "100 ms"}, 10, 20),
    ({"workers.handover.worker": "100 ms"}, "any", 110),
    # A fixed cost of the accelerator leaves workers more time.
    ({"hardware.step_overhead": "25 ms"}, None, 8),
    ({"hardware.count": 8}, None, 80),
    ({"workers.cores": 10}, None, 10),
])  # fmt: skip
def test_waits_and_fixed_costs_count(fields, batch, workers):
    assert LOADER.replace(**fields).workers_needed(batch_size=batch).workers == workers


# ---- A step that does not fit into memory, and what has no answer ------------------------------------------

FITS = WALL.replace(dataset=Datasets.ImageNet, phase="training")
TOO_LARGE = FITS.replace(batch_size=2048)


def test_a_step_that_does_not_fit_stands_in_the_way_of_each_answer():
    why = TOO_LARGE.solve().infeasible_reason
    assert why in TOO_LARGE.workers_needed().obstacles
    for batch in (256, "any"):
        assert not any("needs about" in one for one in FITS.workers_needed(batch_size=batch).obstacles)
    late = FITS.replace(workers=FITS.solve(workers="1e9 img/s", batch_size=2000).throughput).crossover()
    assert late.starves_from in (2000, 2001)
    assert late.infeasible_reason.startswith("The step needs about")
    assert late.summary.endswith(f"Batch {late.starves_from} is not feasible. {late.infeasible_reason}")
    assert FITS.crossover().infeasible_reason == ""
    assert "feasible" not in FITS.crossover().summary


def test_a_table_of_a_step_that_does_not_fit_says_so_below_it():
    pipe = TOO_LARGE.replace(storage="1 GB/s")
    why, found = pipe.solve().infeasible_reason, pipe.epochs(memory="64 GB")
    assert why.endswith("Use a batch of at most 1817.")
    assert repr(found).splitlines()[-1].endswith(why)
    assert f"{why}</p>" in found._repr_html_()
    assert "memory, and NVIDIA" not in repr(pipe.replace(batch_size=256).epochs(memory="64 GB"))


IN_TURN = "{} looks at stages that overlap, got overlap=False: then the GPU always waits. Pass overlap=True."


@pytest.mark.parametrize(("ask", "pipe", "asked", "expected"), [
    (Pipeline.crossover, WALL.replace(overlap=False), {}, IN_TURN.format("crossover")),
    (Pipeline.crossover, WALL.replace({"workers": [8, 16], "dataset.size": Q_([1, 2], "MB")}), {},
     "crossover looks at one point, got several values of dataset.size, workers. Pass one value of each."),
    (
        Pipeline.workers_needed,
        WALL.replace(workers="2 GB/s"),
        {},
        "workers_needed counts workers, got a pipeline that gives what all of them supply together. "
        "Pass workers=8, or workers=Workers(8, rate=...).",
    ),
    (Pipeline.workers_needed, WALL.replace(overlap=False), {}, IN_TURN.format("workers_needed")),
    (
        Pipeline.workers_needed,
        WALL.replace(hardware="20 ms"),
        {"batch_size": "any"},
        'workers_needed(batch_size="any") needs the time of a sample, got that of a step, 20 ms whatever '
        "its batch. Pass a batch size, or a rate.",
    ),
    (Pipeline.workers_needed, WALL, *not_whole(batch_size=2.5)),
    (Pipeline.workers_needed, WALL, *not_whole(batch_size="all")),
])  # fmt: skip
def test_a_question_without_one_answer_is_rejected(ask, pipe, asked, expected):
    assert message(InputError, ask, pipe, **asked) == expected


ONE_POINT = (Pipeline.workers_needed, Pipeline.epochs, Pipeline.explain)


@pytest.mark.parametrize("ask", ONE_POINT, ids=lambda ask: ask.__name__)
def test_a_question_about_one_point_rejects_a_sweep(ask):
    assert message(InputError, ask, WALL.replace(batch_size=[1, 2])) == (
        f"{ask.__name__} looks at one point, got several values of batch_size. Pass one value of each."
    )
