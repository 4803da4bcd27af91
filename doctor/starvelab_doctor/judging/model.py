"""A watched job as a pipeline of the lab: described by what was measured, and asked what a change brings.

What nobody measured has two ends, such as whether storage serves two workers at once, or how much the
workers of this host slow each other down. The lab's model is asked at both of them, and a gain is said only
where they agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from starvelab.host import usable_cores
from starvelab.model.assumptions import PUBLISHED, TUTORIAL, Assumptions
from starvelab.model.parts import Accelerator, Drive, Handover, Requests, Samples, Workers
from starvelab.pipeline import Pipeline
from starvelab.units import Q_, Quantity

from ..finding.job import JobFinding
from ..finding.lines import SAMPLER
from ..finding.stages import RECEIVE, RECEIVE_RANGE
from ..shares import APART

# Times its low end that the high end of a gain may be, to be said; by definition: each of them is then within
# a tenth of the middle, which is what the doctor promises of a gain.
AGREE = 1.21
# Batches whose times must be known, late ones among them. Where one of 12 is late, 84 of 100 windows of so
# many tell within a tenth what that costs, and 41 of 48 batches: benchmarks.judging.
MIN_TIMED = 192
PREFETCH = 2  # batches ahead of each worker, where a loader names no number; by definition of PyTorch
EITHER = 0.5  # share of preparing that computes, where nobody knows; by definition the middle of 0 and 1
NOTHING = 1e-6  # milliseconds that stand for no time at all, by definition: a time of a pipeline is positive

# A host that slows its workers down by as much as any source of the lab says.
CROWDED = replace(TUTORIAL, crowding=PUBLISHED.facts["crowding"].high)


@dataclass(frozen=True)
class Costs:
    """What a batch costs a job [ms], and who pays; as a pipeline of the lab, whose samples are batches."""

    step: float  # the training step
    wait: float  # of who prepares, mostly to read
    compute: float  # of who prepares, on one core
    receive: float  # of the loop, to receive a batch from a worker
    workers: int
    cores: int  # on which workers can compute at a time
    serial: bool = False  # what is waited for serves one batch at a time
    threads: float = 1.0  # cores that a loop without workers computes on
    prefetch: int = PREFETCH
    host: Assumptions = TUTORIAL  # whose workers slow each other down, or not

    @property
    def pipeline(self) -> Pipeline:
        """Return the pipeline of these costs."""
        drive = None
        if self.wait:
            one_at_a_time, wait = Drive(Q_(1 / self.wait, "B/ms"), read_ahead=False), Q_(self.wait, "ms")
            drive = one_at_a_time if self.serial else Drive(requests=Requests(latency=wait))
        compute = self.compute / (1.0 if self.workers else self.threads)
        handover = Handover(loop=_milliseconds(self.receive)) if self.workers else Handover()
        return Pipeline(
            batch_size=1,
            dataset=Samples(size=Q_("1 B"), cpu_time=_milliseconds(compute)),
            storage=drive,
            workers=Workers(self.workers, cores=self.cores, prefetch=self.prefetch, handover=handover),
            hardware=Accelerator(rate=_milliseconds(self.step), in_flight=1),
            assumptions=self.host,
        )

    @cached_property
    def period(self) -> float:
        """Milliseconds from batch to batch."""
        return float(self.pipeline.solve().step_time.m_as("ms"))

    def late_period(self, prepared: Sequence[float]) -> float:
        """Return the milliseconds from batch to batch where workers take these times for them, in turn."""
        run = replace(self, wait=0.0).pipeline.simulate(
            batches=len(prepared), replicas=1, warm_up=0, prepare_times=Q_(np.array(prepared), "ms")
        )
        return float(1e3 / run.throughput.m_as("img/s"))

    def preparing(self, share: float) -> Costs:
        """Return them where preparing takes this share of its time."""
        return replace(self, wait=self.wait * share, compute=self.compute * share)


def _milliseconds(time: float) -> Quantity:
    return Q_(max(time, NOTHING), "ms")


Change: TypeAlias = Callable[[Costs], Costs]


@dataclass(frozen=True)
class Gain:
    """Throughput with a change over that of now: at worst, likely and at best."""

    low: float
    likely: float
    high: float
    certain: bool = True  # the times say what work takes, since nobody waited for a core

    @property
    def told(self) -> bool:
        """True where both ends say nearly the same."""
        return self.certain and self.high <= AGREE * self.low

    def each(self, change: Callable[[float], float]) -> Gain:
        """Return it with each of its numbers changed."""
        return Gain(change(self.low), change(self.likely), change(self.high), self.certain)


@dataclass(frozen=True)
class JobModel:
    """A job's costs as they are most likely, and at the two ends of what they may be."""

    likely: Costs
    slow: Costs
    fast: Costs
    period: float  # that was measured [ms]
    prepared: tuple[float, ...]  # milliseconds of the batches that were timed, one after the other

    def gain(self, change: Change, *, sure: bool = True) -> Gain:
        """Return what a change brings; unless it is `sure` to bring anything, nothing at worst."""
        # What the model is off now it will be off then: a change of nothing brings nothing.
        now = self.likely.period if sure else max(self.likely.period, self.period)
        low, likely, high = (now / change(costs).period for costs in (self.slow, self.likely, self.fast))
        return Gain(min(low, likely, likely if sure else 1.0), likely, max(high, likely))

    def gain_of_queue(self, ahead: int) -> Gain:
        """Return what so many batches ahead of each worker bring, where single ones are late."""
        now, then = self._late(self.likely), self._late(replace(self.likely, prefetch=ahead))
        # Where the late batches do not explain what was measured, the ends are far apart.
        low, high = sorted((now / then, self.period / then))
        return Gain(max(low / (1 + APART), 1.0), now / then, high * (1 + APART))

    def _late(self, costs: Costs) -> float:
        return max(costs.late_period(self.prepared), costs.period)

    @property
    def lateness(self) -> float:
        """How many times as long a batch takes since single ones are late; 1 where too few were timed."""
        known = self.likely.workers and len(self.prepared) >= MIN_TIMED
        return self._late(self.likely) / self.likely.period if known else 1.0


def sampling_of(finding: JobFinding) -> float:
    """Return the milliseconds that the sampler takes the loop for a batch, by a probe or by samples."""
    stages, lines = finding.loader.stages, finding.loader.lines
    if stages is not None and stages.timed:
        return float(stages.costs[SAMPLER].m_as("ms")) if SAMPLER in stages.costs else 0.0
    share = sum(line.share for line in lines.loop if line.phase == SAMPLER)
    # Where workers are busier than the sampler, what it takes may be that of a pass's beginning alone.
    if share <= max(lines.working, default=1.0):
        return 0.0
    return min(share, finding.waits.host_wait) * finding.waits.period


def model_of(finding: JobFinding, cores: float | None = None) -> JobModel | None:
    """Return the model of a job that was watched; None where its workers or its step are not known.

    Where the loop waits, its workers are busy all the time, so a batch takes one of them that many times the
    period; without workers the loop prepares while it waits. A probe says what a batch takes.
    """
    workers, stages, machine = finding.loader.workers, finding.loader.stages, finding.machine
    if workers is None or not finding.waits.batch_rate.m_as("1/s"):
        return None
    # What the sampler takes the loop, no worker takes over: it is like a longer step.
    period = finding.waits.period
    step = period * (1 - finding.waits.host_wait) + sampling_of(finding)
    waits = max(period - step, NOTHING)
    prepare, prepared = workers * period or waits, () if stages is None else stages.prepared
    if workers and prepared:
        prepare = min(prepare, float(np.mean(prepared)))
    elif finding.ready and finding.loader.lines.working:
        prepare = min(prepare, sum(finding.loader.lines.working) * period)  # they are not busy all the time
    # What waits for a core that other programs have is work all the same: one worker more gets as much of it.
    queued = 0.0 if finding.busy else machine.prepare_queued or 0.0
    receive, receives = _receiving(finding, waits)
    most = int(cores if cores is not None else usable_cores())
    # Two hardware threads of a core do little more than one, but workers that there are have what they need.
    sure = most if cores is not None else min(max(usable_cores(physical=True), workers), most)
    # What the loop computes beside preparing, it computes on a core that no worker has.
    taken = round(min(machine.loop_cpu or 0.0, 1.0))
    share, known = machine.prepare_cpu or 0.0, machine.prepare_cpu is not None

    def costs(share: float, free: int, received: float, factor: float, threads: float) -> Costs:
        work, wait = prepare * max(share - queued, 0.0) * factor, prepare * (1 - max(share, queued)) * factor
        ahead = finding.loader.prefetch or PREFETCH
        if workers:
            return Costs(step, wait, work, received, workers, max(int(free / threads), 1), prefetch=ahead)
        return Costs(step, wait, work * threads, received, 0, free, threads=threads)

    likely = costs(share if known else EITHER, sure, receive, 1.0, machine.prepare_threads)
    slow = costs(share, max(sure - taken, 1), receives[1], 1 + APART, machine.prepare_threads)
    # One at a time, at worst: then several workers wait for no more than the time from batch to batch.
    slow = replace(slow, wait=min(slow.wait, period) if workers else slow.wait, serial=True)
    # A busy host slows workers down, at worst by the most that the lab's sources say; now it does already.
    busy = max(min(workers, slow.cores), 1)
    alone = slow.compute * float(CROWDED.scaling.speedup(busy, slow.cores)) / busy
    slow = replace(slow, compute=alone, host=CROWDED)
    # Threads that work together wait for each other, and compute meanwhile: at best, one does all there is.
    fast = costs(share, most, receives[0], 1 - APART, 1.0)
    return JobModel(likely, slow, fast, period, prepared)


def _receiving(finding: JobFinding, waits: float) -> tuple[float, tuple[float, float]]:
    """Return the milliseconds in which the loop receives a batch from a worker, and their range."""
    stages, workers = finding.loader.stages, finding.loader.workers
    if stages is not None and stages.receiving is not None:
        likely = stages.receiving.m_as("ms")
    elif workers and finding.ready:
        likely = waits  # batches are ready, so the loop waits for nothing else
    else:
        likely, low, high = (min(time, waits if workers else time) for time in (RECEIVE, *RECEIVE_RANGE))
        return likely, (low, high)
    return likely, (likely * (1 - APART), likely * (1 + APART))
