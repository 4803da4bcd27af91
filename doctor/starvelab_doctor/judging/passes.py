"""What it takes to begin and to end the later passes over the data."""

from __future__ import annotations

from dataclasses import dataclass

from starvelab.measure.verdict import SLIGHT
from starvelab.tables import percent
from starvelab.units import Q_, format_quantity

from ..finding.job import JobFinding
from .model import Gain, JobModel


@dataclass(frozen=True)
class Passes:
    """What a later pass takes [ms]."""

    between: float  # from its last batch until it ends, and until its first batch comes
    ready: float  # of that, what a batch takes in any case
    others: float  # what its other batches take

    @property
    def matters(self) -> bool:
        """Whether what can be saved is worth a line."""
        return self.between - self.ready >= SLIGHT * (self.between + self.others)

    @property
    def gain(self) -> Gain:
        """What it brings at most that workers run already and the data is known."""
        now = self.between + self.others
        return Gain(1.0, now / (self.ready + self.others), now / self.others)

    @property
    def summary(self) -> str:
        """Say how long that takes."""
        share = percent(self.between / (self.between + self.others))
        return f"{format_quantity(Q_(self.between / 1e3, 's'))} on average, {share} of its time"


def passes_of(finding: JobFinding, model: JobModel) -> Passes | None:
    """Return what later passes take to begin and to end; None where there was none."""
    if not (later := [wait.m_as("ms") for wait in finding.waits.first_waits[1:]]):
        return None
    costs, batches = model.likely, finding.waits.batches / len(finding.waits.first_waits)
    first = float(sum(later) / len(later))
    # The first batch of a pass is prepared while the loop waits, also by workers that run already.
    ready = min(first, costs.wait + costs.compute + (costs.receive if costs.workers else 0.0))
    ending = finding.waits.ending.m_as("ms") if finding.waits.ending is not None else 0.0
    return Passes(first + ending, ready, max(finding.waits.period * (batches - 1), 1e-3))


def pickled_share(finding: JobFinding) -> float:
    """Return the share of the job in which its data was pickled for workers that started, 0 to 1."""
    rate = float(finding.waits.batch_rate.m_as("1/s"))
    if finding.loader.pickled is None or not rate:
        return 0.0
    whole = sum(wait.m_as("s") for wait in finding.waits.first_waits) + finding.waits.counted / rate
    return float(finding.loader.pickled[0].m_as("s") / max(whole, 1e-9))
