"""The GPUs of a trace: how they were used while the loop went from batch to batch, and why they were idle.

A trace is brought to a timeline before, and which stretches of time count is decided in `traces`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..measure.verdict import SLIGHT
from ..tables import percent
from .timeline import COPY, KERNEL, GpuWork, Timeline, covered

# Between two kernels that were both launched in time a GPU still pauses for some microseconds.
SHORT = 10.0  # microseconds
MAX_STEPS = 100  # more than a picture can hold; a trace may have thousands


@dataclass(frozen=True)
class GpuUse:
    """Use of the GPUs, as shares of the time, 0 to 1.

    Attributes
    ----------
    busy, idle : float
        A kernel or a copy ran, or neither.
    idle_in_waits, idle_before_launch, idle_otherwise : float
        Idle while the training loop waited for data: the stall. Outside the waits, where the CPU had not
        launched the next work yet: launch gaps. For another reason, or one that the trace does not tell.
    copying, copying_pageable : float
        A copy ran and no kernel beside it; of these, copies from or to memory that is not pinned.
    pageable_copies : int
    """

    busy: float
    idle: float
    idle_in_waits: float
    idle_before_launch: float
    idle_otherwise: float
    copying: float
    copying_pageable: float
    pageable_copies: int

    @property
    def cause(self) -> str:
        """Name what costs most time: waiting for data, pageable copies, copies, launch gaps or nothing."""
        costs = {
            "waiting for data": self.idle_in_waits,
            "pageable copies": self.copying_pageable,
            "copies": self.copying - self.copying_pageable,
            "launch gaps": self.idle_before_launch,
        }
        most = max(costs, key=costs.__getitem__)
        return most if costs[most] >= SLIGHT else "nothing"

    @property
    def verdict(self) -> str:
        """Say how idle it is, and whether for want of data: "28 % idle and not starved"."""
        starved = "starved" if self.idle_in_waits >= SLIGHT else "not starved"
        return f"{percent(self.idle, 0)} idle and {starved}"

    @property
    def next_step(self) -> str:
        """Say what to do about what costs most, in one sentence; empty where a trace says no more."""
        if self.cause == "pageable copies":
            return (
                f"Copies from or to pageable memory ({self.pageable_copies}) take "
                f"{percent(self.copying_pageable)} of the time: pin the batches with pin_memory=True, and "
                "copy them with non_blocking=True."
            )
        if self.cause == "copies":
            return (
                f"Copies take {percent(self.copying)} of the time with no kernel beside them: send fewer "
                "bytes, such as uint8, or copy on a stream of their own."
            )
        if self.cause == "launch gaps":
            return (
                f"For {percent(self.idle_before_launch)} of the time the CPU has not launched the next work: "
                "use torch.compile or larger batches (more memory, a higher learning rate), and read nothing "
                "like loss.item() in each step."
            )
        return ""

    @property
    def rows(self) -> list[list[object]]:
        """One row for each share, for the table of a finding."""
        return [
            ["GPU busy", percent(self.busy)],
            ["GPU idle, nothing launched", percent(self.idle_before_launch)],
            ["GPU idle for another reason", percent(self.idle_otherwise)],
            ["GPU only copies", percent(self.copying)],
        ]


@dataclass(frozen=True, eq=False)
class TraceSteps:
    """The first steps of a trace one by one, for a picture; milliseconds since the first of them began."""

    asked: np.ndarray  # when the loop asked for each batch
    received: np.ndarray  # when it had it
    end: np.ndarray  # when it asked for the next
    busy: np.ndarray | None = None  # when the first GPU was at work, as spans; None where there is none
    computing: np.ndarray | None = None  # with a kernel

    def __len__(self) -> int:
        return len(self.asked)

    def first(self, steps: int) -> TraceSteps:
        """Return the first so many steps."""
        return replace(self, asked=self.asked[:steps], received=self.received[:steps], end=self.end[:steps])

    @property
    def amounts(self) -> dict[str, np.ndarray]:
        """Milliseconds of each step by what they went to; without a GPU only those that the loop waits."""
        waited = self.received - self.asked
        if self.busy is None or self.computing is None:
            return {"loop waits": waited}
        computed = covered(self.computing, self.asked, self.end)
        busy, meanwhile = (covered(self.busy, self.asked, until) for until in (self.end, self.received))
        return {
            "loop waits": waited,
            "GPU computes": computed,
            "only copies": busy - computed,
            "idle in the wait": waited - meanwhile,
            "idle otherwise": self.end - self.received - (busy - meanwhile),
        }


def steps_of(timeline: Timeline, waits: np.ndarray, stretches: np.ndarray) -> TraceSteps | None:
    """Return the first steps, by the spans of their waits and of what lies from each to the next."""
    if not len(waits):
        return None
    waits, stretches = waits[:MAX_STEPS], stretches[:MAX_STEPS]
    origin, end = stretches[0, 0], stretches[-1, 1]

    def in_ms(times: np.ndarray) -> np.ndarray:
        return np.asarray((times - origin) / 1e3)

    def seen(spans: np.ndarray) -> np.ndarray:
        return in_ms(spans[(spans[:, 1] > origin) & (spans[:, 0] < end)])

    gpus = [timeline.gpus[key] for key in sorted(timeline.gpus, key=str) if len(timeline.gpus[key].starts)]
    work = (seen(gpus[0].spans()), seen(gpus[0].spans([KERNEL]))) if gpus else ()
    return TraceSteps(in_ms(waits[:, 0]), in_ms(waits[:, 1]), in_ms(stretches[:, 1]), *work)


def use_of(timeline: Timeline, waits: np.ndarray, stretches: np.ndarray) -> tuple[GpuUse, np.ndarray] | None:
    """Return what the GPUs did in the stretches that count, and their idle time in each wait; else None."""
    gpus = [_Gpu(work, timeline.launches) for work in timeline.gpus.values() if len(work.starts)]
    total = float(np.sum(stretches[:, 1] - stretches[:, 0])) if len(stretches) else 0.0
    if not gpus or not total:
        return None
    idle_in_waits = np.mean([gpu.idle_in(waits) for gpu in gpus], axis=0)
    stall = float(idle_in_waits.sum()) / total

    def share(of: str) -> float:
        parts = [covered(getattr(gpu, of), stretches[:, 0], stretches[:, 1]).sum() for gpu in gpus]
        return float(np.mean(parts)) / total

    busy = share("busy")
    late = float(np.mean([gpu.late(waits, stretches) for gpu in gpus])) / total
    copying = busy - share("computing")
    use = GpuUse(
        busy=busy,
        idle=1 - busy,
        idle_in_waits=stall,
        idle_before_launch=late,
        idle_otherwise=max(0.0, 1 - busy - stall - late),
        copying=copying,
        copying_pageable=min(copying, busy - share("all_but_pageable")),
        pageable_copies=sum(gpu.pageable_copies for gpu in gpus),
    )
    return use, idle_in_waits


class _Gpu:
    """The work of one GPU as spans."""

    def __init__(self, work: GpuWork, launches: tuple[object, object]) -> None:
        self.busy, self.computing = work.spans(), work.spans([KERNEL])
        self.all_but_pageable = work.spans([KERNEL, COPY])
        self.pageable_copies = sum(kind not in (KERNEL, COPY) for kind in work.kinds)
        self.gaps = np.column_stack([self.busy[:-1, 1], self.busy[1:, 0]])
        # When the work after each gap was launched; a gap ends where a span of the union begins.
        starts = np.array(work.starts)
        order = np.argsort(starts, kind="stable")
        first = order[np.searchsorted(starts[order], self.gaps[:, 1])]
        self.launched = _launch_times(np.array(work.correlations)[first], launches)

    def idle_in(self, spans: np.ndarray) -> np.ndarray:
        """Return how long it was idle in each span."""
        return np.asarray((spans[:, 1] - spans[:, 0]) - covered(self.busy, spans[:, 0], spans[:, 1]))

    def late(self, waits: np.ndarray, stretches: np.ndarray) -> float:
        """Return how long it was idle, outside the waits, with nothing launched."""
        lengths = self.gaps[:, 1] - self.gaps[:, 0]
        late = self.gaps[(self.launched > self.gaps[:, 0]) & (lengths > SHORT)]
        # Up to the launch, and the little that a launch takes to arrive.
        return float(
            covered(late, stretches[:, 0], stretches[:, 1]).sum()
            - covered(late, waits[:, 0], waits[:, 1]).sum()
        )


def _launch_times(correlations: np.ndarray, launches: tuple[object, object]) -> np.ndarray:
    """Return when the work of these numbers was launched; minus infinity where the trace does not tell."""
    numbers, starts = np.array(launches[0], dtype=np.int64), np.array(launches[1], dtype=float)
    if not len(numbers):
        return np.full(len(correlations), -np.inf)
    order = np.argsort(numbers, kind="stable")
    numbers, starts = numbers[order], starts[order]
    places = np.minimum(np.searchsorted(numbers, correlations), len(numbers) - 1)
    found = (numbers[places] == correlations) & (correlations >= 0)
    times: np.ndarray = np.where(found, starts[places], -np.inf)
    return times
