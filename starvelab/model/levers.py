"""The levers: what can be changed about an input pipeline, how to tell that it is the one, and why it works.

`starvelab.measure.diagnose` picks from it.
"""

from __future__ import annotations

from dataclasses import dataclass

from .facts import read_data


@dataclass(frozen=True)
class Advice:
    """One thing to change, how to tell that it is the one, and why it works."""

    name: str
    parts: tuple[str, ...]  # of an input pipeline that it relieves: read, decode, transform, collate, ...
    diagnose: str
    change: str
    why: str


LEVERS = tuple(Advice(**{**row, "parts": tuple(row["parts"])}) for row in read_data("levers")["lever"])


def levers_for(part: str) -> tuple[Advice, ...]:
    """Those that relieve that part, the first to try first."""
    return tuple(lever for lever in LEVERS if part in lever.parts)
