"""What one run measured, in a form that can be saved, looked at and graded.

It knows figures and their file; not how they came about.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..simulate import Trace
from ..tables import Shown, percent
from ..units import Q_, Quantity, format_quantity, unit_name
from .quality import Quality

FORMAT = "starvelab record 1"


@dataclass(frozen=True, kw_only=True, repr=False)
class Record(Shown):
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON."""
        content = {
            "format": FORMAT,
            **{f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self)},
        }
        Path(path).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Record:
        """Read what `save` wrote.

        Raises
        ------
        InputError
            If the file is no record.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise InputError(
                f"A record is a JSON file, and {path} is not readable as one: {error}. Save it again with "
                "record.save(path)."
            ) from error
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
            raise InputError(
                f"A record begins with the format {FORMAT!r}, and {path} does not. "
                "Pass a file that record.save wrote."
            )
        try:
            fields = {name: back(value) for name, value in content.items()}
            fields["interval"] = tuple(fields["interval"])
            fields["quality"] = Quality(**fields["quality"])
            arrays = {k: np.asarray(v) if isinstance(v, list) else v for k, v in fields["trace"].items()}
            fields["trace"] = Trace(**arrays)
            return cls(**fields)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"{path} is a damaged record: {error}. Save it again with record.save(path)."
            ) from error


def plain(value: Any) -> Any:
    """As JSON has it: a quantity as its number and its unit."""
    if isinstance(value, Quantity):
        return {"magnitude": float(value.magnitude), "unit": unit_name(value.units)}
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        # A microsecond is finer than any clock here.
        return value.tolist() if value.dtype.kind in "iu" else value.round(3).tolist()
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def back(value: Any) -> Any:
    """As `plain` found it."""
    if isinstance(value, dict):
        if set(value) == {"magnitude", "unit"}:
            return Q_(value["magnitude"], value["unit"])
        return {key: back(each) for key, each in value.items()}
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return [back(each) for each in value]
    return value
