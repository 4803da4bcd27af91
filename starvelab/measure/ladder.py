"""The caching ladder: how long a batch takes while ever more parts of its work come from a cache."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .bars import time_bar
from .protocols import PARTS, Pipeline
from .quality import LoadMeter, Quality, variation
from .session import Session

# What is cached on each rung: on rung k the first k parts.
CACHED = ("nothing", "raw sample", "decoded sample", "processed sample", "host batch", "device batch")

BLOCK = 0.15  # seconds that a rung is measured before the next has its turn
MIN_ROUNDS = 4


@dataclass(frozen=True)
class Ladder:
    """Time between batches on each rung.

    Attributes
    ----------
    rungs : tuple of int
        From 0, nothing cached, upward; not every pipeline has all.
    periods : tuple of array of float
        Of each rung, time between batches [ms], one for each block.
    quality : Quality
    asked : float
        Seconds of the budget.
    stage_seconds : mapping of str to float
        What each stage took for a sample with nothing cached, in one worker; empty where that is not known.
    """

    rungs: tuple[int, ...]
    periods: tuple[np.ndarray, ...]
    quality: Quality
    asked: float
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


def part_between(low: int, high: int) -> str:
    """What comes in between two rungs: one part, or several where rungs are left out."""
    return " + ".join(PARTS[low:high])


def profile(
    pipe: Pipeline,
    *,
    seconds: float,
    rungs: Sequence[int],
    progress: bool,
    longest: float = 0.0,
    decided: Callable[[Ladder], bool] | None = None,
) -> Ladder:
    """Measure a live pipeline on all rungs in turn, in random order, until the time with its start is over.

    Where that brings few rounds it goes on, until there are enough, it is decided, or `longest` is over.
    One loader serves all rungs, and other programs disturb them all alike: rungs measured one after the other
    would each meet another background load.
    """
    order = random.Random(0)
    periods: dict[int, list[float]] = {rung: [] for rung in rungs}
    start = time.monotonic()
    with Session(pipe) as session, time_bar(seconds, shown=progress) as bar:
        # Each rung lets its own first batches pass, so here only the device needs one.
        session.device.warm_up(session.loader.next().array)
        meter = LoadMeter()
        rounds, spent, last = 0, time.monotonic() - start, 0.0

        def enough() -> bool:
            if rounds < 2 or spent + last < seconds:
                return False
            if rounds >= MIN_ROUNDS or spent + last >= longest or decided is None:
                return True
            so_far = tuple(np.array(periods[rung]) for rung in rungs)
            return decided(Ladder(tuple(rungs), so_far, Quality(0.0, 0.0, rounds), seconds))

        while not enough():
            begun = spent
            for rung in order.sample(list(rungs), len(rungs)):
                session.set_rung(rung)
                periods[rung].append(_block(session))
                spent = time.monotonic() - start
                bar.update(min(spent, seconds) - bar.n)
            rounds, last = rounds + 1, spent - begun
        load = meter.background_load()
        stage_seconds = session.stage_seconds(rung=0)
    blocks = tuple(np.array(periods[rung]) for rung in rungs)
    spread = float(np.median([variation(each) for each in blocks]))
    return Ladder(
        tuple(rungs), blocks, Quality(load, spread, rounds), max(seconds, min(spent, longest)), stage_seconds
    )


def _block(session: Session) -> float:
    """Time between batches [ms], over a multiple of the workers' number: batches come in bursts."""
    turn = session.period_of_workers
    session.step()
    start = time.monotonic()
    first = session.device.now()
    count = 0
    while time.monotonic() - start < BLOCK:
        for _ in range(turn):
            session.step()
        count += turn
    return 1e3 * (session.device.now() - first) / count
