"""Measured rates of accelerators, and what a host was measured to take for launching a step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ..units import as_quantity, positive
from .catalogue import Entry
from .data_files import read_data
from .facts import Fact


@dataclass(frozen=True)
class Rate:
    """A measured training rate [sample/time] of one model on one accelerator."""

    hardware: str
    model: str
    framework: str
    precision: str
    phase: str
    fact: Fact
    batch_size: int | None
    default: bool

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What was measured: the paths of the accelerator and the model, precision and phase."""
        return self.hardware, self.model, self.precision, self.phase

    def is_of(self, framework: str | None) -> bool:
        """Whether it was measured in that framework; without one, whether it is the default."""
        return self.default if framework is None else self.framework == framework


@dataclass(frozen=True)
class Launch:
    """How long a framework takes on one host to launch a forward pass of ResNet-50 [time]."""

    hardware: str
    framework: str
    fact: Fact
    default: bool


@cache
def measured_rates() -> tuple[Rate, ...]:
    """Every measured rate of ``data/rates.toml``."""
    rates = []
    for row in read_data("rates")["rate"]:
        what = f"the rate of {row['model']} on {row['hardware']}"
        value = as_quantity(row["value"], "img/s", what)
        positive(value, "img/s", what)
        fact = Fact(value, row["kind"], row.get("source", ""), row.get("note", ""))
        keys = ("hardware", "model", "framework", "precision", "phase")
        described = {key: row[key] for key in keys}
        rates.append(
            Rate(**described, fact=fact, batch_size=row.get("batch_size"), default=row.get("default", False))
        )
    return tuple(rates)


def measured_rate(
    *, hardware: Entry, model: Entry, precision: str, phase: str, framework: str | None = None
) -> Rate | None:
    """The measured rate of a model on an accelerator, or None where nobody has published one.

    Without a framework, the row that the file marks as its default.
    """
    for rate in measured_rates():
        if rate.is_of(framework) and rate.key == (hardware.path, model.path, precision, phase):
            return rate
    return None


@cache
def _launches() -> tuple[Launch, ...]:
    found = []
    for row in read_data("rates")["launch"]:
        ends = {end: as_quantity(row[end], "ms", end) for end in ("value", "low", "high")}
        fact = Fact(**ends, kind=row["kind"], source=row.get("source", ""), note=row["note"])
        found.append(Launch(row["hardware"], row["framework"], fact, row.get("default", False)))
    return tuple(found)


@cache
def launch_time(framework: str, hardware: str) -> Fact:
    """How long a forward pass of ResNet-50 takes to launch, on the host of an accelerator.

    A host on which nobody measured the framework takes what its default row says, and lies between the
    lowest and the highest of all its rows; so does a framework that nobody measured, with those of PyTorch.
    """
    name = framework.partition(" (")[0]
    rows = [row for row in _launches() if row.framework == name]
    rows = rows or [row for row in _launches() if row.framework == "PyTorch"]
    for row in rows:
        if row.hardware == hardware:
            return row.fact
    default = next(row.fact for row in rows if row.default)
    ends = min(row.fact.low for row in rows), max(row.fact.high for row in rows)
    return Fact(default.value, default.kind, default.source, default.note, *ends)
