"""The finding about a training job: how long it waits for data, and whether that starves the GPU.

`loop`, the hooks and the readers of traces make it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from starvelab.measure.verdict import NOT_BOUND, SLIGHT, UNKNOWN, verdict_of
from starvelab.tables import count_of, percent

from ..shares import is_certain
from ..torch_internals import SINGLE
from .gpu_use import TraceSteps
from .lines import GENERATOR, LineShare
from .memory import Room
from .records import GpuWaits, LoaderUse, MachineUse, RankFindings, Waits

# The machine is busy where others use this share of the cores, and those who prepare wait this share of their
# time for a core.
BUSY, QUEUED = 0.1, 0.05
RESTART = "Make the iterator once, before the loop: each pass ends with its first batch, and another begins."


RECORDS: Mapping[str, type[Any]] = {
    "waits": Waits,
    "loader": LoaderUse,
    "machine": MachineUse,
    "gpu": GpuWaits,
    "ranks": RankFindings,
}
RECORD_OF = {field.name: record for record, kind in RECORDS.items() for field in fields(kind)}


def _by_record(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return values by the record that has a field of that name."""
    parts: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        parts.setdefault(RECORD_OF[name], {})[name] = value
    return parts


@dataclass(frozen=True, kw_only=True, repr=False)
class JobFinding:
    """The share of its time that a training job waits for data, and what explains it.

    Attributes
    ----------
    waits : Waits
    loader : LoaderUse
    machine : MachineUse
    gpu : GpuWaits
    ranks : RankFindings
    source : str
        "watched" or "trace".
    """

    waits: Waits
    loader: LoaderUse
    machine: MachineUse
    gpu: GpuWaits
    ranks: RankFindings
    source: str = "watched"

    @classmethod
    def of(cls, *, source: str = "watched", **values: Any) -> JobFinding:  # Any: each field has its own type
        """Return a finding with the fields of its records."""
        parts = _by_record(values)
        return cls(source=source, **{name: kind(**parts.get(name, {})) for name, kind in RECORDS.items()})

    def replace(self, **values: Any) -> JobFinding:  # Any: as above
        """Return the same with other values of some fields of its records."""
        parts = _by_record(values)
        return replace(self, **{name: replace(getattr(self, name), **each) for name, each in parts.items()})

    @property
    def steps(self) -> TraceSteps | None:
        """The first steps of a trace one by one, which `starvelab.show.trace_timeline` draws."""
        return self.gpu.steps

    @property
    def verdict(self) -> str:
        """Say how input-bound the job is: by the waits of the GPU where they are known, else of the loop."""
        if self.gpu.stall is not None and self.gpu.stall_interval is not None:
            certain = is_certain(self.gpu.stall_interval, self.waits.counted, self.waits.min_batches)
            return verdict_of(self.gpu.stall) if certain else UNKNOWN
        low, high = (end + self.packing for end in self.waits.interval)
        if self.waits.elsewhere or not is_certain((low, high), self.waits.counted, self.waits.min_batches):
            return UNKNOWN
        found = verdict_of(self.waits.host_wait + self.packing)
        # A loop that never waits starves no GPU. One that waits may be ahead of a GPU that is busy.
        return UNKNOWN if self.gpu.asynchronous and found != NOT_BOUND else found

    @property
    def _without_loader(self) -> bool:
        """True for a trace in which nothing waits for a DataLoader."""
        return not self.waits.batches and self.source == "trace"

    @property
    def ready(self) -> bool:
        """Whether a batch is there when the loop asks: then it waits for its way, and not for workers."""
        return (self.loader.queue_depth or 0.0) >= 1

    @property
    def packing(self) -> float:
        """Share of the time in which a generator between loader and training computes."""
        return sum(line.share for line in self._packers)

    @property
    def _packers(self) -> list[LineShare]:
        lines = self.loader.lines.loop_work if self.loader.lines is not None else ()
        return [line for line in lines if line.phase == GENERATOR]

    @property
    def summary(self) -> str:
        """Say the share that waits, the verdict, the largest stage if there was a probe, and what to do."""
        return f"{self.state} {self.next_step}"

    @property
    def state(self) -> str:
        """Say all of that but what to do."""
        more = [one.summary for one in (self.loader.stages, self.loader.lines, self.machine.memory) if one]
        said = (
            self._share,
            self._judged,
            self.ranks.together,
            self.changed,
            self.long_steps,
            self.busy,
            self.limit,
        )
        return " ".join(filter(None, (*said, *more, self.divided)))

    @property
    def room(self) -> Room:
        """What finds room in memory: more workers, and more batches ahead of them."""
        workers, memory, contents = self.loader.workers or 0, self.machine.memory, self.loader.contents
        # Of others than the system's processes nothing is known.
        if memory is None or memory.workers != workers or self.loader.processes is False:
            return Room(workers)
        # What is no tensor goes through a pipe.
        size = contents.size if contents is not None and contents.tensors != 0 else None
        return memory.room(size.m_as("B") if size is not None else 0.0, self.loader.queue_depth or 0.0)

    @property
    def changed(self) -> str:
        """Say that the first passes differ from the later ones; empty if they do not."""
        if not self.waits.left_out:
            return ""
        one = self.waits.left_out == 1
        passes = "first pass differs" if one else f"first {self.waits.left_out} passes differ"
        return (
            f"The {passes} from the later ones and {'is' if one else 'are'} left out: the loop waited "
            f"{percent(self.waits.pass_waits[0])} of it, as where a cache fills or files are read a first "
            "time."
        )

    @property
    def interrupted_share(self) -> float:
        """Share of the time that rare long steps took, which are left out, 0 to 1."""
        taken = self.waits.interrupted.m_as("s") if self.waits.interrupted is not None else 0.0
        return float(
            taken / max(taken + self.waits.counted / max(self.waits.batch_rate.m_as("1/s"), 1e-9), 1e-9)
        )

    @property
    def long_steps(self) -> str:
        """Say what those took; empty if that is little."""
        if (share := self.interrupted_share) < SLIGHT:
            return ""
        return (
            f"Left out: {count_of(self.waits.interruptions, 'long step')}, such as an evaluation, a "
            f"checkpoint, or batches that itertools.cycle keeps, took {percent(share)} of the time, whatever "
            "the input."
        )

    @property
    def divided(self) -> str:
        """Say what more workers do to an iterable dataset; empty where there is none."""
        if not self.loader.stream or (self.verdict == NOT_BOUND and not self.loader.repeats):
            return ""
        whole = "The dataset is iterable: each worker goes over all of it, so"
        if self.loader.repeats:
            return f"{whole} they repeat each other. Divide its items among them by get_worker_info()."
        return f"{whole} more workers repeat its items unless it divides them by get_worker_info()."

    @property
    def lacks_core(self) -> bool:
        """True if a thread of the loop's process has work and no core, more than those who prepare."""
        return (self.machine.core_waits or 0.0) > max(self.machine.prepare_queued or 0.0, QUEUED)

    @property
    def busy(self) -> str:
        """Say that other programs took cores from the job; empty where they did not, or nobody knows."""
        queues = self.machine.prepare_queued is None or self.machine.prepare_queued >= QUEUED
        if self.machine.others_cpu is None or self.machine.others_cpu < BUSY or not queues:
            return ""
        return (
            f"Other programs used {percent(self.machine.others_cpu, 0)} of the cores meanwhile: all of this "
            "holds while they do."
        )

    @property
    def _share(self) -> str:
        if self._without_loader or not self.waits.counted:
            return ""
        if self.waits.elsewhere:
            waits = percent(self.waits.host_wait)
            return f"A thread beside the training loop waits {waits} of its time for data."
        who = ""
        if self.ranks.found and not self.ranks.together:
            who = f"Rank {self.ranks.rank} of {len(self.ranks.found)} waits most. "
        low, high = self.gpu.stall_interval or self.waits.interval
        waits, many = percent(self.waits.host_wait), self.waits.counted >= self.waits.min_batches
        spread = f" (95 % interval {percent(low)} to {percent(high)})" if many else ""
        if self.gpu.stall is not None:
            gpu = f"The GPU waits {percent(self.gpu.stall)} of the time for data"
            return f"{who}{gpu}{spread}, and the training loop {waits}."
        packed = ""
        if work := next((line for line in self._packers if line.share >= SLIGHT), None):
            packed = f", and prepares batches itself in {percent(self.packing)}, mostly at {work.place}"
        return f"{who}The training loop waits {waits} of its time for data{spread}{packed}."

    @property
    def _judged(self) -> str:
        of_gpu = f"the GPU is {self.gpu.use.verdict}" if self.gpu.use is not None else ""
        if self.verdict != UNKNOWN:
            return f"This job is {self.verdict}{f': {of_gpu}' if of_gpu else ''}."
        if self._without_loader:
            idle = (
                f", and the GPU is {percent(self.gpu.use.idle, 0)} idle" if self.gpu.use is not None else ""
            )
            why = f"the trace holds no wait for a DataLoader{idle}"
        elif self.waits.counted < self.waits.min_batches:
            why = (
                f"only {count_of(self.waits.counted, 'batch')} counted, and it takes {self.waits.min_batches}"
            )
        elif self.waits.elsewhere:
            why = "another thread fetches the batches, and the loop takes them from it"
        elif self.gpu.asynchronous and self.gpu.stall is None:
            why = "the loop may run ahead of the GPU, which was not timed"
        else:
            why = "the batches differ too much"
        return f"Whether this job is input-bound, one cannot tell: {why}."

    @property
    def next_step(self) -> str:
        """Say what to do about the input, and before that about what costs the GPU more, if a trace tells."""
        larger = self.gpu.use.next_step if self.gpu.use is not None else ""
        if not larger or (self.verdict == UNKNOWN and self.waits.batches):
            return self._of_input
        if self.verdict == NOT_BOUND:
            return larger
        cause = self.gpu.use.cause.capitalize() if self.gpu.use is not None and self.waits.batches else ""
        beside = f"{cause} cost the GPU more than waiting for data does. " if cause else ""
        return f"{beside}{larger} {self._of_input}"

    @property
    def fed(self) -> bool:
        """True where a ladder measured that the job is hardly faster without its loader."""
        return self.waits.ceiling is not None and self.waits.ceiling.times < 1 + SLIGHT

    @property
    def limit(self) -> str:
        """Say what a ladder measured; empty where there was none."""
        if self.waits.ceiling is None:
            return ""
        times = self.waits.ceiling.times
        if self.fed:
            return f"Not the data: without its loader the job is at most {times:.2f} times as fast."
        return f"No change of the input brings more than {times:.2g} times the batches a second, measured."

    @property
    def _of_input(self) -> str:
        if self.verdict == NOT_BOUND or self.fed:
            return "A faster input pipeline would change little, so look at the training step itself."
        if self.waits.elsewhere:
            return "Put watch(...) around what the training loop itself goes over."
        if self._without_loader:
            return (
                "Profile a loop over a DataLoader of PyTorch, or put watch(...) around what yours goes over."
            )
        if self.waits.restarts:
            return RESTART
        if self.verdict == UNKNOWN:
            more = "Record more steps" if self.source == "trace" else "Watch more batches"
            return f"{more} of a longer run."
        if self.loader.workers == 0 and self.source == "trace":
            return f"The iterator is a {SINGLE}, which has no workers: give the DataLoader num_workers."
        if self.loader.workers == 0:
            return "Without workers the loop prepares each batch itself: advise says what num_workers brings."
        if self.loader.stages is None or not self.loader.stages.certain:
            return (
                "Find the stage that is slow by a probe, and measure what it costs at most: starvelab-doctor "
                "--ladder train.py."
            )
        return f"For that stage, {self.loader.stages.remedy(self.machine.prepare_cpu, self.loader.contents)}"

    def __str__(self) -> str:
        return self.summary

    __repr__ = __str__
