"""How far a measurement can be trusted: what else ran on these cores, and how much the windows differ.

It knows times and processor counters; not what was measured.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import psutil

# Above these a measurement is not trusted; on a shared machine both are reached often.
MOST_FOREIGN_LOAD = 0.20
MOST_VARIATION = 0.25
CONFIDENCE = 0.95
FEWEST_WINDOWS = 3


@dataclass(frozen=True)
class Quality:
    """Whether to believe a measurement.

    Attributes
    ----------
    foreign_load : float
        Share of this process' cores that others used, 0 to 1.
    variation : float
        Standard deviation over mean, of the windows' periods.
    windows : int
    """

    foreign_load: float
    variation: float
    windows: int

    @property
    def reason(self) -> str:
        """Why it is not to be trusted; empty if it is."""
        reasons = []
        if self.foreign_load > MOST_FOREIGN_LOAD:
            reasons.append(f"other programs used {self.foreign_load:.0%} of the cores")
        if self.variation > MOST_VARIATION:
            reasons.append(f"the windows differ by {self.variation:.0%}")
        if self.windows < FEWEST_WINDOWS:
            reasons.append(f"there were only {self.windows} windows")
        return " and ".join(reasons)

    @property
    def trustworthy(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.reason


class LoadMeter:
    """What others do on our cores between now and `foreign_load()`."""

    def __init__(self) -> None:
        self.process = psutil.Process()
        self.since, self.busy, self.ours = time.monotonic(), _busy(), self._own()

    def _own(self) -> dict[int, float]:
        """CPU seconds of this process and of each of its workers that is alive."""
        spent = {}
        for process in (self.process, *self.process.children(recursive=True)):
            try:
                times = process.cpu_times()
            except psutil.Error:  # it ended meanwhile
                continue
            spent[process.pid] = times.user + times.system
        return spent

    def foreign_load(self) -> float:
        """Share of the cores that was used by others, 0 to 1."""
        wall = time.monotonic() - self.since
        ours = sum(after - self.ours.get(pid, 0.0) for pid, after in self._own().items())
        busy = _busy() - self.busy
        cores = len(_our_cores())
        return float(np.clip((busy - ours) / (wall * cores), 0, 1)) if wall > 0 else 0.0


def _our_cores() -> Sequence[int]:
    process = psutil.Process()
    # Not every system lets a process ask for its affinity.
    return process.cpu_affinity() if hasattr(process, "cpu_affinity") else range(psutil.cpu_count() or 1)


def _busy() -> float:
    """Seconds that the cores open to this process have been busy since the machine started."""
    each = psutil.cpu_times(percpu=True)
    mine = [each[core] for core in _our_cores() if core < len(each)]
    return sum(core.user + core.nice + core.system for core in mine)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean's confidence interval, from windows that are long enough to be independent."""
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    reach = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * spread / len(values) ** 0.5
    return mean - reach, mean + reach


def variation(values: Sequence[float]) -> float:
    """Standard deviation over mean."""
    return float(np.std(values, ddof=1) / np.mean(values)) if len(values) > 1 else 0.0
