"""PyTorch's iterators, timed while a program runs: it gets the same batches in the same order."""

from __future__ import annotations

import queue
import re
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from weakref import WeakKeyDictionary, finalize

import numpy as np

from starvelab.errors import InputError, install_hint
from starvelab.measure.batches import Batch

from .. import torch_internals
from ..finding.job import JobFinding
from ..host import this_thread
from ..shares import INTERRUPTION
from ..spans import union
from ..torch_internals import TorchIterator, TorchLoader
from .loop_sampler import LoopSampler, loop_of
from .pickled import Pickled
from .probe import Probe
from .ranks import RankLoop
from .recorder import Pass, Recorder

CELL = re.compile(r"<ipython-input|ipykernel_\d")


class HandedOn:
    """Threads that fetch the batches of a `DataLoader` and hand them on to the training loop.

    What such a thread waits is not what the loop waits. So it is timed what the loop waits until that thread
    notifies it, as by one of Python's queues, futures or conditions.
    """

    def __init__(self) -> None:
        self.home, self._fetching = threading.get_ident(), threading.local()
        self._givers: WeakKeyDictionary[Any, Recorder] = WeakKeyDictionary()  # Any: locks, of who notifies
        self._waited: dict[Recorder, float] = {}  # seconds of the loop
        self._pairs: dict[Recorder, Recorder] = defaultdict(Recorder)  # what the loop waits and does
        self._last: dict[Recorder, tuple[int, float, float]] = {}  # number of the pass, moment, and waited

    def fetched(self, record: Pass) -> None:
        """Note that this thread, which is none of a training loop, has a batch."""
        recorder = self._fetching.recorder = record.recorder
        now = (record.number, time.perf_counter(), self._waited.get(recorder, 0.0))
        number, moment, waited = self._last.get(recorder, now)
        self._last[recorder] = now
        if number == record.number and moment < now[1]:
            waits, pairs = min(now[2] - waited, now[1] - moment), self._pairs[recorder]
            pairs.add(waits, now[1] - moment - waits, number)
            pairs.forget()

    def _note(self, lock: object, waited: float | None = None) -> None:
        """Note that this thread notifies others at a lock, or waited there; it may be the training loop."""
        recorder = getattr(self._fetching, "recorder", None)
        with suppress(TypeError):  # a lock of a class of its own need not be one that can be a key
            if recorder is not None and waited is None:
                self._givers[lock] = recorder
            elif threading.get_ident() == self.home and (giver := self._givers.get(lock)) is not None:
                self._waited[giver] = self._waited.get(giver, 0.0) + (waited or 0.0)

    def judged(self, recorder: Recorder) -> Recorder:
        """Return the recorder whose waits count: those of the loop that a thread fetches for, if known."""
        if recorder not in self._waited:
            return recorder
        loop, known = copy(recorder), self._pairs[recorder]
        loop.waits, loop.steps, loop.numbers = known.waits, known.steps, known.numbers
        # A thread without workers prepares beside the loop, as no number of workers does.
        loop.home, loop.workers = None, recorder.workers or None
        return loop

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look at every condition and queue between threads for as long as this lasts."""
        from unittest.mock import patch  # loaded here: only `starvelab-doctor` replaces anything

        wait, notify, note = threading.Condition.wait, threading.Condition.notify, self._note

        class Simple(queue.SimpleQueue[object]):  # the only queue that has no condition
            def get(self, *how: Any, **more: Any) -> object:
                begun = time.perf_counter()
                item = super().get(*how, **more)
                note(self, time.perf_counter() - begun)
                return item

            def put(self, *how: Any, **more: Any) -> None:
                note(self)
                super().put(*how, **more)

        def waiting(condition: Any, *how: Any, **more: Any) -> bool:
            begun = time.perf_counter()
            notified = wait(condition, *how, **more)
            note(condition._lock, time.perf_counter() - begun)
            return notified

        def notifying(condition: Any, *how: Any, **more: Any) -> None:
            note(condition._lock)
            notify(condition, *how, **more)

        simple = patch.object(queue, "SimpleQueue", Simple)
        with patch.multiple(threading.Condition, wait=waiting, notify=notifying), simple:
            yield


class Doctor:
    """Records every loop of a program over a DataLoader, one for each place; a `probe` times its stages."""

    def __init__(self, *, probe: bool = False) -> None:
        # By the place, and by the kind of the data there: a script may make its loader anew for each pass.
        self.loops: dict[tuple[object, ...], Recorder] = {}
        self.passes: WeakKeyDictionary[TorchIterator, Pass] = WeakKeyDictionary()
        self.probes: WeakKeyDictionary[TorchIterator, Probe] | None = WeakKeyDictionary() if probe else None
        self.handed_on, self.sampler, self.home = HandedOn(), LoopSampler(), this_thread()
        self.codes: dict[Recorder, tuple[CodeType, int]] = {}
        self.started: WeakKeyDictionary[TorchIterator, tuple[float, Pickled]] = WeakKeyDictionary()  # seconds

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Time PyTorch's iterators for as long as this lasts."""
        try:
            from torch.utils.data import dataloader
        except ImportError as error:
            raise InputError(
                "starvelab-doctor watches the DataLoaders of PyTorch, which this Python does not have. Run "
                f"it with the Python of your training job. {install_hint('torch')}"
            ) from error

        def following(original: Callable[[TorchIterator], Batch]) -> Callable[[TorchIterator], Batch]:
            def timed(iterator: TorchIterator) -> Batch:
                record = self._pass_of(iterator, sys._getframe(1))
                self.sampler.at(None)
                batch = record.fetch(iterator, original)
                if record.thread != self.home:
                    self.handed_on.fetched(record)
                else:
                    self.sampler.at(self.codes.get(record.recorder))
                return batch

            return timed

        with (
            torch_internals.replaced_iterators(dataloader, following, self._beginning, self._restarting),
            self.handed_on.watching(),
            self.sampler.watching(),
        ):
            yield

    def _beginning(self, original: Callable[[TorchIterator, TorchLoader], None]) -> Callable[..., None]:
        """Return what begins an iterator, with a probe if it is to have one, and times that."""

        def begin(iterator: TorchIterator, loader: TorchLoader) -> None:
            begun, pickled = time.perf_counter(), Pickled()
            with pickled.counting():
                if self.probes is None:
                    original(iterator, loader)
                else:
                    probe = Probe()
                    with probe.starting(loader):
                        original(iterator, loader)
                    probe.attach(iterator, loader.dataset)
                    self.probes[iterator] = probe
            self.started[iterator] = (time.perf_counter() - begun, pickled)

        return begin

    def _restarting(self, original: Callable[..., None]) -> Callable[..., None]:
        """Return what begins a later pass of an iterator whose workers persist, and times that."""

        def restart(iterator: TorchIterator, loader: TorchLoader, first_iter: bool = False) -> None:
            begun = time.perf_counter()
            original(iterator, loader, first_iter)
            if not first_iter:
                self.started[iterator] = (time.perf_counter() - begun, Pickled())

        return restart

    def _pass_of(self, iterator: TorchIterator, caller: FrameType) -> Pass:
        """Return the pass that an iterator is in, which its first batch begins."""
        record = self.passes.get(iterator)
        if record is not None and not torch_internals.is_at_start(iterator):
            return record
        if record is not None:
            record.end()  # that was left early
        kind, items, size, workers = torch_internals.description_of(iterator)
        line, file = caller.f_lineno, caller.f_code.co_filename
        # IPython compiles a cell under a name that says nothing to whoever wrote it.
        place = f"line {line} of a cell" if CELL.search(file) else f"{Path(file).name}:{line}"
        name, number = f"{kind} at {place}", 1
        while (recorder := self.loops.get((name, items, size, workers))) and self._beside(recorder, iterator):
            number += 1
            name = f"{kind} at {place}, loader {number}"
        if recorder is None:
            recorder = Recorder(batch_size=size, workers=workers, home=self.home)
            self.loops[name, items, size, workers] = recorder
        record = recorder.begin(probe=self.probes.get(iterator) if self.probes is not None else None)
        taken, pickled = self.started.pop(iterator, (0.0, Pickled()))
        record.start_up += taken
        recorder.pickled.add(pickled)
        self.passes[iterator] = record
        self.codes[recorder] = loop_of(caller)
        for end in (record.end, partial(self.sampler.at, None)):  # a loop that is left drops its iterator
            finalize(iterator, end).atexit = False
        return record

    def _beside(self, recorder: Recorder, iterator: TorchIterator) -> bool:
        """True if a pass over other data is under way there, as where one line goes over two loaders."""
        return any(
            record.recorder is recorder and record in record.under_way
            for other, record in self.passes.items()
            if torch_internals.dataset_of(other) is not torch_internals.dataset_of(iterator)
        )

    def results(self) -> list[tuple[str, JobFinding]]:
        """Return what was found of each loader, the one that took longest first."""
        return [(loop.name, loop.finding) for loop in self.rank_loops()]

    def rank_loops(self) -> list[RankLoop]:
        """Return the same with the waits and steps, for a report of several ranks."""
        names, found = [name for name, *_ in self.loops], list[RankLoop]()
        for (name, items, *_), each in self.loops.items():
            own = str(name) if names.count(name) == 1 else f"{name}, {items} items"  # of a shared function
            found.append(RankLoop(own, self._finding(each), *self.handed_on.judged(each).pairs()[:2]))
        return sorted(found, key=lambda one: -float(np.sum(one.waits) + np.sum(one.steps)))

    def _finding(self, recorder: Recorder) -> JobFinding:
        judged = self.handed_on.judged(recorder)
        if judged is not recorder:
            return replace(judged.finding(), between=True)
        # What follows the last batch of all loops, as where itertools.cycle has kept them.
        ends = {one: max(one.passes[-1].asked, one.passes[-1].received) for one in self.loops.values()}
        after = time.perf_counter() - ends[recorder] if ends[recorder] == max(ends.values()) else 0.0
        passed = float(sum(sum(column) for column in recorder.pairs()[:2]))
        found = recorder.finding(after if after * len(recorder.numbers) > INTERRUPTION * passed else 0.0)
        own, of_all = _time_in([recorder]), _time_in(self.loops.values())
        found = replace(found, loop_share=own / of_all if of_all else 1.0)
        released = found.release.m_as("s") * found.batches if found.release is not None else 0.0
        return replace(found, loop_work=self.sampler.work(self.codes[recorder][0], passed, released))


def _time_in(loops: Iterable[Recorder]) -> float:
    """Return the seconds in which one of these loops or several were under way."""
    spans = [(each.begun, max(each.asked, each.received)) for loop in loops for each in loop.passes]
    return float(np.sum(np.diff(union(*np.array(spans).reshape(-1, 2).T))))


@contextmanager
def watched_by_doctor(*, probe: bool) -> Iterator[Doctor]:
    """Watch a process with a doctor of its own."""
    doctor = Doctor(probe=probe)
    with doctor.watching():
        yield doctor
