"""The bill of a pipeline: money and energy of an hour and of an epoch, and how much of it is waiting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import MissingValueError
from ...tables import TableRepr, cell, percent
from ...units import Q_, Number, Quantity, Unchecked, nonnegative, positive_int
from ..assumptions import COVERAGE
from ..catalogue import Entry
from ..costs import as_float
from ..description import Description
from ..equality import EqualByFields
from ..resources import ACCELERATOR
from ..step import Step

PASS_SAMPLES = "Pass samples=1_281_167, or dataset=Datasets.ImageNet to the pipeline."


@dataclass(frozen=True)
class Amounts(EqualByFields):
    """What is paid for over some time; None where a value that it follows from is missing.

    Attributes
    ----------
    money : quantity [money] or None
    energy : quantity [energy] or None
    """

    money: Quantity | None
    energy: Quantity | None


@dataclass(frozen=True, repr=False)
class Bill(EqualByFields, TableRepr):
    """The answer of `bill`, for all accelerators together; every value has the shape of the swept arguments.

    Attributes
    ----------
    step : Step
    price : quantity [money/time] or None
        Of one accelerator.
    power : quantity [energy/time] or None
        The mean over a step.
    epoch_time : quantity [time] or None
        None where the samples of an epoch are not known.
    hour, epoch : Amounts
    hour_waiting, epoch_waiting : Amounts
        How much of these falls on the time in which the accelerators wait.
    notes : tuple of str
        What to pass for what is missing.
    """

    step: Step
    price: Quantity | None
    power: Quantity | None
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
        """Money and energy, as far as they are known."""
        columns = (self.hour, self.hour_waiting, self.epoch, self.epoch_waiting)[: len(self.headers) - 1]
        return [
            [name, *(cell(getattr(column, name)) for column in columns)]
            for name in ("money", "energy")
            if getattr(self.hour, name) is not None
        ]

    @property
    def summary(self) -> str:
        """How busy the accelerators are, and what they draw, in one line."""
        if shape := np.shape(self.step.utilization):
            return f"{np.prod(shape)} bills, an array of shape {shape}"
        count, busy = self.step.accelerators * self.step.hosts, percent(self.step.utilization)
        chip = self.step.labels[ACCELERATOR.name]
        who, draw = (f"The {chip} is", "draws") if count == 1 else (f"The {count} {chip}s are", "draw")
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
    samples: int | None = None,
) -> Bill:
    """Return what the accelerators take in an hour and in an epoch, and how much of it is waiting.

    Parameters
    ----------
    price : quantity [money/time], optional
        Of one accelerator; without it the bill has no money.
    busy_power, waiting_power : quantity [energy/time], optional
        What one accelerator draws while it computes and while it waits; `board_power` and `waiting_power`
        of the catalogue unless given.
    samples : int, optional
        Of an epoch; those of the pipeline's data set unless given.

    Raises
    ------
    InputError
    MissingValueError
        If neither a price nor both powers are known.

    Notes
    -----
    An accelerator that is busy for a share ``u`` of each step is paid for in full, and draws ``u
    busy_power + (1 - u) waiting_power``. Waiting is all waiting: for input, for a serialized copy, for
    launches and for the training loop. The board's power is the most that it may draw, so the energy is
    an upper bound unless `busy_power` is given. The host, its fans and the cooling are left out.

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline
    >>> wall = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
    >>> found = wall.bill(price="2 USD/h")
    >>> print(f"{found.hour_waiting.money:.2f~} of {found.hour.money:.2f~}, at {found.power:.0f~}")
    1.63 USD of 2.00 USD, at 139 W
    """
    step, rate = pipeline.solve(), None if price is None else nonnegative(price, "USD/h", "price")
    busy, idle, missing = _powers(pipeline.hardware.of, busy_power, waiting_power)
    if missing and rate is None:
        raise MissingValueError(
            "A bill needs a price, or what a GPU draws while it is busy and while it waits, got no "
            f'price, and {missing} Or pass price="2 USD/h".'
        )
    stall, count, samples = step.stall, step.accelerators * step.hosts, samples_of_epoch(pipeline, samples)
    hours = None if samples is None else samples / step.throughput.m_as("img/h")
    dollars = None if rate is None else count * rate
    waiting = None if missing else count * stall * idle
    drawn = None if missing else count * (1 - stall) * busy + waiting
    lost = None if dollars is None else stall * dollars
    return Bill(
        step=step, price=_product("USD/h", rate), power=_product("W", drawn), epoch_time=_product("h", hours),
        hour=_amounts(1.0, dollars, drawn),
        hour_waiting=_amounts(1.0, lost, waiting),
        epoch=_amounts(hours, dollars, drawn),
        epoch_waiting=_amounts(hours, lost, waiting),
        notes=_notes(pipeline, step, rate, missing, samples),
    )  # fmt: skip


def _powers(hardware: Entry | None, busy: Unchecked, waiting: Unchecked) -> tuple[Number, Number, str]:
    """Return what one accelerator draws while it computes and while it waits [W], and what is missing."""
    watts, missing = [], {}
    for name, watt, listed, example in (
        ("busy_power", busy, "board_power", "400 W"),
        ("waiting_power", waiting, "waiting_power", "80 W"),
    ):
        if watt is not None:
            power = nonnegative(watt, "W", name)
        else:
            power = None if hardware is None else hardware.number(listed)
        if power is None:
            missing[name] = example
        watts.append(power)
    if not missing:
        return watts[0], watts[1], ""
    who = "a pipeline without hardware" if hardware is None else hardware.name
    wanted = ", ".join(f'{name}="{example}"' for name, example in missing.items())
    return watts[0], watts[1], f"{who} lists no {' and no '.join(missing)}. Pass for example {wanted}."


def _amounts(hours: Number, dollars: Number, watts: Number) -> Amounts:
    """Return money and energy of so many hours."""
    return Amounts(_product("USD", hours, dollars), _product("Wh", hours, watts))


def _notes(
    pipeline: Description, step: Step, rate: Number, missing: str, samples: int | None
) -> tuple[str, ...]:
    """Say what the bill pays for ranks that wait, and what is missing."""
    notes = [step.note, _rank_note(pipeline, step)]
    if rate is None:
        notes.append('Money is missing: a bill knows no prices. Pass for example price="2 USD/h".')
    if missing:
        notes.append(f"Energy is missing: {missing}")
    if samples is None:
        notes.append(f"The epoch is missing: the pipeline names no data set of a known size. {PASS_SAMPLES}")
    return tuple(filter(None, notes))


def _rank_note(pipeline: Description, step: Step) -> str:
    """Say what share of the bill pays for waiting for the slowest host or rank."""
    if not pipeline.hardware.ranks.given or np.ndim(step.utilization):
        return ""
    even = pipeline.solve({"hardware.ranks.slow": 1, "hardware.ranks.spread": None})
    lost = 1 - float((even.step_time / step.step_time).m_as(""))
    return f"{percent(lost)} of it pays for waiting for the slowest of its ranks." if lost > 0 else ""


def _product(unit: str, *factors: Number) -> Quantity | None:
    """Return the product of numbers or arrays; None if one of them is."""
    if any(factor is None for factor in factors):
        return None
    return Q_(as_float(np.prod(np.broadcast_arrays(*factors), axis=0)), unit)


def samples_of_epoch(pipeline: Description, asked: Unchecked) -> Number:
    """As asked, or as the pipeline's data set has them; None where nobody says."""
    if asked is not None:
        return positive_int(asked, "samples")
    return None if pipeline.samples is None else pipeline.samples.get("samples")
