"""A few sentences about a pipeline, as a person would say them: what binds, why, and what to do."""

from __future__ import annotations

from ...tables import percent
from ...units import Number, format_number
from ..cost import exceeds
from ..description import Description
from ..resources import ACCELERATOR, CPU, LABELS, RESOURCES, capitalized
from ..stages import HostLoopModel, SerializedCopyModel, SingleNodeModel
from ..stages.step_parts import SingleNodeInputs, launch_wait
from ..step import Step
from ._crossover import crossover
from ._point import one_point
from ._remedies import remedy, time_without_waits
from ._spoken import spoken_time

_CAUSES = {
    "compute": ("arithmetic", "a faster accelerator would shorten it"),
    "memory": ("memory traffic", "a larger batch does more arithmetic for each byte"),
    "overhead": ("fixed overhead", "a larger batch spreads that over more samples"),
    "input": ("input work that was moved onto it", "some may be better left to the CPU"),
}
# What belongs to the accelerator's part of a step though it does not work then.
_AWAITED = {SerializedCopyModel.NAME: "the copy", HostLoopModel.NAME: "the training loop"}


def explain(pipeline: Description, *, advice: bool = True) -> str:
    """Say what binds, by how much, and what to do next."""
    one_point(pipeline, "explain")
    step = pipeline.solve()
    if not pipeline.overlap:
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
    best = pipeline.solve(overlap=True)
    return (
        f"Nothing overlaps, so all stages add up to {spoken_time(step.step_time)}, and "
        f"{_accelerators(pipeline)} {_are(pipeline)} busy {percent(step.utilization)} of that.",
        step.spoken_busy,
        "Prefetch batches, so that the slowest resource alone sets the step: that would be "
        f"{LABELS[best.bottleneck]}, with {spoken_time(best.step_time)}.",
    )


def _fed(pipeline: Description, step: Step) -> tuple[str, ...]:
    following = step.next_bottleneck
    who, each, batch = "The accelerator binds", "it", "it"
    if step.accelerators > 1:
        who, each, batch = f"The {step.accelerators} accelerators bind", "each", "one for each"
    awaited = _awaited(step)
    together = f"together with {' and '.join(awaited.values())} " if awaited else ""
    evidence = (
        f"{who}: {together}{each} needs {spoken_time(step.resource_times[ACCELERATOR.name])} for a batch of "
        f"{pipeline.batch_size}, and {LABELS[following]} has {RESOURCES[following].done} {batch} in "
        f"{spoken_time(step.resource_times[following])}."
    )
    found = crossover(pipeline)
    if found.starves_from is not None and found.starves_from > pipeline.batch_size:
        later = f"From batch {found.starves_from} on {LABELS[found.resource]} would bind."
    else:
        later = _spare(pipeline, step)
    # Where launching takes longest, a larger batch is the advice, and it has been given.
    cause = "" if _launching(pipeline) > 0 else _cause(pipeline, step)
    return evidence, _idle(pipeline, step), cause, later


def _launching(pipeline: Description) -> Number:
    """How long the accelerator waits for launches in a step [s]."""
    model = pipeline.inputs[SingleNodeModel.NAME]
    assert isinstance(model, SingleNodeInputs)
    return launch_wait(model, pipeline.numbers["batch_size"])


def _idle(pipeline: Description, step: Step) -> str:
    """What the accelerator waits for within its part of the step, and how busy that leaves it."""
    awaited, launching = _awaited(step), _launching(pipeline)
    if launching > 0:
        own = spoken_time(step.step_time * step.utilization)
        return (
            f"Launching its kernels takes the host longer than the {own} that they run, so "
            f"{_accelerators(pipeline)} {_are(pipeline)} busy {percent(step.utilization)} of each step: a "
            "larger batch has more work for each launch, and a step that is compiled is launched once."
        )
    if not awaited:
        return ""
    taken = (f"{label} takes {spoken_time(step.stage_times[stage])}" for stage, label in awaited.items())
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
        more = (c for c, stage in on_top.items() if _exceeds_model(step, stage))
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


def _exceeds_model(step: Step, stage: str) -> bool:
    return stage in step.stage_times and bool(step.stage_times[stage] > step.stage_times["model"])


def _spare(pipeline: Description, step: Step) -> str:
    """How much faster the accelerator would have to be before the next resource binds."""
    own, ready = (step.resource_times[name].m_as("ms") for name in (ACCELERATOR.name, step.next_bottleneck))
    label, subject = LABELS[step.next_bottleneck], capitalized(step.next_bottleneck)
    if not exceeds(own, ready):
        return f"{subject} takes equally long: if it were any slower, it would bind."
    waits = sum(step.stage_times[stage].m_as("ms") for stage in _awaited(step))
    if _launching(pipeline) > 0:  # a faster accelerator launches no faster
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
    if name == CPU.name and time_without_waits(pipeline, step) is not None:
        # Its cores are idle then: calling it the CPU alone would send people to buy some.
        who, verb = "The CPU, whose workers wait for storage,", "waiting for and preparing"
    awaited = f" with {' and '.join(_awaited(step).values())}" if _awaited(step) else ""
    evidence = (
        f"{who} binds: {verb} {a_batch} takes {spoken_time(step.step_time)}, so {_accelerators(pipeline)}, "
        f"which {need} {spoken_time(step.resource_times[ACCELERATOR.name])}{each}{awaited}, "
        f"{_are(pipeline)} busy {percent(step.utilization)} of each step and {wait} for the rest."
    )
    return evidence, step.spoken_busy, *remedy(pipeline, step)
