"""A few sentences about a pipeline, as a person would say them: what binds, why, and what to do."""

from __future__ import annotations

from collections.abc import Mapping

from ...tables import percent
from ...units import Q_, Quantity, Unchecked, format_number, format_quantity, has_dimension
from ..cost import exceeds
from ..description import Description
from ..groups import Storage
from ..resources import ACCELERATOR, CPU, DECODER, LABELS, LINK, RESOURCES, STORAGE, capitalized
from ..stages import HostLoopModel, SerializedCopyModel, SingleNodeModel
from ..step import Step
from ._crossover import crossover
from ._point import one_point
from ._workers import MAX_WORKERS, counted_workers, cpu_cost, launching, spoken_bandwidths, workers_needed

_CAUSES = {
    "compute": ("arithmetic", "a faster accelerator would shorten it"),
    "memory": ("memory traffic", "a larger batch does more arithmetic for each byte"),
    "overhead": ("fixed overhead", "a larger batch spreads that over more samples"),
    "input": ("input work that was moved onto it", "some may be better left to the CPU"),
}
# What belongs to the accelerator's part of a step though it does not work then.
_AWAITED = {SerializedCopyModel.NAME: "the copy", HostLoopModel.NAME: "the training loop"}
_LESS = "Prepare less for each sample, or do it ahead of the training or on the accelerator."
_FEWER_WAITS = "Read several samples with each request or keep them in memory, so that the workers wait less."


def explain(pipeline: Description, *, advice: bool = True) -> str:
    """Say what binds, by how much, and what to do next.

    Parameters
    ----------
    advice : bool
        Whether to go on from what binds to what to do about it.

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline
    >>> print(Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=16).explain())
    The accelerator binds: it needs 5.436 ms for a batch of 16, and the CPU has prepared it in 4 ms. The
    largest part of each step is fixed overhead: a larger batch spreads that over more samples. From batch
    23 on the CPU would bind.
    """
    one_point(pipeline, "explain")
    step = pipeline.solve()
    if pipeline.alone or not pipeline.overlap:
        sentences = _in_turn(pipeline, step)
    elif step.bottleneck == ACCELERATOR.name:
        sentences = _fed(pipeline, step)
    else:
        sentences = _starved(pipeline, step)
    sentences = (*sentences, pipeline.foreign_samples, pipeline.foreign_rate) if advice else sentences[:1]
    memory = "" if step.feasible else f"{step.infeasible_reason} What follows assumes enough memory."
    return " ".join(sentence for sentence in (memory, *sentences) if sentence)


def _accelerators(pipeline: Description) -> str:
    return "the accelerator" if pipeline.hardware.count == 1 else "the accelerators"


def _are(pipeline: Description) -> str:
    return "is" if pipeline.hardware.count == 1 else "are"


def _awaited(step: Step) -> dict[str, str]:
    """What the accelerator waits for within its part of a step, by stage."""
    taken = step.stage_times
    return {name: label for name, label in _AWAITED.items() if name in taken and taken[name].magnitude > 0}


def _in_turn(pipeline: Description, step: Step) -> tuple[str, ...]:
    why, remedy = (
        "Nothing overlaps, so all stages add up to",
        "Prefetch batches, so that the slowest resource alone sets the step: that would be {}, with {}.",
    )
    best = pipeline.replace(overlap=True)
    if pipeline.alone:
        why = "The training loop prepares its batches itself, so a step takes"
        remedy = "Start a worker, so that batches are prepared meanwhile: then {} would bind, with {}."
        best = best.replace(workers=1)
    found = best.solve()
    return (
        f"{why} {_spoken_time(step.step_time)}, and "
        f"{_accelerators(pipeline)} {_are(pipeline)} busy {percent(step.utilization)} of that.",
        step.spoken_busy,
        remedy.format(LABELS[found.bottleneck], _spoken_time(found.step_time)),
    )


def _fed(pipeline: Description, step: Step) -> tuple[str, ...]:
    following = step.next_bottleneck
    who, each, batch = "The accelerator binds", "it", "it"
    if step.accelerators > 1:
        who, each, batch = f"The {step.accelerators} accelerators bind", "each", "one for each"
    awaited = _awaited(step)
    together = f"together with {' and '.join(awaited.values())} " if awaited else ""
    evidence = (
        f"{who}: {together}{each} needs {_spoken_time(step.resource_times[ACCELERATOR.name])} for a batch of "
        f"{pipeline.batch_size}, and {LABELS[following]} has {RESOURCES[following].done} {batch} in "
        f"{_spoken_time(step.resource_times[following])}."
    )
    found = crossover(pipeline)
    later = _spare(pipeline, step)
    if found.starves_from is not None and found.starves_from > pipeline.batch_size:
        later = f"From batch {found.starves_from} on {LABELS[found.resource]} would bind."
    # Where launching takes longest, a larger batch is the advice, and it has been given.
    cause = "" if launching(pipeline) > 0 else _cause(pipeline, step)
    return evidence, _idle(pipeline, step), cause, later


def _idle(pipeline: Description, step: Step) -> str:
    """What the accelerator waits for within its part of the step, and how busy that leaves it."""
    awaited = _awaited(step)
    if launching(pipeline) > 0:
        own = _spoken_time(step.step_time * step.utilization)
        return (
            f"Launching its kernels takes the host longer than the {own} that they run, so "
            f"{_accelerators(pipeline)} {_are(pipeline)} busy {percent(step.utilization)} of each step: a "
            "larger batch has more work for each launch, and a step that is compiled is launched once."
        )
    if not awaited:
        return ""
    taken = (f"{label} takes {_spoken_time(step.stage_times[stage])}" for stage, label in awaited.items())
    sentence = (
        f"In each step {' and '.join(taken)}, so {_accelerators(pipeline)} {_are(pipeline)} busy "
        f"{percent(step.utilization)} of it."
    )
    if SerializedCopyModel.NAME in awaited:
        pinned = "" if pipeline.numbers["pinned"] else "from pinned memory and "
        sentence += f" The copy would overlap {pinned}on a stream of its own."
    return sentence


def _cause(pipeline: Description, step: Step) -> str:
    """What the accelerator's own time is made of, as far as that is known."""
    cause, source = step.cause, ""
    if step.basis.startswith("measured"):
        # What a step whose time was measured is made of is a guess; what comes on top of it is known.
        on_top = {"input": "input on device", "overhead": "step overhead"}
        times = {c: step.stage_times[stage] for c, stage in on_top.items() if stage in step.stage_times}
        more = (c for c, time in times.items() if time > step.stage_times["model"])
        cause = next(more, "overhead" if cause == "overhead" else "")
        if not cause:
            return "The accelerator's own time comes from a measured rate."
    elif step.basis.startswith("extrapolated"):
        source = "The accelerator's own time is extrapolated from a measured rate. "
    name, advice = _CAUSES[cause]
    if cause == "memory" and source:
        # Under the law of measured rates it is that of activations, which a larger batch does not spread.
        advice = "faster memory would shorten it"
    if cause in ("compute", "memory") and pipeline.hardware.precision in ("fp32", "tf32"):
        advice = f"lower precision or {advice}" if "shorten" in advice else advice
    return f"{source}The largest part of {'the rest' if _awaited(step) else 'each step'} is {name}: {advice}."


def _spare(pipeline: Description, step: Step) -> str:
    """How much faster the accelerator would have to be before the next resource binds."""
    own, ready = (step.resource_times[name].m_as("ms") for name in (ACCELERATOR.name, step.next_bottleneck))
    label, subject = LABELS[step.next_bottleneck], capitalized(step.next_bottleneck)
    if not exceeds(own, ready):
        return f"{subject} takes equally long: if it were any slower, it would bind."
    waits = sum(step.stage_times[stage].m_as("ms") for stage in _awaited(step))
    if launching(pipeline) > 0:  # a faster accelerator launches no faster
        waits += step.stage_times[SingleNodeModel.NAME].m_as("ms")
    if waits >= ready:
        return f"However fast the accelerator itself were, {label} would not bind."
    times = (own - waits) / (ready - waits)
    if times < 1.005:
        return f"{subject} takes almost as long."
    # A larger factor says nothing that a person would act on.
    spare = "more than a hundred" if times > 100 else format_number(times, 3)
    who = _accelerators(pipeline).capitalize()
    return f"{who} would have to be {spare} times as fast before {label} binds."


def _starved(pipeline: Description, step: Step) -> tuple[str, ...]:
    name, a_batch = step.bottleneck, f"a batch of {pipeline.batch_size}"
    need, each, wait = "needs", "", "waits"
    if step.accelerators > 1:
        a_batch += f" for each of the {step.accelerators} accelerators"
        need, each, wait = "need", " each", "wait"
    who, verb = capitalized(name), RESOURCES[name].verb
    if name == CPU.name and _time_without_waits(pipeline, step) is not None:
        # Its cores are idle then: calling it the CPU alone would send people to buy some.
        who, verb = "The CPU, whose workers wait for storage,", "waiting for and preparing"
    awaited = f" with {' and '.join(_awaited(step).values())}" if _awaited(step) else ""
    evidence = (
        f"{who} binds: {verb} {a_batch} takes {_spoken_time(step.step_time)}, so {_accelerators(pipeline)}, "
        f"which {need} {_spoken_time(step.resource_times[ACCELERATOR.name])}{each}{awaited}, "
        f"{_are(pipeline)} busy {percent(step.utilization)} of each step and {wait} for the rest."
    )
    remedies = {STORAGE: _for_storage, CPU: _for_cpu, LINK: _for_link, DECODER: _for_decoder}
    return evidence, step.spoken_busy, *remedies[RESOURCES[name]](pipeline, step)


def _time_without_waits(pipeline: Description, step: Step) -> Quantity | None:
    """What the CPU would take if its workers never waited for storage; None if that matters little."""
    drive = pipeline.storage
    if drive is None or drive.wait is None:
        return None
    at_once = None if drive.of is None else drive.replace(wait=None)
    if not _helps(pipeline, step, {"storage": at_once}):
        return None
    return pipeline.solve(storage=at_once).resource_times[CPU.name]


def _them(pipeline: Description) -> str:
    return "them" if pipeline.hardware.count > 1 else "it"


def _speedup(step: Step) -> float:
    """How many times as fast steps would be if only the accelerator, and what it waits for, set them."""
    return float((step.step_time / step.resource_times[ACCELERATOR.name]).m_as(""))


def _helps(pipeline: Description, step: Step, changes: Mapping[str, Unchecked]) -> bool:
    """True if a change makes the resource that binds noticeably faster."""
    name = step.bottleneck
    changed = pipeline.solve(changes).resource_times[name]
    return bool(exceeds(step.resource_times[name].m_as("ms"), 1.05 * changed.m_as("ms")))


def _then(step: Step) -> str:
    """What would bind next, where another resource starves the accelerator as well."""
    others = {n: t for n, t in step.resource_times.items() if n not in (step.bottleneck, ACCELERATOR.name)}
    slowest = max(others, key=lambda name: others[name].m_as("ms"), default=None)
    own = step.resource_times[ACCELERATOR.name].m_as("ms")
    if slowest is None or not exceeds(others[slowest].m_as("ms"), own):
        return ""
    # Smaller stored samples may spare the CPU work as well; a faster drive does not.
    then = "With faster storage alone" if step.bottleneck == STORAGE.name else "Even then"
    verb, time = RESOURCES[slowest].verb, _spoken_time(others[slowest])
    return f"{then} {LABELS[slowest]} would bind: {verb} takes {time}."


def _either(remedies: list[str]) -> str:
    """Alternatives in one list: a, b, or c."""
    return ", or ".join(filter(None, (", ".join(remedies[:-1]), remedies[-1])))


def _for_storage(pipeline: Description, step: Step) -> tuple[str, ...]:
    drive = pipeline.storage
    assert drive is not None  # it binds
    cached = float(pipeline.numbers["cached_fraction"] or 0)
    fewer_bytes = _helps(pipeline, step, {"dataset.size": pipeline.size / 2})
    fewer_requests = _helps(pipeline, step, {"storage.samples_per_request": 2 * drive.samples_per_request})
    served = f"Memory serves {percent(cached)} of the reads." if cached else ""
    what, it, delivered = "storage", "it delivers", step.actual_demand
    if cached and pipeline.numbers["cache_bandwidth"] is not None:
        what, it = "storage and memory together", "they deliver"
        delivered = Q_((step.throughput * pipeline.size).m_as("GB * sample / s"), "GB/s")
    wanted, given = spoken_bandwidths(delivered * _speedup(step), delivered)
    remedies = ["store fewer bytes for each sample"] * fewer_bytes
    remedies += ["read several samples with each request (samples_per_request)"] * fewer_requests
    if _helps(pipeline, step, {"storage.cache.share": (1 + cached) / 2}):
        remedies.append(f"keep {'more of ' if served else ''}them in memory")
    if _helps(pipeline, step, {"storage.count": 2 * drive.count}):
        of_store = getattr(drive.of, "path", "") == Storage.S3_connection.path
        remedies.append("open more connections" if of_store else "use a faster drive or more of them")
    limit = ""
    if fewer_requests and not fewer_bytes:
        limit = "It is the number of requests that limits storage, not their bytes."
    return (
        served,
        limit,
        f"To keep {_them(pipeline)} fed, {what} would have to deliver {wanted}, and {it} {given}: "
        f"{_either(remedies)}.",
        _then(step),
    )


def _for_link(pipeline: Description, step: Step) -> tuple[str, ...]:
    sent = (step.throughput / step.accelerators * pipeline.transferred).m_as("GB * sample / s")
    wanted, carried = spoken_bandwidths(Q_(sent * _speedup(step), "GB/s"), Q_(sent, "GB/s"))
    given = pipeline.dataset.transfer
    known = "" if isinstance(given, Quantity) else given or pipeline.assumptions.transfer_dtype
    remedies = [f"send fewer bytes for each sample{'' if known == 'uint8' else ', for example as uint8'}"]
    if not pipeline.numbers["pinned"] and _helps(pipeline, step, {"link.pinned": True}):
        remedies.insert(0, "copy from pinned memory")
    link = "the link" if pipeline.hardware.count == 1 else "each link"
    return (
        f"To keep {_them(pipeline)} fed, {wanted} would have to cross {link}, and {carried} do: "
        f"{_either(remedies)}.",
        _then(step),
    )


def _for_decoder(_: Description, step: Step) -> tuple[str, ...]:
    return "Leave a part of the decoding to the CPU, or store smaller images.", _then(step)


def _for_cpu(pipeline: Description, step: Step) -> tuple[str, ...]:
    if isinstance(pipeline.workers, Quantity):
        needed_rate, given = step.throughput * _speedup(step), pipeline.workers
        if has_dimension(given, "img/s"):
            wanted, supplied = format_quantity(needed_rate), format_quantity(given)
        else:
            in_bytes = Q_((needed_rate * pipeline.size).m_as("GB * sample / s"), "GB/s")
            wanted, supplied = spoken_bandwidths(in_bytes, given)
        return (
            f"To keep {_them(pipeline)} fed, the CPU would have to supply {wanted}, and it supplies "
            f"{supplied}.",
            _LESS,
            _then(step),
        )
    waits, less = _waits(pipeline, step)
    needed = workers_needed(pipeline)
    if needed.workers is None:
        now, best = (cpu_cost(pipeline, n).limit for n in (pipeline.workers.count, MAX_WORKERS))
        more = ""
        if exceeds(now, 1.05 * best):
            gain = format_number(now / best, 3)
            more = f"More workers still help: up to {gain} times what they prepare now."
        if workers_needed(pipeline.replace({"workers.cores": MAX_WORKERS})).workers is not None:
            less = f"Use a host with more cores. {less}"
        elif pipeline.workers.kind == "threads":
            less = f"Use worker processes, which share no lock as threads do. {less}"
        return (waits, f"No number of workers keeps up. {' '.join(needed.obstacles)}", more, less)
    enough = f"{counted_workers(needed.workers)} instead of {pipeline.workers.count} would keep up"
    if not needed.obstacles:
        return (waits, f"{enough}.")
    limits = "; ".join(obstacle[0].lower() + obstacle[1:].rstrip(".") for obstacle in needed.obstacles)
    return (waits, f"{enough}, but that meets other limits: {limits}.", less)


def _waits(pipeline: Description, step: Step) -> tuple[str, str]:
    """What is to be said of workers that wait for storage, and what would shorten the work."""
    at_once = _time_without_waits(pipeline, step)
    if at_once is None:
        return "", _LESS
    mostly = 2 * at_once < step.resource_times[CPU.name]
    return (
        f"{'Most' if mostly else 'Part'} of that is waiting, in which cores idle: without it, preparing "
        f"would take {_spoken_time(at_once)}.",
        _FEWER_WAITS if mostly else _LESS,
    )


def _spoken_time(time: Quantity) -> str:
    """A time in ms, or in s from ten seconds on."""
    return format_quantity(time.to("s") if time.m_as("s") >= 10 else time)
