"""A trace of PyTorch's profiler as a timeline: who waited when on the host, and what the GPU did when.

All times are microseconds since one moment of the trace. Spans are arrays of two columns, start and end.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from starvelab.errors import InputError

from ..spans import union
from ..torch_internals import SINGLE

Event: TypeAlias = dict[str, Any]  # Any: whatever JSON holds
GZIP = b"\x1f\x8b"
WAIT, STEP = "enumerate(DataLoader)", "ProfilerStep#"
KERNELS, COPIES = {"kernel", "gpu_memset"}, {"gpu_memcpy"}
LAUNCHES = {"cuda_runtime", "cuda_driver", "hip_runtime", "xpu_runtime"}
OPERATION, MARK = "cpu_op", "user_annotation"
# Kinds of work of a GPU; PAGEABLE is a copy from or to memory that is not pinned.
KERNEL, COPY, PAGEABLE = range(3)


@dataclass
class HostThread:
    """One thread of the training program."""

    waits: list[tuple[float, float]] = field(default_factory=list)  # each `next` of a DataLoader
    ends: list[float] = field(default_factory=list)  # of the steps that the profiler marked
    operations: list[float] = field(default_factory=list)  # when each of them starts
    alone: bool = False  # the iterator has no workers


@dataclass(frozen=True)
class Timeline:
    """A trace of one process, and the GPU with most work."""

    loop: HostThread  # where the steps are marked, or else that waits most
    work: np.ndarray  # spans of the kernels and copies, by their start
    kinds: np.ndarray
    launched: np.ndarray  # when the CPU launched each; minus infinity where the trace does not tell

    @property
    def waits(self) -> np.ndarray:
        """The waits in order; one within another, of a loader that reads a loader, is part of it."""
        return union(*np.array(self.loop.waits).reshape(-1, 2).T)

    def spans(self, *kinds: int) -> np.ndarray:
        """Return when the GPU was at work of some kinds."""
        return union(*self.work[np.isin(self.kinds, kinds)].T)


def read_timeline(path: Path) -> Timeline:
    """Return the timeline of a trace; raise an `InputError` where a file is none."""
    threads: dict[object, HostThread] = defaultdict(HostThread)
    work: dict[object, list[tuple[float, float, int, object]]] = defaultdict(list)
    launches: dict[object, float] = {}
    events = [event for event in _events(path) if isinstance(event, dict) and event.get("ph") == "X"]
    origin = min((float(event["ts"]) for event in events if "ts" in event), default=0.0)
    for event in events:
        if not {"cat", "name", "ts", "dur"} <= event.keys():
            continue  # an event that never ended
        category, name = str(event["cat"]), str(event["name"])
        start = float(event["ts"]) - origin
        end, more = start + float(event["dur"]), event.get("args") or {}
        if category in LAUNCHES:
            launches[more.get("correlation")] = start
        elif category in KERNELS | COPIES:
            # "Memcpy HtoD (Pageable -> Device)"; the name says from where to where.
            kind = KERNEL if category in KERNELS else PAGEABLE if "Pageable" in name else COPY
            work[more.get("device")].append((start, end, kind, more.get("correlation")))
        elif category in (OPERATION, MARK):
            thread = threads[event.get("pid"), event.get("tid")]
            if name.startswith(WAIT):
                thread.waits.append((start, end))
                thread.alone = SINGLE in name
            elif name.startswith(STEP):
                thread.ends.append(end)
            elif category == OPERATION:
                thread.operations.append(start)
    if not threads and not work:
        raise _foreign(path, "it holds none of its operations, kernels or marks")

    def waited(thread: HostThread) -> tuple[bool, float]:
        return bool(thread.ends), sum(end - start for start, end in thread.waits)

    most = max(work, key=lambda device: len(work[device]), default=None)
    pieces = sorted(work[most], key=lambda piece: piece[0])
    return Timeline(
        max(threads.values(), key=waited, default=HostThread()),
        np.array([piece[:2] for piece in pieces]).reshape(-1, 2),
        np.array([piece[2] for piece in pieces]),
        np.array([launches.get(piece[3], -np.inf) for piece in pieces]),
    )


def _events(path: Path) -> list[object]:
    """Return the events of a file."""
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if content[:2] == GZIP else content).decode(errors="replace")
        # Traces hold paths of Windows and names of kernels with control characters in them.
        return list(json.loads(text, strict=False)["traceEvents"])
    except (OSError, EOFError, zlib.error, ValueError, LookupError, TypeError) as error:
        missing = isinstance(error, LookupError | TypeError)
        raise _foreign(path, "it has no traceEvents" if missing else str(error)) from error


def _foreign(path: Path, why: str) -> InputError:
    return InputError(
        f"read_trace reads a trace of PyTorch's profiler, got {path}: {why}. Pass what export_chrome_trace "
        "wrote, after the program left its `with` block."
    )
