"""The sampler in the workers of a DataLoader: at which line each of them is, and what it knows of itself.

It starts in each worker before the worker makes its fetcher, whether workers are forked or spawned, and
appends what it sees to a file that the loop's process reads at the end. It changes no batch.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from linecache import getline
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

from ..torch_internals import workers_begin_with
from .places import Stack, code_line_of, line_of
from .stack_samples import FLUSH, Sample, SampleFile, StackSampler, read_samples

# As `finding.lines` names them, which a worker does not load, and what else a worker does.
DATASET, COLLATE, START, IDLE, SEND = "dataset", "collate", "start", "idle", "send"
PAUSE = 1e-4  # seconds of a collection of many objects
COMPUTES = 0.1  # of the CPU time of the busiest thread, from which on one computes
FETCH, LOOP = f"_utils{os.sep}fetch.py", f"_utils{os.sep}worker.py"
CHAINS = f"torch{os.sep}utils{os.sep}data{os.sep}dataset.py"


def phase_of(stack: Stack) -> tuple[str, Stack]:
    """Return what a worker of PyTorch does, and the part of its stack below PyTorch's own code."""
    names = [code.co_filename for code, _ in stack]
    fetch = next((place for place, name in enumerate(names) if name.endswith(FETCH)), None)
    loop = next((place for place, name in enumerate(names) if name.endswith(LOOP)), None)
    if fetch is not None:
        while fetch + 1 < len(stack) and names[fetch + 1].endswith(FETCH):
            fetch += 1  # a list comprehension of Python 3.11
        phase = COLLATE if _collates(stack, fetch) else DATASET
        while fetch + 2 < len(stack) and names[fetch + 1].endswith(CHAINS):
            fetch += 1  # a Subset, as random_split makes it, or other data sets chained
        return phase, stack[fetch + 1 :]
    if loop is None:
        return START, stack
    below = stack[loop + 1 :]
    called = {code.co_name for code, _ in below}
    if "get" in called and not called & {"create_fetcher"}:
        return IDLE, ()
    return (SEND, ()) if "put" in called else (START, below)


def _collates(stack: Stack, fetch: int) -> bool:
    """True where the last line of PyTorch's fetcher calls the collate function."""
    code, position = stack[fetch]
    return "collate_fn" in getline(code.co_filename, line_of(code, position))


class Pauses:
    """The pauses of the garbage collector: when each of the long ones began, and the seconds of all."""

    def __init__(self) -> None:
        self.seconds, self.begun = 0.0, 0.0
        self.long: list[tuple[float, float]] = []

    def __call__(self, phase: str, _: dict[str, int]) -> None:
        """Called by Python before and after each collection."""
        if phase == "start":
            self.begun = time.perf_counter()
        elif self.begun:
            seconds = time.perf_counter() - self.begun
            self.seconds += seconds
            if seconds > PAUSE:
                self.long.append((self.begun, seconds))

    def within(self, spans: Sequence[tuple[float, float]]) -> float:
        """Return the seconds of the long ones between some moments."""
        return sum(pause for begun, pause in self.long if any(low <= begun <= high for low, high in spans))


@dataclass(frozen=True)
class SamplingStart:
    """A `worker_init_fn` that begins to look at its worker, after the user's own one."""

    own: Callable[[int], object] | None
    folder: str
    token: int  # of the iterator whose workers these are

    def __call__(self, worker: int) -> None:
        """Called in the worker before it makes its fetcher."""
        sample_worker(Path(self.folder) / f"{self.token}-{worker}-{os.getpid()}.samples")
        if self.own is not None:
            self.own(worker)


def sample_worker(path: Path) -> None:
    """Sample this thread from now on, until its process ends."""
    file, pauses, begun = SampleFile(path), Pauses(), time.perf_counter()
    threads = 0
    gc.callbacks.append(pauses)

    def see(moment: float, seconds: float, stack: Stack) -> None:
        phase, below = phase_of(stack)
        file.add(moment, seconds, phase, code_line_of(below) if below else None)
        if moment - begun < FLUSH:  # a worker may live for less than a second
            write()

    def write(*, ending: bool = False) -> None:
        nonlocal threads
        if not ending:  # the system still lists a thread that has just ended
            threads = max(threads, library_threads())  # they may come and go
        file.flush(pauses=pauses.seconds, threads=threads, begun=begun)

    sampler = StackSampler(see, write, quick=True)

    def end() -> None:
        sampler.stop()
        write(ending=True)

    sampler.start()
    Finalize(None, end, exitpriority=0)


def library_threads() -> int:
    """Count the threads of this process that compute and that Python did not start; 0 where unknown."""
    own = {str(thread.native_id) for thread in threading.enumerate()}
    seconds = {}
    for task in Path("/proc/self/task").glob("*"):
        with suppress(OSError, ValueError):  # one that ended meanwhile
            seconds[task.name] = float((task / "schedstat").read_text().split()[0])
    least = COMPUTES * max(seconds.values(), default=0.0)
    return sum(spent >= least for task, spent in seconds.items() if task not in own)


@dataclass(frozen=True)
class WorkerSamples:
    """What one worker was seen to do."""

    worker: int
    samples: tuple[Sample, ...]
    pauses: float  # of the garbage collector [s]
    threads: int  # of libraries that compute beside its own
    begun: float  # moment

    @property
    def seconds(self) -> float:
        """Seconds that the samples stand for."""
        return sum(sample.seconds for sample in self.samples)


class WorkerFolder:
    """Where the workers of all loaders write what they were seen to do."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="starvelab-"))
        self._tokens = count()
        self._kept: dict[int, list[WorkerSamples]] | None = None  # of each token, when the folder is gone

    @contextmanager
    def starting(self, loader: Any) -> Iterator[int]:  # Any: a DataLoader, of whatever PyTorch
        """Let workers that this loader starts meanwhile be sampled; give the token of their samples."""
        token = next(self._tokens)
        start = partial(SamplingStart, folder=str(self.path), token=token)
        with workers_begin_with(loader, start):
            yield token

    def of(self, tokens: set[int]) -> list[WorkerSamples]:
        """Return what the workers of some iterators did so far."""
        kept = self._kept if self._kept is not None else self._read()
        return [worker for token in sorted(tokens) for worker in kept.get(token, [])]

    def _read(self) -> dict[int, list[WorkerSamples]]:
        kept: dict[int, list[WorkerSamples]] = defaultdict(list)
        for path in sorted(self.path.glob("*.samples")):
            token, worker, _ = map(int, path.stem.split("-"))
            samples, more = read_samples(path)
            pauses, threads, begun = (
                float(str(more.get(name, 0))) for name in ("pauses", "threads", "begun")
            )
            kept[token].append(WorkerSamples(worker, tuple(samples), pauses, int(threads), begun))
        return kept

    def close(self) -> None:
        """Read all of it, and remove the folder."""
        self._kept = self._read()
        shutil.rmtree(self.path, ignore_errors=True)
