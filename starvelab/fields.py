"""What a field of a description holds, in the field's own metadata: unit, sign, range, sweepable or not.

Descriptions are dataclasses (the parts of a pipeline, a set of assumptions). Whatever checks, converts or
lists their fields reads this metadata.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from math import inf
from typing import Any, NamedTuple

import numpy as np

from .errors import InputError
from .units import (
    Q_,
    Number,
    Quantity,
    Unchecked,
    as_quantity,
    check_magnitude,
    format_quantity,
    has_dimension,
    positive,
    positive_int,
)


class Kind(Enum):
    """What a field holds."""

    QUANTITY = "a number with a unit"
    SUPPLY = "a rate in samples or in bytes"
    COUNT = "a whole number"
    NUMBER = "a number without a unit"
    CHOICE = "one of a few words"
    SWITCH = "True or False"
    ENTRY = "an entry of one group of the catalogue"


class SupplyRate(NamedTuple):
    """A rate of preparing in base units, and whether it counts bytes (otherwise it counts samples)."""

    number: Number
    of_bytes: bool


@dataclass(frozen=True)
class Meaning:
    """Describe one field: its kind, the base unit of a quantity, and what values it takes.

    A range has both ends included; an infinite maximum allows infinity itself.
    """

    kind: Kind
    unit: str = ""
    zero: bool = False  # zero is allowed; of a count only as one value
    minimum: float = 0.0
    maximum: float | None = None
    choices: tuple[str, ...] = ()  # words that it may be; in place of a quantity
    sweepable: bool = False  # the field may be an array
    group: str = ""  # of the catalogue
    label: str = ""  # what an error message calls it, where that is not the field of its part
    shown: str = ""  # what people call it in a table or beside a control, where its own name does not say
    stage: str = ""  # what the stages of the model call it, where that is not the field's own name

    def read(self, value: Unchecked, name: str) -> tuple[Unchecked, Number]:
        """The value as a description keeps it, and as a plain number in base units."""
        if self.kind is Kind.QUANTITY and not (isinstance(value, str) and value in self.choices):
            quantity = as_quantity(value, self.unit, name)
            return quantity, positive(quantity, self.unit, name, zero=self.zero)
        if self.kind is Kind.SUPPLY:
            return read_supply(value, name)
        if self.kind is Kind.COUNT:
            if self.zero and not isinstance(value, str) and np.iterable(value) and 0 in value:
                raise InputError(f"{name}=0 is solved by itself, got it among several values. Leave it out.")
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            special = (self.zero and whole and value == 0) or (
                self.maximum == inf and type(value) is float and value == inf
            )
            return value, value if special else positive_int(value, name)
        if self.kind is Kind.NUMBER:
            return value, self._in_range(value, name)
        if self.kind is Kind.SWITCH and not isinstance(value, bool):
            raise InputError(f"{name} must be True or False, got {value!r:.80}. Pass one of these.")
        if self.kind is Kind.CHOICE and value not in self.choices:
            raise InputError(
                f"{name} must be one of {', '.join(self.choices)}, got {value!r:.80}. Pass one of these."
            )
        return value, value

    def _in_range(self, value: Unchecked, name: str) -> Number:
        if self.maximum == inf and value == inf:
            return inf
        number = check_magnitude(value, name, zero=self.zero)
        if self.maximum == 1 and np.any(number > 1):
            raise InputError(f"{name} must be a share up to 1, got {value}. Write 0.5 for 50 %.")
        if np.any(number < self.minimum):
            least = f"{self.minimum:g}"
            raise InputError(f"{name} must be {least} or more, got {value}. Pass {least} or more.")
        return number


def read_supply(value: Unchecked, name: str) -> tuple[Quantity, SupplyRate]:
    """A rate of preparing as a quantity and in base units: samples [sample/time] or bytes [data/time]."""
    rate = Q_(value) if isinstance(value, str) else value
    for unit in ("sample/s", "B/s"):
        if has_dimension(rate, unit):
            return rate, SupplyRate(positive(rate, unit, name), unit == "B/s")
    came = format_quantity(rate) if isinstance(rate, Quantity) else f"{value!r:.80}"
    raise InputError(
        f"{name} must be a rate in samples or in bytes, got {came}. "
        'Write for example Q_("100 img/s") or Q_("250 MB/s").'
    )


# Any: these stand where a dataclass has its default, which may be of any type; the rest are of `Meaning`.
def _field(kind: Kind, default: Any = dataclasses.MISSING, **rest: Any) -> Any:
    """A field of a description that holds one kind of value, with its default."""
    return dataclasses.field(default=default, metadata={"meaning": Meaning(kind, **rest)})


supply, count, number, switch, entry = (
    partial(_field, kind) for kind in (Kind.SUPPLY, Kind.COUNT, Kind.NUMBER, Kind.SWITCH, Kind.ENTRY)
)


def quantity(unit: str, default: Any = dataclasses.MISSING, **rest: Any) -> Any:
    """A field with a unit, named by its base unit: "s", "B", "B/s" or "sample/s"."""
    return _field(Kind.QUANTITY, default, unit=unit, **rest)


def choice(*choices: str, default: Any = dataclasses.MISSING, **rest: Any) -> Any:
    """A field with one of a few words."""
    return _field(Kind.CHOICE, default, choices=choices, **rest)


_MEANINGS: dict[type, Mapping[str, Meaning]] = {}


def meanings(description: type) -> Mapping[str, Meaning]:
    """The meaning of each field of a description that has one, by name."""
    if description not in _MEANINGS:
        given = {field.name: field.metadata.get("meaning") for field in dataclasses.fields(description)}
        _MEANINGS[description] = {name: meaning for name, meaning in given.items() if meaning is not None}
    return _MEANINGS[description]


def shape_of(value: Unchecked) -> tuple[int, ...]:
    """The shape of what a field holds; () for one value, whatever it is."""
    if value is None or type(value) is int or not np.iterable(value):
        return ()
    held: Unchecked = getattr(value, "magnitude", value)
    return np.shape(held)
