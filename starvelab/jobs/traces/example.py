"""A trace of a training on a GPU whose times are set, as PyTorch's profiler writes it; no GPU is needed."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from ...units import Unchecked, nonnegative, positive_int
from .chrome import Event
from .kineto import WAIT

PROCESS, DEVICE = 4242, 0
LAUNCH = 0.01  # ms that the CPU needs for a launch, beside what the gap is
BYTES = 16 * 3 * 224 * 224 * 4


def example_trace(
    path: str | os.PathLike[str] = "trace.json",
    *,
    wait: Unchecked = "2 ms",
    copy_time: Unchecked = "22 ms",
    pinned: bool = False,
    launch_gap: Unchecked = "0.5 ms",
    kernel_time: Unchecked = "3 ms",
    kernels: int = 10,
    batches: int = 12,
) -> Path:
    """Write the trace of a training whose batches all take the same times.

    Parameters
    ----------
    path : path
        The file, which is replaced.
    wait : quantity [time]
        Of the training loop, for each batch.
    copy_time : quantity [time]
        Of a batch to the GPU.
    pinned : bool
        Whether batches lie in pinned memory: then their copy runs beside the kernels of the step before. The
        loop waits for a copy from pageable memory.
    launch_gap : quantity [time]
        What the CPU needs before it launches each kernel.
    kernel_time : quantity [time]
    kernels, batches : int

    Returns
    -------
    Path
        The file, for `read_trace`.
    """
    training = _Training()
    lengths = [_ms(value, name) for value, name in ((wait, "wait"), (copy_time, "copy_time"))]
    gap, each = _ms(launch_gap, "launch_gap"), _ms(kernel_time, "kernel_time")
    for number in range(positive_int(batches, "batches")):
        start = training.now
        training.on_host("user_annotation", f"{WAIT}#_MultiProcessingDataLoaderIter.__next__", lengths[0])
        training.copies(lengths[1], ahead_of=start if pinned else None)
        for _ in range(positive_int(kernels, "kernels")):
            training.on_host("cpu_op", "aten::conv2d", gap)
            training.computes(each)
        training.now = max(training.now, training.free)  # the loop reads the loss
        training.add("user_annotation", f"ProfilerStep#{number + 3}", start, training.now - start)
    file = Path(path)
    file.write_text(json.dumps({"schemaVersion": 1, "traceEvents": training.events}), encoding="utf-8")
    return file


def _ms(value: Unchecked, name: str) -> float:
    return float(nonnegative(value, "ms", name))


@dataclass
class _Training:
    """A training that is written down as it goes; times are milliseconds here, and microseconds there."""

    now: float = 1000.0
    free: float = 0.0  # when the GPU has done its work
    launches: int = 0
    events: list[Event] = field(default_factory=list)

    def add(self, category: str, name: str, start: float, length: float, **arguments: object) -> None:
        """One event; what has a device belongs to the GPU."""
        process = DEVICE if "device" in arguments else PROCESS
        event = {"ph": "X", "cat": category, "name": name, "pid": process, "tid": process}
        self.events.append(event | {"ts": 1e3 * start, "dur": 1e3 * length, "args": arguments})

    def on_host(self, category: str, name: str, length: float) -> None:
        """The loop is at something for so long."""
        self.add(category, name, self.now, length)
        self.now += length

    def copies(self, length: float, *, ahead_of: float | None) -> None:
        """A batch goes to the GPU; from pinned memory it went ahead of a moment, beside other kernels."""
        launched = self._launched("cudaMemcpyAsync")
        memory = "Pageable" if ahead_of is None else "Pinned"
        start = launched if ahead_of is None else ahead_of - length
        self.add(
            "gpu_memcpy", f"Memcpy HtoD ({memory} -> Device)", start, length,
            device=DEVICE, correlation=self.launches, bytes=BYTES,
        )  # fmt: skip
        if ahead_of is None:
            self.now = start + length
        self.free = max(self.free, start + length)

    def computes(self, length: float) -> None:
        """A kernel."""
        start = max(self._launched("cudaLaunchKernel"), self.free)
        self.free = start + length
        name = "void at::native::vectorized_elementwise_kernel"
        self.add("kernel", name, start, length, device=DEVICE, correlation=self.launches)

    def _launched(self, call: str) -> float:
        self.launches += 1
        self.on_host("cpu_op", "aten::to", 0.0)
        self.add("cuda_runtime", call, self.now, LAUNCH, correlation=self.launches)
        self.now += LAUNCH
        return self.now
