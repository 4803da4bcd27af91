"""The training job of the notebook: its script, and the runs that were recorded of it."""

from __future__ import annotations

import ast

import pytest

from starvelab.errors import InputError
from starvelab.jobs import advise, examples
from starvelab.jobs.examples import job_script, recorded_job


def test_the_script_is_written_once_and_what_a_learner_changed_stays(tmp_path):
    path = tmp_path / "job.txt"
    text = job_script(path)
    assert path.read_text(encoding="utf-8") == text == examples.SCRIPT.read_text(encoding="utf-8")
    path.write_text("changed", encoding="utf-8")
    assert job_script(path) == "changed"


def test_the_runs_are_of_this_script():
    constants = {}
    for node in ast.parse(examples.SCRIPT.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            names = [name.id for name in node.targets[0].elts]
            constants |= dict(zip(names, ast.literal_eval(node.value), strict=True))
    finding = recorded_job(0).finding
    assert (finding.batch_size, finding.batches) == (constants["BATCH_SIZE"], constants["BATCHES"])


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_a_finding_is_that_of_the_recorded_times(workers):
    run = recorded_job(workers)
    assert run.finding.workers == workers
    assert run.finding.counted == len(run.waits) == len(run.steps)
    share = sum(run.waits) / (sum(run.waits) + sum(run.steps))
    assert run.finding.host_wait == pytest.approx(share)
    assert run.finding.first_waits[0].m_as("ms") == pytest.approx(run.first_wait)
    assert min(run.steps) >= 40, "the training step of the script takes 40 ms"


def test_the_job_waits_for_its_data_and_workers_are_advised():
    alone = recorded_job(0).finding
    assert alone.verdict == "highly input-bound"
    assert advise(alone, cores=2).best.workers >= 2
    assert recorded_job(2).finding.throughput > 1.3 * alone.throughput


def test_the_origin_says_where_and_when():
    run = recorded_job(0)
    assert run.origin == f"Recorded on a machine with two cores and no GPU on {run.date}."


def test_a_number_of_workers_that_was_not_recorded_is_rejected():
    with pytest.raises(InputError, match=r"ran with 0, 1, 2, 3 workers, got 7\. Pass one of these"):
        recorded_job(7)
