"""Widgets of the lab: predict, reveal, explore, and the score card."""

from ._explore import explore
from ._predict import predict
from ._reveal import reveal
from ._scorecard import scorecard
from .drawing import Drawing
from .store import predictions

__all__ = ["Drawing", "explore", "predict", "predictions", "reveal", "scorecard"]
