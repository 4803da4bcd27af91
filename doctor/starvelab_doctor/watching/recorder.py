"""The recorder of a training loop: each way of watching one tells it what happens, and it holds the times.

A pass over the data begins, the loop asks for a batch, has it, and asks for the next: these are the events.
`watch` and `starvelab-doctor` see them from inside a loader, and callbacks by the hooks of their framework.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from random import Random
from typing import TypeVar

import numpy as np

from starvelab.measure.devices import cuda_in_use
from starvelab.units import Q_

from ..contents import BatchContents, Repeats, contents_of
from ..finding.job import BUSY, JobFinding
from ..finding.stages import RECEIVE_RANGE
from ..host import children_seconds, queued_seconds
from ..shares import blocks_of, share_of, unsettled, without_interruptions
from ..torch_internals import early_batches, is_stream, persists, prefetch_of, ready_batches
from .gpu_times import DeviceTimes
from .memory import MemoryMeter
from .probe import Probe
from .ranks import own_rank
from .usage import ProcessUse

Batch = TypeVar("Batch")
# Older batches than these are forgotten, so that a run of weeks takes no more than 16 MB.
MAX_KEPT = 400_000
POLL_INTERVAL = 0.5  # seconds between two looks at what need not be known of each batch
PAUSE = 50  # times what such a look computes, until the next one: passes may be short
LONG = 2e-3  # seconds of a wait, beside which two questions to the system are nothing
# Seconds, on average, between two looks at more than the clock, where no queue is to be asked. They are
# drawn: no period can always miss. The random numbers of the program stay as they are.
CLOSE_INTERVAL = 5e-3
SAME = ("rank", "contents", "workers", "prefetch", "persists", "stream")  # in a finding and its recorder
RECENT = 50  # steps that tell whether the last one is a long one
# The passes that are under way in each thread, the innermost last.
_open = threading.local()


class Recorder:
    """All times of one training loop; `describe` finds the batch size and the workers that are not given.

    A probe times the stages of the loader as well. `home` is the thread of the training loop: what another
    one waits that fetches for it is not what the loop waits.
    """

    def __init__(
        self,
        *,
        batch_size: int | None = None,
        workers: int | None = None,
        probe: Probe | None = None,
        home: int | None = None,
    ) -> None:
        self.home = home  # the thread of the training loop; None where any that fetches is one
        self.batch_size, self.workers, self.probe = batch_size, workers, probe
        self.passes: list[Pass] = []
        # Of each batch that counts: the wait for it, the step that used it [s], and the number of its pass.
        self.waits, self.steps, self.numbers = array("d"), array("d"), array("I")
        self.asked, self.ready = 0, 0  # how often a queue was asked, and the batches that were ready then
        self.overtaken = 0.0  # seconds of waits in which batches arrived before their turn
        self.use, self.memory = ProcessUse(), MemoryMeter()
        self.device: DeviceTimes | None = None
        self.contents: BatchContents | None = None
        self.rank: int | None = None
        self.prefetch: int | None = None
        self.persists: bool | None = None
        self.stream, self.repeats = False, Repeats()
        self.pickled: list[float] = []  # seconds of each pickle for a worker that started
        self.spread, self.next_poll = Random(0), 0.0
        self.endings: list[float] = []  # what it took to end a pass, as where its workers end [s]
        self.inner: list[float] = []  # what passes of other loops took within a step, as evaluations do [s]

    def describe(self, loader: object) -> None:
        """Take from a loader like PyTorch's what is not known yet: its batch size and its workers."""
        sampler = getattr(loader, "batch_sampler", None)
        size = getattr(loader, "batch_size", None) or getattr(sampler, "batch_size", None)
        workers = getattr(loader, "num_workers", None)
        if self.batch_size is None and isinstance(size, int):
            self.batch_size = size
        if self.workers is None and isinstance(workers, int):
            self.workers = workers

    def begin(self, *, since: float | None = None, probe: Probe | None = None) -> Pass:
        """Begin a pass over the data, whose iterator may have been made `since` a moment of the clock [s]."""
        if probe is not None:
            # One of this pass alone goes on where that of the pass before ended.
            probe.samples = self.probe.samples if self.probe is not None else probe.samples
            self.probe = probe
        self.use.rest()
        self.passes.append(Pass(self, len(self.passes), since))
        return self.passes[-1]

    def replay(self, first_wait: float | None, waits: Sequence[float], steps: Sequence[float]) -> None:
        """Record a pass whose times are known [s]; without a first wait, its first batch is unknown, too."""
        record = self.begin()
        record.end()
        record.first_wait, record.batches = first_wait, len(waits) + (first_wait is not None)
        self.waits.extend(waits)
        self.steps.extend(steps)
        self.numbers.extend([record.number] * len(waits))
        self.forget()

    def forget(self) -> None:
        """Forget the oldest of very many batches."""
        if len(self.waits) >= 2 * MAX_KEPT:
            for column in (self.waits, self.steps, self.numbers):
                del column[:MAX_KEPT]

    def poll(self, source: object, batch: object) -> None:
        """Look at what need not be known of each batch."""
        self.forget()
        self.use.poll(source)
        if self.device is None and (cuda := cuda_in_use()) is not None:
            self.device = DeviceTimes(cuda)
        self.memory.poll(source, self.batches)
        self.prefetch = prefetch_of(source) or self.prefetch
        self.persists, self.stream = persists(source), is_stream(source)
        self.contents = contents_of(batch) or self.contents
        self.rank = own_rank() if self.rank is None else self.rank

    @property
    def batches(self) -> int:
        """How many the loop got in all passes."""
        return sum(each.batches for each in self.passes)

    def pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return waits, steps [s] and the numbers of their passes."""
        # Copies: while numpy looks at an array's memory, the array cannot grow. Another thread may add to it.
        numbers = np.array(self.numbers[:])
        waits, steps = (np.array(column[:])[: len(numbers)] for column in (self.waits, self.steps))
        return waits, steps, numbers

    def _first_batches(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the same of passes that end with their first batch: its wait is all that they have."""
        passes = [one for one in self.passes if one.first_wait is not None]
        waits = np.array([one.first_wait for one in passes[:-1]], dtype=float)
        lengths = np.diff([one.begun for one in passes])
        return waits, np.maximum(lengths - waits, 0.0), np.zeros(len(waits), dtype=int)

    def finding(self, after: float = 0.0) -> JobFinding:
        """Return what was found so far; the program went on for some seconds after the last batch."""
        waits, steps, numbers = self.pairs()
        if restarts := not len(waits) and len(self.passes) > 2:
            waits, steps, numbers = self._first_batches()
        burst = max(self.workers or 1, 1)
        left_out = unsettled(numbers, waits, steps, burst)
        use = self.use
        if left_out:
            settled = np.unique(numbers)[len(left_out)]
            waits, steps = waits[numbers >= settled], steps[numbers >= settled]
            use = self.use.since(self.passes[settled].use)
        ordinary = without_interruptions(steps)
        gpu = None
        if self.device is not None:
            idle, apart = self.device.times()
            if len(apart):
                gpu = share_of(idle, apart, without_interruptions(apart), burst)
                # The GPU's own times tell which step is long: those of the loop hold its waits for the GPU.
                ordinary = np.ones(len(steps), dtype=bool)
        host = share_of(waits, waits + steps, ordinary, burst)
        threads = {each.thread for each in self.passes if each.batches}
        return JobFinding.of_times(
            host,
            stall=gpu,
            aside=[*self.inner, *([after] if after else [])],
            first_waits=[each.first_wait for each in self.passes if each.first_wait is not None],
            batch_size=self.batch_size,
            blocks=tuple(blocks_of((waits + steps)[ordinary]).tolist()),
            batches=self.batches,
            left_out=tuple(left_out),
            elsewhere=self.home is not None and bool(threads - {self.home}),
            prepare_cpu=use.share,
            prepare_threads=use.threads,
            prepare_queued=use.queued_share,
            core_waits=self.use.core_waits,
            others_cpu=self.use.others_share,
            processes=self.use.processes,
            loop_cpu=self.use.loop_cores(host.value if self.workers == 0 else 0.0),
            memory=self.memory.use(self.contents),
            queue_depth=self.ready / self.asked if self.asked else None,
            overtaken=self.overtaken / max(sum(self.waits), 1e-9),
            stages=self.probe.costs() if self.probe else None,
            ending=Q_(1e3 * float(np.mean(self.endings)), "ms") if self.endings else None,
            repeats=self.repeats.found,
            restarts=restarts,
            pickled=Q_(sum(self.pickled), "s") if self.pickled else None,
            asynchronous=gpu is None and cuda_in_use() is not None,
            **{name: getattr(self, name) for name in SAME},
        )


class Pass:
    """One pass over the data; its methods are the events in it, in the thread that goes over it."""

    def __init__(self, recorder: Recorder, number: int, since: float | None) -> None:
        now = time.perf_counter()
        self.recorder, self.number, self.probe = recorder, number, recorder.probe
        self.thread = threading.get_ident()
        self.use = copy(recorder.use)  # as it was when this pass began
        self.batches = 0
        self.first_wait: float | None = None
        self.known = True  # the loop does nothing but wait since it asked, as it does not after an error
        self.long = True  # the last wait, so that asking the system costs little beside it
        self.wait: float | None = None  # for the batch in use; None if that does not count
        # CPU time when it asked, of the process and of those that it started: where the loop itself prepares.
        self.spent: tuple[float, float] | None = None
        # Seconds in which its thread wanted a core then, and CPU time of it; None where nobody asked.
        self.queued: tuple[float, float] | None = None
        self.begun = now if since is None else since
        self.start_up = now - self.begun
        self.asked = self.received = now
        self.closely = self.has_queue = True
        self.early = 0  # batches that arrived before their turn, when the loop asked
        self.next_look, self.polled = now, now - 2 * POLL_INTERVAL
        if not hasattr(_open, "passes"):
            _open.passes = []
        self.under_way: list[Pass] = _open.passes
        self.outer = self.under_way[-1] if self.under_way else None
        self.outer_batches = self.outer.batches if self.outer else 0
        self.under_way.append(self)

    @property
    def ended(self) -> float:
        """The moment of the last event."""
        return max(self.asked, self.received)

    @property
    def span(self) -> tuple[float, float]:
        """The moments at which its workers began to start, and of the last event."""
        return self.begun - self.start_up, self.ended

    def ask(self, source: object = None) -> None:
        """End the step: from now on the loop waits for its next batch, and for nothing else."""
        self.asked = now = time.perf_counter()
        recorder = self.recorder
        if self.wait is not None:
            recorder.waits.append(self.wait)
            recorder.steps.append(max(now - self.received, 0.0))
            recorder.numbers.append(self.number)
            self.wait = None
        self.closely = self.has_queue or now >= self.next_look or bool(self.probe or recorder.device)
        if self.closely:
            self.next_look = now + CLOSE_INTERVAL * (0.5 + recorder.spread.random())
            self._look_before(source)

    def _look_before(self, source: object) -> None:
        recorder = self.recorder
        ready = ready_batches(source) if self.has_queue else None
        self.has_queue = ready is not None
        if ready is not None:
            recorder.asked += 1
            recorder.ready += ready
            self.early = early_batches(source)
        if recorder.device is not None:
            recorder.device.ask()
        if self.probe is not None:
            self.probe.ask()
        alone = recorder.workers == 0
        # Ranks wake up together, and then wait for a core, however little each uses of it.
        self.queued = None
        crowded = recorder.rank is not None or (recorder.use.others_share or 0.0) >= BUSY
        if self.long and (alone or crowded) and (queued := queued_seconds()) is not None:
            self.queued = queued, time.thread_time()
        self.spent = (time.process_time(), children_seconds()) if alone else None

    def receive(self, batch: object = None, source: object = None) -> None:
        """End the wait: the loop has its batch."""
        self.received = now = time.perf_counter()
        first = not self.batches
        if first:
            self.first_wait = self.start_up + now - self.asked
        elif self.known:
            self.wait = now - self.asked
            self.long = self.wait > LONG
        self.batches += 1
        if self.closely:
            self._look_after(batch, source, first=first)
        self.known = True

    def _look_after(self, batch: object, source: object, *, first: bool) -> None:
        recorder, now, crowded = self.recorder, self.received, 0.0
        if recorder.device is not None:
            recorder.device.receive(first=first or not self.known)
        if self.wait is not None:
            if self.has_queue and early_batches(source) > self.early:
                recorder.overtaken += self.wait
            crowded = self._ask_system(self.wait)
            self.wait -= crowded
        if now - self.polled > POLL_INTERVAL and now >= recorder.next_poll:
            self.polled, computed = now, time.thread_time()
            if not without_interruptions(np.array(recorder.steps[-RECENT:]))[-1:].all():
                recorder.use.rest()
            recorder.poll(source, batch)
            recorder.next_poll = now + PAUSE * (time.thread_time() - computed)
        elif now > recorder.memory.glance:  # what is freed soon hides what is kept
            recorder.memory.poll(source, recorder.batches)
        if recorder.stream and self.batches <= (recorder.workers or 0) + 1:
            recorder.repeats.see(self.batches, batch, recorder.workers or 0)
        if self.probe is not None:
            self.probe.receive()
        self.received = time.perf_counter() - crowded

    def _ask_system(self, wait: float) -> float:
        """Count what the system says of a wait [s]; return the seconds of it that were no wait for data."""
        waited, computed = None, 0.0
        if self.queued is not None and (queued := queued_seconds()) is not None:
            waited, computed = queued - self.queued[0], time.thread_time() - self.queued[1]
        if self.spent is not None:
            own, others = time.process_time() - self.spent[0], children_seconds() - self.spent[1]
            self.recorder.use.add(own + others, wait, waited, others)
            return 0.0
        # Where others prepare, its batch may be ready meanwhile: that is no wait for data. But what the loop
        # computes itself to have a batch, as its sampler does, wants that core.
        return min(waited, wait) if waited and computed <= RECEIVE_RANGE[1] / 1e3 else 0.0

    def end(self) -> None:
        """End the pass, which is over or was left: its time is no part of the step of a loop around it."""
        if self not in self.under_way:
            return
        self.under_way.remove(self)
        if self.outer is not None and self.outer.batches == self.outer_batches:
            now = time.perf_counter()
            self.outer.received = min(self.outer.received + now - self.begun, now)
            self.outer.recorder.inner.append(now - self.begun)
            self.outer.recorder.use.rest()
        self.wait = self.outer = self.probe = None

    def fetch(self, source: Iterator[Batch], get: Callable[[Iterator[Batch]], Batch] = next) -> Batch:
        """Return the next batch of an iterator."""
        self.ask(source)
        try:
            batch = get(source)
        except BaseException as error:
            self.wait = None
            if not isinstance(error, StopIteration):
                self.known = False  # it does something else before its next batch
            elif self in self.under_way:
                self.recorder.endings.append(time.perf_counter() - self.asked)
                if self.asked - self.polled > POLL_INTERVAL / 4 and self.asked >= self.recorder.next_poll:
                    self.recorder.use.poll(source)
                self.end()
            raise
        self.receive(batch, source)
        return batch
