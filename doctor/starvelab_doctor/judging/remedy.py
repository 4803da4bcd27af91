"""A remedy: one change to a job, and by how much it may be faster then."""

from __future__ import annotations

from dataclasses import dataclass, replace

from starvelab.measure.verdict import SLIGHT

from ..finding.records import Ceiling

# What the ladder does not serve again: work of the loop itself, and, where it counted no whole passes, their
# beginning.
IN_LOOP = {"move"}
BETWEEN_PASSES = {"persistent", "passes", "pickling", "first batch"}
UNTOLD = "Only a trial can tell what that brings."


@dataclass(frozen=True)
class Remedy:
    """One change."""

    name: str  # short: "workers", "prefetch", "packing" and others
    change: str  # what to change, in one or two sentences
    # Throughput over that of now: at worst, likely and at best; None where it cannot be predicted.
    gain: tuple[float, float, float] | None = None
    at_most: bool = False  # the likely gain is only what is possible
    value: int | None = None  # of the setting, where it has one
    note: str = ""  # what has to hold for the gain, in a sentence
    whole: bool = False  # the gain is that of the whole job, of which this loop is a part

    @property
    def text(self) -> str:
        """What to change and what that brings; a gain has two digits."""
        return " ".join(filter(None, (self.change, self._brings, self.note)))

    @property
    def _brings(self) -> str:
        if self.gain is None:
            return ""
        low, likely, high = (f"{times:.2g}" for times in self.gain)
        what = f"times the throughput{' of the whole job' if self.whole else ''}"
        if not self.at_most:
            return f"That brings {likely} {what} ({low} to {high})."
        worst = "" if self.gain[0] == 1 else f", and {low} at worst"
        return f"That brings {likely} {what} at most{worst}."

    @property
    def risky(self) -> bool:
        """True where the job may be slower with it."""
        return self.gain is not None and self.gain[0] < 1

    def untold(self) -> Remedy:
        """Return it without its gain."""
        return replace(self, gain=None, at_most=False, note=UNTOLD)

    def below(self, ceiling: Ceiling | None) -> Remedy | None:
        """Return it with no gain above what the ladder measured; None where that leaves nothing."""
        if ceiling is None or self.name in IN_LOOP | (set() if ceiling.passes else BETWEEN_PASSES):
            return self
        if ceiling.times < 1 + SLIGHT:
            return None
        if self.gain is None:
            return self
        low, likely, high = (min(times, ceiling.times) for times in self.gain)
        return replace(self, gain=(low, likely, high))
