"""What to do about the resource that binds: remedies that were tried, each with what it would bring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ...tables import count_of, percent
from ...units import Q_, Quantity, Unchecked, format_number, format_quantity, has_dimension
from ..description import Description
from ..resources import ACCELERATOR, CPU, DECODER, LABELS, LINK, LOOP, RESOURCES, STORAGE, exceeds
from ..stages import DataModel
from ..stages.stage import LoopInputs, LoopModel
from ..step import Step
from ._supply import MAX_WORKERS, cpu_cost, spoken_bandwidths, workers_needed

# What is said of a change of a pipeline's fields.
Tries: TypeAlias = dict[str, Mapping[str, Unchecked]]
_LESS = "Prepare less for each sample, or do it ahead of the training or on the accelerator."


def remedies(pipeline: Description, step: Step) -> tuple[str, ...]:
    """Say what would relieve the resource that starves the accelerator, and what would bind then."""
    if step.bottleneck == DECODER.name:
        return "Leave a part of the decoding to the CPU, or store smaller images.", _then(step)
    if step.bottleneck == LOOP.name:
        known = "One thread does that, however many workers there are."
        return known, *relieved(pipeline, step), _then(step)
    return {STORAGE.name: _for_storage, CPU.name: _for_cpu, LINK.name: _for_link}[step.bottleneck](
        pipeline, step
    )


def _for_storage(pipeline: Description, step: Step) -> tuple[str, ...]:
    drive, reads = pipeline.storage, DataModel.among(pipeline.inputs)
    assert drive is not None  # it binds
    cached = float(pipeline.numbers["cached_fraction"] or 0)
    faster = "use a faster drive or more of them"
    if reads.request_bandwidth is not None:
        faster = "read from more prefixes over a faster network"
    tries: Tries = {
        "store fewer bytes for each sample": {
            "dataset.size": pipeline.size / (2 * pipeline.numbers["documents"])
        },
        **_fewer_reads(pipeline),
        faster: {"storage.count": 2 * drive.count},
    }
    terms = DataModel.terms(reads)
    term, limited = max(terms, key=terms.__getitem__), ""
    if term == "connections" and exceeds(terms[term], 1.05 * terms["bandwidth"]):
        requests = f"{reads.served:g} request{'' if reads.served == 1 else 's'}"
        each = spoken_time(Q_(1e3 * terms[term] * reads.served * reads.samples_per_request, "ms"))
        limited = f"It serves {requests} at a time, which limits it: each takes {each}."
    elif term == "request rate":
        limited = "It is the number of requests that limits storage, not their bytes."
    elif reads.request_bandwidth is not None:
        limited = "It is the network that limits storage, and not its requests."
    wanted, given = _shortfall(step, step.actual_demand)
    return (
        f"Memory serves {percent(cached)} of the reads." if cached else "",
        limited,
        f"{_to_feed(step)} storage would have to deliver {wanted}, and it delivers {given}: "
        f"{_helping(pipeline, step, tries)}.",
        _then(step),
    )


def _for_link(pipeline: Description, step: Step) -> tuple[str, ...]:
    sent = (step.throughput / (step.accelerators * step.hosts) * pipeline.transferred).m_as("GB * sample / s")
    wanted, carried = _shortfall(step, Q_(sent, "GB/s"))
    given, link = pipeline.dataset.transfer, "each link" if _several(step) else "the link"
    known = "" if isinstance(given, Quantity) else given or pipeline.assumptions.transfer_dtype
    fewer = f"send fewer bytes for each sample{'' if known == 'uint8' else ', for example as uint8'}"
    tries: Tries = {} if pipeline.numbers["pinned"] else {"copy from pinned memory": {"link.pinned": True}}
    tries[fewer] = {"dataset.transfer": pipeline.transferred / 2}
    return (
        f"{_to_feed(step)} {wanted} would have to cross {link}, and {carried} do: "
        f"{_helping(pipeline, step, tries)}.",
        _then(step),
    )


def relieved(pipeline: Description, step: Step) -> tuple[str, ...]:
    """Return what takes work out of the loop's thread, as far as it was tried and shortens the step."""
    inputs = pipeline.inputs.get(LoopModel.NAME)
    if not isinstance(inputs, LoopInputs):
        return ()
    own, worker = (Q_(1e3 * float(x), "ms") for x in (inputs.own, pipeline.numbers["handover_time"] or 0))
    moved = {"workers.handover.loop": "0 ms", "workers.handover.worker": worker + own}
    packed = {"workers.handover.objects": 1}
    tries: Tries = {}
    if inputs.own and not isinstance(pipeline.workers, Quantity):
        tries[f"Move the {spoken_time(own)} of its own work into the workers"] = moved
    if inputs.objects > 1:
        tries[f"Pack the {inputs.objects} objects of a batch into one"] = packed
    if len(tries) > 1:
        tries["Do both"] = {**moved, **packed}
    helped, best = [], step
    for remedy, changes in tries.items():
        found = pipeline.solve(changes)
        if shorter(found, best, 1.05):
            then = f"a step would then take {spoken_time(found.step_time)}"
            helped.append(f"{remedy}: {then}, and {LABELS[found.bottleneck]} would bind.")
            best = found
    return tuple(helped)


def _for_cpu(pipeline: Description, step: Step) -> tuple[str, ...]:
    if isinstance(pipeline.workers, Quantity):
        wanted, supplied = _shortfall(step, pipeline.workers)
        needs = f"the CPU would have to supply {wanted}, and it supplies {supplied}."
        return f"{_to_feed(step)} {needs}", _LESS, _then(step)
    at_once, waits, less = time_without_waits(pipeline, step), "", _LESS
    if at_once is not None:
        mostly = 2 * at_once < step.resource_times[CPU.name]
        # Without latency only what storage takes for them is left.
        left = pipeline.replace({"storage.requests.latency": "0 s"}).numbers["read_wait"] or 0.0
        long = left < pipeline.numbers["read_wait"] / 2
        awaited = "the latency of requests" if long else "waiting for storage"
        if mostly:
            fewer = _helping(pipeline, step, _fewer_reads(pipeline))
            less = f"{fewer.capitalize()}: then they wait less."
        waits = (
            f"{'Most' if mostly else 'Part'} of that is {awaited}, in which cores "
            f"idle: without it, preparing would take {spoken_time(at_once)}."
        )
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
        return waits, f"No number of workers keeps up. {' '.join(needed.obstacles)}", more, less
    enough = f"{count_of(needed.workers, 'worker')} instead of {pipeline.workers.count} would keep up"
    if not needed.obstacles:
        return waits, f"{enough}.", "" if less == _LESS else less
    limits = "; ".join(obstacle[0].lower() + obstacle[1:].rstrip(".") for obstacle in needed.obstacles)
    return waits, f"{enough}, but that meets other limits: {limits}.", less


def time_without_waits(pipeline: Description, step: Step) -> Quantity | None:
    """Return what the CPU would take if its workers never waited for storage; None if that matters little."""
    at_once = {"storage": None}
    if pipeline.numbers["read_wait"] is None or not _helps(pipeline, step, at_once):
        return None
    return pipeline.solve(at_once).resource_times[CPU.name]


def _fewer_reads(pipeline: Description) -> Tries:
    """What lets storage serve, or workers wait for, fewer requests or more of them at a time."""
    drive, reads = pipeline.storage, pipeline.reads
    assert drive is not None  # its requests are waited for
    assert reads is not None
    cached, under_way = float(pipeline.numbers["cached_fraction"] or 0), min(reads.open, MAX_WORKERS)
    return {
        "read several samples with each request": {"storage.requests.samples": 2 * drive.requests.samples},
        "open more requests at a time": {"storage.requests.open": 2 * under_way},
        f"keep {'more of ' if cached else ''}them in memory": {"storage.cache.share": (1 + cached) / 2},
    }


def _helps(pipeline: Description, step: Step, changes: Mapping[str, Unchecked]) -> bool:
    """True if a change makes the resource that binds noticeably faster."""
    now, then = (one.resource_times[step.bottleneck].m_as("ms") for one in (step, pipeline.solve(changes)))
    return bool(exceeds(now, 1.05 * then))


def _helping(pipeline: Description, step: Step, tries: Tries) -> str:
    """What helps of changes that are tried, in one list: a, b, or c."""
    *others, last = (remedy for remedy, changes in tries.items() if _helps(pipeline, step, changes))
    return f"{', '.join(others)}, or {last}" if others else last


def _several(step: Step) -> bool:
    return bool(step.accelerators * step.hosts > 1)


def _to_feed(step: Step) -> str:
    return f"To keep {'them' if _several(step) else 'it'} fed,"


def _shortfall(step: Step, given: Quantity) -> list[str]:
    """Return what a resource would have to give for the accelerator to set the step, and what it gives."""
    wanted = given * (step.step_time / step.resource_times[ACCELERATOR.name]).m_as("")
    if has_dimension(given, "img/s"):
        return [format_quantity(wanted), format_quantity(given)]
    return spoken_bandwidths(wanted, given)


def _then(step: Step) -> str:
    """Return what would bind next, where another resource starves the accelerator as well."""
    times = {name: time for name, time in step.resource_times.items() if name != step.bottleneck}
    own = times.pop(ACCELERATOR.name)
    slowest = max(times, key=lambda name: times[name].m_as("ms"), default=None)
    if slowest is None or not exceeds(times[slowest].m_as("ms"), own.m_as("ms")):
        return ""
    # Smaller stored samples may spare the CPU work as well; a faster drive does not.
    then = "With faster storage alone" if step.bottleneck == STORAGE.name else "Even then"
    verb, time = RESOURCES[slowest].verb, spoken_time(times[slowest])
    return f"{then} {LABELS[slowest]} would bind: {verb} takes {time}."


def shorter(step: Step, than: Step, times: float) -> bool:
    """True if another step takes more than so many times as long."""
    return bool(exceeds(than.step_time.m_as("ms"), times * step.step_time.m_as("ms")))


def spoken_time(time: Quantity) -> str:
    """A time in ms, or in s from ten seconds on."""
    return format_quantity(time.to("s") if time.m_as("s") >= 10 else time)
