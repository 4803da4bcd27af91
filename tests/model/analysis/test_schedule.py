"""The first batches in time: in order, each resource at one, in the long run as the pipeline says."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import Hardware, InputError, Models, Pipeline, Storage
from starvelab.model.analysis import schedule

PIPE = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
FULL = PIPE.replace(storage=Storage.NVMe_Gen4, link=Hardware.Cloud.A100)

steps = st.builds(
    lambda batch, workers, storage, overlap: FULL.solve(
        batch_size=batch, workers=workers, storage=storage, overlap=overlap
    ),
    st.integers(1, 1024),
    st.integers(1, 128),
    st.sampled_from([Storage.SATA_SSD, Storage.NVMe_Gen4, Storage.NVMe_Gen5]),
    st.booleans(),
)


def on(jobs, resource):
    return [job for job in jobs if job.resource == resource]


def test_the_walkthroughs_first_two_batches():
    jobs = schedule(PIPE.solve(batch_size=256, workers=8), batches=2)
    laid_out = [(job.resource, job.batch, round(job.start, 3), round(job.end, 3)) for job in jobs]
    assert laid_out == [
        ("CPU", 0, 0, 64),
        ("accelerator", 0, 64, 75.743),
        ("CPU", 1, 64, 128),
        ("accelerator", 1, 128, 139.743),
    ]


def test_a_batch_meets_storage_then_the_cpu_then_the_link_then_the_accelerator():
    jobs = schedule(FULL.solve(), batches=1)
    assert [job.resource for job in jobs] == ["storage", "CPU", "link", "accelerator"]


def test_a_copy_in_turn_is_part_of_the_accelerators_job():
    known = Pipeline(
        accelerator_rate="1000 img/s", batch_size=100, cpu_time="1 ms", workers=1, accelerators=2
    )
    jobs = schedule(known.solve(link="1 GB/s", transfer_size="100 KB", copy_overlaps=False), batches=1)
    assert [(job.resource, round(job.end - job.start)) for job in jobs] == [
        ("CPU", 200),
        ("accelerator", 110),
    ]


def test_what_is_not_modeled_has_no_jobs():
    assert {job.resource for job in schedule(PIPE.solve())} == {"CPU", "accelerator"}


@given(steps, st.integers(1, 12))
def test_each_job_takes_as_long_as_its_resource_needs(step, batches):
    jobs = schedule(step, batches=batches)
    assert len(jobs) == batches * len(step.resource_times)
    for job in jobs:
        assert job.end - job.start == pytest.approx(step.resource_times[job.resource].m_as("ms"))


@given(steps)
def test_a_batch_is_on_one_resource_at_a_time_and_a_resource_at_one_batch(step):
    jobs = schedule(step, batches=6)
    for batch in range(6):
        assert all(a.end <= b.start for a, b in pairwise(job for job in jobs if job.batch == batch))
    for resource in step.resource_times:
        assert all(a.end <= b.start for a, b in pairwise(on(jobs, resource)))


@given(steps)
def test_in_the_long_run_a_step_takes_what_the_pipeline_says(step):
    done = [job.end for job in on(schedule(step, batches=50), "accelerator")]
    assert done[-1] - done[-2] == pytest.approx(step.step_time.m_as("ms"))


@given(steps)
def test_in_the_long_run_the_accelerator_waits_for_the_share_the_pipeline_says(step):
    before, last = on(schedule(step, batches=50), "accelerator")[-2:]
    assert (last.start - before.end) / (last.end - before.end) == pytest.approx(step.stall, abs=1e-9)


def test_without_overlap_a_batch_begins_when_the_one_before_is_done():
    jobs = schedule(FULL.solve(overlap=False), batches=4)
    assert all(a.end == b.start for a, b in pairwise(jobs))


def test_with_overlap_every_resource_works_ahead():
    jobs = schedule(FULL.solve(), batches=3)
    assert on(jobs, "storage")[1].start < on(jobs, "accelerator")[0].start


def test_five_batches_are_laid_out_unless_asked_otherwise():
    assert {job.batch for job in schedule(PIPE.solve())} == {0, 1, 2, 3, 4}


def test_a_sweep_is_refused():
    with pytest.raises(InputError) as caught:
        schedule(PIPE.solve(batch_size=[8, 16], workers=[1, 2]))
    assert str(caught.value) == (
        "schedule looks at one point, got several values of batch_size, workers. Pass one value of each."
    )


def test_a_pipeline_that_is_not_solved_is_refused():
    with pytest.raises(InputError) as caught:
        schedule(PIPE)
    assert str(caught.value) == "schedule looks at a solved pipeline, got Pipeline. Pass pipeline.solve()."


@pytest.mark.parametrize(
    ("batches", "said"),
    [
        (0, "batches must be finite and positive, got 0. Check the value and its sign."),
        (-3, "batches must be finite and positive, got -3. Check the value and its sign."),
        (2.5, "batches must be a whole number, got 2.5. Round it to the one you mean."),
        ("five", "batches must be a whole number, got 'five'. Pass an int such as 256."),
    ],
)
def test_a_count_of_batches_that_is_none_is_refused(batches, said):
    with pytest.raises(InputError) as caught:
        schedule(PIPE.solve(), batches=batches)
    assert str(caught.value) == said
