"""How many CPU workers keep the accelerator fed, and whether the host could run and feed them.

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
from ...units import Q_, Number, Quantity, format_number, positive_int
from ..cost import Cost, exceeds
from ..description import Description
from ..inputs import Inputs
from ..resources import ACCELERATOR
from ..solver import costs
from ..stages import DataModel, TransferModel, TransformationModel
from ..stages.stage import field_names
from ..stages.transformation import TransformationInputs
from ._crossover import starves_from
from ._point import one_point, overlapping
from ._spoken import spoken_bandwidths

_InputsT = TypeVar("_InputsT", bound=Inputs)

# Nobody starts as many.
MAX_WORKERS = 10**9


@dataclass(frozen=True)
class WorkersNeeded:
    """The answer of `workers_needed`.

    Attributes
    ----------
    workers : int or None
        The smallest number with which preparing takes no longer than the accelerator; None if no number does.
    exact : Fraction
        How many times one worker's rate is needed; the number of workers before rounding up, if they scale
        linearly on cores of their own.
    batch_size : int or None
        None for "at any batch size".
    demand : quantity [data/time]
        Stored bytes that would then be read per second.
    feasible : bool
    obstacles : tuple of str
        What stands in the way: contention, the host's cores, the drive, the link, the accelerator's memory.
    note : str
        On which samples the rate of a worker was measured, where that was on others.
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
        if self.workers is None:
            verdict = f"No number of workers is enough {where}."
        elif self.feasible:
            verdict = (
                f"{counted_workers(self.workers)} {'is' if self.workers == 1 else 'are'} enough {where}."
            )
        else:
            verdict = f"{counted_workers(self.workers)} would be enough {where}, but that meets other limits."
        return " ".join(filter(None, (verdict, *self.obstacles, self.note)))


def workers_needed(pipeline: Description, *, batch_size: int | str | None = None) -> WorkersNeeded:
    """Count the workers that remove the CPU stall."""
    if isinstance(pipeline.workers, Quantity):
        raise InputError(
            "workers_needed counts workers, got a pipeline that gives what all of them supply together. "
            "Pass workers=8, or workers=Workers(8, rate=...)."
        )
    any_batch = isinstance(batch_size, str) and batch_size == "any"
    if batch_size is not None and not any_batch:
        pipeline = pipeline.replace(batch_size=batch_size)
    one_point(pipeline, "workers_needed", whatever=("workers", "batch_size") if any_batch else ("workers",))
    overlapping(pipeline, "workers_needed")
    pipeline = pipeline.replace(workers=1)
    own = pipeline.resource_costs(exact=True)[ACCELERATOR.name]
    if any_batch:
        batch, own_seconds = None, own.limit
        enough = _always_in_time(pipeline, own)
    else:
        batch = positive_int(pipeline.batch_size, "batch_size")
        own_seconds = Fraction(own.at(batch))
        enough = in_time(pipeline, batch, own_seconds)

    def seconds(workers: int) -> Fraction:
        """Of the CPU, for the same batch, or for each sample of one without end."""
        cost = cpu_cost(pipeline, workers)
        return Fraction(cost.limit if any_batch else cost.at(batch))

    ratio = seconds(1) / own_seconds
    workers = min_workers(enough)
    rate = float((batch or 1) / own_seconds)
    demand = Q_(pipeline.hardware.count * rate * pipeline.size.m_as("GB"), "GB/s")
    obstacles = []
    if workers is None:
        obstacles.append(_too_few_cores(pipeline, seconds(1) / seconds(MAX_WORKERS), ratio))
    obstacles += _obstacles(pipeline, workers, rate)
    if batch is not None and (reason := pipeline.solve().infeasible_reason):
        obstacles.append(reason)
    return WorkersNeeded(
        workers, ratio, batch, demand, not obstacles, tuple(obstacles), pipeline.foreign_rate
    )


def cpu_cost(pipeline: Description, workers: int) -> Cost:
    """What preparing the batches of a step would cost the CPU with that many workers, exactly."""
    inputs = dataclasses.replace(pipeline.inputs[TransformationModel.NAME], workers=workers)  # type: ignore[call-arg]
    return costs({TransformationModel.NAME: inputs}, pipeline.numbers["accelerators"], exact=True)[
        TransformationModel.NAME
    ]


def counted_workers(workers: int) -> str:
    """A number of workers, in words that agree with it."""
    return "1 worker" if workers == 1 else f"{workers} workers"


def in_time(pipeline: Description, batch: int, seconds: Fraction) -> Callable[[int], bool]:
    """Whether that many workers prepare a batch in so many seconds: a question for `min_workers`."""
    return lambda workers: cpu_cost(pipeline, workers).at(batch) <= seconds


def _always_in_time(pipeline: Description, own: Cost) -> Callable[[int], bool]:
    return lambda workers: starves_from(cpu_cost(pipeline, workers), own) is None


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
        source = (
            "the drive gives"
            if pipeline.numbers["cached_fraction"] is None
            else "the drive and the cache give"
        )
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
