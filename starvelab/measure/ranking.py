"""What the rungs of a ladder say: what each part adds, which part leads, and how certain that is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .ladder import MIN_ROUNDS, Ladder, part_between
from .protocols import PARTS
from .quality import MIN_WINDOWS
from .verdict import SLIGHT

# By how much the bottleneck must lead, in standard errors of the difference.
MIN_LEAD = 2.0
# From which lead over the next part, in its multiples, a few rounds are enough.
CLEAR_LEAD = 10.0
# By how much more other programs may slow ours than their share of the cores says.
LOAD_MARGIN = 2.0


@dataclass(frozen=True)
class Ranking:
    """The parts of a ladder, by what each adds to the time between batches.

    Attributes
    ----------
    ladder : Ladder
    """

    ladder: Ladder

    @cached_property
    def names(self) -> list[str]:
        """The parts, in the order in which a sample meets them."""
        rungs = self.ladder.rungs
        return [part_between(low, high) for low, high in zip(rungs, [*rungs[1:], len(PARTS)], strict=True)]

    @cached_property
    def evidence(self) -> dict[str, float]:
        """What each part adds [ms]; small negative differences are noise and count as 0."""
        medians = self.ladder.medians
        return dict(
            zip(self.names, [*np.clip(medians[:-1] - medians[1:], 0, None), medians[-1]], strict=True)
        )

    @cached_property
    def noise(self) -> dict[str, float]:
        """Standard error of what each part adds [ms]; nothing is subtracted from the last."""
        errors = self.ladder.errors
        return dict(zip(self.names, np.hypot(errors, [*errors[1:], 0.0]), strict=True))

    @property
    def stall(self) -> float:
        """Share of the time in which the accelerator waits."""
        medians = self.ladder.medians
        return float(np.clip(1 - medians[-1] / medians[0], 0, 1))

    @property
    def starved(self) -> bool:
        """Whether it waits for more than can be noise."""
        return self.stall >= SLIGHT

    @cached_property
    def order(self) -> list[str]:
        """The parts, the bottleneck first."""
        inputs = sorted(self.names[:-1], key=self.evidence.__getitem__, reverse=True)
        return inputs if self.starved else [self.names[-1], *inputs]

    @property
    def runner_up(self) -> str:
        """The next part; empty if it adds nothing but noise."""
        following = self.order[1] if len(self.order) > 1 else ""
        return following if following and self.evidence[following] > MIN_LEAD * self.noise[following] else ""

    @property
    def clear(self) -> bool:
        """Whether the bottleneck leads by so much that more rounds would not change what is said.

        It must lead also if the smallest of what its rounds show counts, and the largest of each other part.
        """
        lows, highs = ([float(pick(each)) for each in self.ladder.periods] for pick in (np.min, np.max))
        if not self.starved:
            return 1 - lows[-1] / highs[0] < SLIGHT
        first, others = self.order[0], self.order[1:]
        least = {name: low - high for name, low, high in zip(self.names, lows[:-1], highs[1:], strict=False)}
        most = {name: high - low for name, high, low in zip(self.names, highs[:-1], lows[1:], strict=False)}
        return least[first] > 0 and all(
            self.evidence[first] > CLEAR_LEAD * self.evidence[name] and least[first] > most[name]
            for name in others
        )

    @property
    def outweighs_load(self) -> bool:
        """Whether the accelerator would starve for the same part if no other program had used the cores.

        Programs that use half of the cores make ours twice as slow if all is shared fairly. Here they may
        make it twice as slow again.
        """
        alone = (1 - self.ladder.quality.background_load) / LOAD_MARGIN
        quickest, step = np.min(self.ladder.periods[0]) * alone, np.max(self.ladder.periods[-1])
        first, others = self.order[0], self.order[1:]
        leads = all(self.evidence[first] * alone > self.evidence[name] for name in others)
        return bool(self.starved and leads and 1 - step / quickest >= SLIGHT)

    @property
    def doubt(self) -> str:
        """Why the bottleneck may be another; empty if nothing speaks for that."""
        first, second = self.order[:2]
        evidence, noise, quality = self.evidence, self.noise, self.ladder.quality
        if self.clear:
            # Neither few windows nor that they differ can turn such a lead round.
            quality = replace(quality, windows=max(quality.windows, MIN_WINDOWS), variation=0.0)
            if self.outweighs_load:
                quality = replace(quality, background_load=0.0)
        reasons = [quality.reason] if quality.reason else []
        if self.ladder.rounds < MIN_ROUNDS and not self.clear:
            reasons.append(
                f"only {self.ladder.rounds} rounds fitted into {self.ladder.asked:g} s, so give it a longer "
                "budget or smaller batches"
            )
        lead = evidence[first] - evidence[second]
        within_noise = lead < MIN_LEAD * np.hypot(noise[first], noise[second])
        if self.starved and within_noise and not self.clear:
            reasons.append(f"{first} and {second} cost the same within the noise")
        return "; ".join(reasons)
