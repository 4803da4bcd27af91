"""A model of GPU starvation: what an input pipeline costs a training step, and what to do about it.

Rooms, imports point downward only (a contract in pyproject.toml fails the build otherwise)::

    commands | grader_plugin  what `starvelab` on the command line runs | what a grader is told of the lab
    lab_command              `starvelab lab`: the notebooks copied, and opened
    checks | show | widgets  what a notebook imports of the lesson
    lesson                   checks, figures, widgets; the clinic and the designs of the course
    pipeline                 the one description of an input pipeline, and what can be asked of it
    measure                  a real loader, and what starves it
    simulate                 a loader in time, step by step
    model                    stages on resources
    tables                   quantities as text and HTML
    units | grading          one registry with its own vocabulary | what a check tells a grader
    runtime                  "are we grading?", and what this page can show
    host | prediction_file   cores and the cache folder | predictions.json, read
    errors                   the rule, what came, what to do

`import starvelab` loads pint and numpy and nothing heavier; lesson, measure and simulate load on first use.
A training job is watched by starvelab-doctor, and a class is graded by starvelab-grader: distributions of
their own.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from .errors import InputError, MissingValueError, StarvelabError, UnknownNameError
from .model.assumptions import PUBLISHED, TUTORIAL, Assumptions
from .model.groups import Datasets, Hardware, Links, Models, Storage
from .model.parts import (
    Accelerator,
    Cache,
    Drive,
    Framework,
    Handover,
    Host,
    Jitter,
    Link,
    OnDevice,
    Ranks,
    Requests,
    Samples,
    Workers,
)
from .model.stages import DataModel, SingleNodeModel, TransformationModel
from .pipeline import Pipeline
from .units import Q_

__version__ = "0.1.0"

_LAZY = ("checks", "measure", "show", "simulate", "widgets")

if TYPE_CHECKING:  # a checker is told that they are there, and that nothing else is
    from . import checks as checks
    from . import measure as measure
    from . import show as show
    from . import simulate as simulate
    from . import widgets as widgets
else:

    def __getattr__(name: str) -> ModuleType:
        """Load a room on first use."""
        if name in _LAZY:
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "PUBLISHED", "Q_", "TUTORIAL", "Accelerator", "Assumptions", "Cache", "DataModel", "Datasets", "Drive",
    "Framework", "Handover", "Hardware", "Host", "InputError", "Jitter", "Link", "Links", "MissingValueError",
    "Models", "OnDevice", "Pipeline", "Ranks", "Requests", "Samples", "SingleNodeModel",
    "StarvelabError", "Storage", "TransformationModel", "UnknownNameError", "Workers",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
