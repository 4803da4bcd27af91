"""Usage of a training job, as the system tells it: of its processes, and how long its GPU has nothing to do.

Workers are separate processes, which the system counts; without workers the loop's own thread prepares. What
of the preparing is no work of the CPU is waiting, mostly to read.

Of a GPU, events on its stream tell. An event is done when all work before it is done. One is put on the
stream when the loop asks for a batch, and one when it has it. While the GPU is still busy both are done at
the same time; where it ran out of work, the time between them is what it waited. Nothing waits for the GPU:
events are read when they are done. This was never run on a real GPU: the tests put events of the same
interface in its place.
"""

from __future__ import annotations

import os
import threading
import time
from array import array
from collections import deque
from pathlib import Path

import numpy as np

from ..host import has_processes, usable_cores
from ..measure.devices import Cuda, Event
from .torch_internals import is_iterator, worker_numbers


class ProcessUse:
    """Usage of those who prepare batches and of the loop's process: each look counts since the one before."""

    def __init__(self) -> None:
        self.busy = self.passed = 0.0  # seconds of the CPU, and seconds that passed
        self.queued: float | None = None  # seconds in which they had work and no core; None: nobody tells
        self.processes: bool | None = None  # whether workers are processes; None: there is no iterator to ask
        self.memory: int | None = None  # the most bytes that all workers held at one look
        self.others = self.offered = 0.0  # core seconds that others used, of those that there are
        self._loop_busy = self._loop_passed = 0.0
        self._last_cores: tuple[float, float, float] | None = None
        self._last: tuple[tuple[int, ...], float, float | None, float] | None = None
        self._last_loop: tuple[object, float, float] | None = None

    def add(self, busy: float, passed: float, queued: float | None = None) -> None:
        """Count seconds of the CPU, seconds that passed meanwhile, and those without a core."""
        self.busy += busy
        self.passed += passed
        if queued is not None:
            self.queued = (self.queued or 0.0) + queued

    def since(self, earlier: ProcessUse) -> ProcessUse:
        """Return what was used since then, of those who prepare."""
        later = ProcessUse()
        queued = None if self.queued is None else self.queued - (earlier.queued or 0.0)
        later.add(self.busy - earlier.busy, self.passed - earlier.passed, queued)
        return later

    def poll(self, source: object) -> None:
        """Ask the system for the loop's process and the workers of PyTorch's iterator."""
        now, busy = time.perf_counter(), time.process_time()
        if source is not None:
            self.processes = is_iterator(source)
        if self._last_loop is not None and self._last_loop[0] == id(source):
            self._loop_busy += busy - self._last_loop[1]
            self._loop_passed += now - self._last_loop[2]
        self._last_loop = (id(source), busy, now)
        own = self._poll_workers(numbers, now) if (numbers := worker_numbers(source)) else 0.0
        if own is not None and (used := busy_cores()) is not None:
            if self._last_cores is not None and now > self._last_cores[0]:
                then, used_before, own_before = self._last_cores
                offered = usable_cores() * (now - then)
                self.others += min(max(used - used_before - (own + busy - own_before), 0.0), offered)
                self.offered += offered
            self._last_cores = (now, used, own + busy)

    def _poll_workers(self, numbers: tuple[int, ...], now: float) -> float | None:
        """Ask for the workers; return their seconds of the CPU so far, None while they change."""
        import psutil  # loaded here: it needs processes, which a browser's Python lacks

        try:
            processes = [psutil.Process(number) for number in numbers]
            spent = [process.cpu_times() for process in processes]
            held = sum(process.memory_info().rss for process in processes)
        except psutil.Error:  # they end
            self._last_cores = None
            return None
        busy = float(sum(times.user + times.system for times in spent))
        queued = _waited_for_a_core(numbers)
        self.memory = max(held, self.memory or 0)
        if self._last is not None and self._last[0] == numbers:
            _, busy_before, queued_before, then = self._last
            known = queued is not None and queued_before is not None
            waited = queued - queued_before if known else None  # type: ignore[operator]  # both are known
            self.add(busy - busy_before, (now - then) * len(numbers), waited)
        else:
            self._last_cores = None
        self._last = (numbers, busy, queued, now)
        return busy

    @property
    def share(self) -> float | None:
        """Share of the time in which they have work for a core, 0 to 1; None where it is not known."""
        # One that waits for a core has work for it.
        return min((self.busy + (self.queued or 0.0)) / self.passed, 1.0) if self.passed else None

    @property
    def queued_share(self) -> float | None:
        """Share of the time in which they have work and no core, 0 to 1; None where it is not known."""
        return min(self.queued / self.passed, 1.0) if self.queued is not None and self.passed else None

    @property
    def others_share(self) -> float | None:
        """Share of the cores that other programs used, 0 to 1; None where it is not known."""
        return self.others / self.offered if self.offered else None

    @property
    def loop_share(self) -> float | None:
        """Cores that the process of the loop uses, on average; None where it is not known."""
        return self._loop_busy / self._loop_passed if self._loop_passed else None


def _waited_for_a_core(numbers: tuple[int, ...]) -> float | None:
    """Return the seconds in which processes had work and no core; None where the system does not tell."""
    try:
        texts = [Path(f"/proc/{number}/schedstat").read_text() for number in numbers]
        return sum(int(text.split()[1]) for text in texts) / 1e9
    except (OSError, IndexError, ValueError):
        return None


def this_thread() -> int | None:
    """Return the system's number of this thread; None in a browser's Python, which has no threads."""
    number: int | None = getattr(threading, "get_native_id", lambda: None)()
    return number


def wanted_core(thread: int | None) -> float | None:
    """Return the seconds in which a thread of this process had work; None where the system does not tell."""
    try:
        with open(f"/proc/self/task/{thread}/schedstat", encoding="ascii") as file:
            return sum(map(int, file.read().split()[:2])) / 1e9
    except (OSError, ValueError):
        return None


def queued_seconds() -> float | None:
    """Return the seconds in which this thread had work and no core; None where the system does not tell."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return None


def busy_cores() -> float | None:
    """Return the seconds in which the cores of this process were busy; None where that cannot be told."""
    if not has_processes():
        return None
    import psutil  # loaded here: it needs processes, which a browser's Python lacks

    times = psutil.cpu_times(percpu=True)
    ours = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(len(times))
    if len(ours) > usable_cores():  # of a container: the others that are seen may use other cores
        return None
    return float(sum(each.user + each.system for number, each in enumerate(times) if number in ours))


class DeviceTimes:
    """Events around each wait of the loop, on the stream that is current when the first is recorded.

    `cuda` is `torch.cuda`, or something with its interface.
    """

    def __init__(self, cuda: Cuda) -> None:
        self.cuda = cuda
        self.stream = cuda.current_stream(cuda.current_device())
        self.free: list[Event] = []
        # Of each batch the events before and after the wait, and whether it begins a pass.
        self.pending: deque[tuple[Event, Event, bool]] = deque()
        self.asking: Event | None = None
        self.before: Event | None = None
        self.idle, self.lengths = array("d"), array("d")
        self.counts = False

    def ask(self) -> None:
        """Note that the loop asks for a batch."""
        self.asking = self._record()

    def receive(self, *, first: bool) -> None:
        """Note that the loop has its batch; `first` is that of a pass, which does not count."""
        if self.asking is not None:
            self.pending.append((self.asking, self._record(), first))
            self.asking = None
        self.read()

    def _record(self) -> Event:
        event = self.free.pop() if self.free else self.cuda.Event(enable_timing=True)
        event.record(self.stream)
        return event

    def read(self) -> None:
        """Take the times of what is done."""
        while self.pending and self.pending[0][1].query():
            asked, received, first = self.pending.popleft()
            # The time since the batch before counts, unless that was a first one: its step is start-up, too.
            if self.before is not None:
                if self.counts and not first:
                    self.idle.append(asked.elapsed_time(received) / 1e3)
                    self.lengths.append(self.before.elapsed_time(received) / 1e3)
                self.free.append(self.before)
            self.free.append(asked)
            self.before, self.counts = received, not first

    def times(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the seconds that the GPU waited for each batch, and the seconds from batch to batch."""
        self.read()
        return np.array(self.idle), np.array(self.lengths)
