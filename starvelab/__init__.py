"""A model of GPU starvation: what an input pipeline costs a training step, and what to do about it.

Layers, imports point downward only (a contract in pyproject.toml fails the build otherwise)::

    grading                     a class graded: student code in a sandbox, checks outside it
    widgets | measure           predict, explore (ipywidgets) | a real loader, stand-ins, the caching ladder
      show | checks             tables, pictures (the only matplotlib) | an answer compared, its mistake named
        simulate                a loader step by step in time: workers, prefetch, order of delivery
          analysis              crossover, workers needed, sensitivity, explanation, sweep, schedule
            pipeline            stages on resources -> step time, throughput, utilization, what binds
              stages            the four stage models
                assumptions     TUTORIAL, PUBLISHED, your own
                  catalogue | levers    facts with their sources | what can be changed, and why it helps
                    tables      quantities as text and HTML
                      units | runtime       one registry with its own vocabulary | "are we grading?"
                        errors  the rule, what came, what to do

`import starvelab` loads pint and numpy and nothing heavier; the upper four rows and the levers load on first
use, grading only by its own name.
"""

from importlib import import_module
from typing import Any

from .analysis import crossover, explain, sensitivity, sweep, workers_needed
from .assumptions import PUBLISHED, TUTORIAL, Assumptions
from .catalogue import Datasets, Hardware, Links, Models, Storage
from .errors import InputError, MissingFigureError, StarvelabError, UnknownNameError
from .pipeline import Pipeline
from .stages import DataModel, SingleNodeModel, TransferModel, TransformationModel
from .units import Q_

__version__ = "0.1.0"

_LAZY = ("checks", "levers", "measure", "show", "simulate", "widgets")

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
    "MissingFigureError",
    "Models",
    "Pipeline",
    "SingleNodeModel",
    "StarvelabError",
    "Storage",
    "TransferModel",
    "TransformationModel",
    "UnknownNameError",
    "crossover",
    "explain",
    "sensitivity",
    "sweep",
    "workers_needed",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
