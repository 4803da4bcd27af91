"""Running a pipeline for a while, and measuring it as it is."""

from __future__ import annotations

import time
from dataclasses import replace

from ..units import Q_, Quantity, Unchecked, as_quantity, format_quantity, positive
from .bars import time_bar
from .given import Given, to_pipeline
from .measurement import Measurement, summarize
from .protocols import Pipeline
from .quality import LoadMeter
from .session import Session
from .simulated import SimulatedClock, clock_for

MIN_ROUNDS = 4  # batches of each worker, however slow they are


def run(
    pipe: Given,
    *,
    seconds: Quantity | str = "3 s",
    clock: SimulatedClock | None = None,
    progress: bool = True,
    **dataset: Unchecked,
) -> Measurement:
    """Let a pipeline feed its accelerator, and measure both.

    Parameters
    ----------
    pipe : InputPipeline, torch DataLoader or Dataset
        A loader of your own keeps its settings; a dataset, also an IterableDataset, is run through PyTorch's
        DataLoader.
    seconds : quantity [time]
        How long; slow pipelines take longer, until each worker has prepared a few batches.
    clock : SimulatedClock, optional
        Simulate it instead of running it; so, too, where the variable STARVELAB_CLOCK says "simulated".
    progress : bool
        Say how long it takes, and show a bar.
    **dataset
        For a loader or a dataset: the fields of `DatasetPipeline`, such as batch_size, workers, and
        `step_time` or `step`, the function that trains on a batch. A loader without either is measured alone:
        then the measurement says what it delivers, and nothing of an accelerator.

    Raises
    ------
    InputError, UnknownNameError, WorkerError
    """
    wanted = positive(as_quantity(seconds, "s", "seconds"), "s", "seconds")
    pipe, step_known = to_pipeline(pipe, dataset, function="run", alone=True)
    clock = clock or clock_for(pipe, announced=progress)
    if clock is not None:
        return replace(clock.measurement(pipe, seconds=wanted), step_known=step_known)
    if progress:
        print(f"Running {describe(pipe)} for about {format_quantity(Q_(wanted, 's'))}, and its start-up.")
    with Session(pipe) as session, time_bar(wanted, shown=progress) as bar:
        session.warm_up()
        meter, start = LoadMeter(), time.monotonic()
        least = MIN_ROUNDS * session.period_of_workers + 1
        while (elapsed := time.monotonic() - start) < wanted or len(session.passed) < least:
            session.step()
            bar.update(min(elapsed, wanted) - bar.n)
        trace, background_load = session.trace(), meter.background_load()
    found = summarize(pipe, trace, session.waits(), session.stage_seconds(), background_load)
    return replace(found, step_known=step_known)


def describe(pipe: Pipeline) -> str:
    """What runs, for a sentence."""
    workers = pipe.worker_count
    how = (
        f"with {workers} worker{'s' if workers > 1 else ''} ({pipe.loader})"
        if workers
        else "in the training loop itself"
    )
    return f"{getattr(pipe.samples, 'label', f'{pipe.samples.name} items')} {how}"
