"""Run a pipeline for a while, and say what came out.

It measures one pipeline as it is; which stage is to blame is `diagnose`'s question.
"""

from __future__ import annotations

import platform
import time
from typing import Any

from ..host import usable_cores
from ..units import Q_, as_quantity, format_quantity, positive
from .bars import time_bar
from .quality import LoadMeter
from .record import Record
from .results import summarize
from .session import Session
from .simulated import clock_for

FEWEST_ROUNDS = 4  # batches of each worker, however slow they are


def run(pipe: Any, *, seconds: Any = "3 s", clock: Any = None, progress: bool = True) -> Record:
    """Let a pipeline feed its accelerator, and measure both.

    Parameters
    ----------
    pipe : InputPipeline
    seconds : quantity [time]
        How long; slow pipelines take longer, until each worker has made a few batches.
    clock : SimulatedClock, optional
        Work it out instead of running it; so, too, where the variable STARVELAB_CLOCK says "simulated".
    progress : bool
        Say how long it takes, and show a bar.

    Raises
    ------
    InputError, WorkerError
    """
    wanted = positive(as_quantity(seconds, "s", "seconds"), "s", "seconds")
    clock = clock or clock_for(pipe, announced=progress)
    if clock is not None:
        return clock.record(pipe, seconds=wanted)
    if progress:
        print(f"Running {description(pipe)} for about {format_quantity(Q_(wanted, 's'))}, and its start-up.")
    with Session(pipe) as session, time_bar(wanted, shown=progress) as bar:
        session.warm_up()
        meter, start = LoadMeter(), time.monotonic()
        least = FEWEST_ROUNDS * session.period_of_workers + 1
        while (elapsed := time.monotonic() - start) < wanted or len(session.passed) < least:
            session.step()
            bar.update(min(elapsed, wanted) - bar.n)
        trace = session.trace()
        load, facts = meter.foreign_load(), session.device.facts()
    return summarize(pipe, trace, session.waits(), session.stage_seconds(), load, machine() | facts)


def description(pipe: Any) -> str:
    """What runs, for a sentence."""
    how = (
        "in the training loop itself"
        if pipe.worker_count == 0
        else f"with {pipe.workers} worker{'s' if pipe.workers > 1 else ''} ({pipe.loader})"
    )
    return f"{pipe.samples.name} images {how}"


def machine() -> dict[str, Any]:
    """Where it ran."""
    return {
        "cores": usable_cores(),
        "system": platform.system(),
        "processor": platform.machine(),
        "python": platform.python_version(),
    }
