"""How many CPU workers keep the accelerator fed, and whether the host could run and feed them.

Exact arithmetic: 435.9968 workers are 436, and a rounded step time would have said 437.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf
from typing import Any

from ..errors import InputError, MissingFigureError
from ..stages import TransformationModel
from ..stages.data import storage_bandwidth
from ..stages.transfer import link_bandwidth
from ..units import Q_, exact, format_quantity, whole


@dataclass(frozen=True)
class WorkersNeeded:
    """The answer of `workers_needed`.

    Attributes
    ----------
    workers : int or None
        The smallest number with which preparing takes no longer than the accelerator; None if no number does.
    exact : Fraction
        How many times one worker's rate is needed: the same number before rounding up if workers scale linearly.
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
        count = "No number of workers is" if self.workers is None else f"{self.workers} workers are"
        return " ".join((f"{count} enough {where}.", *self.obstacles))


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
        raise InputError("workers_needed counts workers, got a pipeline with cpu_throughput. Give it worker_rate instead.")
    a = pipeline.assumptions
    own = pipeline.resource_costs(exact)["accelerator"]
    one = TransformationModel(a).cost(sample_size=pipeline.size, workers=1, worker_rate=pipeline.worker_rate, figure=exact)
    if batch_size == "any":
        batch, seconds_per_sample = None, own.limit
    else:
        batch = whole(pipeline.batch_size if batch_size is None else batch_size, "batch_size")
        seconds_per_sample = Fraction(own.at(batch)) / batch
    ratio = Fraction(one.limit) / seconds_per_sample
    workers = _smallest(ratio, a)
    demand = Q_(float(1 / seconds_per_sample) * pipeline.size.m_as("GB"), "GB/s")
    obstacles = _obstacles(pipeline, workers, demand, float(1 / seconds_per_sample))
    return WorkersNeeded(workers, ratio, batch, demand, not obstacles, obstacles)


def _smallest(ratio: Fraction, assumptions: Any) -> int | None:
    """The smallest number of workers whose speed-up reaches `ratio`."""
    if assumptions.contention == 0 and assumptions.coherency == 0:
        return max(1, ceil(ratio))
    limit = assumptions.peak_workers
    if limit == inf:  # contention alone: the speed-up tends to 1 / contention
        if ratio * exact(assumptions.contention, None, "contention") >= 1:
            return None
        limit = ceil(ratio / (1 - ratio * exact(assumptions.contention, None, "contention"))) + 1
    return next((n for n in range(1, limit + 1) if assumptions.speedup(n, exact) >= ratio), None)


def _obstacles(pipeline: Any, workers: int | None, demand: Any, rate: float) -> tuple[str, ...]:
    hardware, found = pipeline.hardware, []
    cores = hardware.get("host_cores")
    if workers is None:
        peak = pipeline.assumptions.peak_workers
        found.append(f"Past {peak} workers more of them slow each other down." if peak < inf else "Workers get in each other's way.")
    elif cores is not None and workers > cores:
        found.append(f"A typical host gives each {hardware.name} {cores} physical cores.")
    drive = _known(lambda: storage_bandwidth(storage=pipeline.storage or hardware))
    if drive is not None and demand > drive:
        found.append(f"Reading would take {format_quantity(demand)}, and the drive gives {format_quantity(drive)}.")
    figure = pipeline.assumptions.link_figure
    link = _known(lambda: link_bandwidth(pipeline.link or hardware, pinned=pipeline.pinned, figure=figure))
    sent = Q_(rate, "1/s") * (pipeline.size if pipeline.sent_size is None else pipeline.sent_size)
    if link is not None and sent > link:
        found.append(f"The copies would take {format_quantity(sent.to('GB/s'))}, and the link gives {format_quantity(link)}.")
    return tuple(found)


def _known(read: Any) -> Any:
    """A figure, or None where the catalogue has none: what is not known is no obstacle."""
    try:
        return read()
    except MissingFigureError:
        return None
