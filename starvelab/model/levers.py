"""The levers: what can be changed about an input pipeline, how to tell that it is the one, and why it works.

`starvelab.measure.diagnose` picks from it.
"""

from __future__ import annotations

from dataclasses import dataclass

from .facts import read_data


@dataclass(frozen=True)
class Advice:
    """One thing to change.

    Attributes
    ----------
    name : str
    parts : tuple of str
        The parts of an input pipeline that it relieves: read, decode, transform, collate, copy, compute.
    diagnose : str
        How to tell that this is the one.
    change : str
    why : str
    """

    name: str
    parts: tuple[str, ...]
    diagnose: str
    change: str
    why: str


def _load() -> tuple[Advice, ...]:
    rows = read_data("levers")["lever"]
    return tuple(Advice(**{**row, "parts": tuple(row["parts"])}) for row in rows)


LEVERS = _load()


def levers_for(part: str) -> tuple[Advice, ...]:
    """Those that relieve that part, the first to try first."""
    return tuple(lever for lever in LEVERS if part in lever.parts)
