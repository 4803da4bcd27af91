"""Traces made by hand, in the format that PyTorch's profiler writes: a training whose times are all known."""

import gzip
import json
from pathlib import Path

MULTI, SINGLE = "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"
CATEGORIES = {
    "wait": "user_annotation", "step": "user_annotation", "operation": "cpu_op",
    "launch": "cuda_runtime", "kernel": "kernel", "copy": "gpu_memcpy",
}  # fmt: skip


class Training:
    """A training loop that is written down as it goes: milliseconds here, microseconds in the trace."""

    def __init__(self, *, pid=4242, workers=2, device=0, origin=1_712_195_495_502.0):
        self.pid, self.device = pid, device
        self.loader = MULTI if workers else SINGLE
        self.now = self.gpu_free = origin
        self.correlation = 0
        self.events = [
            {"name": "process_name", "ph": "M", "ts": origin, "pid": pid, "tid": 0, "args": {}},
            {"ph": "X", "cat": "Trace", "ts": 1e3 * origin, "dur": 1, "pid": "Spans", "tid": "Profiler"},
        ]  # fmt: skip

    def _add(self, kind, name, start, length, *, on_gpu=False, **arguments):
        place = {"pid": self.device, "tid": 7} if on_gpu else {"pid": self.pid, "tid": self.pid}
        event = {"ph": "X", "cat": CATEGORIES[kind], "name": name, **place}
        self.events.append(event | {"ts": 1e3 * start, "dur": 1e3 * length, "args": arguments})

    def wait(self, length, *, mirrored=False):
        """The loop waits in `next`."""
        self._add("wait", f"enumerate(DataLoader)#{self.loader}.__next__", self.now, length)
        if mirrored:  # as an annotation of the GPU, which is no second wait
            self.events.append(self.events[-1] | {"cat": "gpu_user_annotation", "pid": self.device, "tid": 7})
        self.now += length

    def compute(self, length):
        """An operation on the CPU."""
        self._add("operation", "aten::mm", self.now, length)
        self.now += length

    def launch(self, length, *, copy="", size=0):
        """Give the GPU work; a pageable copy holds the loop up until it is done."""
        self.correlation += 1
        self._add("operation", "aten::to" if copy else "aten::conv2d", self.now, 0.01)
        call = "cudaMemcpyAsync" if copy else "cudaLaunchKernel"
        self._add("launch", call, self.now, 0.01, correlation=self.correlation)
        start = max(self.now + 0.01, self.gpu_free)
        self.gpu_free = start + length
        numbers = {"device": self.device, "correlation": self.correlation}
        if copy:
            name = f"Memcpy HtoD ({copy} -> Device)"
            self._add("copy", name, start, length, on_gpu=True, bytes=size, **numbers)
        else:
            self._add("kernel", "void at::native::elementwise_kernel", start, length, on_gpu=True, **numbers)
        self.now = self.gpu_free if copy == "Pageable" else self.now + 0.01

    def synchronize(self):
        """The loop reads a value, for which it waits until the GPU is done."""
        self.now = max(self.now, self.gpu_free)

    def mark(self, number, start):
        """The profiler's mark for a step that ends now."""
        self._add("step", f"ProfilerStep#{number}", start, self.now - start)

    def write(self, path: Path) -> Path:
        """The file; compressed if its name says so."""
        beside = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100"}]}
        return write(path, {**beside, "traceEvents": self.events, "traceName": "C:\\trace.json"})


def write(path: Path, content: object) -> Path:
    """A JSON file; compressed if its name says so."""
    text = json.dumps(content).encode()
    path.write_bytes(gzip.compress(text) if path.name.endswith(".gz") else text)
    return path


def train(
    training: Training,
    batches: int,
    *,
    wait: float,
    step: float,
    kernels: int = 10,
    gap: float = 0.0,
    copy="",
    copying=0.0,
    marked=True,
    sync=True,
) -> Training:
    """Batches that all take the same times.

    `step` is what the kernels of a batch take together, `gap` what the CPU needs before it launches each.
    """
    for number in range(batches):
        start = training.now
        training.wait(wait)
        if copy:
            training.launch(copying, copy=copy, size=19_267_584)
        for _ in range(kernels):
            training.compute(gap) if gap else None
            training.launch(step / kernels)
        if sync:
            training.synchronize()
        if marked:
            training.mark(5 + number, start)
    return training
