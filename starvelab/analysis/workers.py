"""How many CPU workers keep the accelerator fed, and whether the host could run and feed them.

Exact arithmetic: 435.9968 workers are 436, and a rounded step time would have said 437.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf
from typing import Any

from ..errors import InputError, MissingFigureError
from ..stages import DataModel, TransferModel
from ..stages.cost import longer
from ..units import Q_, exact, format_number, format_quantity, whole
from .point import one_point, overlapping


@dataclass(frozen=True)
class WorkersNeeded:
    """The answer of `workers_needed`.

    Attributes
    ----------
    workers : int or None
        The smallest number with which preparing takes no longer than the accelerator; None if no number does.
    exact : Fraction
        How many times one worker's rate is needed; the number of workers before rounding up, if they scale
        linearly.
    batch_size : int or None
        None for "at any batch size".
    demand : quantity [data/time]
        Stored bytes that would then be read per second.
    feasible : bool
    obstacles : tuple of str
        What stands in the way: the host's cores, the drive, the link.
    """

    workers: int | None
    exact: Fraction
    batch_size: int | None
    demand: Any
    feasible: bool
    obstacles: tuple[str, ...]

    def __str__(self) -> str:
        where = "at any batch size" if self.batch_size is None else f"at batch {self.batch_size}"
        if self.workers is None:
            verdict = f"No number of workers is enough {where}."
        elif self.feasible:
            verdict = f"{self.workers} workers are enough {where}."
        else:
            verdict = f"{self.workers} workers would be enough {where}, but that meets other limits."
        return " ".join((verdict, *self.obstacles))


def workers_needed(pipeline: Any, *, batch_size: int | str | None = None) -> WorkersNeeded:
    """Count the workers that remove the CPU stall: ``n >= b S / (w g(b))`` for linear scaling.

    Parameters
    ----------
    pipeline : Pipeline
        Its number of workers does not matter.
    batch_size : int or "any", optional
        That of the pipeline unless given; "any" asks for enough at every batch size.

    Raises
    ------
    InputError
        If the pipeline gives the CPU's supply as a whole, so that there are no workers to count.

    Notes
    -----
    Feasibility looks at the pipeline's drive and link, or at those of the accelerator's host where the
    pipeline does not model them, and at the host's cores where the catalogue knows them.

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline, Q_
    >>> scan = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, sample_size=Q_("5 MB"))
    >>> workers_needed(scan, batch_size=256).workers
    436
    """
    if pipeline.cpu_throughput is not None:
        raise InputError(
            "workers_needed counts workers, got a pipeline with cpu_throughput. "
            "Pass cpu_throughput=None, and worker_rate if need be."
        )
    any_batch = isinstance(batch_size, str) and batch_size == "any"
    if batch_size is not None and not any_batch:
        pipeline = pipeline.but(batch_size=batch_size)
    one_point(pipeline, "workers_needed", whatever=("workers", "batch_size") if any_batch else ("workers",))
    overlapping(pipeline, "workers_needed")
    costs = pipeline.but(workers=1).resource_costs(exact)
    one, own = costs["CPU"], costs["accelerator"]
    if any_batch:
        batch, seconds_per_sample = None, own.limit
    else:
        batch = whole(pipeline.batch_size, "batch_size")
        seconds_per_sample = Fraction(own.at(batch)) / batch
    ratio = Fraction(one.limit) / seconds_per_sample
    workers = fewest_workers(ratio, pipeline.assumptions)
    rate = float(1 / seconds_per_sample)
    demand = Q_(rate * pipeline.size.m_as("GB"), "GB/s")
    obstacles = _obstacles(pipeline, workers, ratio, rate)
    return WorkersNeeded(workers, ratio, batch, demand, not obstacles, obstacles)


def fewest_workers(speedup: Fraction, assumptions: Any) -> int | None:
    """The smallest number of workers that reaches a speed-up over one of them, or None if no number does."""
    if speedup <= 1:
        return 1
    most = assumptions.peak_workers
    if most == inf:
        # Contention alone: n / (1 + contention (n - 1)) tends to 1 / contention. Solved for n:
        contention = exact(assumptions.contention, None, "contention", zero=True)
        if speedup * contention >= 1:
            return None
        return ceil(speedup * (1 - contention) / (1 - speedup * contention))
    # It rises up to `most`, so halving finds the first that is enough.
    found = 1 + bisect_left(range(1, most + 1), speedup, key=lambda n: assumptions.speedup(n, exact))
    return found if found <= most else None


def _obstacles(pipeline: Any, workers: int | None, speedup: Fraction, rate: float) -> tuple[str, ...]:
    """What stands in the way of preparing, reading and copying that many samples a second."""
    a, hardware, found = pipeline.assumptions, pipeline.hardware, []
    cores = hardware.get("host_cores")
    if workers is None:
        most = 1 / a.contention if a.peak_workers == inf else a.speedup(a.peak_workers)
        found.append(
            f"Workers get in each other's way: together they reach at most {format_number(most, 3)} times "
            f"what one does, and it would take {format_number(speedup, 3)} times."
        )
    elif cores is not None and workers > cores:
        found.append(f"A typical host has {cores} physical cores for each {hardware.name}.")
    drive = hardware if pipeline.storage is None else pipeline.storage
    reading = _known(lambda: DataModel(a).cost(sample_size=pipeline.size, source=drive).limit)
    if reading is not None and longer(reading * rate, 1):
        demand, supply = (Q_(pipeline.size.m_as("GB") * x, "GB/s") for x in (rate, 1 / reading))
        found.append(
            f"Reading would take {format_quantity(demand)}, and the drive gives {format_quantity(supply)}."
        )
    way = hardware if pipeline.link is None else pipeline.link
    copying = _known(
        lambda: TransferModel(a).cost(sent_size=pipeline.sent, link=way, pinned=pipeline.pinned).limit
    )
    if copying is not None and longer(copying * rate, 1):
        demand, supply = (Q_(pipeline.sent.m_as("GB") * x, "GB/s") for x in (rate, 1 / copying))
        found.append(
            f"Copying would take {format_quantity(demand)}, and the link gives {format_quantity(supply)}."
        )
    return tuple(found)


def _known(read: Any) -> Any:
    """A figure, or None where the catalogue has none: what is not known is no obstacle."""
    try:
        return read()
    except MissingFigureError:
        return None
