"""With how many workers preparing is in time, and what else stands in the way.

Exact arithmetic: 435.9968 workers are 436, and a rounded step time would have said 437.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from ...errors import InputError, MissingValueError
from ...tables import TableRepr, cell, count_of
from ...units import Q_, Quantity, Unchecked, format_number, format_quantity, positive_int
from ..costs import Cost, exceeds
from ..description import Description, check_asked
from ..resources import ACCELERATOR, CPU, STORAGE, Labels, capitalized
from ..solver import BatchTimes, by_resource, costs, inputs_of
from ..stages import DataModel, TransferModel, TransformationModel
from ._crossover import starves_from
from ._remarks import foreign_rate

# Nobody starts as many.
MAX_WORKERS = 10**9


@dataclass(frozen=True, repr=False)
class WorkersNeeded(TableRepr):
    """The answer of `workers_needed`: the smallest number of workers with which preparing is in time.

    `workers` is None if no number is enough. `exact` is how many times one worker's rate is needed: the
    number before rounding up, if workers scale linearly on cores of their own. `batch_size` is None for "at
    any batch size", and `demand` the stored bytes that would then be read per second. `obstacles` say what
    stands in the way (contention, the host's cores, any other resource, the accelerator's memory), and it is
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

    headers = ("figure", "value")

    def __str__(self) -> str:
        return " ".join(filter(None, (self.summary, *self.obstacles, self.note)))

    @property
    def rows(self) -> list[list[Unchecked]]:
        """The numbers, and what stands in the way."""
        return [
            ["workers", self.workers],
            ["times one worker's rate", float(self.exact)],
            ["batch size", "any" if self.batch_size is None else self.batch_size],
            ["read each second", self.demand],
            ["feasible", self.feasible],
            *(["obstacle", obstacle] for obstacle in self.obstacles),
        ]

    @property
    def summary(self) -> str:
        """Return the verdict in one line."""
        where = "at any batch size" if self.batch_size is None else f"at batch {self.batch_size}"
        number = "No number of workers" if self.workers is None else count_of(self.workers, "worker")
        verdict = f"{number} {'is' if self.workers in (None, 1) else 'are'} enough {where}."
        if self.workers is not None and not self.feasible:
            verdict = f"{number} would be enough {where}, but that meets other limits."
        return verdict


def workers_needed(pipeline: Description, *, batch_size: int | str | None = None) -> WorkersNeeded:
    """Count the workers that remove the CPU stall, ``b S / (w g(b))`` where each has its core.

    Parameters
    ----------
    batch_size : int or "any", optional
        By default that of the pipeline; "any" asks for enough workers at every batch size.

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
    pipeline = pipeline.replace(workers=1)
    whatever = ("batch_size",) if any_batch else ()
    check_asked(pipeline, "workers_needed", whatever=whatever, overlapping=True)
    stages = pipeline.costs(exact=True)
    supplies = by_resource(stages)
    accelerator = supplies[ACCELERATOR.name]
    if any_batch and accelerator.limit < 1e-15:  # seconds, which is nothing
        raise InputError(
            'workers_needed(batch_size="any") needs the time of a sample, got that of a step, '
            f"{cell(pipeline.hardware.rate)} whatever its batch. Pass a batch size, or a rate."
        )
    batch = None if any_batch else positive_int(pipeline.batch_size, "batch_size")

    def seconds(cost: Cost) -> Fraction:
        """For the batch, or for each sample of one without end."""
        return Fraction(cost.limit if batch is None else cost.at(batch))

    def enough(workers: int) -> bool:
        cost = cpu_cost(pipeline, workers)
        taken, now = {**stages, TransformationModel.NAME: cost}, {**pipeline.numbers, "workers": workers}
        for name, trip in BatchTimes.of(by_resource(taken), now).round_trips():
            cost = cost | trip if name == CPU.name else cost
        return (
            starves_from(cost, accelerator) is None
            if batch is None
            else cost.at(batch) <= accelerator.at(batch)
        )

    one_worker, workers = seconds(cpu_cost(pipeline, 1)), min_workers(enough)
    ratio = one_worker / seconds(accelerator)
    rate = float((batch or 1) / seconds(accelerator))
    demand = Q_(pipeline.hardware.count * rate * pipeline.size.m_as("GB"), "GB/s")
    most = one_worker / seconds(cpu_cost(pipeline, MAX_WORKERS))
    of_cores = _missing_cores(pipeline, workers) if workers else _too_few_cores(pipeline, most, ratio)
    narrow = _narrow_bandwidths(pipeline, rate)
    slower = _slower(supplies, accelerator, batch, pipeline.labels, but=narrow)
    obstacles = [*filter(None, (of_cores, *narrow.values(), *slower))]
    if batch is None:
        trips = BatchTimes.of(supplies, pipeline.numbers).round_trips()
        waiting = [starves_from(trip, accelerator) for name, trip in trips if name != CPU.name]
        first = min((size for size in waiting if size is not None), default=None)
        if first is not None and not obstacles:
            obstacles.append(f"From batch {first} on parts of a step would wait for each other.")
    else:
        step = pipeline.solve(workers=workers or 1)
        slowest = step.resource_times[step.bottleneck]
        if workers and exceeds(step.step_time.m_as("ms"), slowest.m_as("ms")):
            taken = format_quantity(step.step_time)
            obstacles.append(f"Parts of a step would still wait for each other: it would take {taken}.")
        if step.infeasible_reason:
            obstacles.append(step.infeasible_reason)
    return WorkersNeeded(
        workers, ratio, batch, demand, not obstacles, tuple(obstacles), foreign_rate(pipeline)
    )


def cpu_cost(pipeline: Description, workers: int) -> Cost:
    """Return what preparing the batches of a step would cost the CPU with that many workers, exactly."""
    inputs = dataclasses.replace(TransformationModel.among(pipeline.inputs), workers=workers)
    name = TransformationModel.NAME
    return costs({name: inputs}, pipeline.numbers["accelerators"], exact=True)[name]


def min_workers(enough: Callable[[int], bool]) -> int | None:
    """The smallest number of workers that is enough, or None if no number is.

    One more worker never hurts, so doubling and then halving finds it.
    """
    if not enough(MAX_WORKERS):
        return None
    most = 1
    while not enough(most):
        most *= 2
    return bisect_left(range(most), True, lo=most // 2 + 1, key=enough)


def _too_few_cores(pipeline: Description, most: Fraction, wanted: Fraction) -> str:
    """Say why no number of workers is enough: `most` is how many times one's rate they reach together."""
    cores, who = TransformationModel.among(pipeline.inputs).cores, "Workers get in each other's way:"
    if pipeline.numbers["loader"] == "threads":
        who = "By what one and two threads of a Python with a global lock were measured to do,"
    elif cores is not None:
        who = f"However many workers share the {cores} cores,"
    return (
        f"{who} together they reach at most {format_number(most, 3)} times what one does, and it would take "
        f"{format_number(wanted, 3)} times."
    )


def _missing_cores(pipeline: Description, workers: int) -> str:
    """Say that a typical host has too few cores, where the law of scaling does not count them."""
    hardware = pipeline.hardware.of
    if hardware is None or TransformationModel.among(pipeline.inputs).cores is not None:
        return ""
    cores = hardware.number("host_cores")
    if cores is None or workers <= pipeline.hardware.count * cores:
        return ""
    return f"A typical host has {cores} physical cores for each {hardware.name}."


def _narrow_bandwidths(pipeline: Description, rate: float) -> dict[str, str]:
    """Return why drive and link cannot carry that many samples a second for each device, by the resource."""
    hardware, count, numbers, narrow = pipeline.hardware.of, pipeline.hardware.count, pipeline.numbers, {}
    store = pipeline.labels.the(STORAGE.name)
    drive = f"{store} gives" if numbers["cached_fraction"] is None else f"{store} and the cache give"
    for part, stage, doing, giver, size in (
        ("storage", DataModel, "Reading", drive, count * numbers["stored"]),
        ("link", TransferModel, "Copying", "the link gives", numbers["transferred"]),
    ):
        named = hardware if numbers[part] is None else numbers[part]
        if named is None:
            continue
        try:  # a copy takes as long beside the steps as between them
            inputs = inputs_of(stage, {**numbers, part: named, "copy_overlaps": True})
        except MissingValueError:  # what the catalogue does not know is no obstacle
            continue
        taken = costs({stage.NAME: inputs}, count)[stage.NAME].limit
        if exceeds(taken * rate, 1):
            bandwidths = [Q_(float(x) / 1e9, "GB/s") for x in (size * rate, size / taken)]
            unit = "GB/s" if bandwidths[1].m_as("GB/s") >= 0.1 else "MB/s"
            wanted, supply = (format_quantity(bandwidth.to(unit)) for bandwidth in bandwidths)
            narrow[stage.RESOURCE.name] = f"{doing} would take {wanted}, and {giver} {supply}."
    return narrow


def _slower(
    supplies: Mapping[str, Cost],
    accelerator: Cost,
    batch: int | None,
    labels: Labels,
    *,
    but: Collection[str],
) -> Iterator[str]:
    """Say which other resources starve the accelerator with any number of workers."""
    for name, cost in supplies.items():
        if name in (ACCELERATOR.name, CPU.name, *but):
            continue
        takes, chip = capitalized(labels.does(name, "take")), labels.the(ACCELERATOR.name)
        if batch is None:
            if (first := starves_from(cost, accelerator)) is not None:
                yield f"{takes} longer than {chip} from batch {first} on."
        elif cost.at(batch) > accelerator.at(batch):
            taken, needed = (format_quantity(Q_(float(c.at(batch)) * 1e3, "ms")) for c in (cost, accelerator))
            yield f"{takes} {taken} for a batch, and {chip} {needed}."
