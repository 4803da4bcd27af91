"""A real GPU behind the interface of the simulated one, and the message where there is none."""

from __future__ import annotations

import subprocess
import sys

import pytest

from starvelab import InputError, MissingValueError
from starvelab.measure import CudaAccelerator, InputPipeline, diagnose, photo_transforms, photos, run

torch = pytest.importorskip("torch")
WITH_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that PyTorch can use")
NO_GPU = (
    "CudaAccelerator needs PyTorch and a GPU that it can use, and there is none here. "
    'Use VirtualAccelerator(step_time="30 ms") instead.'
)


@pytest.fixture
def pipe():
    return InputPipeline(
        samples=photos(count=8),
        batch_size=8,
        transforms=photo_transforms(send="uint8"),
        accelerator=CudaAccelerator(),
    )


def test_a_precision_is_one_of_three():
    with pytest.raises(InputError) as caught:
        CudaAccelerator(precision="fp8")
    assert str(caught.value) == "precision must be one of fp32, tf32, amp, got 'fp8'. Pass one of these."


def test_steps_in_flight_are_whole():
    with pytest.raises(InputError, match=r"in_flight must be a whole number from 1, or math.inf, got 1\.5"):
        CudaAccelerator(in_flight=1.5)


def test_without_a_gpu_the_simulated_one_is_proposed(pipe, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for drive in (run, diagnose):
        with pytest.raises(MissingValueError) as caught:
            drive(pipe, progress=False)
        assert str(caught.value) == NO_GPU


def test_without_torch_too():
    code = (
        "import sys; sys.modules['torch'] = None; from starvelab.measure import *; "
        "run(InputPipeline(samples=photos(count=1), accelerator=CudaAccelerator()), progress=False)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.rstrip().endswith(NO_GPU)


@WITH_GPU
@pytest.mark.parametrize("loader", ["threads", "torch"])
@pytest.mark.parametrize("precision", ["fp32", "amp"])
def test_a_gpu_trains_and_its_events_make_a_record(pipe, loader, precision):
    accelerator = CudaAccelerator(precision=precision)
    record = run(pipe.replace(loader=loader, accelerator=accelerator), seconds="1 s", progress=False)
    assert 0 < record.utilization <= 1.01
    assert record.utilization + record.stall == 1
    trace = record.trace
    assert (trace.step_start[1:] >= trace.step_end[:-1] - 0.1).all()
    assert (trace.copied <= trace.step_start + 0.1).all()


@WITH_GPU
@pytest.mark.parametrize("loader", ["threads", "torch"])
def test_a_gpu_can_be_diagnosed(pipe, loader):
    finding = diagnose(pipe.replace(loader=loader), budget="4 s", progress=False)
    assert list(finding.evidence) == ["read", "decode", "transform", "collate", "copy", "compute"]
