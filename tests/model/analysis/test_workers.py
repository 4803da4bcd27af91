"""How many workers: exactly enough, and whether the host could have them."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from starvelab import (
    PUBLISHED,
    Q_,
    TUTORIAL,
    Hardware,
    InputError,
    Links,
    Pipeline,
    Samples,
    Storage,
)
from starvelab.model.analysis._supply import min_workers
from tests.cases import KITS, WALL
from tests.rejected import message, not_whole
from tests.strategies import pipelines, shares, slow_samples, workers

SCANS = WALL.replace({"dataset.size": "5 MB"})
LOADER = Pipeline(hardware="1000 img/s", batch_size=100, dataset=Samples(cpu_time="10 ms"))
SEVERAL = "workers_needed looks at one point, got several values of batch_size. Pass one value of each."
CORES = "A typical host has 16 physical cores for each NVIDIA A100 80GB SXM."


def fewest(speedup, curve):
    """The fewest workers that reach a speed-up over one of them."""
    return min_workers(lambda workers: curve.scaling.exactly().speedup(workers) >= speedup)


def slack(pipe, workers, batch):
    """Exact seconds that the accelerator takes longer than the CPU."""
    costs = pipe.replace(workers=workers).resource_costs(exact=True)
    return costs["accelerator"].at(batch) - costs["CPU"].at(batch)


@given(pipelines(overlap=st.just(True), workers=workers), st.integers(1, 10**6))
def test_that_many_workers_are_enough_and_one_less_is_not(pipe, batch):
    needed = pipe.workers_needed()
    if needed.workers is None:
        most = min(pipe.assumptions.peak_workers, 10**6)
        assert slack(pipe, most, pipe.batch_size) < 0
    else:
        assert slack(pipe, needed.workers, pipe.batch_size) >= 0
        assert needed.workers == 1 or slack(pipe, needed.workers - 1, pipe.batch_size) < 0
    at_any = pipe.workers_needed(batch_size="any")
    assert at_any.batch_size is None
    assert at_any.workers is None or slack(pipe, at_any.workers, batch) >= 0


@given(
    pipelines(
        overlap=st.just(True),
        workers=workers,
        storage=st.none(),
        link=st.none(),
        dataset=slow_samples,
    )
)
def test_with_that_many_workers_the_accelerator_never_waits_for_the_cpu(pipe):
    needed = pipe.workers_needed()
    assume(needed.workers)
    assert pipe.solve(workers=needed.workers).bottleneck == "accelerator"


@given(st.fractions(1, 100, max_denominator=1000), shares, shares)
def test_the_fewest_workers_for_a_speed_up_are_found_on_any_curve(speedup, contention, coherency):
    assert fewest(speedup, TUTORIAL) == ceil(speedup)
    curve = TUTORIAL.replace(contention=contention, coherency=coherency / 100)
    found, reached = fewest(speedup, curve), curve.scaling.exactly().speedup
    if found is None:
        assert reached(min(curve.scaling.peak_workers, 10**9)) < speedup
    else:
        assert reached(found) >= speedup
        assert found == 1 or reached(found - 1) < speedup


def test_workers_that_only_contend_never_reach_the_inverse_of_their_contention():
    half = TUTORIAL.replace(contention=0.5)
    assert fewest(Fraction(19, 10), half) == 19
    assert fewest(Fraction(2), half) is None
    assert fewest(Fraction(1), TUTORIAL.replace(contention=1)) == 1


def test_a_tie_needs_no_further_worker():
    # 4 workers' worth of samples take exactly as long as the accelerator.
    own = WALL.resource_costs(exact=True)["accelerator"].at(256)
    rate = Fraction(256) / own / 4
    pipe = WALL.replace({"workers.rate": Q_(float(f"{float(rate):.9g}"), "img/s")})
    assert pipe.workers_needed().workers in (4, 5)
    assert fewest(Fraction(4), TUTORIAL) == 4


def test_32_9973_workers_are_33_and_435_9968_are_436():
    assert SCANS.workers_needed().exact == pytest.approx(435.99681, abs=5e-6)
    assert SCANS.workers_needed().workers == 436
    assert fewest(Fraction("32.9973"), TUTORIAL) == 33


def test_44_workers_at_batch_256_are_more_than_a_host_has_and_read_more_than_its_drive():
    needed = WALL.workers_needed()
    assert needed.workers == 44
    assert not needed.feasible
    assert needed.obstacles == (CORES, "Reading would take 10.9 GB/s, and the drive gives 7 GB/s.")
    assert (
        str(needed) == "44 workers would be enough at batch 256, but that meets other limits. "
        f"{' '.join(needed.obstacles)}"
    )


def test_436_workers_meet_the_cores_and_the_drive_and_not_the_link_that_carries_decoded_bytes():
    needed = SCANS.workers_needed()
    assert needed.demand.m_as("GB/s") == pytest.approx(109, abs=0.05)
    assert needed.obstacles == (CORES, "Reading would take 109 GB/s, and the drive gives 7 GB/s.")
    # What the catalogue does not know is no obstacle.
    unknown = SCANS.replace(hardware=Hardware.Cloud.T4, batch_size=256).workers_needed()
    assert not any("drive" in obstacle or "cores" in obstacle for obstacle in unknown.obstacles)
    assert LOADER.replace({"dataset.size": "500 MB"}).workers_needed().obstacles == ()


def test_the_pipelines_own_drive_and_link_go_before_those_of_the_host():
    rich = WALL.replace(batch_size=64, storage="100 GB/s", link=Links.NVLink_C2C)
    assert rich.workers_needed().obstacles == (CORES,)
    poor = WALL.replace(
        {"dataset.transfer": "1 MB"}, batch_size=22, workers=1, storage="1 GB/s", link="1 GB/s"
    )
    assert poor.workers_needed().obstacles == (
        "Reading would take 1.967 GB/s, and the drive gives 1 GB/s.",
        "Copying would take 3.933 GB/s, and the link gives 1 GB/s.",
    )


def test_latency_counts_against_a_drive_that_serves_one_request_at_a_time():
    one = WALL.replace(batch_size=22, storage=Storage.HDD, assumptions=TUTORIAL.replace(requests_in_flight=1))
    assert "and the drive gives 32.3 MB/s." in one.workers_needed().obstacles[0]


def test_few_workers_on_a_good_host_are_feasible():
    needed = KITS.workers_needed()
    assert (needed.workers, needed.feasible, needed.obstacles) == (3, True, ())
    assert str(needed) == "3 workers are enough at batch 7."


def test_where_no_number_of_workers_is_enough_the_reason_is_given():
    slow = WALL.replace({"workers.rate": "100 img/s"}, assumptions=PUBLISHED)
    needed = slow.workers_needed()
    assert (needed.workers, needed.feasible) == (None, False)
    assert needed.obstacles[0] == (
        "A typical host has 16 cores for each NVIDIA A100 80GB SXM: together its workers reach at most "
        "18.1 times what one does, and it would take 24.7 times."
    )
    assert str(needed).startswith("No number of workers is enough at batch 256. A typical host has 16 cores")
    contending = WALL.replace(assumptions=TUTORIAL.replace(contention=0.1))
    assert "at most 10 times what one does" in contending.workers_needed().obstacles[0]


def test_the_pipelines_number_of_workers_does_not_matter_and_its_batch_only_unless_one_is_asked_for():
    needed = WALL.workers_needed()
    assert WALL.replace(workers=3).workers_needed() == WALL.replace(workers=[1, 2]).workers_needed() == needed
    for batch in (256, [1, 2]):
        assert WALL.replace(batch_size=batch).workers_needed(batch_size=64).workers == 20
    said = "77 workers would be enough at any batch size,"
    assert str(WALL.workers_needed(batch_size="any")).startswith(said)


# ---- Cores, waits and several accelerators -----------------------------------------------------------------


def test_past_the_cores_no_number_of_workers_is_enough():
    needed = LOADER.replace({"workers.cores": 8}).workers_needed()
    assert (needed.workers, needed.exact) == (None, 10)
    assert str(needed) == (
        "No number of workers is enough at batch 100. However many workers share the 8 cores, "
        "together they reach at most 8 times what one does, and it would take 10 times."
    )


@pytest.mark.parametrize(
    ("fields", "batch", "workers"),
    [
        # A sample takes 10 ms of a core and 30 ms of waiting: 10 cores, and 40 workers to keep them at work.
        ({"storage.wait": "30 ms", "workers.cores": 10}, None, 40),
        ({"storage.wait": "30 ms", "workers.cores": 9}, None, None),
        # A hand-over weighs more on small batches.
        ({"workers.handover.worker": "100 ms"}, None, 11),
        ({"workers.handover.worker": "100 ms"}, 10, 20),
        ({"workers.handover.worker": "100 ms"}, "any", 110),
        # A fixed cost of the accelerator leaves workers more time.
        ({"hardware.step_overhead": "25 ms"}, None, 8),
        ({"hardware.count": 8}, None, 80),
        ({"workers.cores": 10}, None, 10),
    ],
)
def test_waits_and_fixed_costs_count(fields, batch, workers):
    assert LOADER.replace(**fields).workers_needed(batch_size=batch).workers == workers


def test_the_workers_of_a_host_feed_all_its_accelerators():
    eight = WALL.replace({"hardware.count": 8}, batch_size=64)
    assert eight.workers_needed().workers == 153
    assert eight.workers_needed().obstacles == (
        CORES,
        "Reading would take 38.23 GB/s, and the drive gives 7 GB/s.",
    )
    assert eight.workers_needed().demand.m_as("GB/s") == pytest.approx(38.23, abs=5e-3)


def test_cores_that_are_given_go_before_those_of_a_typical_host():
    assert CORES in WALL.workers_needed().obstacles
    assert not any(
        "cores" in obstacle for obstacle in WALL.replace({"workers.cores": 64}).workers_needed().obstacles
    )


@pytest.mark.parametrize(
    ("pipe", "asked", "expected"),
    [
        (
            WALL.replace(workers="2 GB/s"),
            {},
            "workers_needed counts workers, got a pipeline that gives what all of them supply together. "
            "Pass workers=8, or workers=Workers(8, rate=...).",
        ),
        (
            WALL.replace(overlap=False),
            {},
            "workers_needed looks at stages that overlap, got overlap=False: then the accelerator always "
            "waits. Pass overlap=True.",
        ),
        (WALL.replace(batch_size=[1, 2]), {}, SEVERAL),
        (WALL, {"batch_size": [1, 2]}, SEVERAL),
        (WALL, *not_whole(batch_size=2.5)),
        (WALL, *not_whole(batch_size="all")),
    ],
)
def test_a_question_without_one_answer_is_refused(pipe, asked, expected):
    assert message(InputError, Pipeline.workers_needed, pipe, **asked) == expected


# ---- The drive as an obstacle ------------------------------------------------------------------------------


def test_several_drives_and_a_page_cache_are_no_obstacle_where_they_give_enough():
    pipe = WALL.replace({"workers.cores": 64}, storage="1 GB/s")
    # The accelerator takes 21,800 images of 500 KB in a second.
    assert pipe.workers_needed().obstacles == ("Reading would take 10.9 GB/s, and the drive gives 1 GB/s.",)
    assert pipe.replace({"storage.count": 11}).workers_needed().obstacles == ()
    assert pipe.replace({"storage.cache.share": 0.95}).workers_needed().obstacles == ()
    assert pipe.replace({"storage.cache.share": 0.5}).workers_needed().obstacles == (
        "Reading would take 10.9 GB/s, and the drive and the cache give 2 GB/s.",
    )
