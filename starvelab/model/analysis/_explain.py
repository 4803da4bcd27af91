"""A few sentences about a pipeline, as a person would say them: what binds, why, and what would help."""

from __future__ import annotations

from ...errors import check_flag
from ...tables import percent
from ...units import Q_, Quantity, format_quantity
from ..costs import exceeds
from ..description import Description, check_asked
from ..parts import Workers
from ..resources import ACCELERATOR, CPU, RESOURCES, STORAGE, capitalized
from ..stages import DataModel, DeviceInputModel, SingleNodeModel
from ..step import Step
from ._crossover import crossover
from ._remarks import foreign_rate, foreign_samples
from ._remedies import remedies
from ._workers_needed import workers_needed

_CAUSES = {
    "compute": "arithmetic",
    "memory": "memory traffic",
    "overhead": "fixed overhead",
    "input": "input work that was moved onto it",
}


def explain(pipeline: Description, *, advice: bool = True) -> str:
    """Say what binds, by how much, and what would help.

    Parameters
    ----------
    advice : bool
        True to add what would help.

    Notes
    -----
    Changes are tried one at a time. Those that bring at least half a percent more samples a second are named,
    with what they bring.

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline
    >>> print(Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100).explain(advice=False))
    The workers bind: preparing a batch of 256 takes 64 ms, so the GPU, which needs 11.74 ms, is busy 18.3 %
    of each step and waits for the rest.
    """
    check_asked(pipeline, "explain")
    check_flag(advice, "advice")
    step = pipeline.solve()
    memory = "" if step.feasible else f"{step.infeasible_reason} What follows assumes enough memory."
    evidence, *details = _evidence(pipeline, step)
    if not advice:
        return " ".join(filter(None, (memory, evidence)))
    needed = None
    if isinstance(pipeline.workers, Workers) and pipeline.overlap and step.stall > 0:
        needed = workers_needed(pipeline.replace(workers=1) if pipeline.alone else pipeline)
    if needed is not None and not needed.feasible and (pipeline.alone or step.bottleneck == CPU.name):
        obstacles = (obstacle for obstacle in needed.obstacles if obstacle != step.infeasible_reason)
        details += [needed.summary, *obstacles]
    of_samples = foreign_samples(pipeline), foreign_rate(pipeline)
    sentences = evidence, step.spoken_busy, *details, remedies(pipeline, step, needed), *of_samples
    return " ".join(filter(None, (memory, *sentences)))


def _evidence(pipeline: Description, step: Step) -> tuple[str, ...]:
    """Return which resource binds, with its time and the accelerator's, and what is known of its time."""
    times, labels, share = step.resource_times, step.labels, percent(step.utilization)
    label, chip = labels[ACCELERATOR.name], labels.the(ACCELERATOR.name)
    several = step.accelerators * step.hosts > 1
    busy = f"{chip}s are" if several else f"{chip} is"
    if pipeline.alone or not pipeline.overlap:
        why = "The training loop prepares its batches itself, so a step takes"
        why = why if pipeline.alone else "Nothing overlaps, so all stages add up to"
        return (f"{why} {spoken_time(step.step_time)}, and {busy} busy {share} of that.",)
    if exceeds(step.step_time.m_as("ms"), times[step.bottleneck].m_as("ms")):
        taken = [f"{labels.the(name)} {spoken_time(time)}" for name, time in times.items()]
        if way := pipeline.numbers["way"]:
            taken.append(f"a batch's way to the loop {spoken_time(Q_(1e3 * way, 'ms'))}")
        waits = f"Parts of a step wait for each other: it takes {spoken_time(step.step_time)}, and of that"
        return (f"{waits} {', '.join(taken)}. So {busy} busy {share} of it.",)
    own, batch = spoken_time(times[ACCELERATOR.name]), f"a batch of {pipeline.batch_size}"
    if step.bottleneck == ACCELERATOR.name:
        subject, it = f"{capitalized(labels.does(ACCELERATOR.name, 'bind'))}: it needs", "it"
        if step.accelerators > 1:
            subject, it = f"The {step.accelerators} {label}s bind: each needs", "one for each"
        ready = f"{labels.does(step.next_bottleneck, 'have')} {RESOURCES[step.next_bottleneck].done} {it}"
        spare = f"and {ready} in {spoken_time(times[step.next_bottleneck])}."
        return f"{subject} {own} for {batch}, {spare}", _cause(step), _starves_later(pipeline)
    verb, each = RESOURCES[step.bottleneck].verb, f" for each {label}" if step.accelerators > 1 else ""
    who = f"{chip}s, which need {own} each, are" if several else f"{chip}, which needs {own}, is"
    binds, idle = capitalized(labels.does(step.bottleneck, "bind")), _idle_cores(step)
    if idle:  # the workers alone would send people to buy cores
        binds, verb = f"{binds}, and wait for {labels.the(STORAGE.name)}", f"waiting for and {verb}"
    limits = DataModel.terms(DataModel.among(pipeline.inputs)) if step.bottleneck == STORAGE.name else {}
    if len(limits) > 1:
        binds = f"{binds}, limited by {max(limits, key=limits.__getitem__)}"
    return (
        f"{binds}: {verb} {batch}{each} takes "
        f"{spoken_time(step.step_time)}, so {who} busy {share} of each step and "
        f"{'wait' if several else 'waits'} for the rest.",
        idle,
        _binds_next(step),
    )


def _cause(step: Step) -> str:
    """Return the largest part of the accelerator's own time, as far as that is known."""
    cause, chip, time = step.cause, step.labels[ACCELERATOR.name], step.stage_times[SingleNodeModel.NAME]
    moved = step.stage_times.get(DeviceInputModel.NAME, 0 * time) > time
    if step.basis.startswith("measured") and cause != "overhead" and not moved:
        return f"The {chip}'s own time comes from a measured rate."
    extrapolated = step.basis.startswith("extrapolated")
    source = "is extrapolated from a measured rate, and " if extrapolated else ""
    return f"The {chip}'s own time {source}is mostly {_CAUSES[cause]}."


def _starves_later(pipeline: Description) -> str:
    """Return from which batch size on the accelerator would wait; empty where it never does."""
    crossing = crossover(pipeline)
    if (crossing.starves_from or 0) <= pipeline.batch_size:
        return ""
    then = f"{pipeline.labels.the(crossing.resource)} would bind"
    if pipeline.solve(batch_size=crossing.starves_from).bottleneck == ACCELERATOR.name:
        then = "parts of a step would wait for each other"
    return f"From batch {crossing.starves_from} on {then}."


def _idle_cores(step: Step) -> str:
    """Return how long workers that bind only wait for storage, where that is a twentieth of it or more."""
    waits, taken = step.waits.get(CPU.name), step.resource_times[CPU.name]
    if step.bottleneck != CPU.name or waits is None or 20 * waits < taken:
        return ""
    return f"For {spoken_time(waits)} of that their cores idle."


def _binds_next(step: Step) -> str:
    """Return what would bind next, where another resource starves the accelerator as well."""
    others = {name: t for name, t in step.resource_times.items() if name != step.bottleneck}
    slowest = max(others, key=lambda name: others[name].m_as("ms"))
    if slowest == ACCELERATOR.name:
        return ""
    verb, time = RESOURCES[slowest].verb, spoken_time(others[slowest])
    return f"Next {step.labels.the(slowest)} would bind: {verb} takes {time}."


def spoken_time(time: Quantity) -> str:
    """Return a time in ms, or in s from ten seconds on."""
    return format_quantity(time.to("s") if time.m_as("s") >= 10 else time)
