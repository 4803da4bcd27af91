"""The finding about a training job: how long it waits for data, and whether that starves the GPU.

`loop`, the hooks and the readers of traces make it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from starvelab.measure.verdict import NOT_BOUND, SLIGHT, UNKNOWN, verdict_of
from starvelab.tables import TableRepr, count_of, percent
from starvelab.units import Quantity

from ..contents import BatchContents
from ..shares import MIN_BATCHES, is_certain
from ..torch_internals import SINGLE
from .gpu_use import GpuUse, TraceSteps
from .lines import JobLines
from .loop_work import LoopWork
from .memory import MemoryUse, Room
from .stages import StageCosts

# The machine is busy where others use this share of the cores, and those who prepare wait this share of their
# time for a core.
BUSY, QUEUED = 0.1, 0.05
RESTART = "Make the iterator once, before the loop: each pass ends with its first batch, and another begins."


@dataclass(frozen=True, kw_only=True, repr=False)
class JobFinding(TableRepr):
    """The share of its time that a training job waits for data, and what explains it.

    Attributes
    ----------
    host_wait, stall : float
        Share of the loop's time spent waiting for the next batch, 0 to 1, without first batches; and of the
        time in which the GPU has nothing to do meanwhile. The second is None where the GPU was not timed.
    interval, stall_interval : pair of float
        Their 95 % confidence intervals.
    batches, counted : int
        All that were delivered, and those of which the shares are: neither first ones nor interruptions.
    wait_p50, wait_p95, wait_p99 : quantity [time]
        Percentiles of the waits for a batch.
    batch_rate : quantity [1/time]
    throughput : quantity [sample/time] or None
        None where the batch size is not known.
    step_time : quantity [time] or None
        From batch to batch without the wait.
    batch_size, workers : int or None
    prefetch : int or None
        Batches that each worker has ahead; None where that is not known.
    persists : bool or None
        Whether the workers stay for the next pass; None where that is not known.
    processes : bool or None
        Whether the workers are processes, and no threads of this one; None where it is not known.
    prepare_cpu, prepare_queued : float or None
        Share of the time of those who prepare batches in which they have work, 0 to 1, and the part of it in
        which they wait for a core; None where the system does not tell.
    prepare_threads : float
        Cores that each of them uses while it computes, 1 or more: it may have threads of its own.
    loop_cpu : float or None
        Cores that the process of the loop uses, on average, without what it prepares; None where not known.
    core_waits : float or None
        Share of the time in which the loop, or those who prepare, have work and no core: the larger of them.
    others_cpu : float or None
        Share of the usable cores that other programs used, 0 to 1; None where it is not known.
    loop_work : tuple of LoopWork
        Lines of the loop at which its own thread computes, which `starvelab-doctor` looks for.
    stream, repeats : bool
        Whether each worker goes over all of the dataset, which has no indices, and gives the same items.
    restarts : bool
        Whether passes end with their first batch, as those of `next(iter(loader))`; then these count.
    first_waits : tuple of quantity [time]
        For the first batch of each pass over the data, with the start of the workers.
    pickled : pair of quantity, or None
        The time in which data was pickled for workers that started, and the bytes for one of them at most.
    release, ending : quantity [time] or None
        What it takes the loop to release a large batch, which counts as a wait, and to end a pass, with its
        workers; None where that was not timed.
    blocks : tuple of float
        Seconds that a batch took in each of at most 50 blocks of equally many neighbors, in their order.
    uneven : tuple of float
        The last steps over their mean, where they differ much; else empty.
    pass_waits, quarter_waits : tuple of float
        Share of the loop's time that it waits, in each pass over the data of which a batch counts; and in
        each quarter of the batches that count, where the first differs from the others, else empty.
    left_out : int
        Passes at the beginning that differ from the later ones, as while a cache fills: only `pass_waits`
        holds them.
    interruptions, interrupted : int, quantity [time]
        Steps that were left out because they are many times as long as the others: evaluations, checkpoints;
        and what they took together.
    loop_share : float
        Of the time in all loops of the job, that of this one, 0 to 1.
    queue_depth : float or None
        Batches that were ready when the loop asked for one, on average; None where the loader does not tell.
    memory : MemoryUse or None
        Memory of the workers and of the training process; None where the system does not tell.
    contents : BatchContents or None
        Of the last batch that was looked at.
    threads : tuple of int
        The system's numbers of the threads that went over the data; empty where it has none.
    elsewhere : bool
        Whether a thread fetched the batches that is none of the training loop: then its waits say nothing.
    asynchronous : bool
        Whether the loop may run ahead of a GPU that was not timed: then its waits say little.
    gpu, steps : GpuUse, TraceSteps, or None
        What the GPU did with its time, and the first steps one by one; only traces tell.
    rank : int or None
        Which process of a distributed training this is; None where nothing tells.
    ranks, together : mapping of int to JobFinding, str
        All of them, and which of them holds up the others, in a sentence; empty where there is one.
    stages : StageCosts or None
        What each stage of the loader costs; None where there was no probe.
    lines : JobLines or None
        At which lines the time goes; None where nobody looked.
    min_batches : int
        So many have to count for a verdict.
    source : str
        "watched" or "trace".
    """

    host_wait: float
    interval: tuple[float, float]
    batches: int
    counted: int
    wait_p50: Quantity
    wait_p95: Quantity
    wait_p99: Quantity
    batch_rate: Quantity
    throughput: Quantity | None = None
    step_time: Quantity | None = None
    batch_size: int | None = None
    prepare_cpu: float | None = None
    prepare_threads: float = 1.0
    prepare_queued: float | None = None
    core_waits: float | None = None
    prefetch: int | None = None
    ending: Quantity | None = None
    persists: bool | None = None
    stream: bool = False
    repeats: bool = False  # its workers give the same items
    restarts: bool = False
    pickled: tuple[Quantity, Quantity] | None = None
    release: Quantity | None = None
    loop_work: tuple[LoopWork, ...] = ()
    others_cpu: float | None = None
    processes: bool | None = None
    loop_cpu: float | None = None
    stall: float | None = None
    stall_interval: tuple[float, float] | None = None
    blocks: tuple[float, ...] = ()
    uneven: tuple[float, ...] = ()
    first_waits: tuple[Quantity, ...] = ()
    pass_waits: tuple[float, ...] = ()
    left_out: int = 0
    quarter_waits: tuple[float, ...] = ()
    interruptions: int = 0
    interrupted: Quantity | None = None
    loop_share: float = 1.0
    queue_depth: float | None = None
    workers: int | None = None
    memory: MemoryUse | None = None
    contents: BatchContents | None = None
    threads: tuple[int, ...] = ()
    elsewhere: bool = False
    asynchronous: bool = False
    gpu: GpuUse | None = None
    rank: int | None = None
    ranks: Mapping[int, JobFinding] = field(default_factory=dict)
    together: str = ""
    stages: StageCosts | None = None
    lines: JobLines | None = None
    min_batches: int = MIN_BATCHES
    steps: TraceSteps | None = field(default=None, compare=False)
    source: str = "watched"

    @property
    def verdict(self) -> str:
        """Say how input-bound the job is: by the waits of the GPU where they are known, else of the loop."""
        if self.stall is not None and self.stall_interval is not None:
            certain = is_certain(self.stall_interval, self.counted, self.min_batches)
            return verdict_of(self.stall) if certain else UNKNOWN
        low, high = (end + self.packing for end in self.interval)
        if self.elsewhere or not is_certain((low, high), self.counted, self.min_batches):
            return UNKNOWN
        found = verdict_of(self.host_wait + self.packing)
        # A loop that never waits starves no GPU. One that waits may be ahead of a GPU that is busy.
        return UNKNOWN if self.asynchronous and found != NOT_BOUND else found

    @property
    def _without_loader(self) -> bool:
        """True for a trace in which nothing waits for a DataLoader."""
        return not self.batches and self.source == "trace"

    @property
    def ready(self) -> bool:
        """Whether a batch is there when the loop asks: then it waits for its way, and not for workers."""
        return (self.queue_depth or 0.0) >= 1

    @property
    def packing(self) -> float:
        """Share of the time in which a generator between loader and training computes."""
        return sum(line.share for line in self.loop_work if line.certain)

    @property
    def summary(self) -> str:
        """Say the share that waits, the verdict, the largest stage if there was a probe, and what to do."""
        return f"{self.state} {self.next_step}"

    @property
    def state(self) -> str:
        """Say all of that but what to do."""
        more = [one.summary for one in (self.stages, self.lines, self.memory) if one]
        said = (self._share, self._judged, self.together, self.changed, self.long_steps, self.busy)
        return " ".join(filter(None, (*said, *more, self.divided)))

    @property
    def room(self) -> Room:
        """What finds room in memory: more workers, and more batches ahead of them."""
        workers, memory, contents = self.workers or 0, self.memory, self.contents
        # Of others than the system's processes nothing is known.
        if memory is None or memory.workers != workers or self.processes is False:
            return Room(workers)
        # What is no tensor goes through a pipe.
        size = contents.size if contents is not None and contents.tensors != 0 else None
        return memory.room(size.m_as("B") if size is not None else 0.0, self.queue_depth or 0.0)

    @property
    def changed(self) -> str:
        """Say that the first passes or batches differ from the later ones; empty if they do not."""
        if not self.left_out and self.quarter_waits:
            first, *_, last = self.quarter_waits
            why = ", as where a cache fills" if first > last else ""
            return (
                f"The waits change: the loop waited {percent(first)} of the first quarter of its batches and "
                f"{percent(last)} of the last{why}. What is said is about all of them."
            )
        if not self.left_out:
            return ""
        one = self.left_out == 1
        passes = "first pass differs" if one else f"first {self.left_out} passes differ"
        return (
            f"The {passes} from the later ones and {'is' if one else 'are'} left out: the loop waited "
            f"{percent(self.pass_waits[0])} of it, as where a cache fills or files are read a first time."
        )

    @property
    def interrupted_share(self) -> float:
        """Share of the time that rare long steps took, which are left out, 0 to 1."""
        taken = self.interrupted.m_as("s") if self.interrupted is not None else 0.0
        return float(taken / max(taken + self.counted / max(self.batch_rate.m_as("1/s"), 1e-9), 1e-9))

    @property
    def long_steps(self) -> str:
        """Say what those took; empty if that is little."""
        if (share := self.interrupted_share) < SLIGHT:
            return ""
        return (
            f"Left out: {count_of(self.interruptions, 'long step')}, such as an evaluation, a checkpoint, or "
            f"batches that itertools.cycle keeps, took {percent(share)} of the time, whatever the input."
        )

    @property
    def divided(self) -> str:
        """Say what more workers do to an iterable dataset; empty where there is none."""
        if not self.stream or (self.verdict == NOT_BOUND and not self.repeats):
            return ""
        whole = "The dataset is iterable: each worker goes over all of it, so"
        if self.repeats:
            return f"{whole} they repeat each other. Divide its items among them by get_worker_info()."
        return f"{whole} more workers repeat its items unless it divides them by get_worker_info()."

    @property
    def lacks_core(self) -> bool:
        """True if a thread of the loop's process has work and no core, more than those who prepare."""
        return (self.core_waits or 0.0) > max(self.prepare_queued or 0.0, QUEUED)

    @property
    def busy(self) -> str:
        """Say that other programs took cores from the job; empty where they did not, or nobody knows."""
        queues = self.prepare_queued is None or self.prepare_queued >= QUEUED
        if self.others_cpu is None or self.others_cpu < BUSY or not queues:
            return ""
        return (
            f"Other programs used {percent(self.others_cpu, 0)} of the cores meanwhile: all of this holds "
            "while they do."
        )

    @property
    def _share(self) -> str:
        if self._without_loader or not self.counted:
            return ""
        if self.elsewhere:
            return f"A thread beside the training loop waits {percent(self.host_wait)} of its time for data."
        who = ""
        if self.ranks and not self.together:
            who = f"Rank {self.rank} of {len(self.ranks)} waits most. "
        low, high = self.stall_interval or self.interval
        waits, many = percent(self.host_wait), self.counted >= self.min_batches
        spread = f" (95 % interval {percent(low)} to {percent(high)})" if many else ""
        if self.stall is not None:
            gpu = f"The GPU waits {percent(self.stall)} of the time for data"
            return f"{who}{gpu}{spread}, and the training loop {waits}."
        packed = ""
        if work := next((line for line in self.loop_work if line.certain and line.share >= SLIGHT), None):
            packed = f", and prepares batches itself in {percent(self.packing)}, mostly at {work.place}"
        return f"{who}The training loop waits {waits} of its time for data{spread}{packed}."

    @property
    def _judged(self) -> str:
        of_gpu = f"the GPU is {self.gpu.verdict}" if self.gpu is not None else ""
        if self.verdict != UNKNOWN:
            return f"This job is {self.verdict}{f': {of_gpu}' if of_gpu else ''}."
        if self._without_loader:
            idle = f", and the GPU is {percent(self.gpu.idle, 0)} idle" if self.gpu is not None else ""
            why = f"the trace holds no wait for a DataLoader{idle}"
        elif self.counted < self.min_batches:
            why = f"only {count_of(self.counted, 'batch')} counted, and it takes {self.min_batches}"
        elif self.elsewhere:
            why = "another thread fetches the batches, and the loop takes them from it"
        elif self.asynchronous and self.stall is None:
            why = "the loop may run ahead of the GPU, which was not timed"
        else:
            why = "the batches differ too much"
        return f"Whether this job is input-bound, one cannot tell: {why}."

    @property
    def next_step(self) -> str:
        """Say what to do about the input, and before that about what costs the GPU more, if a trace tells."""
        larger = self.gpu.next_step if self.gpu is not None else ""
        if not larger or (self.verdict == UNKNOWN and self.batches):
            return self._of_input
        if self.verdict == NOT_BOUND:
            return larger
        cause = self.gpu.cause.capitalize() if self.gpu is not None and self.batches else ""
        beside = f"{cause} cost the GPU more than waiting for data does. " if cause else ""
        return f"{beside}{larger} {self._of_input}"

    @property
    def _of_input(self) -> str:
        if self.verdict == NOT_BOUND:
            return "A faster input pipeline would change little, so look at the training step itself."
        if self.elsewhere:
            return "Put watch(...) around what the training loop itself goes over."
        if self._without_loader:
            return (
                "Profile a loop over a DataLoader of PyTorch, or put watch(...) around what yours goes over."
            )
        if self.restarts:
            return RESTART
        if self.verdict == UNKNOWN:
            more = "Record more steps" if self.source == "trace" else "Watch more batches"
            return f"{more} of a longer run."
        if self.workers == 0 and self.source == "trace":
            return f"The iterator is a {SINGLE}, which has no workers: give the DataLoader num_workers."
        if self.workers == 0:
            return "Without workers the loop prepares each batch itself: advise says what num_workers brings."
        if self.stages is None or not self.stages.certain:
            return (
                "Find the stage that is slow with starvelab_doctor.of_loader(loader, step=train_step)"
                ".diagnose(), and speed up that one."
            )
        return f"For that stage, {self.stages.remedy(self.prepare_cpu, self.contents)}"

    headers = ("quantity", "value")

    @property
    def rows(self) -> list[list[object]]:
        """One row for each value that is known."""
        gpu, parts = self.gpu.rows if self.gpu is not None else [], (50, 95, 99) if self.counted else ()
        table: list[list[object]] = [
            ["loop waits for data", percent(self.host_wait) if self.counted else None],
            ["GPU waits for data", None if self.stall is None else percent(self.stall)],
            *gpu,
            *([f"wait for a batch, {part} %", getattr(self, f"wait_p{part}")] for part in parts),
            ["batches a second", self.batch_rate if self.counted else None],
            ["throughput", self.throughput],
            ["batches ready when the loop asks", self.queue_depth],
            ["first batch", self.first_waits[0] if self.first_waits else None],
            ["batches", self.batches],
            ["a batch", self.contents],
            ["a worker's own memory, at most", self.memory if self.memory and self.memory.workers else None],
        ]
        if self._without_loader:
            table = gpu
        if len(self.pass_waits) > 1:
            table.append(["loop waits in the first pass", percent(self.pass_waits[0])])
            table.append(["loop waits in the last pass", percent(self.pass_waits[-1])])
        if self.stages is not None:
            table += [[f"{stage} costs of a batch", cost] for stage, cost in self.stages.costs.items()]
        for rank, found in self.ranks.items():
            waits = "no DataLoader" if found._without_loader else f"loop waits {percent(found.host_wait)}"
            table.append([f"rank {rank}", f"{waits}: {found.verdict}"])
        return [row for row in table if row[1] is not None]

    @property
    def note(self) -> str:
        """Say in one line what the numbers cannot tell."""
        if self.stall is not None or self.verdict in (NOT_BOUND, UNKNOWN):
            return ""
        return (
            "No GPU was timed. Where the step runs on the CPU, or the loop waits for the GPU in each step, "
            "the wait of the loop is that of the accelerator."
        )
