"""What would help a starved pipeline, by the resource that binds; what the model can try is tried first."""

from __future__ import annotations

from collections.abc import Mapping

from ...tables import percent
from ...units import Q_, Quantity, Unchecked, format_number, format_quantity, has_dimension
from ..catalogue import Storage
from ..cost import exceeds
from ..description import Description
from ..resources import ACCELERATOR, CPU, DECODER, LABELS, LINK, RESOURCES, STORAGE
from ..step import Step
from ._spoken import spoken_bandwidths, spoken_time
from ._workers import MAX_WORKERS, counted_workers, cpu_cost, workers_needed

_LESS = "Prepare less for each sample, or do it ahead of the training or on the accelerator."
_FEWER_WAITS = "Read several samples with each request or keep them in memory, so that the workers wait less."


def remedy(pipeline: Description, step: Step) -> tuple[str, ...]:
    """What would help where a resource starves the accelerator."""
    return {
        STORAGE.name: _for_storage,
        CPU.name: _for_cpu,
        LINK.name: _for_link,
        DECODER.name: _for_decoder,
    }[step.bottleneck](pipeline, step)


def time_without_waits(pipeline: Description, step: Step) -> Quantity | None:
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
    verb, time = RESOURCES[slowest].verb, spoken_time(others[slowest])
    return f"{then} {LABELS[slowest]} would bind: {verb} takes {time}."


def _either(remedies: list[str]) -> str:
    """Alternatives in one list: a, b, or c."""
    return ", or ".join(part for part in (", ".join(remedies[:-1]), remedies[-1]) if part)


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
        if _more_cores_help(pipeline):
            less = f"Use a host with more cores. {less}"
        elif pipeline.workers.kind == "threads":
            less = f"Use worker processes, which share no lock as threads do. {less}"
        return (waits, f"No number of workers keeps up. {' '.join(needed.obstacles)}", more, less)
    enough = f"{counted_workers(needed.workers)} instead of {pipeline.workers.count} would keep up"
    if not needed.obstacles:
        return (waits, f"{enough}.")
    limits = "; ".join(obstacle[0].lower() + obstacle[1:].rstrip(".") for obstacle in needed.obstacles)
    return (waits, f"{enough}, but that meets other limits: {limits}.", less)


def _more_cores_help(pipeline: Description) -> bool:
    """Whether some number of workers would keep up if each had a core."""
    return workers_needed(pipeline.replace({"workers.cores": MAX_WORKERS})).workers is not None


def _waits(pipeline: Description, step: Step) -> tuple[str, str]:
    """What is to be said of workers that wait for storage, and what would shorten the work."""
    at_once = time_without_waits(pipeline, step)
    if at_once is None:
        return "", _LESS
    mostly = 2 * at_once < step.resource_times[CPU.name]
    return (
        f"{'Most' if mostly else 'Part'} of that is waiting, in which cores idle: without it, preparing "
        f"would take {spoken_time(at_once)}.",
        _FEWER_WAITS if mostly else _LESS,
    )
