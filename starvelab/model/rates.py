"""Measured training rates, one row for each accelerator, model, framework, precision and phase."""

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
