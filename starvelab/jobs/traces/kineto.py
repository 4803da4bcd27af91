"""Traces of PyTorch's profiler: which of their events are waits, launches, kernels and copies.

The names of categories changed with PyTorch 1.11 (`Kernel` became `kernel`, `Memcpy` became `gpu_memcpy`,
`Runtime` became `cuda_runtime`); both are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ...errors import InputError
from .chrome import Event, events
from .timeline import GpuWork, Timeline

WAIT = "enumerate(DataLoader)"
STEP = re.compile(r"ProfilerStep#(\d+)")
KERNELS = {"kernel", "concurrent_kernel", "gpu_memset", "memset"}
COPIES = {"gpu_memcpy", "memcpy"}
LAUNCHES = {"cuda_runtime", "runtime", "cuda_driver", "driver", "hip_runtime", "xpu_runtime"}
OPERATIONS = {"cpu_op", "operator"}
ANNOTATIONS = {"user_annotation", *OPERATIONS}
# What shows that a trace is PyTorch's own, and not one of a browser.
KNOWN = KERNELS | COPIES | LAUNCHES | ANNOTATIONS | {"python_function"}


def timelines(path: Path) -> list[Timeline]:
    """One timeline for each training process of a trace.

    Raises
    ------
    InputError
        If the file is no trace of PyTorch, is damaged or holds no events.
    """
    stream = events(path)
    beside = next(stream)["beside"]
    reader = _Kineto()
    reader.read(stream)
    if not reader.count:
        raise InputError(
            f"A trace must hold events, and {path} holds none. Let the profiler run for some steps of the "
            "training: with a schedule, call its step() after each."
        )
    if not reader.known:
        raise InputError(
            f"read_trace reads traces of PyTorch's profiler, and {path} holds none of its operations, kernels"
            " or marks. Pass what torch.profiler's export_chrome_trace wrote."
        )
    return reader.timelines(_rank(beside, path))


class _Kineto:
    """Sorts the events of a trace."""

    def __init__(self) -> None:
        self.count = self.known = 0
        self.origin: float | None = None
        # A trace of one process has its number at all its host events; merged traces have several.
        self.processes: dict[object, Timeline] = {}
        self.devices = Timeline()

    def read(self, stream: Iterable[Event]) -> None:
        """Take what is needed of each event."""
        for event in stream:
            self.count += 1
            category = str(event.get("cat", "")).lower()
            self.known += category in KNOWN
            if event.get("ph") != "X" or category not in KNOWN:
                continue
            try:
                start, length = float(event["ts"]), float(event["dur"])
            except (KeyError, TypeError, ValueError):
                continue  # an event that never ended
            if self.origin is None:
                self.origin = start
            start -= self.origin
            if category in KERNELS or category in COPIES:
                self._gpu(event, category, start, start + length)
            elif category in LAUNCHES:
                correlations, starts = self._process(event).launches
                correlations.append(_correlation(event))
                starts.append(start)
            elif category in ANNOTATIONS:
                self._host(event, category, start, start + length)

    def _process(self, event: Event) -> Timeline:
        return self.processes.setdefault(event.get("pid"), Timeline())

    def _host(self, event: Event, category: str, start: float, end: float) -> None:
        thread = self._process(event).thread(event.get("tid"))
        name = str(event.get("name", ""))
        if name.startswith(WAIT):
            thread.waits.append((start, end))
        elif step := STEP.match(name):
            thread.steps.append((int(step[1]), start, end))
        elif category in OPERATIONS:
            thread.operations.append(start)

    def _gpu(self, event: Event, category: str, start: float, end: float) -> None:
        arguments = event.get("args") or {}
        device = arguments.get("device", event.get("pid"))
        kind = GpuWork.KERNEL
        if category in COPIES:
            # "Memcpy HtoD (Pageable -> Device)"; the name says from where to where.
            pageable = "pageable" in str(event.get("name", "")).lower()
            kind = GpuWork.PAGEABLE if pageable else GpuWork.COPY
            if pageable:
                self.devices.pageable_bytes += float(arguments.get("bytes") or 0)
        self.devices.gpu(device).add(start, end, kind, _correlation(event))

    def timelines(self, rank: int | None) -> list[Timeline]:
        """What was read, one timeline for each process whose loop waits for data."""
        waiting = [
            process for process in self.processes.values() if any(t.waits for t in process.threads.values())
        ]
        if len(waiting) > 1 and len(waiting) == len(self.devices.gpus):
            # Traces of several ranks in one file: each process has its GPU, in the order of their numbers.
            for number, (process, device) in enumerate(
                zip(waiting, sorted(self.devices.gpus, key=str), strict=True)
            ):
                process.rank, process.gpus = number, {device: self.devices.gpus[device]}
                process.pageable_bytes = self.devices.pageable_bytes / len(waiting)
            return waiting
        if len(waiting) > 1:
            for number, process in enumerate(waiting):
                process.rank = number
            return waiting
        only = waiting[0] if waiting else next(iter(self.processes.values()), Timeline())
        only.rank, only.gpus = rank, self.devices.gpus
        only.pageable_bytes = self.devices.pageable_bytes
        return [only]


def _correlation(event: Event) -> int:
    found = (event.get("args") or {}).get("correlation", -1)
    try:
        return int(found)
    except (TypeError, ValueError):
        return -1


def _rank(beside: Event, path: Path) -> int | None:
    """The rank that the trace names, or else its file."""
    distributed = beside.get("distributedInfo")
    if isinstance(distributed, dict) and isinstance(distributed.get("rank"), int):
        rank: int = distributed["rank"]
        return rank
    named = re.search(r"rank[-_]?(\d+)", path.name)
    return int(named[1]) if named else None
