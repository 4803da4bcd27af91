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
from typing import TypeVar

import numpy as np

from starvelab.host import free_shared_memory
from starvelab.measure.devices import Cuda, cuda_in_use
from starvelab.units import Q_

from ..contents import BatchContents, Repeats, contents_of
from ..finding.from_times import finding_of
from ..finding.job import BUSY, JobFinding
from ..finding.stages import LARGE, MANY_OBJECTS, RECEIVE_RANGE
from ..host import children_seconds, queued_seconds, this_thread
from ..shares import blocks_of, share_by_pass, share_of, unsettled, without_interruptions
from ..torch_internals import is_stream, persists, prefetch_of, ready_batches
from .gpu_times import DeviceTimes
from .memory import MemoryMeter
from .pickled import Pickled
from .probe import Probe
from .ranks import own_rank
from .usage import ProcessUse

Batch = TypeVar("Batch")
# Older batches than these are forgotten, so that a run of weeks takes no more than 16 MB.
MAX_KEPT = 400_000
POLL_INTERVAL = 0.5  # seconds between two looks at what need not be known of each batch
LONG = 2e-3  # seconds of a wait, beside which two questions to the system are nothing
# At first all is looked at, and then the clock alone for up to so many batches, as no period can always miss.
FIRST, MAX_GLANCES, FEW_GLANCES, GOLDEN = 300, 192, 24, 0.6180339887
QUICK = 5e-5  # seconds from batch to batch, of which a close look is a large part
SAME = ("rank", "contents", "workers", "prefetch", "persists", "stream")  # in a finding and its recorder
RECENT = 50  # steps that tell whether the last one is a long one
ROOM = 16  # batches that have to find room beside one that is held a step longer
# The passes that are under way in each thread, the innermost last.
_open = threading.local()


class Recorder:
    """All times of one training loop; `describe` finds the batch size and the workers that are not given.

    `cuda` stands in place of `torch.cuda`, which is used as soon as the program works with a GPU. A probe
    times the stages of the loader as well. `home` is the thread of the training loop: what another one waits
    that fetches for it is not what the loop waits.
    """

    def __init__(
        self,
        *,
        batch_size: int | None = None,
        workers: int | None = None,
        cuda: Cuda | None = None,
        probe: Probe | None = None,
        home: int | None = None,
    ) -> None:
        self.home = home  # the thread of the training loop; None where any that fetches is one
        self.batch_size, self.workers, self.cuda, self.probe = batch_size, workers, cuda, probe
        self.passes: list[Pass] = []
        # Of each batch that counts: the wait for it, the step that used it [s], and the number of its pass.
        self.waits, self.steps, self.numbers = array("d"), array("d"), array("I")
        self.asked, self.ready = 0, 0  # how often a queue was asked, and the batches that were ready then
        self.use, self.memory = ProcessUse(), MemoryMeter()
        self.device: DeviceTimes | None = None
        self.contents: BatchContents | None = None
        self.rank: int | None = None
        self.prefetch: int | None = None
        self.persists: bool | None = None
        self.stream, self.repeats = False, Repeats()
        self.pickled = Pickled()
        self.endings: list[float] = []  # what it took to end a pass, as where its workers end [s]
        self.inner: list[float] = []  # what passes of other loops took within a step, as evaluations do [s]
        self.releases: list[float] = []  # what it took to release a batch [s]

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

    def add(self, wait: float, step: float, number: int) -> None:
        """Record a batch of a pass [s]."""
        self.waits.append(wait)
        self.steps.append(step)
        self.numbers.append(number)

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
        self.look(source)
        self.prefetch = prefetch_of(source) or self.prefetch
        self.persists, self.stream = persists(source), is_stream(source)
        self.contents = contents_of(batch) or self.contents
        self.rank = own_rank() if self.rank is None else self.rank

    def look(self, source: object) -> None:
        """Look at the memory of the job."""
        self.memory.poll(source, sum(each.batches for each in self.passes))

    @property
    def _size(self) -> float:
        """Bytes of a batch; 0 where that is not known."""
        return self.contents.size.m_as("B") if self.contents and self.contents.size is not None else 0.0

    def holds(self, batch: object) -> bool:
        """True where the release of a batch is worth a look, and one more finds room in shared memory."""
        many = self.contents is not None and self.contents.one_by_one >= MANY_OBJECTS
        needed = batch is not None and bool(self.workers) and (self._size >= LARGE or many)
        return needed and self._size * ROOM < (free_shared_memory() or 0)

    def pairs(self, last: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return waits, steps [s] and the numbers of their passes, of the last so many batches or of all."""
        # Copies: while numpy looks at an array's memory, the array cannot grow. Another thread may add to it.
        start = 0 if last is None else max(0, len(self.numbers) - last)
        numbers = np.array(self.numbers[start:])
        waits, steps = (np.array(column[start:])[: len(numbers)] for column in (self.waits, self.steps))
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
        passes = share_by_pass(numbers, waits, steps)
        left_out = unsettled(numbers, waits, steps, burst)
        kept = numbers >= left_out
        waits, steps, use = waits[kept], steps[kept], self.use
        release = float(np.median(self.releases)) if self.releases else 0.0
        moved = np.minimum(steps, release)  # the last batch is released while the loop takes the next one
        waits, steps = waits + moved, steps - moved
        quarters = 4 * np.arange(len(waits)) // max(len(waits), 1)
        drifts = unsettled(quarters, waits, steps, burst)
        if left_out:
            use = self.use.since(self.passes[left_out].use)
        ordinary = without_interruptions(steps)
        gpu = None
        if self.device is not None:
            idle, apart = self.device.times()
            if len(apart):
                gpu = share_of(idle, apart, without_interruptions(apart), burst)
                # The GPU's own times tell which step is long: those of the loop hold its waits for the GPU.
                ordinary = np.ones(len(steps), dtype=bool)
        host = share_of(waits, waits + steps, ordinary, burst)
        threads = {each.thread for each in self.passes if each.batches and each.thread is not None}
        return finding_of(
            waits,
            waits + steps,
            ordinary,
            host,
            stall=gpu,
            counts=gpu or host,
            aside=[*self.inner, *([after] if after else [])],
            first_waits=[each.first_wait for each in self.passes if each.first_wait is not None],
            batch_size=self.batch_size,
            blocks=tuple(blocks_of((waits + steps)[ordinary]).tolist()),
            batches=sum(each.batches for each in self.passes),
            pass_waits=passes,
            left_out=left_out,
            quarter_waits=share_by_pass(quarters, waits, steps) if drifts else (),
            elsewhere=self.home is not None and bool(threads - {self.home}),
            prepare_cpu=use.share,
            prepare_threads=use.threads,
            prepare_queued=use.queued_share,
            core_waits=self.use.core_waits,
            others_cpu=self.use.others_share,
            processes=self.use.processes,
            loop_cpu=self.use.loop_cores(host.value if self.workers == 0 else 0.0),
            memory=self.memory.use(self.batch_size, self._size),
            queue_depth=self.ready / self.asked if self.asked else None,
            stages=self.probe.costs(release) if self.probe else None,
            release=Q_(1e3 * release, "ms") if self.releases else None,
            ending=Q_(1e3 * float(np.mean(self.endings)), "ms") if self.endings else None,
            repeats=self.repeats.found,
            restarts=restarts,
            pickled=self.pickled.found,
            asynchronous=gpu is None and cuda_in_use() is not None,
            **{name: getattr(self, name) for name in SAME},
        )


class Pass:
    """One pass over the data; its methods are the events in it, in the thread that goes over it."""

    def __init__(self, recorder: Recorder, number: int, since: float | None) -> None:
        self.clock = time.perf_counter
        now = self.clock()
        self.recorder, self.number, self.probe = recorder, number, recorder.probe
        self.thread = this_thread()
        self.use = copy(recorder.use)  # as it was when this pass began
        self.batches = 0
        self.first_wait: float | None = None
        self.asking = False  # the loop waits
        self.glances = 0  # batches from here on for which only the clock is looked at
        self.held: object = None  # a batch from a worker, whose release is timed in place of the loop's own
        self.used = False  # by its step
        self.known = True  # the loop does nothing but wait since it asked
        self.long = True  # the last wait, so that asking the system costs little beside it
        self.unasked = [0.0, 0.0]  # seconds of short and of long waits for which it was not asked yet
        self.wait: float | None = None  # for the batch in use; None if that does not count
        # CPU time of the process when it asked, and seconds in which its thread wanted a core; None where
        # others prepare, or nobody asked.
        self.spent: float | None = None
        self.of_children = 0.0
        self.queued: float | None = None
        self.computed = 0.0  # CPU time of that thread then
        self.begun = now if since is None else since
        self.start_up = now - self.begun
        self.asked = self.received = now
        self.polled = now - 2 * POLL_INTERVAL
        self.stale = self.has_queue = True  # what the program uses was not looked at since the last poll
        if not hasattr(_open, "passes"):
            _open.passes = []
        self.under_way: list[Pass] = _open.passes
        self.outer = self.under_way[-1] if self.under_way else None
        self.outer_batches = self.outer.batches if self.outer else 0
        self.under_way.append(self)

    def ask(self, source: object = None) -> None:
        """End the step: from now on the loop waits for its next batch, and for nothing else."""
        recorder, self.asking = self.recorder, True
        self.asked = time.perf_counter()
        if self.wait is not None:
            recorder.add(self.wait, max(self.asked - self.received, 0.0), self.number)
            self.wait = None
        if self.held is not None and self.used:  # released here, and not in the step that ended
            begun = time.perf_counter()
            self.held = None
            self.asked = time.perf_counter()
            recorder.releases.append(self.asked - begun)
        self.used = True
        if self.has_queue and (ready := ready_batches(source)) is not None:
            recorder.asked += 1
            recorder.ready += ready
        else:
            self.has_queue = False
        if self.stale:
            self.stale = False
            if recorder.device is None and (cuda := recorder.cuda or cuda_in_use()) is not None:
                recorder.device = DeviceTimes(cuda)
        if recorder.device is not None:
            recorder.device.ask()
        if self.probe is not None:
            self.probe.ask()
        alone = recorder.workers == 0
        # Ranks wake up together, and then wait for a core, however little each uses of it.
        self.queued = None
        if self.long and (alone or recorder.rank is not None or (recorder.use.others_share or 0.0) >= BUSY):
            self.queued, self.computed = queued_seconds(), time.thread_time()
        if alone:
            self.spent, self.of_children = time.process_time(), children_seconds()

    def receive(self, batch: object = None, source: object = None) -> None:
        """End the wait: the loop has its batch."""
        now, recorder, crowded = time.perf_counter(), self.recorder, 0.0
        first, self.asking = not self.batches, False
        if recorder.device is not None:
            recorder.device.receive(first=first or not self.known)
        if first:
            self.first_wait = self.start_up + now - self.asked
        elif self.known:
            self.wait = now - self.asked
            self.long = self.wait > LONG
            crowded = self._ask_system(self.wait)
            self.wait -= crowded
        self.batches += 1
        self.known, self.received = True, now
        if now - self.polled > POLL_INTERVAL:
            self.polled, self.stale = now, True
            if not without_interruptions(np.array(recorder.steps[-RECENT:]))[-1:].all():
                recorder.use.rest()
            recorder.poll(source, batch)
            if self.held is None and source is not None and recorder.holds(batch):
                self.held, self.used = batch, False
            self.received = time.perf_counter()
        elif now > recorder.memory.glance:  # what is freed soon hides what is kept
            recorder.look(source)
            self.received = time.perf_counter()
        if recorder.stream and self.batches <= (recorder.workers or 0) + 1:
            recorder.repeats.see(self.batches, batch, recorder.workers or 0)
        if self.probe is not None:
            self.probe.receive(batch)
            self.received = time.perf_counter()
        self.received -= crowded
        closely = self.wait is None or self.long or self.stale or self.has_queue
        closely = closely or len(recorder.numbers) < FIRST
        if not (closely or recorder.device or self.probe or self.held is not None):
            # What a long wait was spent on is soon to be known, but where batches are as quick as a look.
            few = self.unasked[True] and now - self.asked + recorder.steps[-1] > QUICK
            self.glances = int((FEW_GLANCES if few else MAX_GLANCES) * (self.batches * GOLDEN % 1.0))

    def _ask_system(self, wait: float) -> float:
        """Count what the system says of a wait [s]; return the seconds of it that were no wait for data."""
        waited = None
        if self.queued is not None and (queued := queued_seconds()) is not None:
            waited = queued - self.queued
        if self.spent is None:
            self.unasked[self.long] += wait
        else:
            # It stands for the waits of its kind, long or short, for which nobody asked.
            times = 1 + self.unasked[self.long] / wait if wait else 1.0
            self.unasked[self.long] = 0.0
            own, others = time.process_time() - self.spent, children_seconds() - self.of_children
            self.recorder.use.add(times * (own + others), times * wait, waited, times * others)
        # Where others prepare, its batch may be ready meanwhile: that is no wait for data. But what the loop
        # computes itself to have a batch, as its sampler does, wants that core.
        own = time.thread_time() - self.computed > RECEIVE_RANGE[1] / 1e3 if waited else True
        return min(waited or 0.0, wait) if self.spent is None and not own else 0.0

    def interrupt(self) -> None:
        """Leave out the next wait: the loop does something else before its next batch."""
        self.known, self.glances = False, 0

    def end(self) -> None:
        """End the pass, which is over or was left: its time is no part of the step of a loop around it."""
        if self not in self.under_way:
            return
        self.under_way.remove(self)
        if self.outer is not None and self.outer.batches == self.outer_batches:
            now = self.clock()
            self.outer.received = min(self.outer.received + now - self.begun, now)
            self.outer.recorder.inner.append(now - self.begun)
            self.outer.recorder.use.rest()
        self.wait = self.outer = self.probe = self.held = None
        self.glances = 0

    def fetch(self, source: Iterator[Batch], get: Callable[[Iterator[Batch]], Batch] = next) -> Batch:
        """Return the next batch of an iterator."""
        # What a short step can hardly spare is left out where nothing but the clock is looked at.
        recorder = self.recorder
        if glance := self.glances > 0 and self.wait is not None:
            self.glances -= 1
            asked = self.clock()
            recorder.waits.append(self.wait)
            recorder.steps.append(asked - self.received)
            recorder.numbers.append(self.number)
            self.asked = asked
        else:
            self.ask(source)
        try:
            batch = get(source)
        except BaseException as error:
            self.wait = None
            if not isinstance(error, StopIteration):
                self.interrupt()
            elif self in self.under_way:
                recorder.endings.append(self.clock() - self.asked)
                if self.asked - self.polled > POLL_INTERVAL / 4:
                    recorder.use.poll(source)
                self.end()
            raise
        if not glance:
            self.receive(batch, source)
            return batch
        self.received = now = self.clock()
        self.wait = wait = now - asked
        self.batches += 1
        self.long = wait > LONG
        self.unasked[self.long] += wait
        if self.long or now - self.polled > POLL_INTERVAL:
            self.glances = 0
        return batch
