"""What an hour of an accelerator or of a part of its host is sold for, and the CO2 of its electricity."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ..errors import UnknownNameError
from ..units import Quantity, Unchecked, as_quantity, nonnegative, positive
from .catalogue import Entry
from .facts import Fact, read_data

_AMOUNTS = ("low", "high")


@dataclass(frozen=True)
class Price:
    """What one seller asks for an hour of one accelerator, on demand [money/time]."""

    hardware: str  # the path of the accelerator in the catalogue
    seller: str
    low: Quantity  # as `high` where the source gives one price and no range
    high: Quantity
    date: datetime.date  # when the source stated it or was looked up: the day, or the first of the month
    source: str
    note: str = ""


@cache
def listed_prices() -> tuple[Price, ...]:
    """Every price of ``data/prices.toml``."""
    prices = []
    for row in read_data("prices")["price"]:
        read = {name: as_quantity(row[name], "USD/h", f"a price of {row['hardware']}") for name in _AMOUNTS}
        for name, value in read.items():
            positive(value, "USD/h", name)
        prices.append(Price(**{**row, **read}))
    return tuple(prices)


def price_age(stated: datetime.date, today: datetime.date | None = None) -> str:
    """How long ago a price was stated, as people say it; counted to today unless another day is given.

    >>> price_age(datetime.date(2026, 5, 1), today=datetime.date(2026, 11, 23))
    '6 months ago'
    """
    today = today or datetime.date.today()
    months = 12 * (today.year - stated.year) + today.month - stated.month - (today.day < stated.day)
    if months < 1:
        return "less than a month ago"
    number, unit = (months, "month") if months < 12 else (months // 12, "year")
    return f"{number} {unit}{'s' if number > 1 else ''} ago"


def prices_of(hardware: Entry) -> tuple[Price, ...]:
    """The prices of one accelerator, none where the file lists none."""
    return tuple(price for price in listed_prices() if price.hardware == hardware.path)


@dataclass(frozen=True)
class PartPrice:
    """What a seller asks for an hour of a part of a host, on demand [money/time]."""

    part: str  # "core", "memory" (each GiB of it), or the path of a drive in the catalogue
    seller: str
    value: Quantity
    date: datetime.date
    source: str
    note: str = ""


@cache
def part_prices() -> dict[str, PartPrice]:
    """The price of every part of a host in ``data/prices.toml``, by the part."""
    prices = {}
    for row in read_data("prices")["part"]:
        value = as_quantity(row["value"], "USD/h", f"the price of {row['part']}")
        positive(value, "USD/h", f"the price of {row['part']}")
        prices[row["part"]] = PartPrice(**{**row, "value": value})
    return prices


def old_prices(today: datetime.date | None = None) -> tuple[Price | PartPrice, ...]:
    """The prices that are older than a year, on the day that is given or on the present one."""
    before = (today or datetime.date.today()) - datetime.timedelta(days=366)
    every: tuple[Price | PartPrice, ...] = (*listed_prices(), *part_prices().values())
    return tuple(price for price in every if price.date < before)


@cache
def grids() -> Mapping[str, Fact]:
    """The carbon intensity [mass/energy] of each country of ``data/grids.toml``."""
    rows = read_data("grids")["carbon_intensity"]
    return {
        name: Fact(**{**row, "value": as_quantity(row["value"], "g/kWh", name)}) for name, row in rows.items()
    }


def carbon_intensity(grid: Unchecked) -> Quantity:
    """The carbon intensity [mass/energy] of a country, or the one that was given."""
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
