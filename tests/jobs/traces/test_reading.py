"""`read_trace` on trainings with a GPU whose times are all known."""

from __future__ import annotations

import pytest

from starvelab.jobs import read_trace
from tests.jobs.traces.builder import NEW, OLD, Training, train, write

BATCHES = 12


def read(training, tmp_path, name="trace.json"):
    return read_trace(training.write(tmp_path / name))


@pytest.mark.parametrize("spelling", [NEW, OLD], ids=["today", "1.8"])
@pytest.mark.parametrize("workers", [0, 4])
@pytest.mark.parametrize("marked", [True, False])
def test_a_starved_gpu(tmp_path, spelling, workers, marked):
    training = train(Training(spelling, workers=workers), BATCHES, wait=40, step=60, marked=marked)
    found = read(training, tmp_path, "trace.json.gz")
    # Without marks the step after the last wait has no end, and the first wait is a start-up.
    assert (found.batches, found.counted) == (BATCHES, BATCHES if marked else BATCHES - 2)
    assert found.host_wait == pytest.approx(0.4, abs=0.001)
    assert found.stall == pytest.approx(0.4, abs=0.001)
    assert found.gpu.busy == pytest.approx(0.6, abs=0.001)
    assert found.verdict == "highly input-bound"
    assert found.gpu.cause == "waiting for data"
    assert found.wait_p50.m_as("ms") == pytest.approx(40)
    assert found.batch_rate.m_as("1/s") == pytest.approx(10, rel=0.001)
    assert "the GPU is 40 % idle and starved" in found.summary


def test_idle_and_not_starved(tmp_path):
    found = read(train(Training(), BATCHES, wait=0.5, step=72, kernels=56, gap=1.775, sync=False), tmp_path)
    assert found.verdict == "not input-bound"
    assert found.gpu.verdict == "28 % idle and not starved"
    assert found.gpu.cause == "launch gaps"
    assert found.gpu.idle_before_launch == pytest.approx(0.28, abs=0.02)
    assert "This job is not input-bound: the GPU is 28 % idle and not starved." in found.summary
    assert "the CPU has not launched the next work: use larger batches or torch.compile" in found.summary


def test_a_loop_that_waits_ahead_of_a_busy_gpu(tmp_path):
    found = read(train(Training(), BATCHES, wait=90, step=99.9, sync=False), tmp_path)
    assert found.host_wait > 0.95
    assert found.verdict == "not input-bound"
    assert found.stall < 0.05


def test_pageable_copies_are_named(tmp_path):
    training = train(Training(), BATCHES, wait=0.5, step=60, copy="Pageable", copying=39)
    found = read(training, tmp_path)
    assert found.verdict == "not input-bound"
    assert found.gpu.cause == "pageable copies"
    assert found.gpu.copying_pageable == pytest.approx(0.39, abs=0.01)
    assert (found.gpu.pageable_copies, found.gpu.pageable_bytes) == (BATCHES, BATCHES * 19_267_584)
    assert "pin the batches with pin_memory=True" in found.summary


def test_pinned_copies_that_nothing_hides(tmp_path):
    found = read(train(Training(), BATCHES, wait=0.5, step=60, copy="Pinned", copying=39), tmp_path)
    assert (found.gpu.cause, found.gpu.pageable_copies) == ("copies", 0)
    assert "send fewer bytes, such as uint8" in found.summary


def test_a_copy_beside_a_kernel_costs_nothing(tmp_path):
    training = train(Training(), BATCHES, wait=1, step=99)
    for event in [event for event in training.events if event.get("cat") == "kernel"]:
        training.events.append(
            event | {"cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "tid": 20}
        )
    found = read(training, tmp_path)
    assert found.gpu.copying == pytest.approx(0, abs=1e-9)
    assert (found.gpu.cause, found.gpu.verdict) == ("nothing", "1 % idle and not starved")


def test_a_wait_that_is_mirrored_on_the_gpu_counts_once(tmp_path):
    training = Training()
    for _ in range(BATCHES):
        training.wait(10, mirrored=True)
        training.launch(30)
        training.synchronize()
    assert read(training, tmp_path).host_wait == pytest.approx(0.25, abs=0.001)


def test_a_loader_that_reads_a_loader_waits_once(tmp_path):
    training = Training()
    for _ in range(BATCHES):
        training.wait(10)
        inner = training.events[-1]
        training.events.append(inner | {"ts": inner["ts"] + 1000, "dur": inner["dur"] - 2000})
        training.launch(30)
        training.synchronize()
    assert read(training, tmp_path).host_wait == pytest.approx(0.25, abs=0.001)


def test_waits_in_another_thread_are_not_those_of_the_loop(tmp_path):
    training = train(Training(), BATCHES, wait=1, step=99)
    for event in [event for event in training.events if "DataLoader" in event.get("name", "")]:
        training.events.append(event | {"tid": 99, "dur": 90_000})
    assert read(training, tmp_path).verdict == "not input-bound"


def test_each_pass_has_its_start_up(tmp_path):
    training = Training()
    for _ in range(3):
        training.wait(500)
        for number in range(6):
            training.compute(30)
            training.wait(10 if number < 5 else 0.01)  # the last `next` comes back without a batch
        training.now += 200  # the next pass starts its workers
    found = read(training, tmp_path)
    assert found.host_wait == pytest.approx(0.25, abs=0.001)
    assert [wait.m_as("ms") for wait in found.first_waits] == pytest.approx([500, 500, 500])
    assert found.batches == 19  # the `next` that ends the last pass looks like any other


def test_with_a_schedule_the_first_batch_of_the_trace_is_like_the_others(tmp_path):
    found = read(train(Training(), 3, wait=30, step=70), tmp_path)
    assert (found.counted, found.verdict) == (3, "highly input-bound")
    assert found.first_waits == ()


def test_steps_without_operations_are_steps(tmp_path):
    training = Training()
    for _ in range(BATCHES):
        training.wait(10)
        training.now += 30
    found = read(training, tmp_path)
    assert found.host_wait == pytest.approx(0.25, abs=0.001)
    assert found.stall is None
    assert found.gpu is None


def test_the_rank_that_waits_most_speaks_for_all(tmp_path):
    for rank in range(4):
        training = train(Training(rank=rank), BATCHES, wait=25 if rank == 2 else 1, step=75)
        training.write(tmp_path / f"worker{rank}.pt.trace.json.gz")
    found = read_trace(tmp_path)
    assert (found.rank, list(found.ranks)) == (2, [0, 1, 2, 3])
    assert found.host_wait == pytest.approx(0.25, abs=0.001)
    assert [one.verdict for one in found.ranks.values()].count("not input-bound") == 3
    assert found.summary.startswith("Rank 2 of 4 waits most. The GPU waits 25.0 % of the time for data")
    assert "rank 2      " in repr(found)


def test_ranks_may_be_named_by_their_files_or_not_at_all(tmp_path):
    paths = [
        train(Training(), BATCHES, wait=wait, step=50).write(tmp_path / name)
        for name, wait in (("rank7.json", 50), ("rank-2.json", 1), ("other.json", 1))
    ]
    found = read_trace(*paths)
    assert found.rank == 7
    assert sorted(found.ranks) == [2, 3, 7]


def test_ranks_that_were_merged_into_one_file(tmp_path):
    events = []
    for rank, wait in enumerate((1, 30)):
        events += train(Training(pid=100 + rank, device=rank), BATCHES, wait=wait, step=70).events
    found = read_trace(write(tmp_path / "merged.json", {"traceEvents": events}))
    assert found.rank == 1
    assert found.ranks[1].stall == pytest.approx(0.3, abs=0.001)
    assert found.ranks[0].verdict == "not input-bound"


def test_a_trace_without_a_dataloader_tells_of_the_gpu_only(tmp_path):
    training = Training()
    for _ in range(5):
        training.launch(10)
        training.synchronize()
        training.compute(30)
    found = read(training, tmp_path)
    assert (found.verdict, found.batches) == ("cannot tell", 0)
    assert found.gpu.busy == pytest.approx(50 / 170, abs=0.01)
    assert "the trace holds no wait for a DataLoader, and the GPU is 71 % idle" in found.summary


def test_one_step_is_no_verdict(tmp_path):
    found = read(train(Training(), 1, wait=30, step=70), tmp_path)
    assert found.verdict == "cannot tell"
    assert "only 1 batches count, and it takes 2. Record more steps of a longer run." in found.summary


def test_an_evaluation_in_the_trace_is_left_out(tmp_path):
    training = Training()
    for number in range(30):
        training.wait(10)
        training.launch(2000 if number == 15 else 30)
        training.synchronize()
    found = read(training, tmp_path)
    assert found.host_wait == pytest.approx(0.25, abs=0.001)
    assert (found.interruptions, found.gpu.busy) == (1, pytest.approx(0.75, abs=0.001))


def test_events_that_never_ended_or_lack_their_numbers_do_no_harm(tmp_path):
    training = train(Training(), BATCHES, wait=10, step=30)
    kernel = next(event for event in training.events if event.get("cat") == "kernel")
    training.events += [
        {name: value for name, value in kernel.items() if name != "dur"},
        kernel | {"args": None},
        kernel | {"args": {"device": 0, "correlation": "none"}},
        {"ph": "X", "cat": "user_annotation", "name": 5, "ts": kernel["ts"], "dur": 1, "pid": 1, "tid": 1},
        {},
    ]
    assert read(training, tmp_path).host_wait == pytest.approx(0.25, abs=0.001)
