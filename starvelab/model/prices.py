"""What an hour of an accelerator or of a part of its host is sold for, and the CO2 of its electricity."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import cache

from ..errors import UnknownNameError
from ..fields import Kind, Meaning
from ..units import Quantity, Unchecked
from .catalogue import Entry
from .facts import Fact, read_data

_PRICE = Meaning(Kind.QUANTITY, "USD/h")
_CARBON = Meaning(Kind.QUANTITY, "g/kWh", zero=True)


@dataclass(frozen=True)
class Price:
    """What one seller asks for an hour of one thing, on demand [money/time]."""

    of: str  # the path of an accelerator or a drive in the catalogue, "core", or "memory" (each GiB of it)
    seller: str
    low: Quantity  # as `high` where the source gives one price and no range
    high: Quantity
    date: datetime.date  # when the source stated it or was looked up: the day, or the first of the month
    source: str
    note: str = ""


def _price(row: dict[str, Unchecked]) -> Price:
    ends = {end: _PRICE.read(row[end], f"a price of {row['of']}")[0] for end in ("low", "high")}
    return Price(**{**row, **ends})


@cache
def listed_prices() -> tuple[Price, ...]:
    """Every price of an accelerator in ``data/prices.toml``."""
    return tuple(_price(row) for row in read_data("prices")["price"])


@cache
def part_prices() -> dict[str, Price]:
    """The price of every part of a host in ``data/prices.toml``, by the part: both ends are the same."""
    return {row["of"]: _price(row) for row in read_data("prices")["part"]}


def prices_of(hardware: Entry) -> tuple[Price, ...]:
    """The prices of one accelerator, none where the file lists none."""
    return tuple(price for price in listed_prices() if price.of == hardware.path)


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


@cache
def grids() -> dict[str, Fact]:
    """The carbon intensity [mass/energy] of each country of ``data/grids.toml``."""
    rows = read_data("grids")["carbon_intensity"]
    return {
        name: Fact.read(row, lambda value: _CARBON.read(value, "a grid")[0]) for name, row in rows.items()
    }


def carbon_intensity(grid: Unchecked) -> Quantity:
    """The carbon intensity [mass/energy] of a country, or the one that was given."""
    if isinstance(grid, str) and grid in grids():
        grid = grids()[grid].value
    elif isinstance(grid, str) and not any(character.isdigit() for character in grid):
        raise UnknownNameError(
            f"grid must be a country that the lab lists, or a carbon intensity, got {grid!r:.80}. "
            f'There is: {", ".join(grids())}. Or pass for example grid="369 g/kWh".'
        )
    given: Quantity = _CARBON.read(grid, "grid")[0]
    return given
