"""How many CPU workers keep accelerators fed, whether a host could run them, and how many it can feed.

Exact arithmetic: 435.9968 workers are 436, and a rounded step time would have said 437.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from ...errors import InputError, MissingValueError
from ...units import (
    Q_,
    Number,
    Quantity,
    check_magnitude,
    exact,
    format_number,
    format_quantity,
    positive_int,
)
from ..cost import Cost, Inputs, exceeds
from ..description import Description
from ..resources import ACCELERATOR, RESOURCES
from ..solver import by_resource, costs
from ..stages import STAGES, DataModel, SingleNodeModel, TransferModel, TransformationModel
from ..stages.single_node import SingleNodeInputs, launch_wait
from ..stages.stage import field_names
from ..stages.transformation import TransformationInputs
from ._crossover import starves_from
from ._point import one_point, overlapping

_InputsT = TypeVar("_InputsT", bound=Inputs)

# Nobody starts as many.
MAX_WORKERS = 10**9
_BUSY = {stage.NAME: stage.BUSY and stage.RESOURCE is ACCELERATOR for stage in STAGES}


@dataclass(frozen=True)
class WorkersNeeded:
    """The answer of `workers_needed`: the smallest number of workers with which preparing is in time.

    `workers` is None if no number is enough. `exact` is how many times one worker's rate is needed: the
    number before rounding up, if workers scale linearly on cores of their own. `batch_size` is None for "at
    any batch size", and `demand` the stored bytes that would then be read per second. `obstacles` say what
    stands in the way (contention, the host's cores, the drive, the link, the accelerator's memory), and it is
    `feasible` if nothing does. `note` says on which samples the rate of a worker was measured, where that was
    on others.
    """

    workers: int | None
    exact: Fraction
    batch_size: int | None
    demand: Quantity
    feasible: bool
    obstacles: tuple[str, ...]
    note: str = ""

    def __str__(self) -> str:
        where = "at any batch size" if self.batch_size is None else f"at batch {self.batch_size}"
        number = "No number of workers" if self.workers is None else counted_workers(self.workers)
        verb = "is" if self.workers in (None, 1) else "are"
        verdict = f"{number} {verb} enough {where}."
        if self.workers is not None and not self.feasible:
            verdict = f"{number} would be enough {where}, but that meets other limits."
        return " ".join(filter(None, (verdict, *self.obstacles, self.note)))


def workers_needed(pipeline: Description, *, batch_size: int | str | None = None) -> WorkersNeeded:
    """Count the workers that remove the CPU stall, ``b S / (w g(b))`` where each has its core.

    Parameters
    ----------
    batch_size : int or "any", optional
        That of the pipeline unless given; "any" asks for enough at every batch size.

    Raises
    ------
    InputError
        If the pipeline gives the CPU's supply as a whole, so that there are no workers to count.

    Notes
    -----
    Several accelerators are fed by one set of workers, and the answer is for all of them. Feasibility
    looks at the pipeline's drive and link, or at those of the accelerator's host where the pipeline does
    not model them, and at the pipeline's cores, or the host's where the catalogue knows them.

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline, Samples
    >>> scan = Pipeline(
    ...     model=Models.ResNet50, hardware=Hardware.Cloud.A100, dataset=Samples(size="5 MB")
    ... )
    >>> scan.workers_needed(batch_size=256).workers
    436
    """
    if isinstance(pipeline.workers, Quantity):
        raise InputError(
            "workers_needed counts workers, got a pipeline that gives what all of them supply together. "
            "Pass workers=8, or workers=Workers(8, rate=...)."
        )
    any_batch = isinstance(batch_size, str) and batch_size == "any"
    if batch_size is not None and not any_batch:
        pipeline = pipeline.replace(batch_size=batch_size)
    one_point(pipeline, "workers_needed", whatever=("workers", "batch_size") if any_batch else ("workers",))
    pipeline = pipeline.replace(workers=1)
    overlapping(pipeline, "workers_needed")
    own = pipeline.resource_costs(exact=True)[ACCELERATOR.name]
    batch = None if any_batch else positive_int(pipeline.batch_size, "batch_size")
    own_seconds = own.limit if batch is None else Fraction(own.at(batch))

    def seconds(workers: int) -> Fraction:
        """Of the CPU, for the same batch, or for each sample of one without end."""
        cost = cpu_cost(pipeline, workers)
        return Fraction(cost.limit if batch is None else cost.at(batch))

    def enough(workers: int) -> bool:
        if batch is None:
            return starves_from(cpu_cost(pipeline, workers), own) is None
        return seconds(workers) <= own_seconds

    ratio = seconds(1) / own_seconds
    workers = min_workers(enough)
    rate = float((batch or 1) / own_seconds)
    demand = Q_(pipeline.hardware.count * rate * pipeline.size.m_as("GB"), "GB/s")
    found = [] if workers else [_too_few_cores(pipeline, seconds(1) / seconds(MAX_WORKERS), ratio)]
    found += _obstacles(pipeline, workers, rate)
    if batch is not None and (reason := pipeline.solve().infeasible_reason):
        found.append(reason)
    return WorkersNeeded(workers, ratio, batch, demand, not found, tuple(found), pipeline.foreign_rate)


def accelerators_fed(pipeline: Description, utilization: float = 0.9) -> int | None:
    """The largest number of accelerators that are busy for that share of each step.

    Parameters
    ----------
    utilization : float
        The busy share that is asked for, above 0 and up to 1.

    Returns
    -------
    int or None
        0 if not even one is busy enough, or has memory enough for its step; None if nothing that they
        share limits their number.

    Notes
    -----
    Exact: a shared resource takes ``n`` times as long for ``n`` accelerators, so ``n`` of them are busy
    for a share ``u`` as long as ``n supply <= own / u``. Where the pipeline names no cores, those of the
    host of one accelerator are meant, however many there are.

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline
    >>> Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=128).accelerators_fed()
    3
    """
    one_point(pipeline, "accelerators_fed", whatever=("hardware.count",))
    overlapping(pipeline, "accelerators_fed")
    share = check_magnitude(utilization, "utilization")
    if share > 1:
        raise InputError(f"utilization must be a share up to 1, got {utilization}. Write 0.9 for 90 %.")
    one = pipeline.replace({"hardware.count": 1})
    batch = positive_int(one.batch_size, "batch_size")
    if not one.solve().feasible:
        return 0
    stages = costs(one.inputs, 1, exact=True)
    times = {name: Fraction(cost.at(batch)) for name, cost in by_resource(stages).items()}
    busy = sum(Fraction(cost.at(batch)) for name, cost in stages.items() if _BUSY[name])
    busy -= Fraction(float(launching(one)))
    longest = busy / exact(share, "utilization")
    own = {name: time for name, time in times.items() if not RESOURCES[name].shared}
    if max(own.values()) > longest or times[ACCELERATOR.name] > longest:
        return 0
    shared = [time for name, time in times.items() if RESOURCES[name].shared and time > 0]
    return min((int(longest / time) for time in shared), default=None)


def cpu_cost(pipeline: Description, workers: int) -> Cost:
    """What preparing the batches of a step would cost the CPU with that many workers, exactly."""
    name = TransformationModel.NAME
    inputs = dataclasses.replace(pipeline.inputs[name], workers=workers)  # type: ignore[call-arg]
    return costs({name: inputs}, pipeline.numbers["accelerators"], exact=True)[name]


def counted_workers(workers: int) -> str:
    """A number of workers, in words that agree with it."""
    return "1 worker" if workers == 1 else f"{workers} workers"


def launching(pipeline: Description) -> Number:
    """How long the accelerator waits for launches in a step [s]."""
    model = pipeline.inputs[SingleNodeModel.NAME]
    assert isinstance(model, SingleNodeInputs)
    return launch_wait(model, pipeline.numbers["batch_size"])


def min_workers(enough: Callable[[int], bool]) -> int | None:
    """The smallest number of workers that is enough, or None if no number is.

    One more worker never hurts, so doubling and then halving finds it.
    """
    if not enough(MAX_WORKERS):
        return None
    most = 1
    while not enough(most):
        most *= 2
    least = most // 2 + 1
    return least + bisect_left(range(least, most), True, key=enough)


def _too_few_cores(pipeline: Description, most: Fraction, wanted: Fraction) -> str:
    """Why no number of workers is enough: `most` is how many times one's rate they reach together."""
    who, more = "Workers get in each other's way: together they", ""
    inputs = pipeline.inputs[TransformationModel.NAME]
    cores = inputs.cores if isinstance(inputs, TransformationInputs) else None
    if cores is not None:
        unlimited = pipeline.replace({"workers.cores": MAX_WORKERS})
        anywhere = Fraction(cpu_cost(unlimited, 1).limit) / Fraction(cpu_cost(unlimited, MAX_WORKERS).limit)
        if anywhere < wanted:  # as threads of one process, which share a lock
            cores, most, who = None, anywhere, "Workers get in each other's way: on any number of cores they"
            if pipeline.numbers["loader"] == "threads":
                who = (
                    "Carried on from one and two threads on two cores, under a Python with its global lock, "
                    "threads would"
                )
                more = " A free-threaded build of Python has no such lock, and was not measured."
    if cores is not None and pipeline.numbers["cores"] is not None:
        who = f"However many workers share the {cores} cores, together they"
    elif cores is not None and (hardware := pipeline.hardware.of) is not None:
        each = hardware.number("host_cores")
        who = f"A typical host has {each} cores for each {hardware.name}: together its workers"
    return (
        f"{who} reach at most {format_number(most, 3)} times what one does, and it would take "
        f"{format_number(wanted, 3)} times.{more}"
    )


def _obstacles(pipeline: Description, workers: int | None, rate: float) -> list[str]:
    """What stands in the way of preparing, reading and copying that many samples a second for each device."""
    a, hardware, count = pipeline.assumptions, pipeline.hardware.of, pipeline.hardware.count
    sizes, obstacles = pipeline.sizes, []
    cores = None
    # Where the law of scaling has counted the cores, they are no obstacle any more.
    if hardware is not None and pipeline.numbers["cores"] is None and not a.numbers["host_cores"]:
        cores = hardware.number("host_cores")
    if hardware is not None and workers is not None and cores is not None and workers > count * cores:
        obstacles.append(f"A typical host has {cores} physical cores for each {hardware.name}.")
    storage = hardware if pipeline.numbers["storage"] is None else pipeline.numbers["storage"]
    numbers = {**pipeline.numbers, **sizes, "storage": storage}
    reads = {name: numbers[name] for name in field_names(DataModel)}
    data = _resolved(lambda: DataModel(a).resolve(**reads))
    reading = 0.0 if data is None else DataModel.cost(data).limit
    if exceeds(reading * count * rate, 1):
        demand, supply = _bandwidths(sizes["stored"] * count * rate, sizes["stored"] / reading)
        alone = pipeline.numbers["cached_fraction"] is None
        source = "the drive gives" if alone else "the drive and the cache give"
        obstacles.append(f"Reading would take {demand}, and {source} {supply}.")
    link = hardware if pipeline.link is None else pipeline.numbers["link"]
    sent = _resolved(
        lambda: TransferModel(a).resolve(
            transferred=sizes["transferred"], link=link, pinned=pipeline.numbers["pinned"], copy_overlaps=True
        )
    )
    copying = 0.0 if sent is None else TransferModel.cost(sent).limit
    if exceeds(copying * rate, 1):
        demand, supply = _bandwidths(sizes["transferred"] * rate, sizes["transferred"] / copying)
        obstacles.append(f"Copying would take {demand}, and the link gives {supply}.")
    return obstacles


def _resolved(read: Callable[[], _InputsT | None]) -> _InputsT | None:
    """The inputs of a stage, or None where the catalogue lacks a value: what is not known is no obstacle."""
    try:
        return read()
    except MissingValueError:
        return None


def _bandwidths(*bytes_per_second: Number) -> list[str]:
    return spoken_bandwidths(*(Q_(float(rate) / 1e9, "GB/s") for rate in bytes_per_second))


def spoken_bandwidths(*bandwidths: Quantity) -> list[str]:
    """Bandwidths that are compared, in one unit: GB/s, or MB/s where one of them is small."""
    unit = "GB/s" if min(one.m_as("GB/s") for one in bandwidths) >= 0.1 else "MB/s"
    return [format_quantity(one.to(unit)) for one in bandwidths]
