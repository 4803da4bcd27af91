"""What the rows of remedies ask of a job: what was found, its model, and what follows from both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from starvelab.measure.verdict import SLIGHT

from ..contents import Items
from ..finding.job import QUEUED, JobFinding
from ..finding.lines import GENERATOR, JobLines, LineShare
from ..finding.stages import DATASET, LARGE, StageCosts
from ..shares import MIN_BATCHES
from .advice import WorkerAdvice, advice_of
from .model import PREFETCH, Change, Gain, JobModel, dataset_share, model_of
from .passes import Passes, passes_of

# Share of a time from which on one line, stage or pause has a remedy of its own: a choice. A cure of less
# brings less than a quarter.
PART = 0.2


@dataclass(frozen=True)
class Facts:
    """A job and its model."""

    finding: JobFinding
    cores: float | None = None

    @cached_property
    def model(self) -> JobModel | None:
        """Its model; None where the loop waits for a thread of its own, or its workers are not known."""
        return None if self.finding.waits.elsewhere else model_of(self.finding, self.cores)

    @cached_property
    def advice(self) -> WorkerAdvice | None:
        """What other numbers of workers would bring; None without a model."""
        return None if self.model is None else advice_of(self.finding, self.model)

    @property
    def workers(self) -> int:
        """Of the loader; 0 also where it is not known."""
        return self.finding.loader.workers or 0

    @property
    def prefetch(self) -> int:
        """Batches ahead of each worker."""
        return self.finding.loader.prefetch or PREFETCH

    @property
    def lines(self) -> JobLines:
        """What the samples of workers and loop show; nothing where nobody looked."""
        return self.finding.loader.lines or JobLines()

    @property
    def stages(self) -> StageCosts | None:
        """What the stages cost, where enough batches were timed."""
        stages = self.finding.loader.stages
        return stages if stages is not None and stages.timed >= MIN_BATCHES else None

    @property
    def items(self) -> Items | None:
        """What the dataset gives; None where that was not looked at."""
        return self.stages.items if self.stages is not None else None

    @property
    def dataset_is_large(self) -> bool:
        """True where the dataset takes much of what a batch costs."""
        return self.stages is not None and self.stages.shares.get(DATASET, 0.0) >= PART

    @property
    def size(self) -> float | None:
        """Bytes of a batch; None where that is not known."""
        contents = self.finding.loader.contents
        return float(contents.size.m_as("B")) if contents is not None and contents.size is not None else None

    @property
    def small(self) -> bool:
        """True if batches are known to have few bytes."""
        return self.size is not None and self.size < LARGE

    @cached_property
    def passes(self) -> Passes | None:
        """What later passes take to begin and to end; None where there was none."""
        return passes_of(self.finding, self.model) if self.model is not None else None

    @property
    def loop_line(self) -> LineShare | None:
        """The line at which the loop's own thread prepares most, or may; None where that is little."""
        # Where little else is left of a step, the line is what trains.
        rest = 1 - self.finding.waits.host_wait - PART
        lines = (line for line in self.lines.loop_work if line.phase == GENERATOR or line.share <= rest)
        return next((line for line in lines if line.share >= SLIGHT), None)

    @property
    def certain(self) -> bool:
        """True where times say what work takes: nobody waited for a core, nor for another rank."""
        finding = self.finding
        return not finding.busy and (finding.machine.core_waits or 0.0) < QUEUED and not finding.ranks.found

    def gain(self, change: Change, *, sure: bool = True) -> Gain | None:
        """Return what a change brings, by the model of the job; None without one."""
        return None if self.model is None else self.model.gain(change, sure=sure)

    def quicker(self, rest: float) -> Gain | None:
        """Return what it brings at most that the dataset takes this share of its time."""
        share = 1 - dataset_share(self.finding) * (1 - rest)
        return self.gain(lambda costs: costs.preparing(share), sure=False)

    def is_little(self, share: float) -> bool:
        """True if the job gains less than 5 % where preparing lacks this share of its time."""
        gain = self.gain(lambda costs: costs.preparing(1 - share), sure=False)
        return gain is not None and gain.high < 1 + SLIGHT

    def shorter(self, saved: float) -> Gain | None:
        """Return what it brings at most that the loop's own thread saves so many milliseconds of a batch."""
        gain = self.gain(lambda costs: replace(costs, step=costs.step - saved), sure=False)
        return self.at_most(gain, saved)

    def at_most(self, gain: Gain | None, saved: float) -> Gain | None:
        """Return a gain that is no more than what saves so many milliseconds of a batch can bring."""
        if gain is None or self.model is None:
            return None
        most = self.model.period / max(self.model.period - saved, 1e-3)
        return gain.each(lambda times: min(times, most))
