"""Calibration: what one worker takes on this machine, and how several workers get in each other's way."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from ..host import usable_cores
from ..model.description import Description
from ..units import Q_, Quantity, as_quantity, check_magnitude, positive
from .session import run
from .setup import NO_STEP, setup_of

# More workers would say no more about contention, and take their time to start.
MAX_WORKERS = 8
AnyPipeline = TypeVar("AnyPipeline", bound=Description)


def calibrate(
    pipeline: AnyPipeline, *, seconds: Quantity | str, contention: float | None, progress: bool
) -> AnyPipeline:
    """Return the pipeline with what one worker takes here, and how far several of them crowd each other.

    Whole batches are prepared in a worker of the pipeline's own kind, since single samples in the training
    loop take longer to read. Drive, link and accelerator are left out: their times are known.
    """
    positive(as_quantity(seconds, "s", "seconds"), "s", "seconds")
    if contention is not None:
        check_magnitude(contention, "contention", zero=True)
    bare = setup_of(pipeline).replace(storage=None, link=None, device=NO_STEP)
    one = run(bare.replace(workers=min(bare.workers, 1)), seconds=seconds, progress=progress)
    batch_times = one.trace.prepared - one.trace.prepare_start
    cores = usable_cores(physical=True)
    if contention is None:
        contention = 0.0
        if bare.workers and cores > 1:
            many = min(cores, MAX_WORKERS)
            together = run(bare.replace(workers=many), seconds=seconds, progress=progress)
            speedup = float((together.throughput / one.throughput).m_as(""))
            contention = float(np.clip((many / speedup - 1) / (many - 1), 0, 1))
    handover = Q_(max(0.0, one.period.m_as("ms") - float(np.mean(batch_times))), "ms")
    transfer = Q_(float(bare.batch_bytes / bare.batch_size), "B")
    # Of a dataset nobody knows what is stored; only a drive would ask, and it reads by itself.
    stored = getattr(bare.samples, "mean_size", transfer)
    # Workers of a run read their samples themselves.
    reads = {} if pipeline.storage is None else {"storage.read_ahead": False}
    return pipeline.replace(
        {
            **reads,
            "dataset.size": Q_(max(float(stored.m_as("B")), 1.0), "B"),
            "dataset.cpu_time": Q_(float(np.median(batch_times)) / bare.batch_size, "ms"),
            "dataset.transfer": transfer,
            "dataset.jitter.spread": float(np.std(batch_times) / np.mean(batch_times)),
            "workers.cores": cores,
            "workers.handover.worker": handover,
            "assumptions": pipeline.assumptions.replace(
                name="this machine", contention=contention, coherency=0, crowding=0, second_thread=0
            ),
        }
    )
