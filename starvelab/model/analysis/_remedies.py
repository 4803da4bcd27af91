"""What to do about the resource that binds: remedies that were tried, each with what it would bring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ...tables import count_of, percent
from ...units import Q_, Quantity, Unchecked, format_number, format_quantity, has_dimension
from ..costs import exceeds
from ..description import Description
from ..resources import ACCELERATOR, CPU, DECODER, LINK, LOOP, RESOURCES, STORAGE
from ..stages import DataModel
from ..stages.loop import LoopInputs, LoopModel
from ..stages.transformation import takes_images
from ..step import Step
from ._workers_needed import MAX_WORKERS, cpu_cost, spoken_bandwidths, workers_needed

# What is said of a change of a pipeline's fields.
Tries: TypeAlias = dict[str, Mapping[str, Unchecked]]
_LESS = "Prepare less for each sample, or do it ahead of the training or on the {}."
# How many times as long a step must take without a change for the change to be advice.
MIN_GAIN = 1.005


def remedies(pipeline: Description, step: Step) -> tuple[str, ...]:
    """Say what would relieve the resource that starves the accelerator, and what would bind then."""
    relieve = {
        STORAGE.name: _for_storage,
        CPU.name: _for_cpu,
        LINK.name: _for_link,
        LOOP.name: _for_loop,
        DECODER.name: _for_decoder,
    }
    return relieve[step.bottleneck](pipeline, step)


def shortens(pipeline: Description, step: Step, changes: Mapping[str, Unchecked]) -> bool:
    """True if a change makes the step noticeably shorter: only then it is advice."""
    return shorter(pipeline.solve(changes), step, MIN_GAIN)


def _for_decoder(pipeline: Description, step: Step) -> tuple[str, ...]:
    half = {"dataset.on_device.decoder_time": Q_(pipeline.dataset.on_device.decoder_time) / 2}
    smaller = "images" if takes_images(pipeline.samples, pipeline.model) else "samples"
    tries: Tries = {"leave a part of the decoding to the workers": half, f"store smaller {smaller}": half}
    helping = _helping(pipeline, step, tries)
    return f"{helping.capitalize()}." if helping else "", _then(step, advised=bool(helping))


def _for_loop(pipeline: Description, step: Step) -> tuple[str, ...]:
    one_thread, helped = "One thread does that, however many workers there are.", relieved(pipeline, step)
    return one_thread, *helped, _then(step, advised=bool(helped))


def _for_storage(pipeline: Description, step: Step) -> tuple[str, ...]:
    drive, reads = pipeline.storage, DataModel.among(pipeline.inputs)
    assert drive is not None  # it binds
    store = step.labels.the(STORAGE.name)
    cached = float(pipeline.numbers["cached_fraction"] or 0)
    faster = "use a faster drive or more of them"
    if reads.request_bandwidth is not None:
        faster = "read from more prefixes over a faster network"
    tries: Tries = {
        "store fewer bytes for each sample": {"dataset.size": pipeline.size / 2},
        **_fewer_reads(pipeline),
        faster: {"storage.count": 2 * drive.count},
    }
    terms = DataModel.terms(reads)
    term, limited = max(terms, key=terms.__getitem__), ""
    if term == "connections" and exceeds(terms[term], 1.05 * terms["bandwidth"]):
        requests = f"{reads.served:g} request{'' if reads.served == 1 else 's'}"
        request = spoken_time(Q_(1e3 * terms[term] * reads.served * reads.samples_per_request, "ms"))
        limited = f"It serves {requests} at a time, which limits it: each takes {request}."
    elif term == "request rate":
        limited = f"It is the number of requests that limits {store}, not their bytes."
    elif reads.request_bandwidth is not None:
        limited = f"It is the network that limits {store}, and not its requests."
    wanted, now = _shortfall(step, step.actual_demand)
    helping = _helping(pipeline, step, tries)
    return (
        f"Memory serves {percent(cached)} of the reads." if cached else "",
        limited,
        f"{_to_feed(step)} {store} would have to deliver {wanted}, and it delivers {now}{_after(helping)}.",
        _then(step, advised=bool(helping)),
    )


def _for_link(pipeline: Description, step: Step) -> tuple[str, ...]:
    sent = (step.throughput / (step.accelerators * step.hosts) * pipeline.transferred).m_as("GB * sample / s")
    wanted, carried = _shortfall(step, Q_(sent, "GB/s"))
    transfer, link = pipeline.dataset.transfer, "each link" if _several(step) else "the link"
    dtype = "" if isinstance(transfer, Quantity) else transfer or pipeline.assumptions.transfer_dtype
    fewer = f"send fewer bytes for each sample{'' if dtype == 'uint8' else ', for example as uint8'}"
    tries: Tries = {fewer: {"dataset.transfer": pipeline.transferred / 2}}
    helping = _helping(pipeline, step, tries)
    return (
        f"{_to_feed(step)} {wanted} would have to cross {link}, and {carried} do{_after(helping)}.",
        _then(step, advised=bool(helping)),
    )


def relieved(pipeline: Description, step: Step) -> tuple[str, ...]:
    """Return what takes work out of the loop's thread, as far as it was tried and shortens the step."""
    inputs = pipeline.inputs.get(LoopModel.NAME)
    if not isinstance(inputs, LoopInputs):
        return ()
    seconds = inputs.loop_work, pipeline.numbers["handover_time"] or 0
    loop_work, worker_work = (Q_(1e3 * float(time), "ms") for time in seconds)
    moved = {"workers.handover.loop": "0 ms", "workers.handover.worker": worker_work + loop_work}
    packed = {"workers.handover.objects": 1}
    tries: Tries = {}
    if inputs.loop_work and not isinstance(pipeline.workers, Quantity):
        tries[f"Move the {spoken_time(loop_work)} of its own work into the workers"] = moved
    if inputs.objects > 1:
        tries[f"Pack the {inputs.objects} objects of a batch into one"] = packed
    if pipeline.numbers["pickled"]:
        tries["Hand over a batch as one tensor, which nobody pickles"] = {
            "workers.handover.pickled": False, **packed
        }  # fmt: skip
    if len(tries) > 1:
        tries["Do both"] = {**moved, **packed}
    helped, best = [], step
    for remedy, changes in tries.items():
        solved = pipeline.solve(changes)
        if shorter(solved, best, 1.05):
            then = f"a step would then take {spoken_time(solved.step_time)}"
            helped.append(f"{remedy}: {then}, and {step.labels.the(solved.bottleneck)} would bind.")
            best = solved
    return tuple(helped)


def _for_cpu(pipeline: Description, step: Step) -> tuple[str, ...]:
    everything = _LESS.format(step.labels[ACCELERATOR.name])
    less = everything if shortens(pipeline, step, _half_the_work(pipeline)) else ""
    if isinstance(pipeline.workers, Quantity):
        wanted, supplied = _shortfall(step, pipeline.workers)
        needs = f"the workers would have to supply {wanted}, and they supply {supplied}."
        return f"{_to_feed(step)} {needs}", less, _then(step, advised=bool(less))
    at_once, waits = time_without_waits(pipeline, step), ""
    if at_once is not None:
        mostly = 2 * at_once < step.resource_times[CPU.name]
        # Without latency only what storage takes for them is left.
        left = pipeline.replace({"storage.requests.latency": "0 s"}).numbers["read_wait"] or 0.0
        long = left < pipeline.numbers["read_wait"] / 2
        awaited = "the latency of requests" if long else f"waiting for {step.labels.the(STORAGE.name)}"
        if mostly:
            fewer = _helping(pipeline, step, _fewer_reads(pipeline))
            less = f"{fewer.capitalize()}: then they wait less." if fewer else ""
        waits = (
            f"{'Most' if mostly else 'Part'} of that is {awaited}, in which cores "
            f"idle: without it, preparing would take {spoken_time(at_once)}."
        )
    needed = workers_needed(pipeline)
    if needed.workers is None:
        return (
            waits,
            f"No number of workers keeps up. {' '.join(needed.obstacles)}",
            *_of_no_number(pipeline, step, less),
        )
    enough, limits = "", needed.obstacles
    if shortens(pipeline, step, {"workers": needed.workers}):
        enough = f"{count_of(needed.workers, 'worker')} instead of {pipeline.workers.count} would keep up"
        if limits:
            spoken = "; ".join(limit[0].lower() + limit[1:].rstrip(".") for limit in limits)
            enough += f", but that meets other limits: {spoken}"
        enough += "."
        less = less if limits or less != everything else ""
    return waits, enough, less, "" if enough else _then(step, advised=bool(less))


def _of_no_number(pipeline: Description, step: Step, less: str) -> tuple[str, ...]:
    """Return what helps where no number of workers keeps up."""
    more, cores = "", {"workers.cores": MAX_WORKERS}
    if shortens(pipeline, step, {"workers": MAX_WORKERS}):
        now, best = (cpu_cost(pipeline, n).limit for n in (pipeline.workers.count, MAX_WORKERS))
        if exceeds(now, 1.05 * best):
            gain = format_number(now / best, 3)
            more = f"More workers still help: up to {gain} times what they prepare now."
    unlimited = workers_needed(pipeline.replace(cores)).workers
    if unlimited is not None and shortens(pipeline, step, {**cores, "workers": unlimited}):
        return more, "Use a host with more cores.", less
    processes = {"workers.kind": "processes", "workers.cores": pipeline.workers.cores}
    if pipeline.workers.kind == "threads" and shortens(pipeline, step, processes):
        return more, "Use worker processes, which share no lock as threads do.", less
    return more, less


def _half_the_work(pipeline: Description) -> Mapping[str, Unchecked]:
    """Return the change that halves what preparing takes."""
    workers, samples = pipeline.workers, pipeline.dataset
    if isinstance(workers, Quantity):
        return {"workers": 2 * workers}
    if workers.rate is not None:
        return {"workers.rate": 2 * Q_(workers.rate)}
    if samples.cpu_time is not None:
        return {"dataset.cpu_time": Q_(samples.cpu_time) / 2}
    alone = pipeline.solve(
        {"workers.handover.worker": "0 s", "hardware.ranks.slow": 1}, workers=1, storage=None
    )
    share = alone.batch_size * alone.accelerators
    return {"dataset.cpu_time": alone.resource_times[CPU.name] / share / 2}


def time_without_waits(pipeline: Description, step: Step) -> Quantity | None:
    """Return what the CPU would take if its workers never waited for storage; None if that matters little."""
    at_once = {"storage": None}
    if pipeline.numbers["read_wait"] is None:
        return None
    without = pipeline.solve(at_once).resource_times[CPU.name]
    return without if exceeds(step.resource_times[CPU.name].m_as("ms"), 1.05 * without.m_as("ms")) else None


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


def _helping(pipeline: Description, step: Step, tries: Tries) -> str:
    """Return the changes that relieve what binds and shorten the step, as a list: a, b, or c; or empty."""
    helpful = [remedy for remedy, changes in tries.items() if _helps(pipeline, step, changes)]
    return ", or ".join(filter(None, (", ".join(helpful[:-1]), *helpful[-1:])))


def _helps(pipeline: Description, step: Step, changes: Mapping[str, Unchecked]) -> bool:
    """True if a change makes the resource that binds 5 % faster, and the step noticeably shorter."""
    changed = pipeline.solve(changes)
    now, then = (solved.resource_times[step.bottleneck].m_as("ms") for solved in (step, changed))
    return bool(exceeds(now, 1.05 * then)) and shorter(changed, step, MIN_GAIN)


def _after(helping: str) -> str:
    return f": {helping}" if helping else ""


def _several(step: Step) -> bool:
    return bool(step.accelerators * step.hosts > 1)


def _to_feed(step: Step) -> str:
    return f"To keep {'them' if _several(step) else 'it'} fed,"


def _shortfall(step: Step, supply: Quantity) -> list[str]:
    """Return what a resource would have to give for the accelerator to set the step, and what it gives."""
    wanted = supply * (step.step_time / step.resource_times[ACCELERATOR.name]).m_as("")
    if has_dimension(supply, "img/s"):
        return [format_quantity(wanted), format_quantity(supply)]
    return spoken_bandwidths(wanted, supply)


def _then(step: Step, *, advised: bool) -> str:
    """Return what would bind next, where another resource starves the accelerator as well."""
    times = {name: time for name, time in step.resource_times.items() if name != step.bottleneck}
    accelerator = times.pop(ACCELERATOR.name)
    slowest = max(times, key=lambda name: times[name].m_as("ms"), default=None)
    if slowest is None or not exceeds(times[slowest].m_as("ms"), accelerator.m_as("ms")):
        return ""
    then = "Even then"
    if not advised:
        then = f"If {step.labels.the(step.bottleneck)} took no time,"
    elif step.bottleneck == STORAGE.name:
        # Smaller stored samples may spare the CPU work as well; a faster drive does not.
        then = f"With a faster {step.labels[STORAGE.name]} alone"
    verb, time = RESOURCES[slowest].verb, spoken_time(times[slowest])
    return f"{then} {step.labels.the(slowest)} would bind: {verb} takes {time}."


def shorter(step: Step, than: Step, times: float) -> bool:
    """True if another step takes more than so many times as long."""
    return bool(exceeds(than.step_time.m_as("ms"), times * step.step_time.m_as("ms")))


def spoken_time(time: Quantity) -> str:
    """A time in ms, or in s from ten seconds on."""
    return format_quantity(time.to("s") if time.m_as("s") >= 10 else time)
