"""The use of the GPUs of a trace: how busy they were, and why they were idle."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from starvelab.measure.verdict import SLIGHT
from starvelab.tables import percent

from ..spans import covered


@dataclass(frozen=True)
class GpuUse:
    """Use of the GPUs, as shares of the time, 0 to 1.

    Attributes
    ----------
    busy, idle : float
        A kernel or a copy ran, or neither.
    idle_in_waits, idle_before_launch : float
        Idle while the training loop waited for data: the stall. Outside the waits, where the CPU had not
        launched the next work yet: launch gaps. For another reason, or one that the trace does not tell.
    copying, copying_pageable : float
        A copy ran and no kernel beside it; of these, copies from or to memory that is not pinned.
    """

    busy: float
    idle: float
    idle_in_waits: float
    idle_before_launch: float
    copying: float
    copying_pageable: float

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
        pinned, copies, late = map(percent, (self.copying_pageable, self.copying, self.idle_before_launch))
        return {
            "pageable copies": f"Copies from or to pageable memory take {pinned} of the time: pin the "
            "batches with pin_memory=True, and copy them with non_blocking=True.",
            "copies": f"Copies take {copies} of the time with no kernel beside them: send fewer bytes, such "
            "as uint8, or copy on a stream of their own.",
            "launch gaps": f"For {late} of the time the CPU has not launched the next work: use "
            "torch.compile or larger batches (more memory, a higher learning rate), and read nothing like "
            "loss.item() in each step.",
        }.get(self.cause, "")


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
