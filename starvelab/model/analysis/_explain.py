"""Two or three sentences about a pipeline, as a person would say them: what binds, why, and what to do."""

from __future__ import annotations

from ...tables import percent
from ...units import Q_, format_number, format_quantity, has_dimension
from ..cost import exceeds
from ..pipeline import Pipeline
from ..resources import ACCELERATOR, CPU, LABELS, LINK, RESOURCES, STORAGE, capitalized
from ..stages import HostLoopModel, SerializedCopyModel
from ..step import Step
from ._crossover import crossover
from ._point import one_point
from ._workers import MAX_WORKERS, counted_workers, cpu_cost, workers_needed

# Under the law of measured rates memory traffic is that of activations, which a larger batch does not spread.
_TRAFFIC = "Most of its step is memory traffic: lower precision or faster memory would shorten it."
_CAUSES = {
    "compute": "Most of its step is arithmetic: lower precision or a faster accelerator would shorten it.",
    "memory": "Most of its step is memory traffic: a larger batch does more arithmetic for each byte.",
    "overhead": "Most of its step is fixed overhead: a larger batch spreads that over more samples.",
    "input": "Most of its step is input work that was moved onto it: some may be better left to the CPU.",
}


def explain(pipeline: Pipeline, *, advice: bool = True) -> str:
    """Say what binds, by how much, and what to do next.

    Parameters
    ----------
    pipeline : Pipeline
        At one point: no swept arguments.
    advice : bool
        Whether to go on from what binds to what to do about it.

    Raises
    ------
    InputError

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline
    >>> print(explain(Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=16)))
    The accelerator binds: it needs 5.436 ms for a batch of 16, and the CPU has prepared it in 4 ms. Most of
    its step is fixed overhead: a larger batch spreads that over more samples. From batch 23 on the CPU would
    bind.
    """
    one_point(pipeline, "explain")
    step = pipeline.solve()
    if not pipeline.overlap:
        sentences = _in_turn(pipeline, step)
    elif step.bottleneck == ACCELERATOR.name:
        sentences = _fed(pipeline, step)
    else:
        sentences = _starved(pipeline, step)
    if not advice:
        sentences = sentences[:1]
    return " ".join(sentence for sentence in (step.infeasible_reason, *sentences) if sentence)


def _in_turn(pipeline: Pipeline, step: Step) -> tuple[str, ...]:
    overlapped = pipeline.solve(overlap=True).step_time
    return (
        f"Nothing overlaps, so all stages add up to {format_quantity(step.step_time)}, and the accelerator "
        f"is busy {percent(step.utilization)} of that.",
        "Prefetch batches, so that the slowest resource alone sets the step: that would be "
        f"{format_quantity(overlapped)}.",
    )


def _fed(pipeline: Pipeline, step: Step) -> tuple[str, ...]:
    own, following = step.resource_times[ACCELERATOR.name], step.next_bottleneck
    ready = step.resource_times[following]
    who, it = "The accelerator binds: it", "it"
    if pipeline.accelerators > 1:
        who, it = f"The {pipeline.accelerators} accelerators bind: each", "one for each"
    evidence = (
        f"{who} needs {format_quantity(own)} for a batch of {pipeline.batch_size}, and "
        f"{LABELS[following]} has {RESOURCES[following].done} {it} in {format_quantity(ready)}."
    )
    waits = ""
    if SerializedCopyModel.NAME in step.stage_times:
        waits = (
            f"The copy takes {format_quantity(step.stage_times[SerializedCopyModel.NAME])} of that: from "
            "pinned memory and on a stream of its own it would overlap."
        )
    if HostLoopModel.NAME in step.stage_times:
        waits += (
            f"{' ' if waits else ''}The training loop takes "
            f"{format_quantity(step.stage_times[HostLoopModel.NAME])} of that itself, while the accelerator "
            "idles."
        )
    found = crossover(pipeline)
    if found.starves_from is not None and found.starves_from > pipeline.batch_size:
        later = f"From batch {found.starves_from} on {LABELS[found.resource]} would bind."
    elif exceeds(own.m_as("ms"), ready.m_as("ms")):
        times = (own / ready).m_as("")
        # A larger factor says nothing that a person would act on.
        spare = "more than a hundred" if times > 100 else format_number(times, 3)
        later = f"The accelerator would have to be {spare} times as fast before {LABELS[following]} binds."
    else:
        later = f"They take equally long: with any less supply, {LABELS[following]} binds."
    return evidence, waits, _cause(step), later


def _cause(step: Step) -> str:
    """What the accelerator's own time is made of, as far as that is known."""
    if not step.basis.startswith("measured"):
        follows_law = step.basis.startswith("extrapolated")
        return _TRAFFIC if follows_law and step.cause == "memory" else _CAUSES[step.cause]
    # What the formula says of a step whose time was measured is a guess; what comes on top of it is known.
    for stage, cause in (("input on device", "input"), ("step overhead", "overhead")):
        if stage in step.stage_times and step.stage_times[stage] > step.stage_times["model"]:
            return _CAUSES[cause]
    if step.cause == "overhead":
        return _CAUSES["overhead"]
    return "Its speed is a measured one."


def _starved(pipeline: Pipeline, step: Step) -> tuple[str, ...]:
    name = step.bottleneck
    each, who, wait = "", ("the accelerator, which needs", "is"), "waits"
    if pipeline.accelerators > 1:
        each = f" for each of the {pipeline.accelerators} accelerators"
        who, wait = ("these, which need", "are"), "wait"
    evidence = (
        f"{capitalized(name)} binds: {RESOURCES[name].verb} a batch of {pipeline.batch_size}{each} "
        f"takes {format_quantity(step.step_time)}, so {who[0]} "
        f"{format_quantity(step.resource_times[ACCELERATOR.name])}, {who[1]} busy "
        f"{percent(step.utilization)} of each step and {wait} for the rest."
    )
    return evidence, *_REMEDY[name](pipeline, step)


def _them(pipeline: Pipeline) -> str:
    return "them" if pipeline.accelerators > 1 else "it"


def _for_storage(pipeline: Pipeline, step: Step) -> tuple[str, ...]:
    served = ""
    if pipeline.cached_fraction:
        served = f"Memory serves {percent(pipeline.cached_fraction)} of the reads."
    return (
        served,
        f"To keep {_them(pipeline)} fed, storage would have to deliver "
        f"{format_quantity(step.demand_at_ceiling)}, and it delivers {format_quantity(step.actual_demand)}: "
        f"store fewer bytes for each sample, keep {'more of ' if served else ''}them in memory, or use a "
        "faster drive.",
    )


def _for_link(pipeline: Pipeline, step: Step) -> tuple[str, ...]:
    sent = (step.throughput / pipeline.accelerators * pipeline.transferred).m_as("GB * sample / s")
    wanted, carried = (f"{format_number(sent * times)} GB/s" for times in (step.slowdown, 1))
    return (
        f"To keep {_them(pipeline)} fed, {wanted} would have to cross the link, and {carried} do: send fewer "
        "bytes for each sample, for example as uint8.",
    )


def _for_cpu(pipeline: Pipeline, step: Step) -> tuple[str, ...]:
    less = "Prepare less for each sample, or do it ahead of the training or on the accelerator."
    if pipeline.cpu_throughput is not None:
        in_samples = has_dimension(pipeline.cpu_throughput, "img/s")
        wanted = step.throughput * step.slowdown
        if not in_samples:
            wanted = Q_((wanted * pipeline.size).m_as("GB * sample / s"), "GB/s")
        return (
            f"To keep {_them(pipeline)} fed, the CPU would have to supply {format_quantity(wanted)}, and it "
            f"supplies {format_quantity(pipeline.cpu_throughput)}.",
            less,
        )
    waits = ""
    if pipeline.read_wait is not None:
        at_once = pipeline.solve(read_wait=None).resource_times[CPU.name]
        if exceeds(step.resource_times[CPU.name].m_as("ms"), at_once.m_as("ms")):
            waits = (
                f"Its workers wait for storage: if they did not, it would take {format_quantity(at_once)}."
            )
    needed = workers_needed(pipeline)
    if needed.workers is None:
        now, best = (cpu_cost(pipeline, n).limit for n in (pipeline.workers, MAX_WORKERS))
        helps = ""
        if exceeds(now, 1.05 * best):
            helps = (
                f"More of them still help: up to {format_number(now / best, 3)} times what they prepare now."
            )
        return (waits, f"No number of workers keeps up. {' '.join(needed.obstacles)}", helps, less)
    enough = f"{counted_workers(needed.workers)} instead of {pipeline.workers} would keep up"
    if not needed.obstacles:
        return (waits, f"{enough}.")
    limits = "; ".join(obstacle[0].lower() + obstacle[1:].rstrip(".") for obstacle in needed.obstacles)
    return (waits, f"{enough}, but that meets other limits: {limits}.", less)


_REMEDY = {STORAGE.name: _for_storage, CPU.name: _for_cpu, LINK.name: _for_link}
