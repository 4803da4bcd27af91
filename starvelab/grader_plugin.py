"""What the grader is told of the lab, where starvelab-grader is installed: it finds this by an entry point.

`starvelab_grader.plugins` says what each name means. Nothing here imports the grader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from . import host, prediction_file
from .errors import InputError
from .lesson import wording
from .runtime import GRADING
from .units import Q_, Quantity

MAX_UNITS, MAX_NAME = 20, 60  # units of a product, and the greatest exponent; characters of one
MAGNITUDES = (int, float, complex, Decimal, Fraction, np.number, np.ndarray)
environment = GRADING.environment()
folders: dict[str, Callable[[], Path]] = {"STARVELAB_CACHE": host.cache_folder}
# The learner's own model: no grade depends on it, and only its owner's kernel runs it.
unread_files: dict[str, None] = {"my_model.py": None}
only_shown = ("lesson/show",)
error_texts = {"DimensionalityError": wording.error_text}
student_files = {
    prediction_file.FILE_NAME: (
        prediction_file.MAX_BYTES, lambda content: prediction_file.parse(content).problem
    ),
}  # fmt: skip


def preload() -> None:
    """Import what nearly every notebook imports, read the catalogue, and solve and show one pipeline."""
    import ipywidgets
    from numpy import random  # noqa: F401

    from . import Pipeline, checks, show, simulate, widgets  # noqa: F401
    from .model.catalogue import entry_at
    from .model.groups import Datasets, Hardware, Links, Models, Storage
    from .model.rates import launch_time, measured_rates

    # No page is there to show the widgets of a graded notebook: none has to describe itself to one.
    ipywidgets.Widget.open = lambda _: None
    for part in (Datasets, Hardware, Links, Models, Storage):
        dir(part)  # reads its file
    for entry in (Models.ResNet50, Hardware.Cloud.A100):
        entry_at(entry.kind, entry.path)
    measured_rates()
    launch_time("PyTorch", Hardware.Cloud.A100.path, "fp16")
    pipeline = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256, workers=8)
    repr(pipeline.solve())  # with the library of tables


def sections(members: Any) -> Iterator[dict[str, object]]:
    """Yield the lab's own parts of the report of a class."""
    from .lesson import class_report  # loaded here: a sandbox reports nothing

    yield from class_report.sections(members)


def _parts(quantity: Any) -> Iterator[object]:
    yield quantity.magnitude
    for name, power in quantity._units.items():
        yield from (str(name), power)


def _quantity(magnitude: object, *powers: Any) -> object:
    """Make a quantity of names and exponents of units, which may be forged; no expression is ever parsed."""
    if not isinstance(magnitude, MAGNITUDES) or isinstance(magnitude, bool):
        raise InputError(f"it is a quantity of the type {type(magnitude).__name__}")
    if len(powers) > 2 * MAX_UNITS:
        raise InputError("its unit is a product of too many")
    unit = Q_(1, "").units
    for name, power in zip(powers[::2], powers[1::2], strict=True):
        is_power = isinstance(power, int | float | Fraction) and -MAX_UNITS <= power <= MAX_UNITS
        if not is_power or not name.isidentifier() or len(name) > MAX_NAME:
            raise InputError("its unit cannot be read")
        unit = unit * Q_(1, name).units ** power
    return Quantity(magnitude, unit)


values: dict[str, tuple[type, Callable[[Any], Iterable[object]], Callable[..., object]]] = {
    "quantity": (Quantity, _parts, _quantity)
}
