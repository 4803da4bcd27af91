"""The caching ladder: how long a batch takes while ever more parts of its work come from a cache."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from .batches import PARTS
from .measurement import variation
from .quality import MIN_WINDOWS, LoadMeter, Quality
from .session import Session, time_bar
from .setup import RunSetup
from .verdict import SLIGHT

# What is cached on each rung: on rung k the first k parts.
CACHED = ("nothing", "raw sample", "decoded sample", "processed sample", "host batch", "device batch")

BLOCK = 0.15  # seconds that a rung is measured before the next has its turn
MIN_ROUNDS = 4
# By how much the bottleneck must lead, in standard errors of the difference.
MIN_LEAD = 2.0
# From which lead over the next part, in its multiples, a few rounds are enough.
CLEAR_LEAD = 10.0
# By how much more other programs may slow ours than their share of the cores says.
LOAD_MARGIN = 2.0


@dataclass(frozen=True)
class Ladder:
    """Time between batches on each rung, and the parts by what each adds to it."""

    rungs: tuple[int, ...]  # from 0, nothing cached, upward; not every pipeline has all
    periods: tuple[np.ndarray, ...]  # of each rung, time between batches [ms], one for each block
    quality: Quality
    asked: float  # seconds of the budget
    # What each stage took for a sample with nothing cached, in one worker; empty where that is not known.
    stage_seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        """Blocks of each rung."""
        return min(len(periods) for periods in self.periods)

    @property
    def medians(self) -> np.ndarray:
        """Median period of each rung [ms]."""
        return np.array([np.median(periods) for periods in self.periods])

    @property
    def errors(self) -> np.ndarray:
        """Standard error of each median [ms]; one outlier among few blocks moves it little."""
        # 1.48 turns the median deviation into a standard one; a median's error is 1.25 times that of a mean.
        spread = [np.median(np.abs(each - np.median(each))) / len(each) ** 0.5 for each in self.periods]
        return 1.25 * 1.48 * np.array(spread)

    @cached_property
    def names(self) -> list[str]:
        """The parts, in the order in which a sample meets them."""
        # Where rungs are left out, several parts together.
        ends = zip(self.rungs, [*self.rungs[1:], len(PARTS)], strict=True)
        return [" + ".join(PARTS[low:high]) for low, high in ends]

    @cached_property
    def evidence(self) -> dict[str, float]:
        """What each part adds [ms]; small negative differences are noise and count as 0."""
        medians = self.medians
        added = [*np.clip(medians[:-1] - medians[1:], 0, None), medians[-1]]
        return dict(zip(self.names, added, strict=True))

    @cached_property
    def noise(self) -> dict[str, float]:
        """Standard error of what each part adds [ms]; nothing is subtracted from the last."""
        errors = self.errors
        return dict(zip(self.names, np.hypot(errors, [*errors[1:], 0.0]), strict=True))

    @property
    def stall(self) -> float:
        """Share of the time in which the accelerator waits."""
        medians = self.medians
        return float(np.clip(1 - medians[-1] / medians[0], 0, 1))

    @property
    def starved(self) -> bool:
        """True if it waits for more than can be noise."""
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
        """True if the bottleneck leads by so much, in all rounds, that more rounds would not change it."""
        lows, highs = ([float(pick(each)) for each in self.periods] for pick in (np.min, np.max))
        if not self.starved:
            return 1 - lows[-1] / highs[0] < SLIGHT
        first, *others = self.order
        drops = zip(self.names, lows[:-1], highs[:-1], lows[1:], highs[1:], strict=False)
        least, most = {}, {}
        for name, low, high, next_low, next_high in drops:
            least[name], most[name] = low - next_high, high - next_low
        return least[first] > 0 and all(
            self.evidence[first] > CLEAR_LEAD * self.evidence[name] and least[first] > most[name]
            for name in others
        )

    @property
    def outweighs_load(self) -> bool:
        """True if the same part would starve the accelerator had no other program used the cores."""
        alone = (1 - self.quality.background_load) / LOAD_MARGIN
        quickest, step = np.min(self.periods[0]) * alone, np.max(self.periods[-1])
        first, *others = self.order
        leads = all(self.evidence[first] * alone > self.evidence[name] for name in others)
        return bool(self.starved and leads and 1 - step / quickest >= SLIGHT)

    @property
    def disturbed(self) -> str:
        """What other programs did, if that may change the verdict; few rounds are no disturbance."""
        harmless = self.clear and self.outweighs_load
        return "" if harmless else replace(self.quality, windows=MIN_WINDOWS, variation=0.0).reason

    @property
    def doubt(self) -> str:
        """Why another part may be the bottleneck; empty if nothing suggests that."""
        first, second = self.order[:2]
        evidence, noise, quality = self.evidence, self.noise, self.quality
        if self.clear:
            # Neither few windows nor that they differ can turn such a lead round.
            quality = replace(quality, windows=max(quality.windows, MIN_WINDOWS), variation=0.0)
            if self.outweighs_load:
                quality = replace(quality, background_load=0.0)
        reasons = [quality.reason] if quality.reason else []
        if self.rounds < MIN_ROUNDS and not self.clear:
            reasons.append(
                f"only {self.rounds} rounds fitted into {self.asked:g} s, so give it a longer "
                "budget or smaller batches"
            )
        lead = evidence[first] - evidence[second]
        within_noise = lead < MIN_LEAD * np.hypot(noise[first], noise[second])
        if self.starved and within_noise and not self.clear:
            reasons.append(f"{first} and {second} cost the same within the noise")
        return "; ".join(reasons)


def profile(setup: RunSetup, *, seconds: float, progress: bool, longest: float = 0.0) -> Ladder:
    """Measure a live pipeline on all rungs, in random order, until the time, including its start, is over.

    If that brings few rounds, it goes on until a part leads clearly or `longest` is over. One loader serves
    all rungs, so that other programs disturb them all alike.
    """
    order, rungs = random.Random(0), tuple(range(len(PARTS)))
    periods: dict[int, list[float]] = {rung: [] for rung in rungs}
    start = time.monotonic()
    with Session(setup) as session, time_bar(seconds, shown=progress) as bar:
        # Each rung lets its own first batches pass, so here only the device needs one.
        session.device.warm_up(session.loader.next().array)
        meter, rounds, enough = LoadMeter(), 0, False
        spent = time.monotonic() - start
        while not enough:
            rounds, begun = rounds + 1, spent
            for rung in order.sample(rungs, len(rungs)):
                session.set_rung(rung)
                periods[rung].append(_block(session))
                spent = time.monotonic() - start
                bar.update(min(spent, seconds) - bar.n)
            blocks = tuple(np.array(periods[rung]) for rung in rungs)
            after_next = 2 * spent - begun
            enough = rounds >= 2 and after_next >= seconds
            if enough and rounds < MIN_ROUNDS and after_next < longest:
                enough = Ladder(rungs, blocks, Quality(0.0, 0.0, rounds), seconds).clear
        load, stage_seconds = meter.background_load(), session.stage_seconds(rung=0)
    quality = Quality(load, float(np.median([variation(each) for each in blocks])), rounds)
    return Ladder(rungs, blocks, quality, max(seconds, min(spent, longest)), stage_seconds)


def _block(session: Session) -> float:
    """Time between batches [ms], over a multiple of the workers' number: batches come in bursts."""
    turn = max(session.setup.workers, 1)
    session.step()
    start = time.monotonic()
    first = session.device.now()
    count = 0
    while time.monotonic() - start < BLOCK:
        for _ in range(turn):
            session.step()
        count += turn
    return 1e3 * (session.device.now() - first) / count
