"""How much of the time that a batch takes to prepare is work of the CPU; the rest is waiting, mostly to read.

Workers are separate processes, which the system counts; without workers the loop's own thread prepares.
"""

from __future__ import annotations

import time
from pathlib import Path


class PrepareCpu:
    """Seconds of the CPU of those who prepare batches and of the loop's process, and seconds that passed."""

    def __init__(self) -> None:
        self.busy = self.passed = 0.0
        self.queued = 0.0  # seconds in which they had work and no core
        self._loop_busy = self._loop_passed = 0.0
        self._last: tuple[tuple[int, ...], float, float, float] | None = None
        self._last_loop: tuple[object, float, float] | None = None

    def add(self, busy: float, passed: float, queued: float = 0.0) -> None:
        """What the loop's own thread spent in a `next` that prepares the batch."""
        self.busy += busy
        self.passed += passed
        self.queued += queued

    def look(self, source: object) -> None:
        """Ask the system for the loop's process and the workers of PyTorch's iterator.

        A look counts since the one before.
        """
        now = time.perf_counter()
        self._look_at_loop(source, now)
        processes = getattr(source, "_workers", None)
        if not processes:
            return
        import psutil  # loaded here: it needs processes, which a browser's Python lacks

        numbers = tuple(process.pid for process in processes)
        try:
            spent = [psutil.Process(number).cpu_times() for number in numbers]
        except psutil.Error:  # they end
            return
        busy = sum(times.user + times.system for times in spent)
        queued = sum(map(_waited_for_a_core, numbers))
        if self._last is not None and self._last[0] == numbers:
            _, busy_before, queued_before, then = self._last
            self.add(busy - busy_before, (now - then) * len(numbers), queued - queued_before)
        self._last = (numbers, busy, queued, now)

    def _look_at_loop(self, source: object, now: float) -> None:
        busy = time.process_time()
        if self._last_loop is not None and self._last_loop[0] == id(source):
            self._loop_busy += busy - self._last_loop[1]
            self._loop_passed += now - self._last_loop[2]
        self._last_loop = (id(source), busy, now)

    @property
    def share(self) -> float | None:
        """Share of the time in which they have work for a core, 0 to 1; None where it is not known."""
        # One that waits for a core has work for it.
        return min((self.busy + self.queued) / self.passed, 1.0) if self.passed else None

    @property
    def queued_share(self) -> float:
        """Share of the time in which they have work and no core, 0 to 1."""
        return min(self.queued / self.passed, 1.0) if self.passed else 0.0

    @property
    def loop_share(self) -> float | None:
        """Cores that the process of the loop uses, on average; None where it is not known."""
        return self._loop_busy / self._loop_passed if self._loop_passed else None


def _waited_for_a_core(number: int) -> float:
    """Seconds that a process had work and no core; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{number}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0
