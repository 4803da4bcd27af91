"""A remedy: one change to a job, and by how much it may be faster then."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Remedy:
    """One change."""

    name: str  # short: "workers", "prefetch", "packing" and others
    text: str  # what to change and what that brings, in one or two sentences
    # Throughput over that of now: at worst, likely and at best; None where it cannot be predicted.
    gain: tuple[float, float, float] | None = None
    at_most: bool = False  # the likely gain is only what is possible
    value: int | None = None  # of the setting, where it has one
