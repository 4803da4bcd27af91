"""Widgets of the lab: predict, reveal, explore, the score card, and how far one is.

Where this is imported in a notebook, answers that are open and errors of units are shown in one line.
"""

from ._explore import explore
from ._lock_predictions import lock_predictions
from ._pack import pack
from ._predict import predict
from ._progress import progress
from ._report import report
from ._reveal import reveal
from ._scorecard import scorecard
from .cells import install
from .drawing import Drawing
from .store import predictions

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
