"""The steps of a trace one by one, for a picture: the loop's wait, and what the GPU did up to the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .spans import covered, union
from .timeline import GpuWork, Timeline

MAX_STEPS = 100  # more than a picture can hold; a trace may have thousands


@dataclass(frozen=True, eq=False)
class TraceSteps:
    """The first steps of a trace; all times are milliseconds since the first of them began.

    Attributes
    ----------
    asked, received, end : array of float
        When the loop asked for each batch, when it had it, and when it asked for the next [ms].
    busy, computing : array of float, shape (n, 2), or None
        When the GPU ran a kernel or a copy, and when it ran a kernel [ms]; of several GPUs the first. None
        where the trace holds no GPU.
    """

    asked: np.ndarray
    received: np.ndarray
    end: np.ndarray
    busy: np.ndarray | None = None
    computing: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.asked)

    def first(self, steps: int) -> TraceSteps:
        """The first so many steps."""
        return TraceSteps(
            self.asked[:steps], self.received[:steps], self.end[:steps], self.busy, self.computing
        )

    @property
    def waited(self) -> np.ndarray:
        """How long the loop waited for each batch [ms]."""
        waited: np.ndarray = self.received - self.asked
        return waited

    @property
    def computed(self) -> np.ndarray:
        """How long the GPU ran kernels in each step [ms]; zeros without a GPU."""
        return self._of(self.computing, self.asked, self.end)

    @property
    def copied(self) -> np.ndarray:
        """How long the GPU copied and computed nothing in each step [ms]."""
        copied: np.ndarray = self._of(self.busy, self.asked, self.end) - self.computed
        return copied

    @property
    def idle_in_wait(self) -> np.ndarray:
        """How long the GPU had nothing to do while the loop waited [ms]."""
        idle: np.ndarray = self.waited - self._of(self.busy, self.asked, self.received)
        return idle

    @property
    def idle_otherwise(self) -> np.ndarray:
        """How long the GPU was idle after the loop had its batch [ms]."""
        idle: np.ndarray = self.end - self.received - self._of(self.busy, self.received, self.end)
        return idle

    def _of(self, spans: np.ndarray | None, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        return np.zeros(len(self)) if spans is None else covered(spans, starts, ends)


def steps_of(timeline: Timeline, waits: np.ndarray, stretches: np.ndarray) -> TraceSteps | None:
    """The first steps that count; None if there is none.

    Parameters
    ----------
    waits, stretches : array of float
        Start and end of each wait, and of the stretch from it to the next [us].
    """
    if not len(waits):
        return None
    waits, stretches = waits[:MAX_STEPS], stretches[:MAX_STEPS]
    origin, end = stretches[0, 0], stretches[-1, 1]

    def in_ms(times: np.ndarray) -> np.ndarray:
        found: np.ndarray = (times - origin) / 1e3
        return found

    gpus = [timeline.gpus[key] for key in sorted(timeline.gpus, key=str) if len(timeline.gpus[key].starts)]
    busy = computing = None
    if gpus:
        starts, ends, kinds = (np.array(one) for one in (gpus[0].starts, gpus[0].ends, gpus[0].kinds))
        seen = (ends > origin) & (starts < end)
        kernels = seen & (kinds == GpuWork.KERNEL)
        busy = in_ms(union(starts[seen], ends[seen]))
        computing = in_ms(union(starts[kernels], ends[kernels]))
    return TraceSteps(in_ms(waits[:, 0]), in_ms(waits[:, 1]), in_ms(stretches[:, 1]), busy, computing)
