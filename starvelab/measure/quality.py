"""How far a measurement can be trusted: what else ran on these cores, and how much its windows differ."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import psutil

# Above these a measurement is not trusted; on a shared machine both are reached often.
MAX_BACKGROUND_LOAD = 0.20
MAX_VARIATION = 0.25
CONFIDENCE = 0.95
MIN_WINDOWS = 3


@dataclass(frozen=True)
class Quality:
    """Whether to believe a measurement.

    Attributes
    ----------
    background_load : float
        Share of this process' cores that others used, 0 to 1.
    variation : float
        Standard deviation over mean, of the windows' periods.
    windows : int
    """

    background_load: float
    variation: float
    windows: int

    @property
    def reason(self) -> str:
        """Why it is not to be trusted; empty if it is."""
        reasons = []
        if self.background_load > MAX_BACKGROUND_LOAD:
            reasons.append(f"other programs used {self.background_load:.0%} of the cores")
        if self.variation > MAX_VARIATION:
            reasons.append(f"the windows differ by {self.variation:.0%}")
        if self.windows < MIN_WINDOWS:
            reasons.append(f"there were only {self.windows} windows")
        return " and ".join(reasons)

    @property
    def trustworthy(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.reason


class LoadMeter:
    """What other programs do on our cores between now and `background_load()`."""

    def __init__(self) -> None:
        import psutil  # loaded here: a browser's Python lacks it

        self.process = psutil.Process()
        self.since, self.busy, self.ours = time.monotonic(), _busy(self.process), self._own()

    def _own(self) -> dict[int, float]:
        """CPU seconds of this process and of each of its workers that is alive."""
        import psutil

        spent = {}
        for process in (self.process, *self.process.children(recursive=True)):
            try:
                times = process.cpu_times()
            except psutil.Error:  # it ended meanwhile
                continue
            spent[process.pid] = times.user + times.system
        return spent

    def background_load(self) -> float:
        """Share of the cores that was used by others, 0 to 1."""
        wall = time.monotonic() - self.since
        ours = sum(after - self.ours.get(pid, 0.0) for pid, after in self._own().items())
        busy = _busy(self.process) - self.busy
        cores = len(_our_cores(self.process))
        return float(np.clip((busy - ours) / (wall * cores), 0, 1)) if wall > 0 else 0.0


def _our_cores(process: psutil.Process) -> Sequence[int]:
    import psutil

    # Not every system lets a process ask for its affinity.
    return process.cpu_affinity() if hasattr(process, "cpu_affinity") else range(psutil.cpu_count() or 1)


def _busy(process: psutil.Process) -> float:
    """Seconds that the cores open to this process have been busy since the machine started."""
    import psutil

    each = psutil.cpu_times(percpu=True)
    mine = [each[core] for core in _our_cores(process) if core < len(each)]
    return float(sum(core.user + core.nice + core.system for core in mine))


def interval(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """The mean's confidence interval, from windows that are long enough to be independent."""
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    reach = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * spread / len(values) ** 0.5
    return mean - reach, mean + reach


def variation(values: Sequence[float] | np.ndarray) -> float:
    """Standard deviation over mean."""
    return float(np.std(values, ddof=1) / np.mean(values)) if len(values) > 1 else 0.0
