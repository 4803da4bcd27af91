"""A run agrees with itself and with what binds it, and closes what it opened whatever happens."""

import dataclasses

import numpy as np
import pytest

import starvelab
from starvelab import Drive, InputError, Pipeline, Requests, Samples, Storage
from starvelab.measure import SimulatedClock, Transform, session
from starvelab.measure.devices import VirtualAccelerator, VirtualLink, VirtualStorage
from starvelab.measure.measurement import summarize
from starvelab.measure.quality import Quality
from starvelab.measure.session import Session, run, time_bar
from starvelab.simulate import Trace

from .patience import patiently
from .scenes import STORED, kind, pipeline, tiny_samples, zeros

pytestmark = pytest.mark.programs

LOADERS = ["inline", "threads"]
STEP = VirtualAccelerator(0.05)
FAST = VirtualAccelerator(0.005)


def paced(pipe, most):
    """A record with the throughput [img/s] of what binds: never more, and on a busy machine a little less."""
    record = patiently(
        lambda: run(pipe, seconds="0.8 s", progress=False),
        lambda record: 0.7 * most < record.throughput.m_as("img/s") < 1.05 * most,
    )
    assert 0.7 * most < record.throughput.m_as("img/s") < 1.05 * most
    # Busy share = step x batches a second, whatever binds.
    busy = (record.step_time * record.throughput / record.trace.batch_size).m_as("img")
    assert record.utilization == pytest.approx(busy, rel=1e-6)
    assert record.utilization + record.stall == 1
    low, high = record.interval
    assert low <= high
    return record


@pytest.mark.parametrize("loader", LOADERS)
def test_an_accelerator_that_binds_sets_the_pace(tmp_path, nothing_stays, loader):
    record = paced(pipeline(tmp_path, **kind(loader), device=STEP), 4 / 0.050)
    assert record.source == "measured"
    assert list(record.stage_times) == ["read", "blank", "collate"]
    assert record.loader.endswith("0 workers" if loader == "inline" else "2 workers")


# Four samples of 1000 bytes in 40 ms, or of 48 bytes over 4.8 KB/s; a copy in turn adds to the step.
@pytest.mark.parametrize(("loader", "device", "milliseconds"), [
    ("processes", {"storage": VirtualStorage(100 * STORED)}, 40),
    pytest.param(
        "torch", {"storage": VirtualStorage(100 * STORED)}, 40, marks=pytest.mark.needs("torch")
    ),
    ("threads", {"link": VirtualLink(4800, overlapped=False)}, 45),
])  # fmt: skip
def test_a_device_that_binds_sets_the_pace(tmp_path, nothing_stays, loader, device, milliseconds):
    paced(pipeline(tmp_path, **kind(loader), **{"device": FAST} | device), 4e3 / milliseconds)


@pytest.mark.usefixtures("nothing_stays")
@pytest.mark.parametrize(("changes", "rate"), [
    ({"storage.requests.open": 4}, 320),
    ({"storage.of": Storage.S3_connection.replace(parallel_requests=8), "storage.requests.open": 4}, 160),
], ids=["four of each worker", "eight of all"])  # fmt: skip
def test_a_run_in_front_of_an_object_store_is_as_fast_as_its_requests(tmp_path, changes, rate):
    far = Pipeline(
        dataset=Samples(source=tiny_samples(tmp_path), transforms=[zeros()], cpu_time="0.1 ms", size="1 KB"),
        batch_size=4, workers=4, hardware="1 ms", storage=Drive("1 GB/s", requests=Requests("50 ms")),
    ).replace(changes)  # fmt: skip
    assert far.solve().throughput.m_as("img/s") == pytest.approx(rate, rel=0.02)
    measured = patiently(
        lambda: far.measure(seconds="0.5 s", progress=False).throughput.m_as("img/s"),
        lambda found: 0.6 * rate < found < 1.1 * rate,
    )
    assert 0.6 * rate < measured < 1.1 * rate  # a busy machine is late, and never early


@pytest.mark.parametrize("loader", ["threads", "torch"])
def test_the_last_transform_makes_an_array(tmp_path, nothing_stays, loader):
    setup = pipeline(tmp_path, transforms=[Transform("as list", list)], **kind(loader))
    with pytest.raises(InputError) as caught:
        run(setup, progress=False)
    assert str(caught.value) == (
        "The last transform must return a NumPy array, got list from 'as list'. "
        "Add a transform that converts, such as numpy.asarray."
    )


def test_the_trace_is_that_of_the_run(tmp_path):
    record = run(pipeline(tmp_path, device=FAST), seconds="0.2 s", progress=False)
    trace = record.trace
    assert (np.diff(trace.batch) == 1).all()
    assert (trace.prepare_start <= trace.prepared).all()
    # Within the clock's own steps.
    assert (trace.prepared <= trace.received + 1e-3).all()
    assert (trace.received <= trace.copy_start + 1e-3).all()
    assert (trace.copied <= trace.step_start + 1e-3).all()
    assert (trace.step_start[1:] >= trace.step_end[:-1] - 1e-6).all()


def test_a_run_says_what_it_does_and_for_how_long(tmp_path, capsys):
    run(pipeline(tmp_path, device=FAST), seconds="0.1 s")
    out = capsys.readouterr()
    assert out.out == "Running tiny images with 2 workers (threads) for about 0.1 s, and its start-up.\n"
    run(pipeline(tmp_path, device=FAST, workers=1), seconds="0.1 s")
    assert capsys.readouterr().out.startswith("Running tiny images with 1 worker (threads) for about")
    run(pipeline(tmp_path, device=FAST, workers=0), seconds="0.1 s")
    assert capsys.readouterr().out.startswith("Running tiny images in the training loop itself for about")
    run(pipeline(tmp_path, device=FAST, workers=0), seconds="0.05 s", progress=False)
    assert capsys.readouterr() == ("", "")


def test_a_slow_pipeline_is_run_until_each_worker_has_made_a_few_batches(tmp_path):
    record = run(pipeline(tmp_path, device=STEP), seconds="1 ms", progress=False)
    assert len(record.trace) >= 9


def by_hand(pipe, ends, step=10.0):
    ends = np.array(ends, dtype=float)
    same = dict.fromkeys(("prepare_start", "prepared", "received", "copy_start", "copied"), ends - step)
    trace = Trace(
        batch=range(len(ends)), worker=np.arange(len(ends)) % 2, step_start=ends - step, step_end=ends,
        batch_size=pipe.batch_size, source="measured", **same,
    )  # fmt: skip
    return summarize(pipe, trace, np.full(len(ends), 5.0), {"read": 0.002})


def test_batches_that_come_in_pairs_are_counted_in_pairs(tmp_path):
    # Two every 100 ms; of six, the first belongs to no whole pair.
    record = by_hand(pipeline(tmp_path), [10, 100, 110, 200, 210, 300])
    # From the end of batch 1 (100) to that of batch 5 (300): four batches in 200 ms, 10 of work each.
    assert record.period.m_as("ms") == pytest.approx(50)
    assert record.throughput.m_as("img/s") == pytest.approx(80)
    assert record.utilization == pytest.approx(0.2)
    assert record.host_wait == pytest.approx(4 * 5 / 200)
    assert record.stage_times["read"].m_as("ms") == pytest.approx(2)
    assert record.quality.windows == 2
    assert [rate.m_as("img/s") for rate in record.interval] == pytest.approx([80, 80])


def test_windows_that_differ_widen_the_interval(tmp_path):
    record = by_hand(pipeline(tmp_path, workers=1), [10, 60, 160, 210, 310])
    # Periods 50, 100, 50, 100: mean 75, deviation 28.87; times 1.96 / sqrt(4) that is 28.29 to either side.
    low, high = (rate.m_as("img/s") for rate in record.interval)
    assert low == pytest.approx(4000 / (75 + 28.29), rel=1e-3)
    assert high == pytest.approx(4000 / (75 - 28.29), rel=1e-3)
    assert record.quality.variation == pytest.approx(0.3849, rel=1e-3)
    alone = by_hand(pipeline(tmp_path, workers=1), [10, 60])
    assert (alone.quality.variation, alone.interval[0]) == (0, alone.interval[1])


@pytest.mark.parametrize(("loads", "kept", "said"), [
    ([0.0], 0.0, ""),
    ([0.4, 0.0], 0.0, "Something disturbed that run, so it runs once more.\n"),
    ([0.4, 0.6], 0.4, "Something disturbed that run, so it runs once more.\n"),
])  # fmt: skip
def test_a_disturbed_run_is_repeated_once(tmp_path, monkeypatch, capsys, loads, kept, said):
    clock = SimulatedClock({"decode": "5 ms"})
    made = run(pipeline(tmp_path), clock=clock)
    left = [dataclasses.replace(made, quality=Quality(load, 0.01, 8)) for load in loads]
    monkeypatch.setattr(session, "_measured", lambda *_: left.pop(0))
    assert run(pipeline(tmp_path), repeat=True).quality.background_load == kept
    assert left == []
    assert capsys.readouterr().out.partition("start-up.\n")[2] == said


def test_a_bar_shows_seconds_and_goes_away(capfd):
    with time_bar(3.0, shown=True) as bar:
        bar.update(1.2)
        bar.refresh()
    assert "1 of 3 s" in capfd.readouterr().err


@pytest.mark.parametrize(("workers", "dropped"), [(0, 1), (1, 3), (2, 6)])
def test_the_batches_of_the_start_do_not_count(tmp_path, workers, dropped):
    # Two ordered ahead for each worker, and one more of each.
    with Session(pipeline(tmp_path, workers=workers)) as session:
        session.warm_up()
        session.step()
        assert session.passed[0].number == dropped


def test_a_batch_is_not_kept_once_it_was_used(tmp_path):
    with Session(pipeline(tmp_path)) as session:
        session.warm_up()
        session.step()
        assert session.passed[0].array is None
        assert session.waits()[0] >= 0
        assert set(session.stage_seconds()) == {"read", "blank", "collate"}
        assert len(session.trace()) == 1


class Stored:
    """Samples of one byte."""

    name = "stored"

    def __len__(self):
        return 20

    def read(self, index):
        return bytes([index % 20])


def of_step(device):
    """Return a pipeline of one worker, with a training step or without."""
    decode = Transform("decode", lambda stored: np.frombuffer(stored, np.uint8), part="decode")
    part = starvelab.Accelerator(device=device)
    source = Samples(source=Stored(), transforms=[decode])
    return Pipeline(hardware=part, dataset=source, batch_size=4, workers=1)


def test_a_step_of_ones_own_is_run():
    seen = []
    measured = of_step(lambda batch: seen.append(batch.shape)).measure(seconds="0.1 s", progress=False)
    assert set(seen) == {(4, 1)}
    assert "GPU busy" in [row[0] for row in measured.rows]


def test_without_a_step_a_loader_is_measured_alone():
    measured = of_step(None).measure(seconds="0.1 s", progress=False)
    assert ", without a training step: pass Accelerator(device=train_step) to see how " in measured.summary
    assert "GPU busy" not in [row[0] for row in measured.rows]
