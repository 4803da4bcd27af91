"""What a GPU did with its time, and what costs it most."""

from __future__ import annotations

from dataclasses import dataclass

from ..measure.verdict import SLIGHT
from ..tables import percent


@dataclass(frozen=True)
class GpuUse:
    """What the GPUs did, as shares of the time, 0 to 1.

    Attributes
    ----------
    busy : float
        A kernel or a copy ran.
    idle : float
    idle_in_waits : float
        Idle while the training loop waited for data: the stall.
    idle_before_launch : float
        Idle outside the waits, and the CPU had not launched the next work yet: launch gaps.
    idle_otherwise : float
        Idle for another reason, or for one that the trace does not tell, as at its two ends.
    copying : float
        A copy ran and no kernel beside it.
    copying_pageable : float
        Of these, copies from or to memory that is not pinned.
    pageable_copies : int
    pageable_bytes : float
    """

    busy: float
    idle: float
    idle_in_waits: float
    idle_before_launch: float
    idle_otherwise: float
    copying: float
    copying_pageable: float
    pageable_copies: int
    pageable_bytes: float

    @property
    def cause(self) -> str:
        """What costs the GPU most time: waiting for data, pageable copies, copies, launch gaps or nothing."""
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
        """How idle, and whether for want of data: "28 % idle and not starved"."""
        starved = "starved" if self.idle_in_waits >= SLIGHT else "not starved"
        return f"{percent(self.idle, 0)} idle and {starved}"

    @property
    def next_step(self) -> str:
        """What to do about what costs most, in one sentence; empty where a trace says no more."""
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
                "use larger batches or torch.compile, and read no value such as loss.item() in each step."
            )
        return ""
