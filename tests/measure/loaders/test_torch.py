"""PyTorch's loader behind the common interface, and the lab without PyTorch."""

import subprocess
import sys

import pytest

from starvelab.errors import WorkerError, install_hint
from starvelab.measure.session import open_loader

from ..scenes import pipeline

pytestmark = pytest.mark.programs

torch = pytest.importorskip("torch")
loader = pytest.importorskip("starvelab.measure.torch_loader")


def test_a_batch_comes_as_a_tensor(tmp_path, nothing_stays):
    opened = open_loader(pipeline(tmp_path, kind="torch"))
    array = opened.next().array
    opened.close()
    assert isinstance(array, torch.Tensor)
    assert (array.dtype, tuple(array.shape)) == (torch.uint8, (4, 3, 4, 4))


@pytest.mark.parametrize("error", [
    RuntimeError("DataLoader worker (pid 7) exited unexpectedly with exit code 1."),
    RuntimeError("DataLoader worker (pid(s) 7, 8) exited unexpectedly"),
    RuntimeError("DataLoader timed out after 5 seconds"),
    ConnectionResetError(104, "Connection reset by peer"),
    EOFError(),
])  # fmt: skip
def test_torchs_words_for_a_lost_worker_are_known(error):
    assert isinstance(loader.explain_lost_worker(error), WorkerError)


@pytest.mark.parametrize("error", [
    None,
    KeyboardInterrupt(),
    RuntimeError("Caught RuntimeError in DataLoader worker process 0.\nCUDA error"),
    ConnectionError("Caught ConnectionError in DataLoader worker process 0."),
    ValueError("DataLoader worker (pid 7)"),
])  # fmt: skip
def test_what_a_dataset_raises_is_no_lost_worker(error):
    assert loader.explain_lost_worker(error) is None


WITHOUT_TORCH = """
import sys; sys.modules["torch"] = None
import numpy as np
from starvelab import *
from starvelab.measure import *

blank = Transform("blank", lambda raw: np.zeros(3))
samples = Samples(source=StoredSource("own", (b"a sample",) * 8), transforms=[blank])
pipe = Pipeline(dataset=samples, batch_size=2, workers=Workers(2, kind="threads"), hardware="2 ms")
print(pipe.measure(seconds="0.05 s", progress=False).loader.split()[0])
print(pipe.diagnose(clock=SimulatedClock({"decode": "5 ms"})).bottleneck)
try:
    pipe.replace({"workers.kind": "torch"}).measure(progress=False)
except InputError as error:
    print(error)
"""


def test_without_torch_everything_else_works_and_what_needs_it_says_so():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_TORCH], capture_output=True, text=True
    )
    assert (done.stdout + done.stderr).splitlines() == [
        "threads",
        "decode",
        "kind='torch' needs PyTorch, and it is not installed. Take another loader (threads, processes). "
        + install_hint("torch"),
    ]
