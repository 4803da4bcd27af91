"""Traces of PyTorch's profiler, in Chrome's JSON format: which events are waits, launches, kernels or copies.

Events are read one by one: a trace never stands in memory whole. The names of categories changed with
PyTorch 1.11 (`Kernel` became `kernel`, `Memcpy` became `gpu_memcpy`, `Runtime` became `cuda_runtime`); both
are read.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from starvelab.errors import InputError

from .timeline import COPY, KERNEL, PAGEABLE, Timeline

# Any: whatever JSON holds.
Event: TypeAlias = dict[str, Any]
CHUNK = 1 << 20  # characters that are read at once
MAX_EVENT = 64 << 20  # characters; no event is that long, so what does not end by then is no JSON
GZIP = b"\x1f\x8b"
NOT_SPACE = re.compile(r"\S")
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
    """Return one timeline for each training process of a trace of PyTorch."""
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
            thread.add_wait(name, start, end)
        elif step := STEP.match(name):
            thread.steps.append((int(step[1]), start, end))
        elif category in OPERATIONS:
            thread.operations.append(start)

    def _gpu(self, event: Event, category: str, start: float, end: float) -> None:
        device = (event.get("args") or {}).get("device", event.get("pid"))
        kind = KERNEL
        if category in COPIES:
            # "Memcpy HtoD (Pageable -> Device)"; the name says from where to where.
            kind = PAGEABLE if "pageable" in str(event.get("name", "")).lower() else COPY
        self.devices.gpu(device).add(start, end, kind, _correlation(event))

    def timelines(self, rank: int | None) -> list[Timeline]:
        """Return what was read, one timeline for each process whose loop waits for data."""
        waiting = [
            process for process in self.processes.values() if any(t.waits for t in process.threads.values())
        ]
        if len(waiting) > 1:  # traces of several ranks in one file
            devices = sorted(self.devices.gpus, key=str)
            for number, process in enumerate(waiting):
                process.rank = number
                if len(devices) == len(waiting):  # each has its GPU, in the order of their numbers
                    process.gpus = {devices[number]: self.devices.gpus[devices[number]]}
            return waiting
        only = waiting[0] if waiting else next(iter(self.processes.values()), Timeline())
        only.rank, only.gpus = rank, self.devices.gpus
        return [only]


def _correlation(event: Event) -> int:
    found = (event.get("args") or {}).get("correlation", -1)
    try:
        return int(found)
    except (TypeError, ValueError):
        return -1


def _rank(beside: Event, path: Path) -> int | None:
    """Return the rank that the trace names, or else its file."""
    distributed = beside.get("distributedInfo")
    if isinstance(distributed, dict) and isinstance(distributed.get("rank"), int):
        rank: int = distributed["rank"]
        return rank
    named = re.search(r"rank[-_]?(\d+)", path.name)
    return int(named[1]) if named else None


def events(path: Path) -> Iterator[Event]:
    """Yield each event of a trace, and before them one for what the file holds beside them: `"beside"`."""
    with path.open("rb") as raw:
        is_packed = raw.read(2) == GZIP
    try:
        with (gzip.open if is_packed else open)(path, "rt", encoding="utf-8", errors="replace") as file:
            yield from _Reader(file, path).events()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"A compressed trace must be whole, and {path} is not: {error}. Let the profiler write it again, "
            "or copy it again."
        ) from error


class _Reader:
    """A window on the text of a file, in which values are decoded one after the other."""

    def __init__(self, file: TextIO, path: Path) -> None:
        self.file, self.path = file, path
        self.text, self.place, self.count = "", 0, 0
        # Traces hold paths of Windows and names of kernels with control characters in them.
        self.decoder = json.JSONDecoder(strict=False)

    def events(self) -> Iterator[Event]:
        """Yield what stands beside the events, and then each of them."""
        if self._passes("["):  # a bare list, the other form of the format
            yield {"beside": {}}
        elif self._passes("{"):
            yield {"beside": self._to_events()}
        else:
            raise self._foreign("it does not begin like JSON")
        while not self._passes("]"):
            if self._passes(","):
                continue
            event = self._value()
            if not isinstance(event, dict):
                raise self._foreign("its list holds something else than events")
            self.count += 1
            yield event

    def _to_events(self) -> Event:
        """Read on until the list of events begins; return what stands before it."""
        beside = {}
        while not self._passes("}"):
            if self._passes(","):
                continue
            name = self._value()
            if not isinstance(name, str) or not self._passes(":"):
                raise self._foreign("it is no JSON")
            if name != "traceEvents":
                beside[name] = self._value()
            elif self._passes("["):
                return beside
            else:
                raise self._foreign("its traceEvents are no list")
        raise self._foreign("it has no traceEvents")

    def _passes(self, character: str) -> bool:
        """Go to the next character that is no space, and past it if it is this one."""
        while not (found := NOT_SPACE.search(self.text, self.place)):
            if not self._more():
                raise self._cut_off()
        self.place = found.end() if found[0] == character else found.start()
        return found[0] == character

    def _value(self) -> object:
        self._passes("")  # to where it begins
        while True:
            try:
                value, end = self.decoder.raw_decode(self.text, self.place)
            except json.JSONDecodeError as error:
                if len(self.text) - self.place > MAX_EVENT:
                    raise self._foreign(f"it is no JSON: {error.msg}") from error
                if not self._more():
                    raise self._cut_off() from error
                continue
            # A number at the very end may go on in the next chunk.
            if end == len(self.text) and self._more():
                continue
            self.place = end
            return value

    def _more(self) -> bool:
        chunk = self.file.read(CHUNK)
        self.text, self.place = self.text[self.place :] + chunk, 0
        return bool(chunk)

    def _cut_off(self) -> InputError:
        return InputError(
            f"A trace must be whole, and {self.path} ends or breaks off after {self.count} events. Let the "
            "profiler write it again: it writes the end when the program leaves its `with` block."
        )

    def _foreign(self, why: str) -> InputError:
        return InputError(
            "read_trace reads traces of PyTorch's profiler, as its export_chrome_trace writes them, and "
            f"{self.path} is none: {why}. Pass such a trace."
        )
