"""What an hour of an accelerator is sold for, with the date and the source of each price."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import cache

from ..units import Quantity, as_quantity, positive
from .catalogue import Entry
from .data_files import read_data

_AMOUNTS = ("low", "high")


@dataclass(frozen=True)
class Price:
    """What one seller asks for an hour of one accelerator, on demand.

    Attributes
    ----------
    hardware : str
        The path of the accelerator in the catalogue.
    seller : str
    low, high : quantity [money/time]
        The same where the source gives one price and no range.
    date : datetime.date
        When the source stated it or was looked up: the day, or the first day of the month.
    source, note : str
    """

    hardware: str
    seller: str
    low: Quantity
    high: Quantity
    date: datetime.date
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


def prices_of(hardware: Entry) -> tuple[Price, ...]:
    """The prices of one accelerator, none where the file lists none."""
    return tuple(price for price in listed_prices() if price.hardware == hardware.path)
