"""PyTorch's loader behind the common interface, and the lab without PyTorch."""

import os
import shutil
import subprocess
import sys
from collections import namedtuple

import pytest

from starvelab.errors import WorkerError, install_hint
from starvelab.measure import torch_loader as loader
from starvelab.measure.session import open_loader

from ..scenes import pipeline

torch = pytest.importorskip("torch")
WITHOUT_TORCH = "import sys; sys.modules['torch'] = None; from starvelab.measure import *; "


def without_torch(code, **environment):
    """What a fresh interpreter that has no PyTorch prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_TORCH + code],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    return done.stdout + done.stderr


def test_a_batch_comes_as_a_tensor(tmp_path, nothing_stays):
    opened = open_loader(pipeline(tmp_path, kind="torch"))
    array = opened.next().array
    opened.close()
    assert isinstance(array, torch.Tensor)
    assert (array.dtype, tuple(array.shape)) == (torch.uint8, (4, 3, 4, 4))


def test_too_little_room_is_said_before_torch_is_killed(tmp_path, monkeypatch):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(100))
    with pytest.raises(WorkerError) as caught:
        open_loader(pipeline(tmp_path, kind="torch"))
    assert str(caught.value) == (
        "The DataLoader's batches need 0 MB in /dev/shm, and 0 MB are free (containers often grant 64 MB). "
        "Send uint8, take smaller batches, kind='threads', or start the container with more (--shm-size)."
    )


def test_a_system_without_shared_memory_folder_is_not_asked_for_room(monkeypatch):
    def absent(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(shutil, "disk_usage", absent)
    loader._check_room(10**15)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("DataLoader worker (pid 7) exited unexpectedly with exit code 1."),
        RuntimeError("DataLoader worker (pid(s) 7, 8) exited unexpectedly"),
        RuntimeError("DataLoader timed out after 5 seconds"),
        ConnectionResetError(104, "Connection reset by peer"),
        EOFError(),
    ],
)
def test_torchs_words_for_a_lost_worker_are_known(error):
    assert isinstance(loader.explain_lost_worker(error), WorkerError)


@pytest.mark.parametrize(
    "error",
    [
        None,
        KeyboardInterrupt(),
        RuntimeError("Caught RuntimeError in DataLoader worker process 0.\nCUDA error"),
        ConnectionError("Caught ConnectionError in DataLoader worker process 0."),
        ValueError("DataLoader worker (pid 7)"),
    ],
)
def test_what_a_dataset_raises_is_no_lost_worker(error):
    assert loader.explain_lost_worker(error) is None


PIPE = (
    "import numpy as np; from starvelab import *; "
    "blank = Transform('blank', lambda raw: np.zeros(3)); "
    "samples = Samples(source=folder({home!r}), transforms=[blank]); "
    "pipe = Pipeline(dataset=samples, batch_size=2, workers=Workers(2, kind={kind!r}), hardware='2 ms'); "
)


def test_without_torch_everything_else_works(tmp_path):
    _ = pipeline(tmp_path)
    code = (
        f"{PIPE.format(home=str(tmp_path), kind='threads')}"
        "print(pipe.measure(seconds='0.05 s', progress=False).loader.split()[0]); "
        "print(pipe.diagnose(clock=SimulatedClock({'decode': '5 ms'})).bottleneck)"
    )
    assert without_torch(code).split() == ["threads", "decode"]


def test_without_torch_its_loader_says_what_to_install(tmp_path):
    _ = pipeline(tmp_path)
    code = PIPE.format(home=str(tmp_path), kind="torch") + "pipe.measure(progress=False)"
    assert (
        without_torch(code)
        .rstrip()
        .endswith(
            "starvelab.errors.InputError: kind='torch' needs PyTorch, and it is not installed. Take "
            f"another loader (threads, processes). {install_hint('torch')}"
        )
    )


def test_importing_the_lab_does_not_load_torch():
    code = "import sys; from starvelab.measure import *; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
