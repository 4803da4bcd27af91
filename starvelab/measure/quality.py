"""How far to trust a measurement: what other programs did meanwhile, and how much its parts differ."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model.description import Description
from ..tables import percent

# Above these a measurement is not trusted; on a shared machine both are reached often.
MAX_BACKGROUND_LOAD = 0.20
MAX_VARIATION = 0.25
MIN_WINDOWS = 3
# Begins the reason not to trust a calibrated pipeline, in the name of its assumptions.
CALIBRATED_WHILE = "this machine, while "


@dataclass(frozen=True)
class Quality:
    """How far to believe a measurement."""

    background_load: float  # share of this process' cores that others used, 0 to 1
    variation: float  # standard deviation over mean, of the windows' periods
    windows: int

    @property
    def reason(self) -> str:
        """Why it is not to be trusted; empty if it is."""
        load, variation, windows = self.background_load, self.variation, self.windows
        doubts = {
            f"other programs used {percent(load, 0)} of the cores": load > MAX_BACKGROUND_LOAD,
            f"the windows differ by {percent(variation, 0)}": variation > MAX_VARIATION,
            f"there were only {windows} windows": windows < MIN_WINDOWS,
        }
        return " and ".join(doubt for doubt, holds in doubts.items() if holds)


def disturbance(*measured: object) -> str:
    """Return what disturbed these runs: the reason of the first that has one; empty if none has.

    Each is a measurement, a finding, the times of decoding, or a pipeline that was calibrated.
    """
    return next(filter(None, map(_reason_of, measured)), "")


def _reason_of(measured: Any) -> str:  # Any: what has a quality, or a reason
    if isinstance(measured, Description):
        return str(measured.assumptions.name.partition(CALIBRATED_WHILE)[2])
    if (disturbed := getattr(measured, "disturbed", None)) is not None:  # of a finding
        return str(disturbed)
    return str(measured.quality.reason)


class LoadMeter:
    """What other programs do on our cores between now and `background_load()`."""

    def __init__(self) -> None:
        import psutil  # loaded here: a browser's Python lacks it

        self.process = psutil.Process()
        # Not every system lets a process ask for its affinity.
        has_affinity = hasattr(self.process, "cpu_affinity")
        self.cores = self.process.cpu_affinity() if has_affinity else range(psutil.cpu_count() or 1)
        self.start = self._counters()

    def _counters(self) -> tuple[float, float, dict[int, float]]:
        """The time, for how long our cores were busy, and what we used of that: this process, each worker."""
        import psutil

        times = psutil.cpu_times(percpu=True)
        busy = sum(each.user + each.nice + each.system for i, each in enumerate(times) if i in self.cores)
        ours = {}
        for process in (self.process, *self.process.children(recursive=True)):
            with suppress(psutil.Error):  # it ended meanwhile
                spent = process.cpu_times()
                ours[process.pid] = spent.user + spent.system
        return time.monotonic(), busy, ours

    def background_load(self) -> float:
        """Share of the cores that was used by others, 0 to 1."""
        (since, busy_before, ours_before), (now, busy, ours) = self.start, self._counters()
        used = sum(after - ours_before.get(pid, 0.0) for pid, after in ours.items())
        available = (now - since) * len(self.cores)
        return float(np.clip((busy - busy_before - used) / available, 0, 1)) if available > 0 else 0.0
