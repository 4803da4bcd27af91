"""How much of the time that a batch takes to prepare is work of the CPU; the rest is waiting, mostly to read.

Workers are separate processes, which the system counts; without workers the loop's own thread prepares.
"""

from __future__ import annotations

import time
from pathlib import Path


class PrepareCpu:
    """Seconds of the CPU, and seconds that passed, of those who prepare batches."""

    def __init__(self) -> None:
        self.busy = self.passed = 0.0
        self._last: tuple[tuple[int, ...], float, float] | None = None

    def add(self, busy: float, passed: float) -> None:
        """What the loop's own thread spent in a `next` that prepares the batch."""
        self.busy += busy
        self.passed += passed

    def look(self, source: object) -> None:
        """Ask the system for the workers of PyTorch's iterator; a look counts since the one before."""
        processes = getattr(source, "_workers", None)
        if not processes:
            return
        import psutil  # loaded here: it needs processes, which a browser's Python lacks

        numbers = tuple(process.pid for process in processes)
        try:
            spent = [psutil.Process(number).cpu_times() for number in numbers]
        except psutil.Error:  # they end
            return
        busy, now = sum(times.user + times.system for times in spent), time.perf_counter()
        # A worker that waits for a core has work for it.
        busy += sum(map(_waited_for_a_core, numbers))
        if self._last is not None and self._last[0] == numbers:
            self.add(busy - self._last[1], (now - self._last[2]) * len(numbers))
        self._last = (numbers, busy, now)

    @property
    def share(self) -> float | None:
        """Busy share, 0 to 1; None where it is not known."""
        return min(self.busy / self.passed, 1.0) if self.passed else None


def _waited_for_a_core(number: int) -> float:
    """Seconds that a process had work and no core; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{number}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0
