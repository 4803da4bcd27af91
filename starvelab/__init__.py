"""A model of GPU starvation: what an input pipeline costs a training step, and what to do about it.

Rooms, imports point downward only (a contract in pyproject.toml fails the build otherwise)::

    commands                what `starvelab` on the command line runs
    grading | lab           a class graded: student code in a sandbox, checks outside it | `starvelab lab`
    lesson | jobs           checks, figures, widgets | a training job of one's own, watched
    measure                 a real loader, and what starves it
    model | simulate        stages on resources | a loader in time, step by step
    tables | fields         quantities as text and HTML | what a field of a description may hold
    units | runtime         one registry with its own vocabulary | "are we grading?"
    host | prediction_file  cores and the cache folder | predictions.json, read
    errors                  the rule, what came, what to do

`import starvelab` loads pint and numpy and nothing heavier; lesson, jobs, measure and simulate load on first
use, grading only by its own name.
"""

from importlib import import_module
from typing import Any

from . import _aliases
from .errors import InputError, MissingValueError, StarvelabError, UnknownNameError
from .model.analysis import (
    accelerators_fed,
    bill,
    crossover,
    epochs,
    explain,
    sensitivity,
    sweep,
    throughput_range,
    workers_needed,
)
from .model.assumptions import PUBLISHED, TUTORIAL, Assumptions
from .model.catalogue import Datasets, Hardware, Links, Models, Storage
from .model.pipeline import Pipeline
from .model.stages import DataModel, SingleNodeModel, TransferModel, TransformationModel
from .units import Q_

__version__ = "0.1.0"

_aliases.install()

_LAZY = ("checks", "jobs", "levers", "measure", "show", "simulate", "widgets")

__all__ = [
    "PUBLISHED",
    "Q_",
    "TUTORIAL",
    "Assumptions",
    "DataModel",
    "Datasets",
    "Hardware",
    "InputError",
    "Links",
    "MissingValueError",
    "Models",
    "Pipeline",
    "SingleNodeModel",
    "StarvelabError",
    "Storage",
    "TransferModel",
    "TransformationModel",
    "UnknownNameError",
    "accelerators_fed",
    "bill",
    "crossover",
    "epochs",
    "explain",
    "sensitivity",
    "sweep",
    "throughput_range",
    "workers_needed",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f"{__name__}.{name}")
    if name == "MissingFigureError":
        return _aliases.deprecated(MissingValueError, name, "MissingValueError")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
