"""Widgets of the lab: predict, reveal, explore, the score card, and how far one is.

Where this is imported in a notebook, answers that are open and errors of units are shown in one line.
"""

from .lesson.widgets._explore import explore
from .lesson.widgets._lock_predictions import lock_predictions
from .lesson.widgets._pack import pack
from .lesson.widgets._predict import predict
from .lesson.widgets._progress import progress
from .lesson.widgets._report import report
from .lesson.widgets._reveal import reveal
from .lesson.widgets._scorecard import scorecard
from .lesson.widgets.cells import install
from .lesson.widgets.drawing import Drawing
from .lesson.widgets.store import predictions

__all__ = [
    "Drawing",
    "explore",
    "lock_predictions",
    "pack",
    "predict",
    "predictions",
    "progress",
    "report",
    "reveal",
    "scorecard",
]

install()
