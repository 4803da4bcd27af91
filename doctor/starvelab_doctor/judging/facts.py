"""What the rows of remedies ask of a job: what was found, its model, and what follows from both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from starvelab.measure.verdict import SEVERE, SLIGHT
from starvelab.tables import percent
from starvelab.units import Q_, format_quantity

from ..contents import Items
from ..finding.job import JobFinding
from ..finding.lines import GENERATOR, SAMPLER, JobLines, LineShare
from ..finding.stages import COLLATE, DATASET, LARGE, MANY_OBJECTS, StageCosts
from ..shares import MIN_BATCHES
from .advice import WorkerAdvice, advice_of
from .model import Change, Gain, JobModel, model_of, sampling_of


class Passes(NamedTuple):
    """What later passes take to begin and to end."""

    text: str
    gain: Gain  # that it brings at most that workers run already and the data is known

    def __str__(self) -> str:
        return self.text


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
    def lines(self) -> JobLines:
        """What the samples of workers and loop show; nothing where nobody looked."""
        return self.finding.loader.lines

    @property
    def stages(self) -> StageCosts | None:
        """What the stages cost, where enough batches were timed."""
        stages = self.finding.loader.stages
        return stages if stages is not None and stages.timed >= MIN_BATCHES else None

    @property
    def items(self) -> Items | None:
        """What the dataset gives, where it takes much of what a batch costs and that was looked at."""
        large = self.stages is not None and self.stages.shares.get(DATASET, 0.0) >= SEVERE
        return self.stages.items if self.stages is not None and large else None

    @property
    def rests(self) -> bool:
        """True where the workers are seen to prepare for little of the time, though the loop waits."""
        return 0 < max(self.lines.working, default=0.0) < SEVERE

    @property
    def small(self) -> bool:
        """True if batches are known to have few bytes."""
        contents = self.finding.loader.contents
        return contents is not None and contents.size is not None and contents.size.m_as("B") < LARGE

    @property
    def objects(self) -> int:
        """The objects that are handed over one by one; 0 where they are few."""
        contents = self.finding.loader.contents
        return contents.tensors if contents is not None and contents.tensors >= MANY_OBJECTS else 0

    @property
    def dtype(self) -> str:
        """The type of floating-point numbers of which most of a large batch are; else empty."""
        contents = self.finding.loader.contents
        dtype = contents.dtype or "" if contents is not None and not self.small else ""
        return dtype if dtype.startswith("float") else ""

    @property
    def receives(self) -> bool:
        """True where a batch is ready when the loop asks, and its way to the loop is most of the wait."""
        stages, waits, contents = self.stages, self.finding.waits, self.finding.loader.contents
        if not self.finding.ready:
            return False
        if stages is None or stages.receiving is None:
            return contents is not None and contents.size is not None and not self.small
        prepares = stages.certain and stages.largest in (DATASET, COLLATE)
        return prepares and 2 * stages.receiving.m_as("ms") >= waits.host_wait * waits.period

    @cached_property
    def _begun(self) -> tuple[Passes, float] | None:
        """What later passes take, and the share of it beyond preparing a batch; None without any."""
        waits, later = self.finding.waits, [wait.m_as("ms") for wait in self.finding.waits.first_waits[1:]]
        if not later or self.model is None:
            return None
        costs, first = self.model.likely, float(sum(later) / len(later))
        # The first batch of a pass is prepared while the loop waits, also by workers that run already.
        ready = min(first, costs.wait + costs.compute + (costs.receive if costs.workers else 0.0))
        between = first + (waits.ending.m_as("ms") if waits.ending is not None else 0.0)
        others = max(waits.period * (waits.batches / len(waits.first_waits) - 1), 1e-3)
        now = between + others
        text = f"{format_quantity(Q_(between / 1e3, 's'))} on average, {percent(between / now)} of its time"
        return Passes(text, Gain(1.0, now / (ready + others), now / others)), (between - ready) / now

    @property
    def passes(self) -> Passes | None:
        """What later passes take to begin and to end, where that is worth a line."""
        return self._begun[0] if self._begun is not None and self._begun[1] >= SLIGHT else None

    @property
    def few_batches(self) -> Passes | None:
        """The same where that prepares one batch, and is much of a pass."""
        if self._begun is None or self._begun[0].gain.high < 1 / (1 - SEVERE):
            return None
        first, loader = self.lines.first, self.finding.loader
        prepares = loader.persists and not loader.stream and first and first[0].phase == DATASET
        return self._begun[0] if prepares or self._begun[1] < SLIGHT else None

    @cached_property
    def pickled(self) -> float:
        """Share of the job in which its data was pickled for workers that started, 0 to 1."""
        rate, waits = float(self.finding.waits.batch_rate.m_as("1/s")), self.finding.waits
        if self.finding.loader.pickled is None or not rate:
            return 0.0
        whole = sum(wait.m_as("s") for wait in waits.first_waits) + waits.counted / rate
        return float(self.finding.loader.pickled.m_as("s") / max(whole, 1e-9))

    @property
    def sampling(self) -> float:
        """Milliseconds that the sampler takes the loop for a batch, by a probe or by samples."""
        return sampling_of(self.finding)

    @property
    def sampler_line(self) -> str:
        """The line at which the sampler is most, as a part of a sentence; empty where nobody looked."""
        return next((f", mostly at {one.place}" for one in self.lines.loop if one.phase == SAMPLER), "")

    @property
    def loop_line(self) -> LineShare | None:
        """The line at which the loop's own thread prepares most, or may; None where that is little."""
        # Where little else is left of a step, these lines are what trains.
        lines, rest = self.lines.loop_work, 1 - self.finding.waits.host_wait - SEVERE
        trains = sum(line.share for line in lines if line.phase != GENERATOR) > rest
        lines = tuple(line for line in lines if line.phase == GENERATOR or not trains)
        return next((line for line in lines if line.share >= SLIGHT), None)

    def gain(self, change: Change, *, sure: bool = True) -> Gain | None:
        """Return what a change brings, by the model of the job; None without one."""
        return None if self.model is None else self.model.gain(change, sure=sure)

    def without(self, share: float) -> Gain:
        """Return what it brings at most that preparing lacks this share of its time."""
        gain = self.gain(lambda costs: costs.preparing(max(1 - share, 0.0)), sure=False)
        return gain or Gain(1.0, 1.0, 1.0)

    def at_most(self, gain: Gain | None, saved: float) -> Gain | None:
        """Return a gain that is no more than what saves so many milliseconds of a batch can bring."""
        if gain is None or self.model is None:
            return None
        most = self.model.period / max(self.model.period - saved, 1e-3)
        return gain.each(lambda times: min(times, most))
