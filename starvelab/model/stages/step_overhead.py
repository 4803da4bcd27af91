"""What each step costs the accelerator on top, whatever the batch size: synchronizing several of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...units import Number
from ..cost import Cost, Line
from ..inputs import Inputs
from ..resources import ACCELERATOR, Resource
from .stage import StageModel


@dataclass(frozen=True)
class StepOverheadInputs(Inputs):
    """Seconds for each step."""

    seconds: Number


@dataclass(frozen=True)
class StepOverheadModel(StageModel[StepOverheadInputs]):
    """A step takes ``step_overhead`` more of the accelerator."""

    NAME: ClassVar[str] = "step overhead"
    RESOURCE: ClassVar[Resource] = ACCELERATOR

    def resolve(self, *, step_overhead: Number | None) -> StepOverheadInputs | None:
        """The formula's numbers from the fields of a pipeline."""
        return None if step_overhead is None else StepOverheadInputs(step_overhead)

    @staticmethod
    def cost(inputs: StepOverheadInputs) -> Cost:
        """The same for every batch."""
        return Cost((Line(inputs.seconds, 0),))
