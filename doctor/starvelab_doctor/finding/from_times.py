"""The finding of a loop, from its waits and the times from batch to batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from starvelab.units import Q_

from ..shares import Share
from .job import JobFinding


def finding_of(
    waits: np.ndarray,
    lengths: np.ndarray,
    ordinary: np.ndarray,
    host: Share,
    *,
    stall: Share | None,
    counts: Share,
    first_waits: Sequence[float],
    aside: Sequence[float] = (),
    batch_size: int | None = None,
    **known: Any,  # Any: the other fields of a finding
) -> JobFinding:
    """Return what the waits and the times from batch to batch come to [s].

    `host` is the share that the loop waits, `stall` that of the GPU, and `counts` the one of them that says
    which batches counted. What was no part of a step was `aside`.
    """
    total = float(lengths[ordinary].sum())
    rate = host.counted / total if total else 0.0
    return JobFinding.of(
        host_wait=host.value,
        interval=host.interval,
        stall=stall.value if stall else None,
        stall_interval=stall.interval if stall else None,
        counted=counts.counted,
        batch_rate=Q_(rate, "1/s"),
        step_time=Q_(1e3 * float(np.mean((lengths - waits)[ordinary])), "ms") if host.counted else None,
        throughput=Q_(rate * batch_size, "img/s") if batch_size else None,
        batch_size=batch_size,
        first_waits=tuple(Q_(1e3 * wait, "ms") for wait in first_waits),
        interruptions=counts.interruptions + len(aside),
        interrupted=Q_(counts.interrupted + sum(aside), "s"),
        **known,
    )
