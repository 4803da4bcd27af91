"""Own measurements beside what the model says of them, saved beside the notebook for the lab report."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path

from .. import runtime
from ..host import whole_file
from ..units import Quantity, unit_name

FILE_NAME = "measurements.json"
MAX_MEASUREMENTS = 40


@dataclass(frozen=True)
class OwnMeasurement:
    """A measurement of a pipeline, named in words, beside what the model says of it, both in `unit`."""

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
        """Return how far the model is off, as a share of what was measured; too low is negative."""
        return self.model / self.measured - 1 if self.measured else 0.0


def save_measurement(
    what: str, measured: Quantity, model: Quantity, *, folder: str | os.PathLike[str] | None = None
) -> None:
    """Save what was measured for the lab report; the newest of each name counts. Grading saves nothing.

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
    saved = {one.what: one for one in read_measurements(path)}
    saved[what] = OwnMeasurement(what, float(measured.magnitude), float(model.m_as(measured.units)), unit)
    text = json.dumps([asdict(one) for one in saved.values()], indent=2, ensure_ascii=False)
    with whole_file(path / FILE_NAME) as part:
        part.write_text(f"{text}\n", encoding="utf-8")


def read_measurements(folder: Path) -> tuple[OwnMeasurement, ...]:
    """The measurements in the file of a folder; none where it cannot be read."""
    try:
        found = json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))
        return tuple(OwnMeasurement(**one) for one in found)[:MAX_MEASUREMENTS]
    except (OSError, ValueError, TypeError, RecursionError):
        return ()
