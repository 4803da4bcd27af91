"""What the notebook shows without PyTorch or a GPU: a job, the runs of it, and a trace of another."""

import ast
import json
from typing import Any

import pytest

from starvelab.errors import InputError
from starvelab_doctor import advise, read_trace
from starvelab_doctor.example import RECORD, SCRIPT, example_trace, job_script, recorded_job


def test_the_script_is_written_once_and_what_a_learner_changed_stays(tmp_path):
    path = tmp_path / "job.txt"
    text = job_script(path)
    assert path.read_text(encoding="utf-8") == text == SCRIPT.read_text(encoding="utf-8")
    path.write_text("changed", encoding="utf-8")
    assert job_script(path) == "changed"


def test_the_runs_are_of_this_script():
    constants = {}
    for node in ast.parse(SCRIPT.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            names = [name.id for name in node.targets[0].elts]
            constants |= dict(zip(names, ast.literal_eval(node.value), strict=True))
    run = recorded_job(0)
    assert (run.finding.loader.batch_size, run.finding.waits.batches) == (
        constants["BATCH_SIZE"],
        constants["BATCHES"],
    )
    assert run.origin.startswith("Recorded on a machine with two cores and no GPU on 20")


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_a_finding_is_that_of_the_recorded_times(workers):
    times = json.loads(RECORD.read_text(encoding="utf-8"))["runs"][str(workers)]
    finding = recorded_job(workers).finding
    assert finding.loader.workers == workers
    assert finding.waits.counted == len(times["waits"]) == len(times["steps"])
    share = sum(times["waits"]) / (sum(times["waits"]) + sum(times["steps"]))
    assert finding.waits.host_wait == pytest.approx(share)
    assert finding.waits.first_waits[0].m_as("ms") == pytest.approx(times["first_wait"])
    assert min(times["steps"]) >= 40, "the training step of the script takes 40 ms"


def test_the_job_waits_for_its_data_and_workers_are_advised(tmp_path):
    alone = recorded_job(0).finding
    assert alone.verdict == "highly input-bound"
    assert advise(alone, cores=2).best.workers >= 2
    assert recorded_job(2).finding.waits.throughput > 1.3 * alone.waits.throughput
    with pytest.raises(InputError, match=r"ran with 0, 1, 2, 3 workers, got 7\. Pass one of these"):
        recorded_job(7)
    with pytest.raises(InputError, match="wait needs a unit, got the bare int 2"):
        example_trace(tmp_path / "trace.json", wait=2)


@pytest.mark.parametrize(("times", "cause", "verdict", "copying", "period"), [
    ({}, "pageable copies", "5 % idle and not starved", 22 / 54, 2 + 22 + 10 * 3.02),
    ({"pinned": True}, "waiting for data", "8 % idle and starved", 0, 2 + 10 * 3.02),
    ({"wait": "40 ms", "copy_time": "0 ms"}, "waiting for data", "57 % idle and starved", 0, 70),
    ({"launch_gap": "5 ms", "copy_time": "0 ms"}, "launch gaps", "46 % idle and not starved", 0, 55),
], ids=["as it is", "pinned", "waits", "gaps"])  # fmt: skip
def test_the_trace_holds_what_is_set(tmp_path, times, cause, verdict, copying, period):
    found = read_trace(example_trace(tmp_path / "trace.json", **times))
    assert found.waits.batches == 12
    assert (found.gpu.use.cause, found.gpu.use.verdict) == (cause, verdict)
    assert found.gpu.use.copying == pytest.approx(copying, abs=0.02)
    assert 1e3 / found.waits.batch_rate.m_as("1/s") == pytest.approx(period, rel=0.05)


@pytest.mark.programs
def test_the_script_reads_its_photographs(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr("sys.argv", ["job.txt"])
    names: dict[str, Any] = {"__name__": "job"}
    exec(SCRIPT.read_text(encoding="utf-8"), names)
    image, label = names["Photos"]()[0]
    assert (tuple(image.shape), image.dtype, label) == ((224, 224, 3), torch.uint8, 0)
