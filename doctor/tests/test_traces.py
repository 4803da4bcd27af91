"""`read_trace` on trainings with a GPU whose times are all known, and on files that are no traces."""

from __future__ import annotations

import gzip

import pytest

from doctor.tests.trainings import Training, train
from starvelab.errors import InputError
from starvelab_doctor import read_trace

BATCHES = 12


def read(training, tmp_path, name="trace.json"):
    return read_trace(training.write(tmp_path / name))


@pytest.mark.parametrize("workers", [0, 4])
@pytest.mark.parametrize("marked", [True, False])
def test_a_starved_gpu(tmp_path, workers, marked):
    training = train(Training(workers=workers), BATCHES, wait=40, step=60, marked=marked)
    found = read(training, tmp_path, "trace.json.gz")
    # The first wait is a start-up. Without marks the step after the last wait has no end.
    assert (found.waits.batches, found.waits.counted) == (BATCHES, BATCHES - (1 if marked else 2))
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
    ({"wait": 90, "step": 99.9, "sync": False}, "0 % idle and not starved", "nothing", ("idle_in_waits", 0),
     ", and the training loop 99."),
], ids=["launches", "pageable copies", "copies that nothing hides", "a loop ahead of its GPU"])  # fmt: skip
def test_a_gpu_that_is_not_starved(tmp_path, times, verdict, cause, share, said):
    found = read(train(Training(), BATCHES, **times), tmp_path)
    assert found.verdict == "not input-bound"
    assert (found.gpu.use.verdict, found.gpu.use.cause) == (verdict, cause)
    assert getattr(found.gpu.use, share[0]) == pytest.approx(share[1], abs=0.02)
    assert f"This job is not input-bound: the GPU is {verdict}." in found.summary
    assert said in found.summary


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
    assert found.summary.startswith("Cannot tell whether this job is input-bound: the trace holds no")
    assert "the trace holds no wait for a DataLoader, and the GPU is 71 % idle. For 70" in found.summary
    assert found.summary.endswith("or put watch(...) around what yours goes over.")
    assert "loop waits" not in repr(found)


@pytest.mark.parametrize("workers", [0, 2])
def test_the_name_of_the_iterator_tells_that_there_are_no_workers(tmp_path, workers):
    found = read(train(Training(workers=workers), BATCHES, wait=40, step=60), tmp_path)
    assert found.loader.workers == (None if workers else 0)
    assert ("Without workers the loop prepares each batch itself" in found.summary) is not bool(workers)


def test_a_larger_cost_than_the_data_is_named_beside_it(tmp_path):
    found = read(train(Training(), BATCHES, wait=10, step=40, gap=7), tmp_path)
    assert (found.verdict, found.gpu.use.cause) == ("moderately input-bound", "launch gaps")
    ladder = "starvelab-doctor --ladder train.py measures what a faster input brings at most."
    assert found.summary.index("of the time the CPU has not launched") < found.summary.index(ladder)
    alone = read(train(Training(), BATCHES, wait=40, step=60), tmp_path)
    assert "the CPU has not launched" not in alone.summary


def test_one_step_is_no_verdict(tmp_path):
    found = read(train(Training(), 1, wait=30, step=70), tmp_path)
    assert found.verdict == "cannot tell"
    assert "only 0 batches counted, and 2 are needed. Watch more batches of a longer run." in found.summary


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


def test_what_json_does_not_allow_stands_in_traces_as_well(tmp_path):
    path = train(Training(), BATCHES, wait=1, step=1).write(tmp_path / "trace.json")
    path.write_bytes(path.read_bytes().replace(b"aten::mm", b"aten::mm \x01 \xff"))
    assert read_trace(path).waits.batches == BATCHES


@pytest.mark.parametrize(("content", "message"), [
    (b"", r"read_trace reads a trace of PyTorch's profiler, got .*trace.json: Expecting value"),
    (b"not JSON at all", "Pass what export_chrome_trace wrote, after the program left its `with` block."),
    (b'{"schemaVersion": 1}', "trace.json: it has no traceEvents. Pass"),
    (b"[1, 2, 3]", "it has no traceEvents"),
    (b'{"traceEvents": [1, {}]}', "it holds none of its operations, kernels or marks"),
    (b'{"traceEvents": [{"ph": "X", "cat": "blink", "ts": 1, "dur": 1}]}', "it holds none of its operations"),
    (b'{"traceEvents": [{"ph": "X", "cat": "ker', "Unterminated string"),
    (gzip.compress(b"{}" * 1000, mtime=0)[:-3], "Compressed file ended before the end-of-stream marker"),
])  # fmt: skip
def test_files_that_are_no_traces(tmp_path, content, message):
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_trace(path)


def test_a_file_that_is_missing(tmp_path):
    with pytest.raises(InputError, match=r"nowhere: .*No such file or directory"):
        read_trace(tmp_path / "nowhere")
