"""The lines of a whole job: samples of its workers and of its loop's thread, brought together at the end."""

from __future__ import annotations

import gc
import os
import re
import time
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from inspect import CO_GENERATOR
from pathlib import Path
from statistics import median_low
from typing import TypeAlias

import numpy as np

from ..finding.lines import COLLATE, DATASET, GENERATOR, LOOP, SAMPLER, START, JobLines, LineShare
from ..spans import union
from .places import CodeLine, Stack, code_line_of, is_own
from .stack_samples import WAITS, Sample, StackSampler
from .worker_sampler import FETCH, Pauses, WorkerFolder, WorkerSamples, phase_of

Span: TypeAlias = tuple[float, float]  # moments
# What the loop's thread does beside its sampler and its own lines: it starts workers, waits for a batch or
# for another thread, trains, and changes the weights.
STARTING, WAITING, HANDED, TRAINING, UPDATE = "starting", "waiting", "handed", "training", "update"
PREPARING = (DATASET, COLLATE, START)
LOADER = f"utils{os.sep}data{os.sep}dataloader.py"
STARTS, HOOKS = f"{os.sep}multiprocessing{os.sep}", f"starvelab_doctor{os.sep}watching{os.sep}hooks.py"
PARTS = tuple(
    f"torch{os.sep}{part}{os.sep}"
    for part in ("nn", "optim", "autograd", "cuda", "distributed", "amp", "_dynamo", "_inductor", "fx")
)
# Packages that go over the batches themselves: what they do at a line of the user is the training.
FRAMEWORKS = re.compile(r"[\\/](lightning|pytorch_lightning|transformers|keras|ignite|fastai|catalyst)[\\/]")
TRAINS = re.compile(r"\.(backward|item|step|zero_grad|synchronize|cpu|tolist)$")  # a call
TRAINING_NAME = re.compile(r"forward|backward|loss|optim|(^|_)step$", re.IGNORECASE)  # of a function
UPDATES = ("backward", "step")  # functions of PyTorch
RECENT = 100  # samples of a worker that tell where it stays


@lru_cache(maxsize=4096)
def loop_phase(stack: Stack) -> tuple[str, CodeLine | None]:
    """Return what the loop's thread does, and at which line."""
    names = [code.co_filename for code, _ in stack]
    if any(name.endswith(FETCH) for name in names):
        phase, below = phase_of(stack)
        return phase, code_line_of(below)
    if loaders := [number for number, name in enumerate(names) if name.endswith(LOADER)]:
        calls = {code.co_name for code, _ in stack[loaders[0] :]}
        below, starts = stack[loaders[-1] + 1 :], any(STARTS in name for name in names[loaders[0] :])
        waits = starts or any(name.endswith(WAITS) for name in names[loaders[-1] + 1 :])
        if calls & {"_next_index", "_reset"} and below and not waits:
            return SAMPLER, code_line_of(below)
        return (STARTING if starts and "get" not in calls else WAITING), code_line_of(stack)
    if names and names[-1].endswith(WAITS):
        return HANDED, code_line_of(stack)
    if any(name.endswith(HOOKS) for name in names):  # the doctor itself looks
        return WAITING, None
    place = code_line_of(stack)
    if any(code.co_name in UPDATES and "torch" in code.co_filename for code, _ in stack):
        return UPDATE, place
    trains = any(part in name for name in names for part in PARTS)
    trains = trains or any(TRAINING_NAME.search(code.co_name) for code, _ in stack)
    own = max((number for number, name in enumerate(names) if is_own(name)), default=-1)
    trains = trains or any(FRAMEWORKS.search(name) for name in names[own + 1 :])
    if trains or (place and TRAINS.search(place.call)):
        return TRAINING, place
    packs = any(code.co_flags & CO_GENERATOR and is_own(code.co_filename) for code, _ in stack)
    return (GENERATOR if packs else LOOP), place


class JobSamples:
    """Samples of all workers that a program starts, and of its loop's thread."""

    def __init__(self) -> None:
        self.folder, self.main, self.pauses = WorkerFolder(), list[Sample](), Pauses()
        self.process = os.getpid()
        self.updates: list[float] = []  # moments of the first and the last step of an optimizer

    def see(self, moment: float, seconds: float, stack: Stack) -> None:
        """Note a sample of the loop's thread."""
        self.main.append(Sample(moment, seconds, *loop_phase(stack)))

    def _note_update(self, *_: object) -> None:
        self.updates[1:] = [time.perf_counter()]

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note pauses and updates of this process while this lasts, and read then what workers wrote."""
        from torch.optim.optimizer import register_optimizer_step_post_hook  # the program has loaded it

        # A short update is hardly ever sampled, so PyTorch tells of each.
        handle = register_optimizer_step_post_hook(self._note_update)
        gc.callbacks.append(self.pauses)
        sampler = StackSampler(self.see, quick=False)
        sampler.start()
        try:
            yield
        finally:
            sampler.stop()
            handle.remove()
            gc.callbacks.remove(self.pauses)
            if os.getpid() == self.process:  # a forked process leaves it to the one that began
                self.folder.close()

    def of(
        self,
        tokens: set[int],
        spans: Sequence[Span],
        firsts: Sequence[Span],
        gaps: Sequence[Span] = (),
        *,
        sent: bool,
    ) -> JobLines:
        """Return the lines of a loop: of its iterators, its passes, and its waits for first batches.

        `gaps` are between its passes. `sent` says whether it ever got a batch.
        """
        workers = self.folder.of(tokens)
        main = _within(spans, self.main)
        samples = [sample for worker in workers for sample in worker.samples] if tokens else main
        preparing = with_freed([sample for sample in samples if sample.phase in PREPARING])
        passed = sum(end - begin for begin, end in spans)
        pauses = sum(worker.pauses for worker in workers)
        seconds = sum(worker.seconds for worker in workers)
        recent = [sample for worker in workers for sample in worker.samples[-RECENT:] if not sent]
        return JobLines(
            preparing=shares(preparing, sum(sample.seconds for sample in preparing)),
            loop=shares([sample for sample in main if sample.phase in (SAMPLER, GENERATOR, LOOP)], passed),
            first=_of_first(firsts, workers, main),
            between=self._between(gaps, spans[-1][1] - spans[0][0]) if gaps else (),
            working=_working(workers, passed),
            threads=median_low([worker.threads for worker in workers] or [0]),
            queued=sum(worker.queued for worker in workers) / seconds if seconds else 0.0,
            pauses=pauses / seconds if seconds else 0.0,
            loop_pauses=self.pauses.within(spans) / passed if passed else 0.0,
            samples=len(preparing),
            loop_samples=len(main),
            stuck=shares(recent, sum(sample.seconds for sample in recent)),
            reason="none of them wrote a sample" if tokens and not samples else "",
        )

    def _between(self, gaps: Sequence[Span], whole: float) -> tuple[LineShare, ...]:
        """Return the lines of the loop's thread between passes, without starts and ends of workers."""
        works = [one for one in _within(gaps, self.main) if one.phase not in (STARTING, WAITING)]
        return shares([one._replace(phase=LOOP) for one in works], whole)

    def without_loader(self) -> tuple[LineShare, ...]:
        """Return what the loop's thread does beside training, between the first and the last update."""
        moments = self.updates
        if len(moments) < 2:  # weights that no optimizer of PyTorch changes are known by samples alone
            moments = [sample.moment for sample in self.main if sample.phase == UPDATE]
        if len(moments) < 2:
            return ()
        span = moments[0], moments[-1]
        inside = _within([span], self.main)
        return shares([one for one in inside if one.phase in (LOOP, GENERATOR)], span[1] - span[0])


def _within(spans: Sequence[Span], samples: Iterable[Sample]) -> list[Sample]:
    """Return the samples of some spans; both may be very many."""
    edges = union(*np.array(spans).reshape(-1, 2).T).ravel().tolist()
    return [sample for sample in samples if bisect(edges, sample.moment) % 2]


def with_freed(samples: list[Sample]) -> list[Sample]:
    """Return the samples, with the time at PyTorch's own fetcher spread over the lines of the dataset.

    What an item has opened is freed when it is returned, at the line that called it.
    """
    items = [one for one in samples if one.phase == DATASET]
    named = sum(one.seconds for one in items if one.place is not None)
    if not named:  # a dataset in C, which has no lines
        return samples
    more = sum(one.seconds for one in items) / named
    rest = [one for one in samples if one.phase != DATASET]
    return rest + [one._replace(seconds=more * one.seconds) for one in items if one.place is not None]


def shares(samples: Iterable[Sample], whole: float) -> tuple[LineShare, ...]:
    """Return the share of a whole [s] that each line has, most first; the call is the most frequent one."""
    calls: dict[tuple[str, int, str, bool], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for sample in samples:
        if sample.place is not None:
            place = sample.place
            phase = sample.phase if sample.phase in (*PREPARING, SAMPLER, GENERATOR) else LOOP
            calls[place.file, place.line, phase, place.own][place.call] += sample.seconds
    lines = [
        LineShare(
            f"{Path(file).name}:{line}", max(below, key=below.__getitem__), phase,
            sum(below.values()) / max(whole, 1e-9), own,
        )
        for (file, line, phase, own), below in calls.items()
    ]  # fmt: skip
    return tuple(sorted(lines, key=lambda line: -line.share))


def _working(workers: Iterable[WorkerSamples], passed: float) -> tuple[float, ...]:
    """Return the share of all passes in which each worker prepares."""
    seconds: dict[int, float] = defaultdict(float)
    for worker in workers:
        seconds[worker.worker] += sum(
            sample.seconds for sample in worker.samples if sample.phase in (DATASET, COLLATE)
        )
    return tuple(min(seconds[number] / max(passed, 1e-9), 1.0) for number in sorted(seconds))


def _of_first(
    spans: Sequence[Span], workers: Sequence[WorkerSamples], main: Sequence[Sample]
) -> tuple[LineShare, ...]:
    """Return where the waits for first batches go: to the workers' lines, or the loop's own."""
    whole = sum(end - begin for begin, end in spans)
    of_loop = [one for one in _within(spans, main) if one.phase in (SAMPLER, STARTING, DATASET)]
    # Workers begin a pass side by side: what one of them does on average holds up the loop.
    number = max(len({worker.worker for worker in workers}), 1)
    of_workers = [
        Sample(one.moment, one.seconds / number, one.phase, one.place)
        for worker in workers
        for one in _within(spans, worker.samples)
        if one.phase in (DATASET, START)
    ]
    return shares([*of_loop, *of_workers], whole)
