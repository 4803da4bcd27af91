"""What one run measured, in a form that can be saved, looked at and graded.

It knows figures; not how they came about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..simulate import Trace
from ..tables import TableRepr, percent
from ..units import format_quantity
from .quality import Quality
from .saved import Saved


@dataclass(frozen=True, kw_only=True, repr=False)
class Record(TableRepr, Saved):
    """The result of `run`.

    Attributes
    ----------
    settings : mapping of str to object
        What ran: loader, workers, prefetch, batch size and so on.
    machine : mapping of str to object
        Where: cores, Python, operating system.
    throughput : quantity [sample/time]
        Of the training loop.
    interval : pair of quantity [sample/time]
        95 % confidence interval of the throughput.
    period : quantity [time]
        Between two batches.
    step_time : quantity [time]
        The accelerator's own for a batch.
    utilization, stall : float
        Busy and idle share of the accelerator, which add up to 1.
    host_wait : float
        Share of the time that the training loop spends waiting in `next()`. It is not the stall: a loop that
        runs ahead of the accelerator waits, too, while the accelerator works.
    stage_times : mapping of str to quantity [time]
        Of one sample in one worker, waits included.
    quality : Quality
    trace : Trace
    source : str
        "measured" or "simulated".
    """

    called: ClassVar[str] = "record"

    settings: Mapping[str, Any]
    machine: Mapping[str, Any]
    throughput: Any
    interval: tuple[Any, Any]
    period: Any
    step_time: Any
    utilization: float
    stall: float
    host_wait: float
    stage_times: Mapping[str, Any]
    quality: Quality
    trace: Trace
    source: str

    @property
    def headers(self) -> tuple[str, str]:
        """Of the table that shows it."""
        return ("figure", "value")

    @property
    def rows(self) -> list[list[Any]]:
        """One row for each figure."""
        low, high = self.interval
        spread = f"{low.m_as('img/s'):.4g} to {high.m_as('img/s'):.4g} img/s"
        return [
            ["throughput", self.throughput],
            ["95 % interval", spread],
            ["time between batches", self.period],
            ["accelerator busy", percent(self.utilization)],
            ["accelerator waits", percent(self.stall)],
            ["loop waits in next()", percent(self.host_wait)],
            *([f"{name}, each sample", time] for name, time in self.stage_times.items()),
        ]

    @property
    def summary(self) -> str:
        """What came out, in one line."""
        doubt = "" if self.quality.trustworthy else f" Not to be trusted: {self.quality.reason}."
        ran = ", ".join(
            f"{self.settings[name]} {name}" for name in ("loader", "workers") if name in self.settings
        )
        return (
            f"{format_quantity(self.throughput)} {self.source} ({ran}), "
            f"the accelerator is busy {percent(self.utilization)}.{doubt}"
        )

    @classmethod
    def _from_plain(cls, fields: dict[str, Any]) -> dict[str, Any]:
        arrays = {k: np.asarray(v) if isinstance(v, list) else v for k, v in fields["trace"].items()}
        return fields | {
            "interval": tuple(fields["interval"]),
            "quality": Quality(**fields["quality"]),
            "trace": Trace(**arrays),
        }
