"""The plain numbers that a formula reads, resolved once from quantities and catalogue entries."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Self

from ..units import Number, exact


@dataclass(frozen=True)
class Inputs:
    """The numbers of one formula, in base units: floats, arrays, or fractions after `exactly`."""

    def exactly(self) -> Self:
        """The same with every float as the fraction of the decimal number that was meant.

        Raises
        ------
        InputError
            If a value is an array.
        """
        fields = dataclasses.fields(self)
        return dataclasses.replace(self, **{f.name: _exactly(getattr(self, f.name), f.name) for f in fields})


def _exactly(value: Number, name: str) -> Number:
    if isinstance(value, Inputs):
        return value.exactly()
    return value if value is None or isinstance(value, str | bool) else exact(value, name)
