"""The five records of a finding: the waits, the loader, the machine, the GPU, and the ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starvelab.units import Quantity

from ..contents import BatchContents
from .gpu_use import GpuUse, TraceSteps
from .lines import JobLines
from .memory import MemoryUse
from .stages import StageCosts

if TYPE_CHECKING:
    from .job import JobFinding


@dataclass(frozen=True, kw_only=True)
class Waits:
    """What the loop waits for, batch by batch.

    Attributes
    ----------
    host_wait : float
        Share of the loop's time spent waiting for the next batch, 0 to 1, without first batches.
    interval : pair of float
        Its 95 % confidence interval.
    batches, counted : int
        All that were delivered, and those of which the shares are: neither first ones nor interruptions.
    batch_rate : quantity [1/time]
    throughput : quantity [sample/time] or None
        None where the batch size is not known.
    first_waits : tuple of quantity [time]
        For the first batch of each pass over the data, with the start of the workers.
    ending : quantity [time] or None
        What it takes the loop to end a pass, with its workers; None where that was not timed.
    blocks : tuple of float
        Seconds that a batch took in each of at most 50 blocks of neighbors, in their order.
    left_out : tuple of float
        Share that the loop waits in each pass at the beginning that differs from the later ones, as while a
        cache fills.
    interruptions, interrupted : int, quantity [time]
        Steps that were left out because they are many times as long as the others: evaluations, checkpoints;
        and what they took together.
    loop_share : float
        Of the time in all loops of the job, that of this one, 0 to 1.
    restarts : bool
        Whether passes end with their first batch, as those of `next(iter(loader))`; then these count.
    elsewhere : bool
        Whether a thread fetched the batches that is none of the training loop: then its waits say nothing.
    ceiling : float or None
        The most that a ladder measured: how many times as fast the job is, whatever is done to its input,
        1 or more; None where there was no ladder.
    whole_passes : bool
        Whether the ladder counted whole passes, with the start of their workers.
    """

    host_wait: float
    interval: tuple[float, float]
    batches: int
    counted: int
    batch_rate: Quantity
    interrupted: Quantity
    throughput: Quantity | None = None
    first_waits: tuple[Quantity, ...] = ()
    ending: Quantity | None = None
    blocks: tuple[float, ...] = ()
    left_out: tuple[float, ...] = ()
    interruptions: int = 0
    loop_share: float = 1.0
    restarts: bool = False
    elsewhere: bool = False
    ceiling: float | None = None
    whole_passes: bool = False

    @property
    def period(self) -> float:
        """From batch to batch on average, with the wait [ms]."""
        return float(1e3 / self.batch_rate.m_as("1/s"))


@dataclass(frozen=True, kw_only=True)
class LoaderUse:
    """What the loader is, and what it costs; None where that is not known.

    Attributes
    ----------
    batch_size, workers : int or None
    prefetch : int or None
        Batches that each worker has ahead.
    persists : bool or None
        Whether the workers stay for the next pass.
    processes : bool or None
        Whether the workers are processes, and no threads of this one.
    stream, repeats : bool
        Whether each worker goes over all of the dataset, which has no indices, and gives the same items.
    pickled : quantity [time] or None
        The time that pickling took for workers that started.
    queue_depth : float or None
        Batches that were ready when the loop asked for one, on average.
    overtaken : float
        Share of the waits in which a later batch arrived before its turn, 0 to 1.
    contents : BatchContents or None
        Of the last batch that was looked at.
    stages : StageCosts or None
        What each stage of the loader costs; None where there was no probe.
    lines : JobLines
        At which lines the time goes; empty where nobody looked.
    """

    batch_size: int | None = None
    workers: int | None = None
    prefetch: int | None = None
    persists: bool | None = None
    processes: bool | None = None
    stream: bool = False
    repeats: bool = False
    pickled: Quantity | None = None
    queue_depth: float | None = None
    overtaken: float = 0.0
    contents: BatchContents | None = None
    stages: StageCosts | None = None
    lines: JobLines = field(default_factory=JobLines)


@dataclass(frozen=True, kw_only=True)
class MachineUse:
    """What the job uses of its machine; None where the system does not tell.

    Attributes
    ----------
    prepare_cpu, prepare_queued : float or None
        Share of the time of those who prepare batches in which they have work, 0 to 1, and the part of it in
        which they wait for a core.
    prepare_threads : float
        Cores that each of them uses while it computes, 1 or more: it may have threads of its own.
    loop_cpu : float or None
        Cores that the process of the loop uses, on average, without what it prepares.
    core_waits : float or None
        Share of the time in which the loop, or those who prepare, have work and no core: the larger of them.
    others_cpu : float or None
        Share of the usable cores that other programs used, 0 to 1.
    memory : MemoryUse or None
        Memory of the workers and of the training process.
    """

    prepare_cpu: float | None = None
    prepare_queued: float | None = None
    prepare_threads: float = 1.0
    loop_cpu: float | None = None
    core_waits: float | None = None
    others_cpu: float | None = None
    memory: MemoryUse | None = None


@dataclass(frozen=True, kw_only=True)
class GpuWaits:
    """What the GPU did with its time.

    Attributes
    ----------
    stall, stall_interval : float, pair of float, or None
        Share of the time in which it has nothing to do while the loop waits, and its 95 % confidence
        interval; None where it was not timed.
    asynchronous : bool
        Whether the loop may run ahead of a GPU that was not timed: then its waits say little.
    use, steps : GpuUse, TraceSteps, or None
        What it did, and the first steps one by one; only traces tell.
    """

    stall: float | None = None
    stall_interval: tuple[float, float] | None = None
    asynchronous: bool = False
    use: GpuUse | None = None
    steps: TraceSteps | None = field(default=None, compare=False)


@dataclass(frozen=True, kw_only=True)
class RankFindings:
    """The ranks of a distributed training.

    Attributes
    ----------
    rank : int or None
        Which of them this one is; None where nothing tells.
    found : mapping of int to JobFinding
        All of them; empty where there is one.
    together : str
        Which of them holds up the others, in a sentence; empty where there is one.
    """

    rank: int | None = None
    found: Mapping[int, JobFinding] = field(default_factory=dict)
    together: str = ""
