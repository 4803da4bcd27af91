"""The mean times of a watched job, and its rate with other workers or other times, by the model of a loader.

It takes the times from what was found, and knows of no loader. Cores are shared: what computes is stretched
where all of them are busy with the rest of the job, or with other programs. What workers wait for may serve
all of them at once, or one at a time: a job that ran with one number of workers does not tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import comb, inf

import numpy as np

from starvelab.model.resources import ACCELERATOR, CPU, LOOP, STORAGE
from starvelab.model.solver import BatchTimes
from starvelab.units import Q_, Quantity

from ..finding.job import JobFinding
from ..finding.stages import COLLATE, DATASET, PACK, RECEIVE, RECEIVE_RANGE
from .lateness import Lateness

# What a measured time may be off, as a share of it: a choice. benchmarks.zoo holds what is
# predicted with it against runs.
ERROR = 0.08
# Share of what receiving took that it may take at best, since it takes longer where the loop has to wake up
# for each batch: a choice.
QUICKER = 0.5
PREFETCH = 2  # batches ahead of each worker, where a loader names no number; by definition of PyTorch
ROUNDS = 12  # until the stretched times and the rate agree; a choice
HALVINGS = 4 * ROUNDS  # of the range in which the processes of other programs lie; a choice
# Share of their time that workers are idle, from which on the probe says what a batch takes: a choice.
LATE = 0.15
# Share of a step that it may have waited for a core at least, where others want it: a choice.
CROWDED = 0.3
# Share of its time that one who prepares may wait for a core, the rest being work: a choice.
MOST_QUEUED = 0.98
# Share of a worker's time, below which its pace says little of who else computes: a choice.
COMPUTES = 0.3
# Times as long work may take while all cores compute, since they share caches and often physical cores: a
# choice, which benchmarks.zoo holds against runs.
SLOWER = 1.25
MAX_OTHERS = 256.0  # processes of other programs; a choice
NAMED = 0.02  # share of the job in which workers start, that is worth a line; a choice
CPU_SHARES = (0.5, 1.0, 0.0)  # of preparing, where it was not measured: likely, slow, fast; a choice


@dataclass(frozen=True)
class JobTimes:
    """Mean times of a batch [ms], and the cores."""

    step: float  # the training step
    wait: float  # of a worker while it prepares a batch, mostly to read
    compute: float  # of that worker
    receive: float  # what the loop itself spends on receiving a batch from a worker
    pack: float  # what handing over costs a worker, where `compute` lacks it: in a loop without workers
    loop_compute: float  # what the loop's process computes for a batch with workers, its step among it
    cores: float
    serial: float = 0.0  # of `wait`, where what is waited for serves one batch at a time
    others: float = 0.0  # processes of other programs that want a core at any time
    threads: float = 1.0  # cores that a worker uses while it computes
    inside: float = 1.0  # cores that a loop without workers uses for `compute`, which one thread would take

    def period(self, workers: int) -> float:
        """Return the milliseconds from batch to batch, on average."""
        period, compute, of_worker = self._period(workers, 0.0, 0.0), self.compute + self.pack, 0.0
        if not workers:
            return period
        side = max(self.loop_compute / max(self.step + self.receive, 1e-9), 1.0)  # cores that the loop uses
        for _ in range(ROUNDS):
            busy = min(compute * (1 + of_worker) / (workers * period), 1.0)
            loop = min(self.loop_compute / (side * period), 1.0)
            alone, beside = (
                self._stretch(workers - 1, busy, of_loop, self.threads) for of_loop in (0.0, side)
            )
            of_worker = (1 - loop) * alone + loop * beside
            period = (period + self._period(workers, of_worker, self._stretch(workers, busy))) / 2
        return period

    def _stretch(self, workers: int = 0, busy: float = 0.0, more: float = 0.0, own: float = 1.0) -> float:
        """Return by which share work takes longer beside workers that are each busy for a share of the time.

        Each thread uses one core at most. So there is none for it only while as many others as there are
        cores compute, too: then all of them get the same share. `more` of the job compute all the time.
        """
        chances = (comb(workers, n) * busy**n * (1 - busy) ** (workers - n) for n in range(workers + 1))
        each = ((own + n * self.threads + more + self.others) / self.cores - 1 for n in range(workers + 1))
        return sum(chance * max(one, 0.0) for chance, one in zip(chances, each, strict=True))

    def _period(self, workers: int, of_worker: float, of_loop: float) -> float:
        if not workers:
            return self.wait + self.compute / self.inside * (1 + self._stretch(own=self.inside)) + self.step
        prepare = self.wait + (self.compute + self.pack) * (1 + of_worker)
        times = {CPU.name: prepare / workers, LOOP.name: self.receive * (1 + of_loop)}
        times |= {ACCELERATOR.name: self.step, STORAGE.name: self.serial}
        return max(BatchTimes(times, workers, in_flight=1, read_ahead=False).step, self.computed)

    @property
    def computed(self) -> float:
        """All work of the CPU, divided by the cores."""
        return (self.compute * self.threads + self.pack + self.loop_compute) / self.cores

    def scaled(self, factor: float, receive: float) -> JobTimes:
        """Return these times if those of workers are off by a factor, and the hand-over is as given."""
        known = {name: getattr(self, name) * factor for name in ("wait", "compute", "serial")}
        known["pack"] = self.pack * receive / max(self.receive, 1e-9)
        known["loop_compute"] = max(self.loop_compute + receive - self.receive, 0.0)
        return replace(self, receive=receive, **known)

    def lighter(self, share: float, rest: float, received: float) -> JobTimes:
        """Return these times with this share of the bytes, which `rest` of a worker's time follows."""
        left = 1 - rest + rest * share
        loop_compute = max(self.loop_compute - received * (1 - share), 0.0)
        less = {name: getattr(self, name) * share for name in ("receive", "pack")}
        less |= {name: getattr(self, name) * left for name in ("wait", "compute")}
        return replace(self, loop_compute=loop_compute, **less)


@dataclass(frozen=True)
class JobModel:
    """A job's times as they are most likely, and at the two ends of what they may be."""

    likely: JobTimes
    slow: JobTimes
    fast: JobTimes
    workers: int  # that the job has
    dataset_share: float | None  # of what a worker takes for a batch; None where there was no probe
    late: Lateness | None = None  # batches of different times; None where they were not timed
    alone: float = inf  # milliseconds of the step, at best, where nothing else wants its core

    def periods(self, workers: int) -> tuple[float, float, float]:
        """Return the milliseconds from batch to batch: likely, at most, at least."""
        late = self.lateness(workers)
        return (
            self.likely.period(workers) * late,
            self.slow.period(workers) * late * (1 + ERROR / 2),
            self.fast.period(workers) * late * (1 - ERROR / 2),
        )

    def lateness(self, workers: int, prefetch: int | None = None) -> float:
        """Return how many times as long a batch takes since some of them are late."""
        loop = max(self.likely.step + self.likely.receive, self.likely.computed)  # no quicker than the cores
        return self.late.factor(workers, loop, prefetch) if self.late is not None else 1.0

    def changed(self, change: Callable[[JobTimes], JobTimes]) -> JobModel:
        """Return the same job with other times."""
        return replace(self, likely=change(self.likely), slow=change(self.slow), fast=change(self.fast))


def model_of(finding: JobFinding, workers: int, step: float, cores: float) -> JobModel:
    """Return the times of a job that was watched, with so many workers and a step of so many milliseconds."""
    period = finding.waits.period
    waits, queued = max(period - step, 1e-3), min(finding.machine.prepare_queued or 0.0, MOST_QUEUED)
    # Without workers the loop prepares while it waits; with them, each is busy for the whole period.
    prepare = (workers * period if workers else waits) * (1 - queued)
    late = None
    if workers and finding.loader.stages is not None and finding.loader.stages.prepared:
        # Where batches are ready they are idle at times: then the probe says what a batch takes. So they are
        # where single batches are late.
        idle = prepare - float(np.mean(finding.loader.stages.prepared))
        prepare -= max(idle, 0.0) if finding.ready or idle > LATE * prepare else 0.0
        prepared, ahead = finding.loader.stages.prepared, finding.loader.prefetch
        late = (
            Lateness(prepared, ahead, () if finding.lacks_core else finding.waits.uneven) if ahead else None
        )
    receive, receives = _receiving(finding, workers, waits)
    shares = CPU_SHARES if (known := finding.machine.prepare_cpu) is None else (known,) * 3
    loop = (finding.machine.loop_cpu or 0.0) * period

    def times(share: float) -> JobTimes:
        compute = prepare * max(share - queued, 0.0) / (1 - queued)
        pack, loop_compute = (0.0, loop) if workers else (PACK * receive, loop + receive)
        threads = finding.machine.prepare_threads
        used = {"threads": threads} if workers else {"inside": threads}
        work = compute if workers else compute * threads
        return JobTimes(step, prepare - compute, work, receive, pack, loop_compute, cores, **used)

    likely, slow, fast = map(times, shares)
    # One at a time, at worst: then what is waited for holds up one worker by all of its time, and several of
    # them by no more than the time from batch to batch.
    serial = (prepare if known is None else slow.wait) * (1 + ERROR)
    slow, fast = slow.scaled(1 + ERROR, receives[1]), fast.scaled(1 - ERROR, receives[0])
    slow = replace(slow, serial=min(serial, period) if workers else serial, cores=cores / SLOWER)
    # Threads that work together wait for each other, and compute meanwhile: at best, one does all there is.
    fast = replace(fast, compute=fast.compute / fast.inside, threads=1.0, inside=1.0)
    in_steps = 1 - min(receives[0] / loop, 1.0) if workers and loop and not finding.busy else 1.0
    alone = step * (
        1 - min((finding.machine.core_waits or 0.0) * in_steps * period / max(step, 1e-9), MOST_QUEUED)
    )
    if finding.busy:
        loop = likely.step + likely.receive
        alike = period / (late.factor(workers, loop) if late is not None else 1.0)
        likely = replace(likely, others=_others(finding, likely, workers, alike))
        # How the system shares the cores out is not known: by processes, or by programs, of which each keeps
        # what it has however many workers it starts.
        kept = (workers * period if workers else waits) * (1 + ERROR)
        slow = replace(slow, serial=kept if workers <= 1 else max(period, slow.serial))
    if finding.busy or finding.lacks_core:
        # Threads of a step wait for each other, and compute meanwhile. So one of them that has no core makes
        # it many times as long, and what it computes says little.
        left = min(alone / max(step, 1e-9), 1 - CROWDED if finding.busy else 1.0)
        fast = replace(fast, step=left * step, loop_compute=left * fast.loop_compute)
    return JobModel(likely, slow, fast, workers, _dataset_share(finding), late, alone)


def doubt_of(finding: JobFinding, model: JobModel) -> str:
    """Return why more workers than there are may bring nothing at all; empty where nothing says so."""
    several = model.likely.loop_compute > (1 + ERROR) * (model.likely.step + model.likely.receive)
    if finding.lacks_core or several:
        return "It is less where the step's threads find no core: try torch.set_num_threads(1) as well."
    if model.workers and finding.loader.processes is False:
        return "It is less where they are threads that wait for Python's lock: processes have one each."
    if model.workers > 1 and finding.loader.prefetch == 1 and model.late is None:
        return "It is less where single batches are late, each worker having one ahead: a probe decides."
    return ""


def _others(finding: JobFinding, times: JobTimes, workers: int, period: float) -> float:
    """Return how many processes of other programs want a core, so that the job takes as long as it does."""
    low, high = (finding.machine.others_cpu or 0.0) * times.cores, MAX_OTHERS
    # The workers do not set the pace, or what they compute does not.
    if finding.ready or times.compute < COMPUTES * (times.compute + times.wait):
        return low
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if replace(times, others=middle).period(workers) < period:
            low = middle
        else:
            high = middle
    return low


def throughputs_of(
    finding: JobFinding, likely: float, at_most: float, at_least: float
) -> tuple[Quantity, Quantity, Quantity]:
    """Return samples or batches a second, likely, at least and at most, for a time between batches [ms]."""
    size, unit = (finding.loader.batch_size, "img/s") if finding.loader.batch_size else (1, "1/s")
    middle, low, high = (Q_(1e3 * size / each, unit) for each in (likely, at_most, at_least))
    return middle, low, high


def _receiving(finding: JobFinding, workers: int, waits: float) -> tuple[float, tuple[float, float]]:
    """Return the milliseconds in which the loop receives a batch from a worker, and their range."""
    stages = finding.loader.stages
    if stages is not None and stages.receiving is not None:
        known = stages.receiving.m_as("ms")
    elif workers and finding.ready:
        known = waits  # batches are ready, so the loop waits for nothing else
    elif workers:
        release = finding.waits.release.m_as("ms") if finding.waits.release is not None else 0.0
        likely, low, high = (min(each + release, waits) for each in (RECEIVE, *RECEIVE_RANGE))
        return likely, (low, high)
    else:
        return RECEIVE, RECEIVE_RANGE
    return known, (known * QUICKER, known * (1 + 2 * ERROR))


def _dataset_share(finding: JobFinding) -> float | None:
    stages = finding.loader.stages
    if stages is None or DATASET not in stages.costs:
        return None
    dataset, collate = (stages.costs[name].m_as("ms") for name in (DATASET, COLLATE))
    return float(dataset / max(dataset + collate, 1e-9))


@dataclass(frozen=True)
class StartUp:
    """What a later pass takes in which no batch is trained on [ms]."""

    each: float  # from asking for its first batch until that comes, and from its last batch until its end
    ready: float  # of that, what a batch takes in any case
    others: float  # what its other batches take
    batches: float  # of a pass

    @property
    def now(self) -> float:
        """Milliseconds from batch to batch, over whole passes."""
        return (self.each + self.others) / self.batches

    @property
    def after(self) -> float:
        """The same where workers run already and the data is known."""
        return (self.ready + self.others) / self.batches

    @property
    def matters(self) -> bool:
        """Whether what can be saved is worth a line."""
        return self.now - self.after >= NAMED * self.now


def start_up_of(finding: JobFinding, model: JobModel) -> StartUp | None:
    """Return what later passes take to begin and to end; None where there was none."""
    if not (later := [wait.m_as("ms") for wait in finding.waits.first_waits[1:]]):
        return None
    period, batches = finding.waits.period, finding.waits.batches / len(finding.waits.first_waits)
    first, times = float(sum(later) / len(later)), model.likely
    # The first batch of a pass is prepared while the loop waits, also by workers that run already.
    ready = min(first, times.wait + times.compute + (times.receive if model.workers else 0.0))
    ending = finding.waits.ending.m_as("ms") if finding.waits.ending is not None else 0.0
    return StartUp(first + ending, ready, period * (batches - 1), batches)


def pickled_share(finding: JobFinding) -> float:
    """Return the share of the job in which its data was pickled for workers that started, 0 to 1."""
    rate = float(finding.waits.batch_rate.m_as("1/s"))
    if finding.loader.pickled is None or not rate:
        return 0.0
    whole = sum(wait.m_as("s") for wait in finding.waits.first_waits) + finding.waits.counted / rate
    return float(finding.loader.pickled[0].m_as("s") / max(whole, 1e-9))
