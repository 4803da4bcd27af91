"""Every loader delivers each batch once, in the order it was asked for, and leaves nothing behind."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import psutil
import pytest

from starvelab import InputError
from starvelab.errors import WorkerError
from starvelab.measure import Transform, loaders
from starvelab.measure.devices import VirtualAccelerator
from starvelab.measure.diagnosis import climb_ladder
from starvelab.measure.loaders import ProcessLoader
from starvelab.measure.session import Session, open_loader, run

from ..scenes import after, kind, pipeline

LOADERS = ["inline", "threads", "processes", "torch"]
WITH_WORKERS = LOADERS[1:]
APART = ["processes", "torch"]
DIED = {
    "processes": "A worker process died. Something ended it from outside, most often a lack of memory. Try "
    "fewer workers, smaller batches, or kind='threads'. In a script, run it below "
    "if __name__ == '__main__'.",
    "torch": "A worker of the DataLoader died or hangs. Something ended it from outside, most often a lack "
    "of memory or of room in /dev/shm. Try fewer workers, smaller batches, or send uint8.",
}
torch_loader = pytest.importorskip("starvelab.measure.torch_loader", exc_type=InputError)
pytestmark = [pytest.mark.long, pytest.mark.programs, pytest.mark.usefixtures("nothing_stays")]


def numbered(home):
    """A pipeline whose samples carry the number of their file."""
    pipe = pipeline(home, batch_size=2)
    for number, path in enumerate(pipe.samples.contents):
        path.write_bytes(bytes([number]))

    def number(raw):
        return np.frombuffer(raw, np.uint8)

    return pipe.replace(transforms=[Transform("number", number)])


@pytest.mark.parametrize("loader", LOADERS)
def test_batches_come_in_order_hold_their_own_samples_and_begin_at_the_rung(tmp_path, loader):
    opened = open_loader(numbered(tmp_path).replace(**kind(loader)))
    try:
        for expected in range(7):
            delivery = opened.next()
            first = 2 * expected % 8
            assert delivery.number == expected
            assert delivery.worker == (-1 if loader == "inline" else expected % 2)
            assert np.asarray(delivery.array).ravel().tolist() == [first, first + 1]
            assert delivery.end >= delivery.start
        opened.rung = 3
        assert [opened.next().rung for _ in range(12)][-1] == 3
    finally:
        opened.close()


def test_a_kept_batch_outlives_the_slot_it_stood_in(tmp_path):
    with Session(numbered(tmp_path).replace(kind="processes")) as session:
        session.set_rung(4)
        kept = session.kept.tolist()
        came = [session.loader.next().array.tolist() for _ in range(8)]
        assert any(batch != kept for batch in came)
        assert session.kept.tolist() == kept


@pytest.mark.parametrize("loader", WITH_WORKERS)
def test_no_workers_at_all_is_the_training_loop(tmp_path, loader):
    opened = open_loader(numbered(tmp_path).replace(**kind(loader), workers=0))
    assert (opened.next().worker, opened.workers, opened.ahead) == (-1, 0, 0)
    opened.close()


@pytest.mark.parametrize("loader", ["threads", "torch"])
def test_without_an_order_a_slow_batch_holds_nobody_up(tmp_path, loader):
    pipe = numbered(tmp_path)

    def slow_zero(raw):
        number = np.frombuffer(raw, np.uint8)
        time.sleep(0.3 if number[0] == 0 else 0)
        return number

    opened = open_loader(
        pipe.replace(**kind(loader), in_order=False, transforms=[Transform("number", slow_zero)])
    )
    try:
        came = [opened.next().number for _ in range(4)]
        while 0 not in came:
            came.append(opened.next().number)
    finally:
        opened.close()
    assert came[0] != 0
    assert len(set(came)) == len(came)


@pytest.mark.parametrize("loader", APART)
def test_a_transform_that_raises_is_named_with_its_sample(tmp_path, loader):
    def fail():
        raise KeyError("no such label")

    pipe = pipeline(tmp_path, transforms=[after(6, fail)], kind=loader, workers=1)
    with pytest.raises(InputError) as caught:
        run(pipe, progress=False)
    assert "Transform 'trick' failed on" in str(caught.value)
    assert ".jpg: KeyError: 'no such label'. Try the function on that sample by itself." in str(caught.value)


def test_samples_of_differing_shape_are_refused_where_pytorch_joins_them(tmp_path):
    pipe = pipeline(tmp_path)
    pipe.samples.contents[2].write_bytes(b"short")

    def as_long(raw):
        return np.frombuffer(raw, np.uint8)

    with pytest.raises(InputError, match="All samples of a batch must have one shape and type"):
        run(pipe.replace(**kind("torch"), transforms=[Transform("bytes", as_long)]), progress=False)


# PyTorch's connection to a worker that died while it sent a batch fails once more when it is collected, its
# files are left open, and its handler of ended workers may interrupt whatever is cleaned up at that moment.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("loader", "step"), [("processes", 0.15), ("torch", 0.15), ("torch", 0.001)])
def test_a_worker_that_dies_is_reported(tmp_path, loader, step):
    # With a long step the loop is somewhere else when it happens.
    pipe = pipeline(tmp_path, **kind(loader), workers=1, transforms=[after(22, lambda: os._exit(1))])
    with pytest.raises(WorkerError) as caught:
        run(pipe.replace(device=VirtualAccelerator(step)), progress=False)
    assert str(caught.value) == DIED[loader]


@pytest.mark.parametrize("loader", WITH_WORKERS)
def test_a_worker_that_hangs_is_given_up(tmp_path, loader, monkeypatch):
    # Processes start slowly.
    monkeypatch.setattr(loaders, "BATCH_TIMEOUT", 3.0 if loader == "processes" else 0.5)
    monkeypatch.setattr(torch_loader, "BATCH_TIMEOUT", 1.0)
    monkeypatch.setattr(loaders, "LAST_BATCH_TIMEOUT", 0.2)
    monkeypatch.setattr(pytest.importorskip("torch.utils.data._utils"), "MP_STATUS_CHECK_INTERVAL", 0.2)
    wake = threading.Event()  # a thread cannot be ended, so the test wakes it
    transform = after(22, wake.wait if loader == "threads" else lambda: time.sleep(60))
    pipe = pipeline(tmp_path, **kind(loader), workers=1, transforms=[transform])
    begun = time.monotonic()
    with pytest.raises(WorkerError) as caught:
        run(pipe, progress=False)
    wake.set()
    assert time.monotonic() - begun < 40  # and not the 60 that it would have slept
    if loader == "torch":
        assert str(caught.value) == DIED["torch"]
    else:
        assert "so worker 0 hangs. Try its transforms with workers=0 to see where." in str(caught.value)


def test_a_worker_that_is_only_starting_is_ended_too(tmp_path):
    class SlowToArrive:
        def __call__(self, raw):
            return np.zeros((3, 4, 4), np.uint8)

        def __reduce__(self):
            return time.sleep, (60,)

    pipe = pipeline(tmp_path, kind="processes", workers=1, transforms=[Transform("slow", SlowToArrive())])
    before = set(multiprocessing.active_children())
    opened = open_loader(pipe)
    (started,) = set(multiprocessing.active_children()) - before
    opened.close()
    assert not started.is_alive()


@pytest.mark.parametrize(
    ("loader", "drive"), [("threads", climb_ladder), ("processes", run), ("torch", climb_ladder)]
)
def test_an_interrupt_leaves_nothing_behind(tmp_path, loader, drive):
    steps = iter(range(5))

    def step(batch):
        if next(steps, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drive(pipeline(tmp_path, kind=loader, workers=1, device=step), progress=False)


@pytest.mark.parametrize("loader", APART)
def test_an_interrupt_while_workers_start_leaves_nothing_behind(tmp_path, loader, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(ProcessLoader, "_send", interrupted)
    monkeypatch.setattr(torch_loader, "iter", interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt):
        open_loader(pipeline(tmp_path, **kind(loader)))


PROGRAM = """
import os, sys
from pathlib import Path
import numpy as np
from starvelab import Pipeline, Samples, Workers
from starvelab.measure import StoredSource, Transform

if __name__ == "__main__":
    def blank(raw):
        Path(sys.argv[1], f"runs-{os.getpid()}").touch()
        return np.zeros(3)
    own = StoredSource("own", tuple(Path(sys.argv[2]).glob("*.jpg")))
    samples = Samples(source=own, transforms=[Transform("blank", blank)])
    pipe = Pipeline(dataset=samples, batch_size=2, workers=Workers(2, kind=sys.argv[3]))
    pipe.measure(seconds="60 s", progress=False)
"""


@pytest.mark.parametrize("loader", APART)
def test_ctrl_c_in_a_terminal_ends_workers_and_program(tmp_path, nothing_stays, loader):
    (tmp_path / "program.py").write_text(PROGRAM)
    _ = pipeline(tmp_path)  # its files are the samples
    command = [sys.executable, str(tmp_path / "program.py"), str(nothing_stays), str(tmp_path), loader]
    # A group of its own, as a terminal has it: an interrupt reaches every process in it.
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as program:
        try:
            # The program itself and two workers.
            while len(list(nothing_stays.glob("runs-*"))) < 3 and program.poll() is None:
                time.sleep(0.05)
            workers = psutil.Process(program.pid).children(recursive=True)
            os.killpg(program.pid, signal.SIGINT)
            _, said = program.communicate(timeout=120)
        finally:
            program.kill()
    assert len(workers) >= 2
    assert program.returncode != 0
    assert said.rstrip().endswith("KeyboardInterrupt")
    assert psutil.wait_procs(workers, timeout=10)[1] == []


@pytest.mark.parametrize("loader", APART)
def test_what_cannot_be_sent_to_a_worker_is_said(tmp_path, loader):
    lock = threading.Lock()

    def locked(raw):
        with lock:
            return np.zeros(3)

    with pytest.raises(InputError) as caught:
        open_loader(pipeline(tmp_path, **kind(loader), transforms=[Transform("locked", locked)]))
    assert str(caught.value) == (
        "Transforms are pickled for another process, and that failed: cannot pickle "
        "'_thread.lock' object. Take locks, open files and generators out of them, or pass kind='threads'."
    )
