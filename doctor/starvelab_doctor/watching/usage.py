"""Usage of a training job's processes, as the system tells it, and how much of the cores others use.

Workers are separate processes, which the system counts; without workers the loop's own thread prepares. What
of the preparing is no work of the CPU is waiting, mostly to read.
"""

from __future__ import annotations

import time
from copy import copy

from starvelab.host import usable_cores

from ..host import busy_cores, own_threads, processes_seconds, queued_seconds, tree_seconds
from ..torch_internals import is_iterator, worker_numbers

SEVERAL = 1.1  # cores that a process uses on average, from which on several of its threads count


class ProcessUse:
    """Usage of those who prepare batches and of the loop's process: each look counts since the one before."""

    def __init__(self) -> None:
        # Seconds of the CPU, those of them of processes that the loop's own one started, and all that passed.
        self.busy = self.of_children = self.passed = 0.0
        self.queued: float | None = None  # seconds in which they had work and no core; None: nobody tells
        self.processes: bool | None = None  # whether workers are processes; None: there is no iterator to ask
        self.loop_passed = self.loop_busy = self.loop_queued = 0.0  # of the loop's process
        self.others = self.offered = 0.0  # core seconds that others used, of those that there are
        self._looks: dict[str, tuple[object, tuple[float, ...]]] = {}  # the last ones, and what each was of

    def add(self, busy: float, passed: float, queued: float | None = None, of_children: float = 0.0) -> None:
        """Count seconds of the CPU, seconds that passed meanwhile, and those without a core."""
        self.busy, self.of_children = self.busy + busy, self.of_children + of_children
        self.passed += passed
        if queued is not None:
            self.queued = (self.queued or 0.0) + queued

    def since(self, earlier: ProcessUse) -> ProcessUse:
        """Return what was used since then, of those who prepare."""
        later = copy(self)
        later.busy, later.passed = self.busy - earlier.busy, self.passed - earlier.passed
        later.queued = None if self.queued is None else self.queued - (earlier.queued or 0.0)
        return later

    def rest(self) -> None:
        """Begin with the next look: since the last one the loop does something else, and workers rest."""
        self._looks.clear()

    def poll(self, source: object) -> None:
        """Ask the system for the loop's process, the workers of PyTorch's iterator, and everybody else."""
        now, busy, queued = time.perf_counter(), time.process_time(), queued_seconds(*own_threads())
        if source is not None:
            self.processes = is_iterator(source)
        if grown := self._since("loop", id(source), now, busy, queued or 0.0):
            self.loop_passed += grown[0]
            self.loop_busy += grown[1]
            self.loop_queued += grown[2]
        numbers = worker_numbers(source)
        if numbers and (spent := processes_seconds(*numbers)) is not None:
            waited = queued_seconds(*numbers)
            known = () if waited is None else (waited,)
            if grown := self._since("workers", (numbers, len(known)), now, spent, *known):
                self.add(grown[1], grown[0] * len(numbers), *grown[2:])
        if (used := busy_cores()) is not None and (
            grown := self._since("cores", True, now, used, tree_seconds())
        ):
            offered = usable_cores() * grown[0]
            self.others += min(max(grown[1] - grown[2], 0.0), offered)
            self.offered += offered

    def _since(self, what: str, of: object, *looked: float) -> tuple[float, ...]:
        """Return by how much figures grew since the last look at the same; nothing at the first one."""
        last, before = self._looks.get(what, (None, ()))
        self._looks[what] = of, looked
        return tuple(now - then for now, then in zip(looked, before, strict=True)) if last == of else ()

    @property
    def share(self) -> float | None:
        """Share of the time in which they have work for a core, 0 to 1; None where it is not known."""
        # One that waits for a core has work for it.
        return _share(self.busy + (self.queued or 0.0), self.passed)

    @property
    def threads(self) -> float:
        """Cores that each of them uses while it computes, 1 or more."""
        used = self.busy / self.passed if self.passed else 0.0
        return used if used >= SEVERAL else 1.0

    @property
    def queued_share(self) -> float | None:
        """Share of the time in which they have work and no core, 0 to 1; None where it is not known."""
        return _share(self.queued, self.passed)

    @property
    def core_waits(self) -> float | None:
        """Share of the time in which the loop's threads, or who prepares, have no core; None if unknown."""
        loop = _share(self.loop_queued, self.loop_passed) or 0.0
        return max(loop, self.queued_share) if self.queued_share is not None else loop or None

    @property
    def others_share(self) -> float | None:
        """Share of the cores that other programs used, 0 to 1; None where it is not known."""
        return _share(self.others, self.offered)

    def loop_cores(self, waits: float) -> float | None:
        """Return the cores that the loop's own work uses, if it prepares in that share of the time."""
        if not self.loop_passed:
            return None
        prepared = waits * (self.busy - self.of_children) / self.passed if self.passed else 0.0
        return max(self.loop_busy / self.loop_passed - prepared, 0.0)


def _share(part: float | None, whole: float) -> float | None:
    return min(part / whole, 1.0) if part is not None and whole else None
