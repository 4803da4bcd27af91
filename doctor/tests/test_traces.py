"""`read_trace` on trainings with a GPU whose times are all known, and on files that are no traces."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import pytest

from doctor.tests.trainings import NEW, OLD, Training, train, write
from starvelab.errors import InputError
from starvelab_doctor import read_trace
from starvelab_doctor.traces import kineto

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
    assert (found.waits.batches, found.waits.counted) == (BATCHES, BATCHES if marked else BATCHES - 2)
    assert found.waits.host_wait == pytest.approx(0.4, abs=0.001)
    assert found.gpu.stall == pytest.approx(0.4, abs=0.001)
    assert found.gpu.use.busy == pytest.approx(0.6, abs=0.001)
    assert found.verdict == "highly input-bound"
    assert found.gpu.use.cause == "waiting for data"
    assert found.waits.batch_rate.m_as("1/s") == pytest.approx(10, rel=0.001)
    assert "the GPU is 40 % idle and starved" in found.summary


@pytest.mark.parametrize(("times", "verdict", "cause", "share", "said"), [
    ({"wait": 0.5, "step": 72, "kernels": 56, "gap": 1.775, "sync": False}, "28 % idle and not starved",
     "launch gaps", ("idle_before_launch", 0.28),
     "the CPU has not launched the next work: use torch.compile or larger batches"),
    ({"wait": 0.5, "step": 60, "copy": "Pageable", "copying": 39}, "1 % idle and not starved",
     "pageable copies", ("copying_pageable", 0.39), "pin the batches with pin_memory=True"),
    ({"wait": 0.5, "step": 60, "copy": "Pinned", "copying": 39}, "1 % idle and not starved", "copies",
     ("copying", 0.39), "send fewer bytes, such as uint8"),
    ({"wait": 90, "step": 99.9, "sync": False}, "8 % idle and not starved", "nothing", ("idle_in_waits", 0),
     ", and the training loop 99."),
], ids=["launches", "pageable copies", "copies that nothing hides", "a loop ahead of its GPU"])  # fmt: skip
def test_a_gpu_that_is_not_starved(tmp_path, times, verdict, cause, share, said):
    found = read(train(Training(), BATCHES, **times), tmp_path)
    assert found.verdict == "not input-bound"
    assert (found.gpu.use.verdict, found.gpu.use.cause) == (verdict, cause)
    assert getattr(found.gpu.use, share[0]) == pytest.approx(share[1], abs=0.02)
    assert f"This job is not input-bound: the GPU is {verdict}." in found.summary
    assert said in found.summary
    pageable = BATCHES * (times.get("copy") == "Pageable")
    assert found.gpu.use.pageable_copies == pageable


def test_a_copy_beside_a_kernel_costs_nothing(tmp_path):
    training = train(Training(), BATCHES, wait=1, step=99)
    for event in [event for event in training.events if event.get("cat") == "kernel"]:
        training.events.append(
            event | {"cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "tid": 20}
        )
    found = read(training, tmp_path)
    assert found.gpu.use.copying == pytest.approx(0, abs=1e-9)
    assert (found.gpu.use.cause, found.gpu.use.verdict) == ("nothing", "1 % idle and not starved")


@pytest.mark.parametrize("kind", ["mirrored", "nested", "without operations", "an evaluation"])
def test_waits_are_counted_once_and_evaluations_not(tmp_path, kind):
    training = Training()
    for number in range(30):
        training.wait(10, mirrored=kind == "mirrored")
        if kind == "nested":  # a loader that reads a loader
            inner = training.events[-1]
            training.events.append(inner | {"ts": inner["ts"] + 1000, "dur": inner["dur"] - 2000})
        if kind == "without operations":
            training.now += 30
        else:
            training.launch(2000 if kind == "an evaluation" and number == 15 else 30)
            training.synchronize()
    found = read(training, tmp_path)
    assert found.waits.host_wait == pytest.approx(0.25, abs=0.001)
    assert found.waits.interruptions == (kind == "an evaluation")
    if kind == "without operations":
        assert (found.gpu.stall, found.gpu.use) == (None, None)
    else:
        assert found.gpu.use.busy == pytest.approx(0.75, abs=0.001)


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
    assert found.waits.host_wait == pytest.approx(0.25, abs=0.001)
    assert [wait.m_as("ms") for wait in found.waits.first_waits] == pytest.approx([500, 500, 500])
    assert found.waits.batches == 19  # the `next` that ends the last pass looks like any other


def test_with_a_schedule_the_first_batch_of_the_trace_is_like_the_others(tmp_path):
    found = read(train(Training(), 3, wait=30, step=70), tmp_path)
    assert (found.waits.counted, found.verdict, found.waits.first_waits) == (3, "highly input-bound", ())


def test_the_rank_that_waits_most_speaks_for_all(tmp_path):
    for rank in range(4):
        training = train(Training(rank=rank), BATCHES, wait=25 if rank == 2 else 1, step=75)
        training.write(tmp_path / f"worker{rank}.pt.trace.json.gz")
    found = read_trace(tmp_path)
    assert (found.ranks.rank, list(found.ranks.found)) == (2, [0, 1, 2, 3])
    assert found.waits.host_wait == pytest.approx(0.25, abs=0.001)
    assert [one.verdict for one in found.ranks.found.values()].count("not input-bound") == 3
    assert found.summary.startswith("Rank 2 of 4 waits most. The GPU waits 25.0 % of the time for data")


def test_ranks_may_be_named_by_their_files_or_not_at_all_or_be_merged_into_one(tmp_path):
    paths = [
        train(Training(), BATCHES, wait=wait, step=50).write(tmp_path / name)
        for name, wait in (("rank7.json", 50), ("rank-2.json", 1), ("other.json", 1))
    ]
    found = read_trace(*paths)
    assert (found.ranks.rank, sorted(found.ranks.found)) == (7, [2, 3, 7])
    events = []
    for rank, wait in enumerate((1, 30)):
        events += train(Training(pid=100 + rank, device=rank), BATCHES, wait=wait, step=70).events
    found = read_trace(write(tmp_path / "merged.json", {"traceEvents": events}))
    assert found.ranks.rank == 1
    assert found.ranks.found[1].gpu.stall == pytest.approx(0.3, abs=0.001)
    assert found.ranks.found[0].verdict == "not input-bound"


def test_a_trace_without_a_dataloader_tells_of_the_gpu_only(tmp_path):
    training = Training()
    training.compute(30)
    assert read(training, tmp_path, "cpu.json").summary.endswith(
        "the trace holds no wait for a DataLoader. Profile a loop over a DataLoader of PyTorch, or put "
        "watch(...) around what yours goes over."
    )
    (tmp_path / "cpu.json").unlink()
    training = Training()
    for _ in range(5):
        training.launch(10)
        training.synchronize()
        training.compute(30)
    found = read(training, tmp_path)
    assert (found.verdict, found.waits.batches) == ("cannot tell", 0)
    assert found.gpu.use.busy == pytest.approx(50 / 170, abs=0.01)
    assert found.summary.startswith("Whether this job is input-bound, one cannot tell: the trace holds no")
    assert "the trace holds no wait for a DataLoader, and the GPU is 71 % idle. For 70" in found.summary
    assert found.summary.endswith("or put watch(...) around what yours goes over.")
    assert "loop waits" not in repr(found)
    training.write(tmp_path / "rank1.json")


@pytest.mark.parametrize("workers", [0, 2])
def test_the_name_of_the_iterator_tells_that_there_are_no_workers(tmp_path, workers):
    found = read(train(Training(workers=workers), BATCHES, wait=40, step=60), tmp_path)
    assert found.loader.workers == (None if workers else 0)
    said = "The iterator is a _SingleProcessDataLoaderIter, which has no workers: give the DataLoader"
    assert (said in found.summary) is not bool(workers)


def test_a_larger_cost_than_the_data_is_named_beside_it(tmp_path):
    found = read(train(Training(), BATCHES, wait=10, step=40, gap=7), tmp_path)
    assert (found.verdict, found.gpu.use.cause) == ("moderately input-bound", "launch gaps")
    larger = "Launch gaps cost the GPU more than waiting for data does. For 39.9"
    find = "Find the stage that is slow by a probe, and measure what it costs at most: starvelab-doctor "
    assert found.summary.index(larger) < found.summary.index(find)
    alone = read(train(Training(), BATCHES, wait=40, step=60), tmp_path)
    assert "cost the GPU more" not in alone.summary


def test_one_step_is_no_verdict(tmp_path):
    found = read(train(Training(), 1, wait=30, step=70), tmp_path)
    assert found.verdict == "cannot tell"
    assert "only 1 batch counted, and it takes 2. Record more steps of a longer run." in found.summary


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
    assert read(training, tmp_path).waits.host_wait == pytest.approx(0.25, abs=0.001)


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_events_are_those_of_the_file(tmp_path, monkeypatch, name, chunk):
    monkeypatch.setattr(kineto, "CHUNK", chunk)
    training = train(Training(rank=3), 2, wait=1, step=5)
    first, *events = kineto.events(training.write(tmp_path / name))
    assert events == training.events
    assert first["beside"]["distributedInfo"]["rank"] == 3


def test_a_bare_list_and_what_json_does_not_allow_are_traces_as_well(tmp_path):
    events = train(Training(), BATCHES, wait=1, step=1).events
    assert read_trace(write(tmp_path / "trace.json", events)).waits.batches == BATCHES
    events[3]["name"] = "aten::mm MARK"
    text = json.dumps({"traceEvents": events}).replace(
        "MARK", "\t\x01 \udcff".encode("utf-8", "surrogatepass").decode("latin1")
    )
    path = tmp_path / "trace.json"
    # The name of the trace stands behind the events, and is never read.
    path.write_bytes(
        text.replace('"dur": 1,', '"dur": NaN,').encode("latin1") + b', "traceName": "C:\\Users"}'
    )
    assert read_trace(path).waits.batches == BATCHES


def test_a_trace_does_not_stand_in_memory_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(kineto, "CHUNK", 1 << 12)
    events = train(Training(), 10, wait=1, step=1).events * 40
    path = write(tmp_path / "trace.json", {"traceEvents": events})
    tracemalloc.start()
    count = sum(1 for _ in kineto.events(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == len(events) + 1
    # Other threads of the process may take some, too.
    assert path.stat().st_size > 10 * peak


WHOLE = b'{"traceEvents": [{"ph": "X", "cat": "kernel", "ts": 1, "dur": 1, "name": "k"}, {"ph": "M"}]}'
PACKED = gzip.compress(WHOLE * 1000, mtime=0)


@pytest.mark.parametrize(("content", "message"), [
    (b"", r"A trace must hold events, and .*trace.json is empty. Let the profiler write it again"),
    (b"not JSON at all", r"and .*trace.json is none: it does not begin like JSON. Pass such a trace"),
    (b"\x00\x01\x02\x03 something else", "is none: it does not begin like JSON"),
    (b'{"schemaVersion": 1}', "is none: it has no traceEvents"),
    (b'{"traceEvents": {}}', "is none: its traceEvents are no list"),
    (b'{"a" 1}', "is none: it is no JSON"),
    (b"[1, 2, 3]", "is none: its list holds something else than events"),
    (b'{"traceEvents": []}', "must hold events, and .*trace.json holds none. Let the profiler run"),
    (b'[{"ph": "X", "cat": "blink", "ts": 1, "dur": 1}]', "holds none of its operations, kernels or marks"),
    (WHOLE[:60], "A trace must be whole, and .*trace.json ends or breaks off after 0 events"),
    (WHOLE[:82], "A trace must be whole, and .*trace.json ends or breaks off after 1 events"),
    (PACKED[:60], "A compressed trace must be whole, and .*trace.json is not:"),
    (PACKED[:-3], "A compressed trace must be whole"),
])  # fmt: skip
def test_files_that_are_no_traces(tmp_path, content, message):
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_trace(path)


@pytest.mark.parametrize(("name", "message"), [
    ("nowhere", r"read_trace reads a file, and there is none at .*nowhere. Check the"),
    ("", r"must hold files that end in .json, .json.gz, and"),
])  # fmt: skip
def test_a_file_or_a_folder_without_traces(tmp_path, name, message):
    with pytest.raises(InputError, match=message):
        read_trace(tmp_path / name)
