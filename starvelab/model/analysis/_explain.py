"""A few sentences about a pipeline, as a person would say them: what binds, why, and what to do."""

from __future__ import annotations

from typing import NamedTuple

from ...errors import MissingValueError, check_flag
from ...tables import percent
from ...units import Q_, format_number
from ..costs import exceeds
from ..description import Description, check_asked
from ..parts import Workers
from ..resources import ACCELERATOR, CPU, RESOURCES, STORAGE, capitalized
from ..stages import BarrierModel, SerializedCopyModel, SingleNodeModel
from ..step import Step
from ._accelerators_fed import launching
from ._crossover import crossover
from ._remarks import foreign_rate, foreign_samples
from ._remedies import (
    MIN_GAIN,
    relieved,
    remedies,
    shortens,
    shorter,
    spoken_time,
    time_without_waits,
)
from ._workers_needed import workers_needed

_CAUSES = {
    "compute": "arithmetic",
    "memory": "memory traffic",
    "overhead": "fixed overhead",
    "input": "input work that was moved onto it",
}


class _Words(NamedTuple):
    """How sentences speak of one accelerator or of several."""

    who: str
    are: str = "is"
    need: str = "needs"
    each: str = ""
    wait: str = "waits"


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
    The GPU binds: it needs 5.436 ms for a batch of 16, and the workers have prepared it in 4 ms. The largest
    part of each step is fixed overhead: a larger batch, which takes more memory, spreads that over more
    samples. From batch 23 on the workers would bind.
    """
    check_asked(pipeline, "explain")
    check_flag(advice, "advice")
    step = pipeline.solve()
    tell, several = _starved, step.accelerators * step.hosts > 1
    if pipeline.alone or not pipeline.overlap:
        tell = _in_turn
    elif exceeds(step.step_time.m_as("ms"), step.resource_times[step.bottleneck].m_as("ms")):
        tell = _taking_turns
    elif step.bottleneck == ACCELERATOR.name:
        tell = _fed
    chip = step.labels.the(ACCELERATOR.name)
    words = _Words(f"{chip}s", "are", "need", " each", "wait") if several else _Words(chip)
    sentences = tell(pipeline, step, words)
    foreign = foreign_samples(pipeline), foreign_rate(pipeline)
    sentences = (*sentences, *_ranks(pipeline, step), *foreign) if advice else sentences[:1]
    memory = "" if step.feasible else f"{step.infeasible_reason} What follows assumes enough memory."
    return " ".join(filter(None, (memory, *sentences)))


def _in_turn(pipeline: Description, step: Step, of: _Words) -> tuple[str, ...]:
    why, remedy = (
        "Nothing overlaps, so all stages add up to",
        "Prefetch batches, so that the slowest resource alone sets the step: that would be {}, with {}.",
    )
    tries: list[tuple[str, Description]] = [("", pipeline.replace(overlap=True))]
    if pipeline.alone:
        why = "The training loop prepares its batches itself, so a step takes"
        remedy = "{}, so that batches are prepared meanwhile: then {} would bind, with {}."
        tries = [("Start a worker", tries[0][1].replace(workers=1))]
        enough = workers_needed(tries[0][1]).workers
        if enough is not None:
            tries.append((f"Start {enough} workers", tries[0][1].replace(workers=enough)))
    advice = ""
    for change, better in tries:
        solved = better.solve()
        if shorter(solved, step, MIN_GAIN):
            bound, time = solved.labels.the(solved.bottleneck), spoken_time(solved.step_time)
            advice = remedy.format(change, bound, time) if change else remedy.format(bound, time)
            break
    busy = f"and {of.who} {of.are} busy {percent(step.utilization)} of that."
    return f"{why} {spoken_time(step.step_time)}, {busy}", step.spoken_busy, advice


def _ranks(pipeline: Description, step: Step) -> tuple[str, ...]:
    """What a step waits for one of several hosts or ranks, and what it would be without."""
    slow, said = float(pipeline.hardware.ranks.slow), []
    if step.hosts > 1 and slow > 1 and pipeline.overlap:
        even = pipeline.solve({"hardware.ranks.slow": 1})
        if shorter(even, step, 1.005):
            said.append(
                f"That is one of {step.hosts} hosts, which prepares {format_number(slow, 3)} times as slowly:"
                " its queue is empty, those of the others are full, and all wait for it. At the pace of the "
                f"others a step would take {spoken_time(even.step_time)}."
            )
    spread = pipeline.hardware.ranks.spread
    if BarrierModel.NAME in step.stage_times and spread is not None:
        half = pipeline.solve({"hardware.ranks.spread": spread / 2})
        if shorter(half, step, 1.005):
            said.append(
                f"Each step waits {spoken_time(step.stage_times[BarrierModel.NAME])} on average for the "
                f"slowest of {step.accelerators * step.hosts} ranks; with half the spread it would take "
                f"{spoken_time(half.step_time)}."
            )
    return tuple(said)


def _taking_turns(pipeline: Description, step: Step, of: _Words) -> tuple[str, ...]:
    """Too few steps or batches may be under way, so that parts which would overlap wait for each other."""
    taken = [f"{step.labels.the(name)} {spoken_time(time)}" for name, time in step.resource_times.items()]
    if way := pipeline.numbers["way"]:
        taken.append(f"a batch's way to the loop {spoken_time(Q_(1e3 * way, 'ms'))}")
    few = {
        "hardware.in_flight": pipeline.hardware.in_flight,
        "workers.prefetch": pipeline.numbers["prefetch"],
    }
    gains = []
    for path, now in few.items():
        if path == "hardware.in_flight" or isinstance(pipeline.workers, Workers):
            more = pipeline.solve({path: now + 1})
            if shorter(more, step, 1.05):
                name = path.rpartition(".")[2]
                gains.append(f"With {name}={now + 1} a step would take {spoken_time(more.step_time)}.")
    return (
        f"Parts of a step wait for each other: it takes {spoken_time(step.step_time)}, and of that "
        f"{', '.join(taken)}. So {of.who} {of.are} busy {percent(step.utilization)} of it.",
        step.spoken_busy,
        *gains,
        *relieved(pipeline, step),
    )


def _fed(pipeline: Description, step: Step, of: _Words) -> tuple[str, ...]:
    work, following = step.resource_times[ACCELERATOR.name], step.next_bottleneck
    chip = step.labels[ACCELERATOR.name]
    who, which, batch = f"The {chip} binds", "it", "it"
    if step.accelerators > 1:
        who, which, batch = f"The {step.accelerators} {chip}s bind", "each", "one for each"
    together = f"together with {' and '.join(step.awaited.values())} " if step.awaited else ""
    evidence = (
        f"{who}: {together}{which} needs {spoken_time(work)} for a batch of {pipeline.batch_size}, and "
        f"{step.labels.does(following, 'have')} {RESOURCES[following].done} {batch} in "
        f"{spoken_time(step.resource_times[following])}."
    )
    busy = f"so {of.who} {of.are} busy {percent(step.utilization)} of"
    idle, cause = "", _cause(pipeline, step)
    if launching(pipeline) > 0:
        # Where launching takes longest, a larger batch is the advice, and it is given here.
        work, cause = step.step_time * step.utilization, ""
        idle = (
            f"Launching its kernels takes the host longer than the {spoken_time(work)} that they run, {busy}"
        )
        idle += f" each step{_launched_less(pipeline, step)}."
    elif step.awaited:
        taken = (f"{what} takes {spoken_time(step.stage_times[s])}" for s, what in step.awaited.items())
        idle = f"In each step {' and '.join(taken)}, {busy} it."
        if SerializedCopyModel.NAME in step.awaited:
            overlapping = {"link.overlaps": True, "link.pinned": True}
            if shortens(pipeline, step, overlapping):
                pinned = "" if pipeline.numbers["pinned"] else "from pinned memory and "
                idle += f" The copy would overlap {pinned}on a stream of its own."
    crossing = crossover(pipeline)
    later = _spare(pipeline, step, of)
    if (crossing.starves_from or 0) > pipeline.batch_size:
        then = f"{step.labels.the(crossing.resource)} would bind"
        if pipeline.solve(batch_size=crossing.starves_from).bottleneck == ACCELERATOR.name:
            then = "parts of a step would wait for each other"
        later = f"From batch {crossing.starves_from} on {then}."
    return evidence, idle, cause, later


def _cause(pipeline: Description, step: Step) -> str:
    """Return what the accelerator's own time is made of, as far as that is known."""
    cause, source, chip = step.cause, "", step.labels[ACCELERATOR.name]
    if step.basis.startswith("measured"):
        # What a step whose time was measured is made of is a guess; what comes on top of it is known.
        time, on_top = step.stage_times["model"], {"input": "input on device", "overhead": "step overhead"}
        longer = (name for name, stage in on_top.items() if step.stage_times.get(stage, 0 * time) > time)
        cause = next(longer, "overhead" if cause == "overhead" else "")
        if not cause:
            return f"The {chip}'s own time comes from a measured rate."
    elif step.basis.startswith("extrapolated"):
        source = f"The {chip}'s own time is extrapolated from a measured rate. "
    advice = _for_cause(pipeline, step, cause, extrapolated=bool(source))
    rest = "the rest" if step.awaited else "each step"
    return f"{source}The largest part of {rest} is {_CAUSES[cause]}{f': {advice}' if advice else ''}."


def _for_cause(pipeline: Description, step: Step, cause: str, *, extrapolated: bool) -> str:
    """Return what would make the accelerator's own time shorter, as far as it shortens the step."""
    if cause == "input":
        less = {"dataset.on_device.time": Q_(pipeline.dataset.on_device.time) / 2}
        return "some may be better left to the workers" if shortens(pipeline, step, less) else ""
    larger = _larger_batch(pipeline, step)
    if cause == "overhead":
        return f"{larger} spreads that over more samples" if larger else ""
    if cause == "memory" and not extrapolated:
        return f"{larger} does more arithmetic for each byte" if larger else ""
    # Under the law of measured rates memory traffic is that of activations, which a larger batch does not
    # spread. Twice the rate stands for a faster accelerator, or for faster memory.
    faster = {"hardware.rate": 2 * step.batch_size / step.stage_times[SingleNodeModel.NAME] * Q_("1 img")}
    better = []
    if pipeline.hardware.precision in ("fp32", "tf32") and _shortens_at_half_precision(pipeline, step):
        better.append("lower precision")
    if shortens(pipeline, step, faster):
        better.append("faster memory" if cause == "memory" else f"a faster {step.labels[ACCELERATOR.name]}")
    return f"{' or '.join(better)} would shorten it" if better else ""


def _shortens_at_half_precision(pipeline: Description, step: Step) -> bool:
    try:
        return shortens(pipeline, step, {"hardware.precision": "fp16"})
    except MissingValueError:
        return False


def _larger_batch(pipeline: Description, step: Step) -> str:
    """Return how to speak of a larger batch, where one of twice the size trains noticeably more samples."""
    twice = pipeline.solve(batch_size=2 * pipeline.batch_size)
    gain = (twice.throughput / step.throughput).m_as("")
    if not (twice.feasible or not step.feasible) or not exceeds(gain, MIN_GAIN):
        return ""
    training = (pipeline.phase or pipeline.assumptions.phase) == "training"
    return f"a larger batch, which takes more memory{' and a higher learning rate' if training else ''},"


def _launched_less(pipeline: Description, step: Step) -> str:
    """Return what makes launching take less of a step, as far as it was tried and shortens the step."""
    larger, better = _larger_batch(pipeline, step), []
    if larger:
        better.append(f"{larger} has more work for each launch")
    if shortens(pipeline, step, {"hardware.rate": pipeline.hardware.framework.replace(compiled=True)}):
        better.append("a step that is compiled is launched once")
    return f": {', and '.join(better)}" if better else ""


def _spare(pipeline: Description, step: Step, of: _Words) -> str:
    """How much faster the accelerator would have to be before the next resource binds."""
    work, ready = (step.resource_times[name].m_as("ms") for name in (ACCELERATOR.name, step.next_bottleneck))
    label, chip = step.labels.the(step.next_bottleneck), step.labels[ACCELERATOR.name]
    subject = capitalized(step.labels.does(step.next_bottleneck, "take"))
    if not exceeds(work, ready):
        return f"{subject} equally long: any slower, and {label} would bind."
    # A faster accelerator launches no faster.
    launches = [SingleNodeModel.NAME] if launching(pipeline) > 0 else []
    waits = sum(step.stage_times[stage].m_as("ms") for stage in (*step.awaited, *launches))
    if waits >= ready:
        return f"However fast the {chip} itself were, {label} would not bind."
    times = (work - waits) / (ready - waits)
    if times < 1.005:
        return f"{subject} almost as long."
    # A larger factor says nothing that a person would act on.
    spare = "more than a hundred" if times > 100 else format_number(times, 3)
    bound = step.labels.does(step.next_bottleneck, "bind")
    return f"{capitalized(of.who)} would have to be {spare} times as fast before {bound}."


def _starved(pipeline: Description, step: Step, of: _Words) -> tuple[str, ...]:
    name, a_batch = step.bottleneck, f"a batch of {pipeline.batch_size}"
    if step.accelerators > 1:
        a_batch += f" for each of the {step.accelerators} {step.labels[ACCELERATOR.name]}s"
    binds, verb = step.labels.does(name, "bind"), RESOURCES[name].verb
    if name == CPU.name and time_without_waits(pipeline, step) is not None:
        # The cores are idle then: the workers alone would send people to buy some.
        binds, verb = f"{binds}, and wait for {step.labels.the(STORAGE.name)}", "waiting for and preparing"
    awaited = f" with {' and '.join(step.awaited.values())}" if step.awaited else ""
    needed = spoken_time(step.resource_times[ACCELERATOR.name])
    evidence = (
        f"{capitalized(binds)}: {verb} {a_batch} takes {spoken_time(step.step_time)}, so {of.who}, "
        f"which {of.need} {needed}{of.each}{awaited}, {of.are} busy "
        f"{percent(step.utilization)} of each step and {of.wait} for the rest."
    )
    return evidence, step.spoken_busy, *remedies(pipeline, step)
