"""The bill of a pipeline: the money of an hour and of an epoch, and how much of it is spent on waiting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...tables import TableRepr, percent
from ...units import Q_, Number, Quantity, Unchecked, nonnegative, positive_int
from ..assumptions import COVERAGE
from ..description import Description
from ..equality import EqualByFields
from ..resources import ACCELERATOR
from ..step import Step

PASS_SAMPLES = "Pass samples=1_281_167, or dataset=Datasets.ImageNet to the pipeline."


@dataclass(frozen=True, repr=False)
class Bill(EqualByFields, TableRepr):
    """The result of `bill`, for all accelerators together; every value has the shape of the swept arguments.

    Attributes
    ----------
    step : Step
    hour, hour_waiting : quantity [money]
        Price of an hour, and the part of it that is paid while the accelerators wait.
    epoch_time : quantity [time] or None
        None if the samples of an epoch are not known.
    epoch, epoch_waiting : quantity [money] or None
    """

    step: Step
    hour: Quantity
    epoch_time: Quantity | None

    headers = ("", "money", "of which waiting")

    @property
    def hour_waiting(self) -> Quantity:
        """What is paid for waiting in an hour [money]."""
        return Q_(self.hour * self.step.stall)

    @property
    def epoch(self) -> Quantity | None:
        """What an epoch costs [money]."""
        return None if self.epoch_time is None else self.hour * self.epoch_time.m_as("h")

    @property
    def epoch_waiting(self) -> Quantity | None:
        """What is paid for waiting in an epoch [money]."""
        return None if self.epoch is None else Q_(self.epoch * self.step.stall)

    @property
    def note(self) -> str:
        """Below the table: why the step cannot run, if it cannot, and what to pass for an epoch."""
        missing = "The epoch is missing: the pipeline names no data set of a known size."
        asked = "" if self.epoch_time is not None else f"{missing} {PASS_SAMPLES}"
        return " ".join(filter(None, (self.step.note, asked)))

    @property
    def rows(self) -> list[list[Unchecked]]:
        """An hour, and an epoch where its samples are known."""
        hour = ["an hour", self.hour, self.hour_waiting]
        return [hour, *([["an epoch", self.epoch, self.epoch_waiting]] if self.epoch is not None else [])]

    @property
    def summary(self) -> str:
        """How busy the accelerators are, in one line."""
        if shape := np.shape(self.step.utilization):
            return f"{np.prod(shape)} bills, an array of shape {shape}"
        count, busy = self.step.accelerators * self.step.hosts, percent(self.step.utilization)
        chip = self.step.labels[ACCELERATOR.name]
        if self.step.ranged:
            low, high = (percent(end) for end in self.step.ranges.utilization)
            busy += "" if low == high else f" ({percent(COVERAGE, 0)} range {low} to {high})"
        return f"{f'The {chip} is' if count == 1 else f'The {count} {chip}s are'} busy {busy} of each step"


def bill(pipeline: Description, *, price: Quantity | str, samples: int | None = None) -> Bill:
    """Return what the accelerators cost in an hour and in an epoch, and how much of it is waiting.

    Parameters
    ----------
    price : quantity [money/time]
        Price of one accelerator.
    samples : int, optional
        Samples of an epoch; by default those of the pipeline's data set.

    Raises
    ------
    InputError

    Notes
    -----
    An accelerator is paid for in full, however busy it is. Waiting includes every wait: for input, for a
    serialized copy, for launches and for the training loop.

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline
    >>> wall = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
    >>> found = wall.bill(price="2 USD/h")
    >>> print(f"{found.hour_waiting:.2f~} of {found.hour:.2f~}")
    1.63 USD of 2.00 USD
    """
    step, dollars = pipeline.solve(), nonnegative(price, "USD/h", "price")
    samples = samples_of_epoch(pipeline, samples)
    time = None if samples is None else Q_(samples / step.throughput.m_as("img/h"), "h")
    return Bill(step, Q_(step.accelerators * step.hosts * dollars, "USD"), time)


def samples_of_epoch(pipeline: Description, asked: Unchecked) -> Number:
    """Return the samples of an epoch as asked, or as the pipeline's data set has them; None if not known."""
    if asked is not None:
        return positive_int(asked, "samples")
    return None if pipeline.samples is None else pipeline.samples.get("samples")
