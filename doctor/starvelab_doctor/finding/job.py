"""The finding about a training job: how long it waits for data, and whether that starves the GPU.

`loop`, the hooks and the readers of traces make it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from starvelab.measure.verdict import NOT_BOUND, SEVERE, SLIGHT, UNKNOWN, verdict_of
from starvelab.tables import count_of, percent
from starvelab.units import Q_

from ..shares import MIN_BATCHES, Share
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


def _by_record(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return values by the record that has a field of that name."""
    return {
        record: {field.name: values[field.name] for field in fields(kind) if field.name in values}
        for record, kind in RECORDS.items()
    }


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
    def of_times(
        cls,
        host: Share,
        *,
        stall: Share | None,
        first_waits: Sequence[float],
        aside: Sequence[float] = (),
        batch_size: int | None = None,
        source: str = "watched",
        **known: Any,  # Any: the other fields of the records
    ) -> JobFinding:
        """Return the finding: the loop waits `host`, the GPU `stall`; `aside` [s] was no part of a step."""
        counts, rate = stall or host, host.counted / host.seconds if host.seconds else 0.0
        known |= {
            "host_wait": host.value,
            "interval": host.interval,
            "stall": stall and stall.value,
            "stall_interval": stall and stall.interval,
            "counted": counts.counted,
            "batch_rate": Q_(rate, "1/s"),
            "throughput": Q_(rate * batch_size, "img/s") if batch_size else None,
            "batch_size": batch_size,
            "first_waits": tuple(Q_(1e3 * wait, "ms") for wait in first_waits),
            "interruptions": counts.interruptions + len(aside),
            "interrupted": Q_(counts.interrupted + sum(aside), "s"),
        }
        records = {name: RECORDS[name](**values) for name, values in _by_record(known).items()}
        return cls(source=source, **records)

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
        return UNKNOWN if self._doubt else verdict_of(self._starved)

    @property
    def _starved(self) -> float:
        """Share of the time in which the GPU waits for data, or else the loop waits and packs."""
        return self.waits.host_wait + self.packing if self.gpu.stall is None else self.gpu.stall

    @property
    def _doubt(self) -> tuple[str, str] | None:
        """Return why nothing tells how input-bound the job is, and what to do then; None if it is known."""
        use, stall, packing = self.gpu.use, self.gpu.stall, self.packing if self.gpu.stall is None else 0.0
        low, high = self.gpu.stall_interval or self.waits.interval
        if self.source == "trace" and not self.waits.batches:
            idle = f", and the GPU is {percent(use.idle, 0)} idle" if use is not None else ""
            return (
                f"the trace holds no wait for a DataLoader{idle}",
                "Profile a loop over a DataLoader of PyTorch, or put watch(...) around what yours goes over.",
            )
        if self.waits.elsewhere and stall is None:
            return (
                "another thread fetches the batches, and the loop takes them from it",
                "Put watch(...) around what the training loop itself goes over.",
            )
        if self.waits.counted < self._least:
            counted = count_of(self.waits.counted, "batch")
            why = f"only {counted} counted, and {self._least} are needed"
        elif low + packing < SLIGHT and high + packing >= SEVERE:  # more than two verdicts are open
            why = "the batches differ too much"
        # A loop that never waits starves no GPU. One that waits may be ahead of a GPU that is busy.
        elif self.gpu.asynchronous and stall is None and self._starved >= SLIGHT:
            why = "the loop may run ahead of the GPU, which was not timed"
        else:
            return None
        return why, "Watch more batches of a longer run."

    @property
    def _least(self) -> int:
        # A trace holds few steps: their spread must do.
        return 2 if self.source == "trace" else MIN_BATCHES

    @property
    def ready(self) -> bool:
        """Whether the next batch is there when the loop asks: then it waits for its way, not for workers."""
        return (self.loader.queue_depth or 0.0) >= 1 and 2 * self.loader.overtaken < 1

    @property
    def packing(self) -> float:
        """Share of the time in which a generator between loader and training computes."""
        return sum(line.share for line in self._packers)

    @property
    def _packers(self) -> list[LineShare]:
        return [line for line in self.loader.lines.loop_work if line.phase == GENERATOR]

    @property
    def summary(self) -> str:
        """Say the share that waits, the verdict, the largest stage if there was a probe, and what to do."""
        return f"{self.state} {self.next_step}"

    @property
    def state(self) -> str:
        """Say all of that but what to do."""
        return " ".join(self.statements)

    @property
    def statements(self) -> tuple[str, ...]:
        """The same, one matter each."""
        loader, memory = self.loader, self.machine.memory
        return tuple(filter(None, (
            " ".join(filter(None, (self._share, self._judged))), self.ranks.together, self._changed,
            self._long_steps, self._others, loader.stages.summary if loader.stages else "",
            *loader.lines.statements, memory.summary if memory else "",
            self.divided,
        )))  # fmt: skip

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
    def _changed(self) -> str:
        """Say that the first passes or batches differ from the later ones; empty if they do not."""
        if not (count := len(self.waits.left_out)):
            return ""
        passes = "first pass differs" if count == 1 else f"first {count} passes differ"
        return (
            f"The {passes} from the later ones, as if a cache fills, and does not count: the loop waited "
            f"{percent(self.waits.left_out[0])} of it."
        )

    @property
    def interrupted_share(self) -> float:
        """Share of the time that rare long steps took, which are left out, 0 to 1."""
        taken, rate = self.waits.interrupted.m_as("s"), max(self.waits.batch_rate.m_as("1/s"), 1e-9)
        return float(taken / max(taken + self.waits.counted / rate, 1e-9))

    @property
    def _long_steps(self) -> str:
        """Say what those took; empty if that is little."""
        if (share := self.interrupted_share) < SLIGHT:
            return ""
        return (
            f"Left out: {count_of(self.waits.interruptions, 'long step')}, such as an evaluation or a "
            f"checkpoint, took {percent(share)} of the time, whatever the input. The loop waits "
            f"{percent(self.waits.host_wait * (1 - share))} of the whole time."
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
    def busy(self) -> bool:
        """True if other programs took cores from the job."""
        queues = self.machine.prepare_queued is None or self.machine.prepare_queued >= QUEUED
        return self.machine.others_cpu is not None and self.machine.others_cpu >= BUSY and queues

    @property
    def _others(self) -> str:
        used = percent(self.machine.others_cpu or 0.0, 0)
        said = f"Other programs used {used} of the cores. All this is right while they do."
        return said if self.busy else ""

    @property
    def _share(self) -> str:
        if not self.waits.counted:
            return ""
        if self.waits.elsewhere:
            waits = percent(self.waits.host_wait)
            return f"A thread beside the training loop waits {waits} of its time for data."
        low, high = self.gpu.stall_interval or self.waits.interval
        waits, many = percent(self.waits.host_wait), self.waits.counted >= self._least
        spread = f" (95 % interval {percent(low)} to {percent(high)})" if many else ""
        if self.gpu.stall is not None:
            gpu = f"The GPU waits {percent(self.gpu.stall)} of the time for data"
            return f"{gpu}{spread}, and the training loop {waits}."
        packed = ""
        if work := next((line for line in self._packers if line.share >= SLIGHT), None):
            packed = f", and prepares batches itself in {percent(self.packing)}, mostly at {work.place}"
        return f"The training loop waits {waits} of its time for data{spread}{packed}."

    @property
    def _judged(self) -> str:
        if (doubt := self._doubt) is not None:
            return f"Cannot tell whether this job is input-bound: {doubt[0]}."
        of_gpu = f": the GPU is {self.gpu.use.verdict}" if self.gpu.use is not None else ""
        return f"This job is {self.verdict}{of_gpu}."

    @property
    def next_step(self) -> str:
        """Say what to do about the input, and before that about what costs the GPU more, if a trace tells."""
        larger = self.gpu.use.next_step if self.gpu.use is not None else ""
        if not larger or (self._doubt and self.waits.batches):
            return self._of_input
        return larger if self.verdict == NOT_BOUND else f"{larger} {self._of_input}"

    @property
    def _of_input(self) -> str:
        ceiling, doubt = self.waits.ceiling, self._doubt
        if self.verdict == NOT_BOUND or (ceiling is not None and ceiling < 1 + SLIGHT):
            return "A faster input pipeline would change little, so look at the training step itself."
        if self.waits.restarts:
            return RESTART
        if doubt is not None:
            return doubt[1]
        if self.loader.workers == 0:
            return "Without workers the loop prepares each batch itself: advise says what num_workers brings."
        return "starvelab-doctor --ladder train.py measures what a faster input brings at most."

    def __str__(self) -> str:
        return self.summary

    __repr__ = __str__
