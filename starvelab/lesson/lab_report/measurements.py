"""Own measurements beside what the model says of them, kept in a file beside the notebook for the report."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path

from ... import runtime
from ...units import Quantity, unit_name

FILE_NAME = "measurements.json"
MAX_MEASUREMENTS = 40


@dataclass(frozen=True)
class OwnMeasurement:
    """One measurement.

    Attributes
    ----------
    what : str
        The pipeline, in words.
    measured, model : float
        In `unit`.
    unit : str
    """

    what: str
    measured: float
    model: float
    unit: str

    def __post_init__(self) -> None:
        # A file can hold anything.
        numbers = (self.measured, self.model)
        texts = isinstance(self.what, str) and isinstance(self.unit, str)
        if not texts or not all(isinstance(one, float) and isfinite(one) for one in numbers):
            raise ValueError("it is no measurement")

    @property
    def error(self) -> float:
        """How far the model is off, as a share of what was measured; too low is negative."""
        return self.model / self.measured - 1 if self.measured else 0.0


def keep_measurement(
    what: str, measured: Quantity, model: Quantity, *, folder: str | os.PathLike[str] | None = None
) -> None:
    """Keep what was measured for the report; the newest of each name counts. Nothing is kept while grading.

    Parameters
    ----------
    what : str
        The pipeline, in words.
    measured, model : quantity
        What was measured, and what the model says.
    folder : path, optional
        Where the file stands; the folder that the notebook runs in unless given.
    """
    if runtime.current().is_grading:
        return
    path = Path.cwd() if folder is None else Path(folder)
    unit = unit_name(measured.units)
    kept = {one.what: one for one in read_measurements(path)}
    kept[what] = OwnMeasurement(what, float(measured.magnitude), float(model.m_as(measured.units)), unit)
    text = json.dumps([asdict(one) for one in kept.values()], indent=2, ensure_ascii=False)
    scratch = path / f".{FILE_NAME}.{os.getpid()}"
    scratch.write_text(f"{text}\n", encoding="utf-8")
    os.replace(scratch, path / FILE_NAME)


def read_measurements(folder: Path) -> tuple[OwnMeasurement, ...]:
    """The measurements in the file of a folder; none where it cannot be read."""
    try:
        found = json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))
        return tuple(OwnMeasurement(**one) for one in found)[:MAX_MEASUREMENTS]
    except (OSError, ValueError, TypeError, RecursionError):
        return ()
