"""The faults of the clinic's training script, read from faults.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, mul
from pathlib import Path
from random import Random
from typing import Any

from ...pipeline import Pipeline
from ...tables import cell
from ...units import Q_, Quantity

HOW = {"set": lambda _, size: size, "add": add, "times": mul}


@dataclass(frozen=True)
class Fault:
    """A line of the script that may be wrong, and what that changes of the pipeline; see faults.toml."""

    name: str
    good: str
    bad: str
    path: str
    how: str
    cure: str
    unit: str = ""
    value: Any = None
    of: str = ""
    sizes: Sequence[float] = ()
    whole: bool = False
    shows: str = ""

    def size(self, random: Random, host: Mapping[str, Any], *, harmless: bool) -> Any:
        """Draw how large it is, to three digits; None if it has no harmless size."""
        if self.value is not None:
            return self.value
        *small, least, most = self.sizes
        if harmless and not small:
            return None
        share = small[0] if harmless else random.uniform(least**0.5, most**0.5) ** 2
        size = share * (host[self.of] if self.of else 1) / (1000 if self.unit == "s" else 1)
        return round(size) if self.whole else digits(size)

    def shown(self, size: Any) -> str:
        """A size as a table has it."""
        return cell(Q_(size, self.unit) if self.unit and self.how != "times" else size)


_DATA = tomllib.loads(Path(__file__).with_name("faults.toml").read_text(encoding="utf-8"))
FAULTS = {name: Fault(name=name, **row) for name, row in _DATA["fault"].items()}
UNITS = {fault.path: fault.unit for fault in FAULTS.values() if fault.unit}
SCRIPT, PLACES = _DATA["script"].lstrip(), {name: f"<{name}>" for name in FAULTS}


def digits(value: float) -> float:
    """Return a value to three digits."""
    return float(f"{value:.3g}")


def value_at(pipeline: Pipeline, path: str) -> float:
    """Return a field of a pipeline by its path, in the unit in which sizes of faults are drawn."""
    value: Any = reduce(getattr, path.split("."), pipeline)
    return float(value.m_as(UNITS[path]) if isinstance(value, Quantity) else value)
