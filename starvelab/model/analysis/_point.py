"""Rejection of what has an answer at one point only."""

from __future__ import annotations

import numpy as np

from ...errors import InputError
from ...units import Unchecked
from ..description import Description
from ..step import Step


def one_point(pipeline: Description, question: str, *, whatever: tuple[str, ...] = ()) -> None:
    """Reject a pipeline with swept fields, except those that do not matter to the question."""
    swept = [name for name in pipeline.swept if name not in whatever]
    if swept:
        raise InputError(
            f"{question} looks at one point, got several values of {', '.join(swept)}. "
            "Pass one value of each."
        )


def overlapping(pipeline: Description, question: str) -> None:
    """Reject a pipeline in which nothing overlaps: then no resource hides behind another."""
    if pipeline.overlap and not pipeline.alone:
        return
    got, wanted = "overlap=False: then the accelerator always waits", "overlap=True"
    if pipeline.alone:
        got, wanted = "a loop without workers: then it prepares between its steps", "workers=1"
    raise InputError(f"{question} looks at stages that overlap, got {got}. Pass {wanted}.")


def one_host(pipeline: Description, question: str) -> None:
    """Reject several hosts that take their steps together."""
    if ranks := pipeline.hardware.ranks.given:
        came = ", ".join(f"{name}={value}" for name, value in ranks.items())
        raise InputError(f"{question} looks at one host, got Ranks({came}). Leave ranks out.")


def sorted_by_length(pipeline: Description) -> bool:
    """True if a larger batch has longer rows, so that no cost holds for all batch sizes."""
    packing = pipeline.dataset.packing
    return packing is not None and packing.strategy == "sorted"


def one_cost(pipeline: Description, question: str) -> None:
    """Reject a pipeline of which no cost holds for all batch sizes."""
    if sorted_by_length(pipeline):
        raise InputError(
            f"{question} follows one cost through all batch sizes, got documents sorted by length, whose "
            "rows are longer in a larger batch. Sweep batch_size."
        )


def one_step(step: Unchecked, question: str) -> None:
    """Reject what is no solved pipeline, or one solved at many points."""
    if not isinstance(step, Step):
        raise InputError(
            f"{question} looks at a solved pipeline, got {type(step).__name__}. Pass pipeline.solve()."
        )
    if np.ndim(step.utilization):
        many = np.size(step.utilization)
        raise InputError(f"{question} looks at one point, got {many}. Solve for one.")
