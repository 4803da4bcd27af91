"""The sampler in the workers of a DataLoader: at which line each of them is, and what it knows of itself.

It starts in each worker before the worker makes its fetcher, whether workers are forked or spawned, and
appends what it sees to a file that the loop's process reads at the end. It changes no batch.
"""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
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
from .stack_samples import FLUSH, Sample, StackSampler

# As `finding.lines` names them, which a worker does not load, and what else a worker does.
DATASET, COLLATE, START, IDLE, SEND = "dataset", "collate", "start", "idle", "send"
PAUSE = 1e-4  # seconds of a collection of many objects
WORKS = 0.2  # of the life of a worker in which a thread of a library has work, from which on it counts
FETCH, LOOP = f"_utils{os.sep}fetch.py", f"_utils{os.sep}worker.py"
BETWEEN = (f"torch{os.sep}utils{os.sep}data{os.sep}dataset.py", f"watching{os.sep}probe.py")


def phase_of(stack: Stack) -> tuple[str, Stack]:
    """Return what a worker of PyTorch does, and the part of its stack below PyTorch's own code."""
    names = [code.co_filename for code, _ in stack]
    fetch = next((place for place, name in enumerate(names) if name.endswith(FETCH)), None)
    loop = next((place for place, name in enumerate(names) if name.endswith(LOOP)), None)
    if fetch is not None:
        while fetch + 1 < len(stack) and names[fetch + 1].endswith(FETCH):
            fetch += 1  # a list comprehension of Python 3.11
        phase = COLLATE if _collates(stack, fetch) else DATASET
        while fetch + 2 < len(stack) and names[fetch + 1].endswith(BETWEEN):
            fetch += 1  # a Subset, as random_split makes it, or other data sets chained; and a probe
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


def sample_worker(worker: Any, folder: Path, token: int) -> None:  # Any: what PyTorch says of it
    """Sample this thread of a worker from now on, until its process ends."""
    path = folder / f"{token}-{worker.id}-{os.getpid()}.samples"
    samples, pauses, begun = list[Sample](), Pauses(), time.perf_counter()
    threads, queued = 0, 0.0
    gc.callbacks.append(pauses)

    def see(moment: float, seconds: float, stack: Stack) -> None:
        phase, below = phase_of(stack)
        samples.append(Sample(moment, seconds, phase, code_line_of(below)))
        if moment - begun < FLUSH:  # a worker may live for less than a second
            write()

    def write(*, ended: bool = False) -> None:
        nonlocal threads, queued
        if not ended:  # when the system still lists some that Python started
            threads, queued = library_threads(time.perf_counter() - begun)
        with suppress(OSError), path.open("ab", buffering=0) as file:  # the doctor may have ended
            file.write(pickle.dumps((samples, pauses.seconds, threads, queued)))
        samples.clear()

    sampler = StackSampler(see, write)

    def end() -> None:
        sampler.stop()
        write(ended=True)

    sampler.start()
    Finalize(None, end, exitpriority=0)


def library_threads(lived: float, tasks: Path = Path("/proc/self/task")) -> tuple[int, float]:
    """Count the threads of this process that work and that Python did not start; 0 where unknown.

    `lived` is its age [s]. A thread that waits for a core has work. Return also the seconds in which its
    first thread waited for one.
    """
    own = {str(thread.native_id) for thread in threading.enumerate()}
    ran, waited = dict[str, float](), dict[str, float]()
    for task in tasks.glob("*"):
        with suppress(OSError, ValueError):  # one that ended meanwhile
            ran[task.name], waited[task.name], _ = map(float, (task / "schedstat").read_text().split())
    least = 1e9 * WORKS * lived
    number = sum(ran[task] + waited[task] >= least for task in waited if task not in own)
    return number, waited.get(str(os.getpid()), 0.0) / 1e9


@dataclass(frozen=True)
class WorkerSamples:
    """What one worker was seen to do."""

    worker: int
    samples: list[Sample]
    pauses: float = 0.0  # of the garbage collector [s]
    threads: int = 0  # of libraries that compute beside its own
    queued: float = 0.0  # in which it had work and no core [s]

    @property
    def seconds(self) -> float:
        """Seconds that the samples stand for."""
        return sum(sample.seconds for sample in self.samples)


def read_samples(path: Path) -> WorkerSamples:
    """Return what a worker wrote, without what it is writing."""
    worker, samples = int(path.stem.split("-")[1]), list[Sample]()
    pauses, threads, queued = 0.0, 0, 0.0
    with path.open("rb") as file, suppress(EOFError, pickle.UnpicklingError):
        while True:
            more, pauses, threads, queued = pickle.load(file)
            samples += more
    return WorkerSamples(worker, samples, pauses, threads, queued)


class WorkerFolder:
    """Where the workers of all loaders write what they were seen to do."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="starvelab-"))
        self._tokens = count()
        self._kept: dict[Path, WorkerSamples] | None = None  # when the folder is gone

    @contextmanager
    def starting(self, loader: Any) -> Iterator[int]:  # Any: a DataLoader, of whatever PyTorch
        """Let workers that this loader starts meanwhile be sampled; give the token of their samples."""
        token = next(self._tokens)
        with workers_begin_with(loader, partial(sample_worker, folder=self.path, token=token)):
            yield token

    def of(self, tokens: set[int]) -> list[WorkerSamples]:
        """Return what the workers of some iterators did so far."""
        kept = self._kept if self._kept is not None else self._read()
        return [worker for path, worker in kept.items() if int(path.stem.split("-")[0]) in tokens]

    def _read(self) -> dict[Path, WorkerSamples]:
        return {path: read_samples(path) for path in sorted(self.path.glob("*.samples"))}

    def close(self) -> None:
        """Read all of it, and remove the folder."""
        self._kept = self._read()
        shutil.rmtree(self.path, ignore_errors=True)
