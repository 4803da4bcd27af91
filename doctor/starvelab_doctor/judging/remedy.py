"""A remedy: one change to a job, and by how much it may be faster then; and the row that makes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from starvelab.measure.verdict import SLIGHT

from ..finding.job import JobFinding
from .facts import Facts
from .model import Gain

# What the ladder does not serve again: work of the loop itself, and, where it counted no whole passes, their
# beginning.
IN_LOOP = {"move", "between"}
BETWEEN_PASSES = {"persistent", "passes", "pickling", "first batch", "few batches"}
UNTOLD = "Only a trial can tell what that brings."


@dataclass(frozen=True)
class Remedy:
    """One change."""

    name: str  # short: "workers", "prefetch", "packing" and others
    change: str  # what to change, in one or two sentences
    gain: Gain | None = None  # None where nothing says what it brings
    value: int | None = None  # of the setting, where it has one
    order: float = 1.0  # throughput that it likely brings, by which it is ordered where no gain is known
    whole: bool = False  # the gain is that of the whole job, of which this loop is a part

    @property
    def told(self) -> Gain | None:
        """The gain where it is said."""
        return self.gain if self.gain is not None and self.gain.told else None

    @property
    def likely(self) -> float:
        """The throughput that it likely brings."""
        return self.gain.likely if self.gain is not None else self.order

    @property
    def text(self) -> str:
        """What to change and what that brings; a gain has two digits."""
        if self.gain is None:
            return self.change
        if self.told is None:
            return f"{self.change} {UNTOLD}"
        low, likely, high = (f"{times:.2g}" for times in (self.gain.low, self.gain.likely, self.gain.high))
        of = " of the whole job" if self.whole else ""
        return f"{self.change} That brings {likely} times the throughput{of} ({low} to {high})."

    @property
    def risky(self) -> bool:
        """True where the job may be slower with it."""
        return self.gain is not None and self.gain.low < 1

    def within(self, finding: JobFinding, *, certain: bool) -> Remedy | None:
        """Return it with the gain of the whole job, no more than a ladder measured; None without any."""
        waits, gain = finding.waits, self.gain
        ceiling, unbound = waits.ceiling, IN_LOOP | (set() if waits.whole_passes else BETWEEN_PASSES)
        if ceiling is not None and self.name not in unbound:
            if ceiling < 1 + SLIGHT:
                return None
            gain = gain and gain.each(lambda times: min(times, ceiling))
        # Long steps, other loops, and work between passes are a part of the job, too.
        rest = 1 - waits.loop_share * (1 - finding.interrupted_share) * (1 - finding.loader.lines.apart)
        whole = gain is not None and rest >= SLIGHT
        if gain is not None and whole:
            gain = gain.each(lambda times: 1 / ((1 - rest) / times + rest))
        return replace(self, gain=gain and replace(gain, certain=gain.certain and certain), whole=whole)


@dataclass(frozen=True)
class Effect:
    """What a remedy brings, None where no model says it, and the value of its setting where it has one."""

    gain: Gain | None = None
    value: int | None = None
    order: float = 1.0


@dataclass(frozen=True)
class Row:
    """A remedy that a job may need: when it applies, what it says, what it changes, and what it rules out."""

    name: str
    applies: Callable[[Facts], object]
    says: Callable[[Facts, Effect], str]
    changes: Callable[[Facts], Effect | None] = lambda _: Effect()  # None where nothing would change
    rules_out: frozenset[str] = frozenset()  # remedies that are wrong beside it

    def of(self, facts: Facts) -> Remedy | None:
        """Return the remedy for a job; None where it does not apply, or brings less than 5 % at best."""
        effect = self.changes(facts) if self.applies(facts) else None
        if effect is None or (effect.gain is not None and effect.gain.high < 1 + SLIGHT):
            return None
        return Remedy(self.name, self.says(facts, effect), effect.gain, effect.value, effect.order)
