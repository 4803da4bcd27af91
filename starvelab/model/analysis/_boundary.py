"""What an epoch takes beyond its steps: nothing is prepared when it begins, and workers may have to start."""

from __future__ import annotations

from math import ceil

from ..description import Description
from ..resources import ACCELERATOR, CPU, DECODER, LINK, STORAGE
from ..step import Step


def boundary(pipeline: Description, step: Step, steps: float, start_up: float) -> float:
    """How much longer an epoch of so many steps takes than these [s].

    Parameters
    ----------
    pipeline : Pipeline
    step : Step
        Of that pipeline, at one point.
    steps : float
        Of an epoch.
    start_up : float
        What workers need before they can begin [s]; 0 for workers that are there.

    Notes
    -----
    The loop is one step ahead of the accelerator, and asks for an epoch when it has the last batch of the one
    before. Each resource needs its time for all steps, and waits for what comes before its first one or after
    its last one. With a worker's time ``T`` for a batch, workers ``W`` of each accelerator and times ``s``,
    ``r`` and ``c`` of a step, a read and a copy, ``n`` steps take the longest of::

        n s + max(0, start_up + r + T + c - s)
        start_up + r + ceil(n / W) T + what the loop needs for the last round
        n r + start_up + T
        n c + max(0, start_up + r + T + s - c)

    A decoder behind the link adds to what the first batch passes, and a row like that of the link.

    The batches of a round are there together, and the loop receives them one step after another: of ``k`` in
    the last round that is ``c + s + (k - 2) max(s, c)``, and nothing of a single one.

    The threads of a pool prepare one batch together: then W is 1. So it is where only the CPU's supply as a
    whole is known.
    """
    if not step.overlap:  # nothing is prepared ahead of any step
        return start_up
    seconds = {name: float(time.m_as("s")) for name, time in step.resource_times.items()}
    own, cpu = seconds[ACCELERATOR.name], seconds[CPU.name]
    read = seconds.get(STORAGE.name, 0.0)
    copy, decode = seconds.get(LINK.name, 0.0), seconds.get(DECODER.name, 0.0)
    workers = _workers(pipeline)
    if steps < workers:  # the others have nothing to do, and take nobody's core
        workers = float(ceil(steps - 1e-9))
        fewer = pipeline.solve(workers=int(workers) * step.accelerators)
        cpu = float(fewer.resource_times[CPU.name].m_as("s"))
    batch = workers * cpu
    # A share of a round that is left by rounding is none.
    rounds = ceil(steps / workers - 1e-9)
    last = steps - (rounds - 1) * workers
    receiving = copy + decode + own + (last - 2) * max(own, copy, decode) if last >= 2 else 0.0
    through = start_up + read + batch + copy + decode + own
    takes = (
        steps * own + max(0.0, through - 2 * own),
        start_up + read + rounds * batch + receiving,
        steps * read + start_up + batch,
        steps * copy + max(0.0, through - 2 * copy),
        steps * decode + max(0.0, through - 2 * decode),
    )
    return max(takes) - steps * float(step.step_time.m_as("s"))


def _workers(pipeline: Description) -> float:
    """How many batches are prepared side by side for each accelerator."""
    numbers = pipeline.numbers
    if numbers["cpu_throughput"] is not None or numbers["loader"] == "pool":
        return 1.0
    return max(1.0, float(numbers["workers"] / numbers["accelerators"]))
