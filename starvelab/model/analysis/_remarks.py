"""What is said below a step of where its numbers come from, as far as other solves are needed for it."""

from __future__ import annotations

import numpy as np

from ..description import Description
from ..resources import STORAGE
from ..step import Step


def remarks(pipeline: Description, step: Step) -> tuple[str, ...]:
    """What of a step nobody measured, and what its pipeline leaves open."""
    return (
        _basis(pipeline, step),
        _requests(pipeline, step),
        pipeline.foreign_samples,
        pipeline.foreign_rate,
    )


def _basis(pipeline: Description, step: Step) -> str:
    """Where the accelerator's time comes from, if a measured rate was asked for and there is none."""
    if step.basis.startswith("extrapolated"):
        return f"The accelerator's time is {step.basis.partition(':')[0]}."
    if pipeline.assumptions.measured_rates and not step.basis.startswith("measured"):
        return f"The accelerator's time is assumed: {step.basis}, for want of a measured rate."
    return ""


def _requests(pipeline: Description, step: Step) -> str:
    """What a request is taken to bring, where that sets the step and the pipeline does not say."""
    if (
        np.ndim(step.utilization)
        or step.bottleneck != STORAGE.name
        or pipeline.numbers["samples_per_request"] != 1
    ):
        return ""
    packed = pipeline.solve({"storage.samples_per_request": 2})
    if packed.stage_times["read"] > 0.9 * step.stage_times["read"]:
        return ""
    return "Each request reads one sample, a file of its own: of packed ones pass samples_per_request."
