"""What an hour of an accelerator or of a part of its host is sold for, and the bill of a pipeline.

A bill is money, energy and CO2 of an hour and of an epoch, and how much of it is waiting.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from ...errors import MissingValueError, UnknownNameError
from ...tables import TableRepr, cell, percent
from ...units import Q_, Number, Quantity, Unchecked, checked_quantity, format_number, nonnegative
from ..assumptions import COVERAGE
from ..catalogue import Entry
from ..description import Description
from ..facts import Fact, read_data
from ..resources import as_float
from ..step import Step
from ._epochs import PASS_SAMPLES, samples_of_epoch


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


def _read(row: dict[str, Unchecked]) -> Price:
    ends = {end: checked_quantity(row[end], "USD/h", f"a price of {row['of']}") for end in ("low", "high")}
    return Price(**{**row, **ends})


@cache
def listed_prices() -> tuple[Price, ...]:
    """Every price of an accelerator in ``data/prices.toml``."""
    return tuple(_read(row) for row in read_data("prices")["price"])


@cache
def part_prices() -> dict[str, Price]:
    """The price of every part of a host in ``data/prices.toml``, by the part: both ends are the same."""
    return {row["of"]: _read(row) for row in read_data("prices")["part"]}


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
    return {name: Fact.read(row, partial(_carbon, name="a grid")) for name, row in rows.items()}


def _carbon(value: Unchecked, name: str) -> Quantity:
    return checked_quantity(value, "g/kWh", name, zero=True)


def carbon_intensity(grid: Unchecked) -> Quantity:
    """The carbon intensity [mass/energy] of a country, or the one that was given."""
    if isinstance(grid, str) and grid in grids():
        grid = grids()[grid].value
    elif isinstance(grid, str) and not any(character.isdigit() for character in grid):
        raise UnknownNameError(
            f"grid must be a country that the lab lists, or a carbon intensity, got {grid!r:.80}. "
            f'There is: {", ".join(grids())}. Or pass for example grid="369 g/kWh".'
        )
    return _carbon(grid, "grid")


@dataclass(frozen=True)
class Amounts:
    """What is paid for over some time; None where a value that it follows from is missing.

    Attributes
    ----------
    money : quantity [money] or None
    energy : quantity [energy] or None
    carbon : quantity [mass] or None
        CO2 that is emitted for the energy.
    requests : quantity [money] or None
        What the requests to the storage cost besides, where the catalogue knows their price.
    """

    money: Quantity | None
    energy: Quantity | None
    carbon: Quantity | None
    requests: Quantity | None = None


@dataclass(frozen=True, repr=False)
class Bill(TableRepr):
    """The answer of `bill`, for all accelerators together; every value has the shape of the swept arguments.

    Attributes
    ----------
    step : Step
    price : quantity [money/time] or None
        Of one accelerator.
    power : quantity [energy/time] or None
        The mean over a step.
    carbon_intensity : quantity [mass/energy]
    epoch_time : quantity [time] or None
        None where the samples of an epoch are not known.
    hour, epoch : Amounts
    hour_waiting, epoch_waiting : Amounts
        How much of these falls on the time in which the accelerators wait.
    notes : tuple of str
        Where the price is from, and what to pass for what is missing.
    """

    step: Step
    price: Quantity | None
    power: Quantity | None
    carbon_intensity: Quantity
    epoch_time: Quantity | None
    hour: Amounts
    hour_waiting: Amounts
    epoch: Amounts
    epoch_waiting: Amounts
    notes: tuple[str, ...]

    @property
    def note(self) -> str:
        """Below the table."""
        return " ".join(self.notes)

    @property
    def headers(self) -> tuple[str, ...]:
        """Of the table that shows it."""
        headers = ("", "an hour", "of which waiting", "an epoch", "of which waiting")
        return headers if self.epoch_time is not None else headers[:3]

    @property
    def rows(self) -> list[list[str]]:
        """Money, energy, CO2, and the money for requests, as far as they are known."""
        columns = (self.hour, self.hour_waiting, self.epoch, self.epoch_waiting)[: len(self.headers) - 1]
        kinds = {"money": "money", "energy": "energy", "CO2": "carbon", "requests": "requests"}
        return [
            [label, *(cell(getattr(column, name)) for column in columns)]
            for label, name in kinds.items()
            if getattr(self.hour, name) is not None
        ]

    @property
    def summary(self) -> str:
        """How busy the accelerators are, and what they draw, in one line."""
        if shape := np.shape(self.step.utilization):
            return f"{np.prod(shape)} bills, an array of shape {shape}"
        count, busy = self.step.accelerators * self.step.hosts, percent(self.step.utilization)
        who, draw = (
            ("The accelerator is", "draws") if count == 1 else (f"The {count} accelerators are", "draw")
        )
        drawn = "" if self.power is None else f", and {draw} {cell(self.power)}"
        if self.step.ranged:
            low, high = (percent(end) for end in self.step.ranges.utilization)
            busy += f" ({percent(COVERAGE, 0)} range {low} to {high})"
        return f"{who} busy {busy} of each step{drawn}"


def bill(
    pipeline: Description,
    *,
    price: Quantity | str | None = None,
    busy_power: Quantity | str | None = None,
    waiting_power: Quantity | str | None = None,
    grid: Quantity | str = "world",
    samples: int | None = None,
    today: datetime.date | None = None,
) -> Bill:
    """Return what the accelerators take in an hour and in an epoch, and how much of it is waiting.

    Parameters
    ----------
    price : quantity [money/time], optional
        Of one accelerator; the middle of the listed prices unless given.
    busy_power, waiting_power : quantity [energy/time], optional
        What one accelerator draws while it computes and while it waits; `board_power` and `waiting_power`
        of the catalogue unless given.
    grid : str or quantity [mass/energy]
        A country such as "FRA", "world", or grams of CO2 for each kilowatt-hour.
    samples : int, optional
        Of an epoch; those of the pipeline's data set unless given.
    today : datetime.date, optional
        The day to which the age of the listed prices counts; the present one unless given.

    Raises
    ------
    InputError, UnknownNameError
    MissingValueError
        If neither a price nor both powers are known.

    Notes
    -----
    An accelerator that is busy for a share ``u`` of each step is paid for in full, and draws ``u
    busy_power + (1 - u) waiting_power``. Waiting is all waiting: for input, for a serialized copy, for
    launches and for the training loop. The board's power is the most that it may draw, so the energy is
    an upper bound unless `busy_power` is given. The host, its fans and the cooling are left out. A sample
    takes ``(1 - x) r / k`` requests: memory serves the share ``x``, a file takes ``r`` and brings ``k``.

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline
    >>> wall = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
    >>> found = wall.bill(price="2 USD/h")
    >>> print(f"{found.hour_waiting.money:.2f~} of {found.hour.money:.2f~}, at {found.power:.0f~}")
    1.63 USD of 2.00 USD, at 139 W
    """
    step, hardware = pipeline.solve(), pipeline.hardware.of
    stall, count = step.stall, step.accelerators * step.hosts
    named = "a pipeline without hardware" if hardware is None else hardware.name
    rate, price_note = _price(hardware, named, price, today)

    def watts(given: Unchecked, name: str, listed_as: str) -> Number:
        """Return what one accelerator draws, given or from the catalogue; None where it lists nothing."""
        listed = None if hardware is None else hardware.number(listed_as)
        return listed if given is None else nonnegative(given, "W", name)

    busy = watts(busy_power, "busy_power", "board_power")
    idle = watts(waiting_power, "waiting_power", "waiting_power")
    powers = (("busy_power", busy, "400 W"), ("waiting_power", idle, "80 W"))
    missing = {name: example for name, value, example in powers if value is None}
    power_note = epoch_note = ""
    if missing:
        lists, wanted = " and no ".join(missing), ", ".join(f'{n}="{value}"' for n, value in missing.items())
        if rate is None:
            raise MissingValueError(
                "A bill needs a price, or what an accelerator draws while it is busy and while it waits, and "
                f'{named} lists no price and no {lists}. Pass for example price="2 USD/h".'
            )
        power_note = f"Energy and CO2 are missing: {named} lists no {lists}. Pass for example {wanted}."
    intensity, samples = carbon_intensity(grid), samples_of_epoch(pipeline, samples)
    if samples is None:
        epoch_note = f"The epoch is missing: the pipeline names no data set of a known size. {PASS_SAMPLES}"
    hours = None if samples is None else samples / step.throughput.m_as("img/h")
    dollars = None if rate is None else count * rate
    waiting = None if missing else count * stall * idle
    drawn = None if missing else count * (1 - stall) * busy + waiting

    def amounts(hours: Number, dollars: Number, watts: Number, images: Number = None) -> Amounts:
        return Amounts(
            money=_product("USD", hours, dollars),
            energy=_product("Wh", hours, watts),
            carbon=_product("g", hours, watts, intensity.m_as("g/Wh")),
            requests=_product("USD", for_requests, images),
        )

    for_requests, lost = _requests(pipeline), None if dollars is None else stall * dollars
    return Bill(
        step=step, price=_product("USD/h", rate), power=_product("W", drawn),
        carbon_intensity=intensity, epoch_time=_product("h", hours),
        hour=amounts(1.0, dollars, drawn, step.throughput.m_as("img/h")),
        hour_waiting=amounts(1.0, lost, waiting),
        epoch=amounts(hours, dollars, drawn, samples),
        epoch_waiting=amounts(hours, lost, waiting),
        notes=tuple(
            filter(None, (step.note, _rank_note(pipeline, step), price_note, power_note, epoch_note))
        ),
    )  # fmt: skip


def _requests(pipeline: Description) -> Number:
    """Dollars of the requests for a sample; None where nobody asks for any, or their price is not known."""
    reads, store = pipeline.reads, pipeline.numbers["storage"]
    price = store.number("million_requests_price") if isinstance(store, Entry) else None
    if reads is None or price is None:
        return None
    each = store.number("requests_per_file", 1) / reads.samples_per_request
    return (1 - reads.cached) * each * price / 1e6


def _rank_note(pipeline: Description, step: Step) -> str:
    """What share of the bill pays for waiting for the slowest host or rank."""
    if not pipeline.hardware.ranks.given or np.ndim(step.utilization):
        return ""
    even = pipeline.solve({"hardware.ranks.slow": 1, "hardware.ranks.spread": 0})
    lost = 1 - float((even.step_time / step.step_time).m_as(""))
    return f"{percent(lost)} of it pays for waiting for the slowest of its ranks." if lost > 0 else ""


def _price(
    hardware: Entry | None, named: str, given: Unchecked, today: datetime.date | None
) -> tuple[Number, str]:
    """Dollars for an hour of one accelerator, None if unknown; where they are from, or what to pass."""
    if given is not None:
        return nonnegative(given, "USD/h", "price"), ""
    listed = () if hardware is None else prices_of(hardware)
    if not listed:
        return None, f'Money is missing: {named} lists no price. Pass for example price="2 USD/h".'
    low = min(price.low.m_as("USD/h") for price in listed)
    high = max(price.high.m_as("USD/h") for price in listed)
    middle, since = (low + high) / 2, min(price.date for price in listed)
    between = f", the middle of {format_number(low)} to {format_number(high)}" if low < high else ""
    return middle, (
        f"One accelerator is taken to be {format_number(middle)} USD an hour{between} "
        f"({', '.join(price.seller for price in listed)}; as of {since:%Y-%m}, {price_age(since, today)}). "
        "Pass price=... for your own."
    )


def _product(unit: str, *factors: Number) -> Quantity | None:
    """Of numbers or arrays; None if one of them is."""
    if any(factor is None for factor in factors):
        return None
    return Q_(as_float(np.prod(np.broadcast_arrays(*factors), axis=0)), unit)
