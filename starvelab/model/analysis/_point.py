"""Rejects a sweep, or stages that do not overlap, where a question has no answer for these."""

from __future__ import annotations

from ...errors import InputError
from ..description import Description


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
    if not pipeline.overlap:
        raise InputError(
            f"{question} looks at stages that overlap, got overlap=False: then the accelerator always waits. "
            "Pass overlap=True."
        )
