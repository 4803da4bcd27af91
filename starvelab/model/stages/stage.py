"""What the four stage models have in common: the assumptions they go by.

It does not know what any of them does with them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..assumptions import TUTORIAL, Assumptions, check_assumptions


@dataclass(frozen=True)
class Stage:
    """A stage model; `TUTORIAL` unless other assumptions are given."""

    assumptions: Assumptions = TUTORIAL

    def __post_init__(self) -> None:
        check_assumptions(self.assumptions)
