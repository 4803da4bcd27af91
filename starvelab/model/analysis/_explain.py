"""A few sentences about a pipeline, as a person would say them: what binds, why, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...tables import percent
from ...units import Q_, Quantity, Unchecked, format_number, format_quantity, has_dimension
from ..cost import exceeds
from ..description import Description
from ..parts import Workers
from ..resources import ACCELERATOR, CPU, DECODER, LABELS, LINK, LOOP, RESOURCES, STORAGE, capitalized
from ..stages import BarrierModel, DataModel, SerializedCopyModel, SingleNodeModel
from ..stages.data import DataInputs
from ..stages.loop import LoopInputs, LoopModel
from ..stages.single_node import SingleNodeInputs
from ..step import Step
from ._point import one_point, sorted_by_length
from ._supply import (
    MAX_WORKERS,
    counted_workers,
    cpu_cost,
    crossover,
    fewer_workers,
    launching,
    spoken_bandwidths,
    workers_needed,
)

_LARGER = "a larger batch, which takes more memory and a higher learning rate,"
_CAUSES = {
    "compute": ("arithmetic", "a faster accelerator would shorten it"),
    "memory": ("memory traffic", f"{_LARGER} does more arithmetic for each byte"),
    "overhead": ("fixed overhead", f"{_LARGER} spreads that over more samples"),
    "input": ("input work that was moved onto it", "some may be better left to the CPU"),
}
# How documents become rows; the last mixes two of them in a row.
_STRATEGIES = {
    "padded": "With each document in a row of its own",
    "sorted": "Sorted by length",
    "first-fit": "Packed first-fit",
    "split": "Joined and cut",
}
_LESS = "Prepare less for each sample, or do it ahead of the training or on the accelerator."


class _Words(NamedTuple):
    """How sentences speak of one accelerator or of several."""

    who: str = "the accelerator"
    are: str = "is"
    them: str = "it"
    need: str = "needs"
    each: str = ""
    wait: str = "waits"
    link: str = "the link"


_ONE = _Words()
_SEVERAL = _Words("the accelerators", "are", "them", "need", " each", "wait", "each link")


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
    largest part of each step is fixed overhead: a larger batch, which takes more memory and a higher
    learning rate, spreads that over more samples. From batch 23 on the CPU would bind.
    """
    one_point(pipeline, "explain")
    step = pipeline.solve()
    tell, several = _starved, step.accelerators * step.hosts > 1
    if pipeline.alone or not pipeline.overlap:
        tell = _in_turn
    elif exceeds(step.step_time.m_as("ms"), step.resource_times[step.bottleneck].m_as("ms")):
        tell = _taking_turns
    elif step.bottleneck == ACCELERATOR.name:
        tell = _fed
    sentences = tell(pipeline, step, _SEVERAL if several else _ONE)
    foreign = pipeline.foreign_samples, pipeline.foreign_rate
    sentences = (
        (*sentences, *_ranks(pipeline, step), *_busy(pipeline, step), _padding(pipeline, step), *foreign)
        if advice
        else sentences[:1]
    )
    memory = "" if step.feasible else f"{step.infeasible_reason} What follows assumes enough memory."
    return " ".join(filter(None, (memory, *sentences)))


def _in_turn(pipeline: Description, step: Step, of: _Words) -> tuple[str, ...]:
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
        f"{why} {_spoken_time(step.step_time)}, and {of.who} {of.are} busy {percent(step.utilization)} of "
        "that.",
        step.spoken_busy,
        remedy.format(LABELS[found.bottleneck], _spoken_time(found.step_time)),
    )


def _ranks(pipeline: Description, step: Step) -> tuple[str, ...]:
    """What a step waits for one of several hosts or ranks, and what it would be without."""
    slow, said = float(pipeline.hardware.ranks.slow), []
    if step.hosts > 1 and slow > 1 and pipeline.overlap:
        even = pipeline.solve({"hardware.ranks.slow": 1})
        if _shorter(even, step, 1.005):
            said.append(
                f"That is one of {step.hosts} hosts, which prepares {format_number(slow, 3)} times as slowly:"
                " its queue is empty, those of the others are full, and all wait for it. At the pace of the "
                f"others a step would take {_spoken_time(even.step_time)}."
            )
    if BarrierModel.NAME in step.stage_times:
        half = pipeline.solve({"hardware.ranks.spread": pipeline.hardware.ranks.spread / 2})
        said.append(
            f"Each step waits {_spoken_time(step.stage_times[BarrierModel.NAME])} on average for the slowest "
            f"of {step.accelerators * step.hosts} ranks; with half the spread it would take "
            f"{_spoken_time(half.step_time)}."
        )
    return tuple(said)


def _busy(pipeline: Description, step: Step) -> tuple[str, ...]:
    """What launching takes longer on a busy host, and with fewer workers."""
    model = pipeline.inputs[SingleNodeModel.NAME]
    assert isinstance(model, SingleNodeInputs)
    if model.host is None:
        return ()
    calm = pipeline.solve({"hardware.host.busy": None})
    if not _shorter(calm, step, 1.005):
        return ()
    use = model.host.use(pipeline.batch_size, step.step_time.m_as("s"))
    # Past full use, others wait for a hardware thread as the launching one does, which the law does not know.
    more = ", and more than that where others wait for a thread" if use >= 1 else ""
    return (
        f"The CPU is {percent(float(use), 0)} in use, which slows launching{more}: on a calm host a step "
        f"would take {_spoken_time(calm.step_time)}.",
        fewer_workers(pipeline),
    )


def _taking_turns(pipeline: Description, step: Step, of: _Words) -> tuple[str, ...]:
    """Too few steps or batches may be under way, so that parts which would overlap wait for each other."""
    taken = (f"{LABELS[name]} {_spoken_time(time)}" for name, time in step.resource_times.items())
    few = {
        "hardware.in_flight": pipeline.hardware.in_flight,
        "workers.prefetch": pipeline.numbers["prefetch"],
    }
    gains = []
    for path, now in few.items():
        if path == "hardware.in_flight" or isinstance(pipeline.workers, Workers):
            more = pipeline.solve({path: now + 1})
            if _shorter(more, step, 1.05):
                name = path.rpartition(".")[2]
                gains.append(f"With {name}={now + 1} a step would take {_spoken_time(more.step_time)}.")
    return (
        f"Parts of a step wait for each other: it takes {_spoken_time(step.step_time)}, and of that "
        f"{', '.join(taken)}. So {of.who} {of.are} busy {percent(step.utilization)} of it.",
        step.spoken_busy,
        *gains,
        *_relieved(pipeline, step),
    )


def _fed(pipeline: Description, step: Step, of: _Words) -> tuple[str, ...]:
    own, following = step.resource_times[ACCELERATOR.name], step.next_bottleneck
    who, each, batch = "The accelerator binds", "it", "it"
    if step.accelerators > 1:
        who, each, batch = f"The {step.accelerators} accelerators bind", "each", "one for each"
    together = f"together with {_awaited(step)} " if step.awaited else ""
    evidence = (
        f"{who}: {together}{each} needs {_spoken_time(own)} for a batch of {pipeline.batch_size}, and "
        f"{LABELS[following]} has {RESOURCES[following].done} {batch} in "
        f"{_spoken_time(step.resource_times[following])}."
    )
    busy = f"so {of.who} {of.are} busy {percent(step.utilization)} of"
    idle, cause = "", _cause(pipeline, step)
    if launching(pipeline) > 0:
        # Where launching takes longest, a larger batch is the advice, and it is given here.
        own, cause = step.step_time * step.utilization, ""
        idle = (
            f"Launching its kernels takes the host longer than the {_spoken_time(own)} that they run, {busy} "
            f"each step: {_LARGER} has more work for each launch, and a step that is compiled is launched "
            "once."
        )
    elif step.awaited:
        taken = (f"{what} takes {_spoken_time(step.stage_times[s])}" for s, what in step.awaited.items())
        idle = f"In each step {' and '.join(taken)}, {busy} it."
        if SerializedCopyModel.NAME in step.awaited:
            pinned = "" if pipeline.numbers["pinned"] else "from pinned memory and "
            idle += f" The copy would overlap {pinned}on a stream of its own."
    found = None if sorted_by_length(pipeline) else crossover(pipeline)
    later = _spare(pipeline, step, of)
    if found is not None and found.starves_from is not None and found.starves_from > pipeline.batch_size:
        then = f"{LABELS[found.resource]} would bind"
        if pipeline.solve(batch_size=found.starves_from).bottleneck == ACCELERATOR.name:
            then = "parts of a step would wait for each other"
        later = f"From batch {found.starves_from} on {then}."
    return evidence, idle, cause, later


def _cause(pipeline: Description, step: Step) -> str:
    """Return what the accelerator's own time is made of, as far as that is known."""
    cause, source = step.cause, ""
    if step.basis.startswith("measured"):
        # What a step whose time was measured is made of is a guess; what comes on top of it is known.
        own, on_top = step.stage_times["model"], {"input": "input on device", "overhead": "step overhead"}
        longer = (name for name, stage in on_top.items() if step.stage_times.get(stage, 0 * own) > own)
        cause = next(longer, "overhead" if cause == "overhead" else "")
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
    return f"{source}The largest part of {'the rest' if step.awaited else 'each step'} is {name}: {advice}."


def _spare(pipeline: Description, step: Step, of: _Words) -> str:
    """How much faster the accelerator would have to be before the next resource binds."""
    own, ready = (step.resource_times[name].m_as("ms") for name in (ACCELERATOR.name, step.next_bottleneck))
    label, subject = LABELS[step.next_bottleneck], capitalized(step.next_bottleneck)
    if not exceeds(own, ready):
        return f"{subject} takes equally long: if it were any slower, it would bind."
    # A faster accelerator launches no faster.
    launches = [SingleNodeModel.NAME] if launching(pipeline) > 0 else []
    waits = sum(step.stage_times[stage].m_as("ms") for stage in (*step.awaited, *launches))
    if waits >= ready:
        return f"However fast the accelerator itself were, {label} would not bind."
    times = (own - waits) / (ready - waits)
    if times < 1.005:
        return f"{subject} takes almost as long."
    # A larger factor says nothing that a person would act on.
    spare = "more than a hundred" if times > 100 else format_number(times, 3)
    return f"{of.who.capitalize()} would have to be {spare} times as fast before {label} binds."


def _starved(pipeline: Description, step: Step, of: _Words) -> tuple[str, ...]:
    name, a_batch = step.bottleneck, f"a batch of {pipeline.batch_size}"
    if step.accelerators > 1:
        a_batch += f" for each of the {step.accelerators} accelerators"
    who, verb = capitalized(name), RESOURCES[name].verb
    if name == CPU.name and _time_without_waits(pipeline, step) is not None:
        # Its cores are idle then: calling it the CPU alone would send people to buy some.
        who, verb = "The CPU, whose workers wait for storage,", "waiting for and preparing"
    awaited = f" with {_awaited(step)}" if step.awaited else ""
    evidence = (
        f"{who} binds: {verb} {a_batch} takes {_spoken_time(step.step_time)}, so {of.who}, which {of.need} "
        f"{_spoken_time(step.resource_times[ACCELERATOR.name])}{of.each}{awaited}, {of.are} busy "
        f"{percent(step.utilization)} of each step and {of.wait} for the rest."
    )
    remedies = {
        STORAGE: _for_storage, CPU: _for_cpu, LOOP: _for_loop, LINK: _for_link, DECODER: _for_decoder
    }  # fmt: skip
    return evidence, step.spoken_busy, *remedies[RESOURCES[name]](pipeline, step, of)


def _for_storage(pipeline: Description, step: Step, of: _Words) -> tuple[str, ...]:
    drive, reads = pipeline.storage, pipeline.inputs[DataModel.NAME]
    assert drive is not None  # it binds
    assert isinstance(reads, DataInputs)
    cached, most = float(pipeline.numbers["cached_fraction"] or 0), drive.requests.at_most
    remedies: dict[str, Mapping[str, Unchecked]] = {
        "store fewer bytes for each sample": {
            "dataset.size": pipeline.size / (2 * pipeline.numbers["documents"])
        },
        **_fewer_reads(pipeline),
        "use a faster drive or more of them"
        if reads.request_bandwidth is None
        else "read from more prefixes over a faster network": {"storage.count": 2 * drive.count},
    }
    if most is not None:
        remedies["allow more connections"] = {"storage.requests.at_most": 2 * most}
    helping = [remedy for remedy, changes in remedies.items() if _helps(pipeline, step, changes)]
    terms = DataModel.terms(reads)
    term, limited = max(terms, key=terms.__getitem__), ""
    if term == "connections" and exceeds(terms[term], 1.05 * terms["bandwidth"]):
        requests = f"{reads.served:g} request{'' if reads.served == 1 else 's'}"
        each = _spoken_time(Q_(1e3 * terms[term] * reads.served * reads.samples_per_request, "ms"))
        limited = f"It serves {requests} at a time, which limits it: each takes {each}."
    elif term == "request rate":
        limited = "It is the number of requests that limits storage, not their bytes."
    elif reads.request_bandwidth is not None:
        limited = "It is the network that limits storage, and not its requests."
    what, it, delivered = "storage", "it delivers", step.actual_demand
    if cached and pipeline.numbers["cache_bandwidth"] is not None:
        what, it = "storage and memory together", "they deliver"
        delivered = Q_((step.throughput / step.hosts * pipeline.size).m_as("GB * sample / s"), "GB/s")
    wanted, given = _shortfall(step, delivered)
    return (
        f"Memory serves {percent(cached)} of the reads." if cached else "",
        limited,
        f"To keep {of.them} fed, {what} would have to deliver {wanted}, and {it} {given}: "
        f"{_either(helping)}.",
        _then(step),
    )


def _for_link(pipeline: Description, step: Step, of: _Words) -> tuple[str, ...]:
    sent = (step.throughput / (step.accelerators * step.hosts) * pipeline.transferred).m_as("GB * sample / s")
    wanted, carried = _shortfall(step, Q_(sent, "GB/s"))
    given = pipeline.dataset.transfer
    known = "" if isinstance(given, Quantity) else given or pipeline.assumptions.transfer_dtype
    remedies = [f"send fewer bytes for each sample{'' if known == 'uint8' else ', for example as uint8'}"]
    if not pipeline.numbers["pinned"] and _helps(pipeline, step, {"link.pinned": True}):
        remedies.insert(0, "copy from pinned memory")
    return (
        f"To keep {of.them} fed, {wanted} would have to cross {of.link}, and {carried} do: "
        f"{_either(remedies)}.",
        _then(step),
    )


def _for_decoder(pipeline: Description, step: Step, _: _Words) -> tuple[str, ...]:
    units = None if pipeline.hardware.of is None else pipeline.hardware.of.number("video_decoders")
    if units is not None and _helps(pipeline, step, {"dataset.on_device.decoders": units}):
        return f"It has {units} decode units: decode as many samples side by side.", _then(step)
    return "Leave a part of the decoding to the CPU, or store smaller images.", _then(step)


def _for_loop(pipeline: Description, step: Step, _: _Words) -> tuple[str, ...]:
    return "One thread does that, however many workers there are.", *_relieved(pipeline, step), _then(step)


def _relieved(pipeline: Description, step: Step) -> tuple[str, ...]:
    """Return what takes work out of the loop's thread, as far as it was tried and shortens the step."""
    inputs = pipeline.inputs.get(LoopModel.NAME)
    if not isinstance(inputs, LoopInputs):
        return ()
    own, worker = (Q_(1e3 * float(x), "ms") for x in (inputs.own, pipeline.numbers["handover_time"] or 0))
    moved = {"workers.handover.loop": "0 ms", "workers.handover.worker": worker + own}
    packed = {"workers.handover.objects": 1}
    tries: dict[str, dict[str, Unchecked]] = {}
    if inputs.own and not isinstance(pipeline.workers, Quantity):
        tries[f"Move the {_spoken_time(own)} of its own work into the workers"] = moved
    if inputs.objects > 1:
        tries[f"Pack the {inputs.objects} objects of a batch into one"] = packed
    if len(tries) > 1:
        tries["Do both"] = {**moved, **packed}
    helped, best = [], step
    for remedy, changes in tries.items():
        found = pipeline.solve(changes)
        if _shorter(found, best, 1.05):
            then = f"a step would then take {_spoken_time(found.step_time)}"
            helped.append(f"{remedy}: {then}, and {LABELS[found.bottleneck]} would bind.")
            best = found
    return tuple(helped)


def _for_cpu(pipeline: Description, step: Step, of: _Words) -> tuple[str, ...]:
    if isinstance(pipeline.workers, Quantity):
        wanted, supplied = _shortfall(step, pipeline.workers)
        needs = f"the CPU would have to supply {wanted}, and it supplies {supplied}."
        return f"To keep {of.them} fed, {needs}", _LESS, _then(step)
    at_once, waits, less = _time_without_waits(pipeline, step), "", _LESS
    if at_once is not None:
        mostly = 2 * at_once < step.resource_times[CPU.name]
        if mostly:
            fewer = [
                remedy
                for remedy, changes in _fewer_reads(pipeline).items()
                if _helps(pipeline, step, changes)
            ]
            less = f"{_either(fewer).capitalize()}: then they wait less."
        waits = (
            f"{'Most' if mostly else 'Part'} of that is {_awaited_of_storage(pipeline)}, in which cores "
            f"idle: without it, preparing would take {_spoken_time(at_once)}."
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
    enough = f"{counted_workers(needed.workers)} instead of {pipeline.workers.count} would keep up"
    if not needed.obstacles:
        return waits, f"{enough}.", "" if less == _LESS else less
    limits = "; ".join(obstacle[0].lower() + obstacle[1:].rstrip(".") for obstacle in needed.obstacles)
    return waits, f"{enough}, but that meets other limits: {limits}.", less


def _time_without_waits(pipeline: Description, step: Step) -> Quantity | None:
    """Return what the CPU would take if its workers never waited for storage; None if that matters little."""
    at_once = {"storage": None}
    if pipeline.numbers["read_wait"] is None or not _helps(pipeline, step, at_once):
        return None
    return pipeline.solve(at_once).resource_times[CPU.name]


def _awaited_of_storage(pipeline: Description) -> str:
    """Return what the workers wait for: the latency of requests, or what storage takes for them."""
    at_once = pipeline.replace({"storage.requests.latency": "0 s"}).numbers["read_wait"] or 0.0
    return "the latency of requests" if at_once < pipeline.numbers["read_wait"] / 2 else "waiting for storage"


def _fewer_reads(pipeline: Description) -> dict[str, Mapping[str, Unchecked]]:
    """What lets storage serve, or workers wait for, fewer requests or more of them at a time."""
    drive = pipeline.storage
    assert drive is not None  # its requests are waited for
    cached, under_way = float(pipeline.numbers["cached_fraction"] or 0), drive.requests.open or 1
    return {
        "read several samples with each request": {"storage.requests.samples": 2 * drive.requests.samples},
        "open more requests at a time": {"storage.requests.open": 2 * under_way},
        f"keep {'more of ' if cached else ''}them in memory": {"storage.cache.share": (1 + cached) / 2},
    }


def _padding(pipeline: Description, step: Step) -> str:
    """Return what padding takes of the useful tokens, where another strategy brings noticeably more."""
    if (
        step.useful_tokens is None
        or step.packed is None
        or step.bottleneck not in (ACCELERATOR.name, LINK.name)
    ):
        return ""
    now, found = step.useful_tokens.m_as("tokens/s"), {}
    for strategy, words in _STRATEGIES.items():
        tried = pipeline.solve({"dataset.packing.strategy": strategy}).useful_tokens
        if tried is not None and exceeds(tried.m_as("tokens/s"), 1.05 * now):
            found[words] = format_number(tried.m_as("tokens/s"))
    if not found:
        return ""
    (words, rate), *others = found.items()
    return (
        f"Padding is {percent(step.packed.padding)} of the tokens, which leaves {format_number(now)} useful "
        f"tokens/s. {words} they would be "
        f"{', '.join([rate, *(f'{words.lower()} {rate}' for words, rate in others)])}."
    )


def _shorter(step: Step, than: Step, times: float) -> bool:
    """True if another step takes more than so many times as long."""
    return bool(exceeds(than.step_time.m_as("ms"), times * step.step_time.m_as("ms")))


def _helps(pipeline: Description, step: Step, changes: Mapping[str, Unchecked]) -> bool:
    """True if a change makes the resource that binds noticeably faster."""
    now, then = (one.resource_times[step.bottleneck].m_as("ms") for one in (step, pipeline.solve(changes)))
    return bool(exceeds(now, 1.05 * then))


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
    verb, time = RESOURCES[slowest].verb, _spoken_time(times[slowest])
    return f"{then} {LABELS[slowest]} would bind: {verb} takes {time}."


def _either(remedies: list[str]) -> str:
    """Alternatives in one list: a, b, or c."""
    return ", or ".join(filter(None, (", ".join(remedies[:-1]), remedies[-1])))


def _awaited(step: Step) -> str:
    return " and ".join(step.awaited.values())


def _spoken_time(time: Quantity) -> str:
    """A time in ms, or in s from ten seconds on."""
    return format_quantity(time.to("s") if time.m_as("s") >= 10 else time)
