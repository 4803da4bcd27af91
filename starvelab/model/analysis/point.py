"""Some questions have an answer at one point only; this says so to who asks them of a sweep.

It knows which fields are arrays, not what is asked.
"""

from __future__ import annotations

from typing import Any

from ...errors import InputError


def one_point(pipeline: Any, question: str, *, whatever: tuple[str, ...] = ()) -> None:
    """Refuse a pipeline with swept fields, except those that do not matter to the question."""
    swept = [name for name in pipeline.swept if name not in whatever]
    if swept:
        raise InputError(
            f"{question} looks at one point, got several values of {', '.join(swept)}. "
            "Pass one value of each."
        )


def overlapping(pipeline: Any, question: str) -> None:
    """Refuse a pipeline in which nothing overlaps: then no resource hides behind another."""
    if not pipeline.overlap:
        raise InputError(
            f"{question} looks at stages that overlap, got overlap=False: then the accelerator always waits. "
            "Pass overlap=True."
        )
