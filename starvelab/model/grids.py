"""Grids: how much CO2 is emitted for the electricity of a country."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ..errors import UnknownNameError
from ..units import Quantity, Unchecked, as_quantity, nonnegative
from .data_files import read_data
from .facts import Fact


@cache
def grids() -> Mapping[str, Fact]:
    """The carbon intensity [mass/energy] of each country of ``data/grids.toml``."""
    rows = read_data("grids")["carbon_intensity"]
    return {
        name: Fact(**{**row, "value": as_quantity(row["value"], "g/kWh", name)}) for name, row in rows.items()
    }


def carbon_intensity(grid: Unchecked) -> Quantity:
    """The carbon intensity [mass/energy] of a country, or the one that was given.

    Raises
    ------
    InputError, UnknownNameError
    """
    if isinstance(grid, str) and not any(character.isdigit() for character in grid):
        if grid not in grids():
            raise UnknownNameError(
                f"grid must be a country that the lab lists, or a carbon intensity, got {grid!r:.80}. "
                f'There is: {", ".join(grids())}. Or pass for example grid="369 g/kWh".'
            )
        value: Quantity = grids()[grid].value
        return value
    given = as_quantity(grid, "g/kWh", "grid")
    nonnegative(given, "g/kWh", "grid")
    return given
