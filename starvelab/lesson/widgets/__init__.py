"""Widgets of the lab: predict, reveal, explore, and the score card.

They know how to ask and to show. What is true of a pipeline they take from the model beneath them.
"""

from .drawing import Drawing
from .explore import explore
from .predict import predict
from .reveal import reveal
from .scorecard import scorecard
from .store import predictions

__all__ = ["Drawing", "explore", "predict", "predictions", "reveal", "scorecard"]
