"""The mean rule of a loader: what a step takes where few batches, or few steps, may be under way.

Solve, simulation, moving picture, the graders' clock and the doctor all read it here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Generic, TypeVar

from ..units import Number
from .resources import ACCELERATOR, CPU, DECODER, LINK, LOOP, STORAGE, maximum

Time = TypeVar("Time", bound=Any)  # numbers, arrays, fractions or costs: what can be added, and divided


@dataclass(frozen=True)
class BatchTimes(Generic[Time]):
    """What each resource takes for the batches of a step, and how much of them may be under way.

    Attributes
    ----------
    times : mapping of str
        By resource; that of the CPU is of all workers together.
    workers, prefetch : int
        Each worker has `prefetch` batches ordered.
    in_flight : int or inf
        Steps that the loop lets the accelerator have unfinished.
    way : number
        A batch's way from its worker to the loop, beside the work of either.
    read_ahead : bool
        True if the storage reads a batch before its worker prepares it.
    alone : bool
        True if the loop prepares its batches itself.
    """

    times: Mapping[str, Time]
    workers: Any = 1
    prefetch: Number = 2
    in_flight: Number = 2
    way: Any = 0
    read_ahead: bool = True
    alone: bool = False

    def round_trips(self) -> Iterator[tuple[str, Time]]:
        """Yield each bound on a step by what waits for itself, with the resource that is waited for.

        Bounds that no time of a resource can be below are left out.
        """
        times = self.times
        loop = [times[LOOP.name]] if LOOP.name in times else []
        thread = [*loop, *([times[CPU.name]] if self.alone else [])]
        behind = [name for name in (DECODER.name, LINK.name) if name in times]
        if thread or DECODER.name in times or (behind and self.in_flight == 1):
            # One thread does what stands in front of the copy, and waits for a step that is too far behind.
            waited_for = LOOP.name if loop else CPU.name if self.alone else behind[0]
            if len(thread) > 1:
                yield waited_for, reduce(add, thread)
            whole = reduce(add, [*thread, times[ACCELERATOR.name]])
            for trip in [whole + times[name] for name in behind] or [whole]:
                yield waited_for, trip / self.in_flight
        if not self.alone and (loop or self.way or self.prefetch == 1):
            # A batch is ordered when the loop has received one of the same worker.
            ahead = [times[STORAGE.name]] if self.read_ahead and STORAGE.name in times else []
            ahead += [self.way] if self.way else []
            of_worker = reduce(add, [times[CPU.name], *(time / self.workers for time in (*ahead, *loop))])
            yield CPU.name, of_worker / self.prefetch

    @property
    def step(self) -> Time:
        """The time of a step, where resources work at the same time."""
        step: Time = maximum((*self.times.values(), *(trip for _, trip in self.round_trips())))
        return step
