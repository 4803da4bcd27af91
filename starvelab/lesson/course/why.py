"""Why a script of the clinic takes as long as it does for a batch: sums that a learner can check."""

from __future__ import annotations

from ...model.resources import ACCELERATOR, capitalized
from ...model.stages import STAGES
from ...pipeline import Pipeline
from ...units import Q_, Quantity

RESOURCE = {stage.NAME: stage.RESOURCE for stage in STAGES}
# A share of the batch's time that is too small to be named.
SMALL = 0.03
LATE = "A batch that comes late holds up those behind it: {} ms."
EMPTY = "An epoch begins with an empty queue: {} ms."


def reason(pipeline: Pipeline, batch_time: Quantity) -> str:
    """Return a sum that explains the time of a batch: what binds, late batches, and starts of epochs.

    Parameters
    ----------
    pipeline : Pipeline
        Of one point.
    batch_time : quantity [time]
        What a batch took in a simulation whose epochs end.
    """
    total, step = float(batch_time.m_as("ms")), pipeline.solve()
    stages = {
        name: float(time.m_as("ms"))
        for name, time in step.stage_times.items()
        if RESOURCE[name].name == step.bottleneck
    }
    terms = {name: time for name, time in stages.items() if time > SMALL * total / 2}
    binding = float(step.resource_times[step.bottleneck].m_as("ms"))
    endless = pipeline.simulate(batches=600, replicas=4, warm_up=200)
    steady = float((Q_(step.batch_size, "sample") / endless.throughput).m_as("ms"))
    # With as many decimals as the smallest of them needs, so that they add up as they are written.
    decimals = int(min(terms.values()) < 9.95)
    added = " + ".join(f"{_work(name)} {time:.{decimals}f}" for name, time in terms.items())
    whole = sum(round(time, decimals) for time in terms.values())
    equals = f" = {whole:.{decimals}f}" if len(terms) > 1 else ""
    waits = {1: "", 2: ": each batch waits for both"}.get(len(terms), ": each batch waits for all")
    told = [f"{capitalized(step.labels[step.bottleneck])}: {added}{equals} of {_ms(total)} ms{waits}."]
    for text, extra in ((LATE, steady - binding), (EMPTY, total - steady)):
        if extra > SMALL * total:
            told.append(text.format(_ms(extra)))
    return " ".join(told)


def _work(stage: str) -> str:
    resource = RESOURCE[stage]
    return stage if resource == ACCELERATOR else resource.verb.removesuffix(" on")


def _ms(time: float) -> str:
    return f"{time:.0f}" if time >= 9.95 else f"{time:.1f}"
