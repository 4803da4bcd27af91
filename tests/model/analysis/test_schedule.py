"""The first batches in time: in order, each resource at one, in the long run as the pipeline says."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starvelab import Hardware, InputError, Models, Pipeline, Storage
from starvelab.model.analysis import schedule
from tests.rejected import message, not_positive, not_whole

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


@given(steps)
def test_jobs_take_what_their_resources_need_one_at_a_time_and_in_the_long_run_a_step(step):
    jobs = schedule(step, batches=50)
    assert [job.resource for job in jobs] == 50 * ["storage", "CPU", "link", "accelerator"]
    assert schedule(step) == jobs[:20]  # five batches, unless asked otherwise
    for job in jobs:
        assert job.end - job.start == pytest.approx(step.resource_times[job.resource].m_as("ms"))
    for batch in range(6):
        assert all(a.end <= b.start for a, b in pairwise(job for job in jobs if job.batch == batch))
    for resource in step.resource_times:
        assert all(a.end <= b.start for a, b in pairwise(on(jobs, resource)))
    before, last = on(jobs, "accelerator")[-2:]
    assert last.end - before.end == pytest.approx(step.step_time.m_as("ms"))
    assert (last.start - before.end) / (last.end - before.end) == pytest.approx(step.stall, abs=1e-9)


@pytest.mark.parametrize(
    ("pipeline", "arguments", "expected"),
    [
        (
            PIPE.solve(batch_size=[8, 16], workers=[1, 2]),
            {},
            "schedule looks at one point, got 2. Solve for one.",
        ),
        (PIPE, {}, "schedule looks at a solved pipeline, got Pipeline. Pass pipeline.solve()."),
        (PIPE.solve(), *not_positive(batches=0)),
        (PIPE.solve(), *not_positive(batches=-3)),
        (PIPE.solve(), *not_whole(batches=2.5)),
        (PIPE.solve(), *not_whole(batches="five")),
    ],
    ids=lambda value: value if type(value) is str else "",
)
def test_what_has_no_schedule_is_refused(pipeline, arguments, expected):
    assert message(InputError, schedule, pipeline, **arguments) == expected
