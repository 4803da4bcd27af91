"""The training loop's own time in each step, in which the accelerator idles: logging, metrics, control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...units import Number
from ..cost import Cost, Line
from ..inputs import Inputs
from ..resources import ACCELERATOR, Resource
from .stage import StageModel


@dataclass(frozen=True)
class HostLoopInputs(Inputs):
    """Seconds for each step."""

    seconds: Number


@dataclass(frozen=True)
class HostLoopModel(StageModel[HostLoopInputs]):
    """A step takes ``host_time`` longer, and the accelerator waits for that long."""

    NAME: ClassVar[str] = "host time"
    RESOURCE: ClassVar[Resource] = ACCELERATOR
    BUSY: ClassVar[bool] = False

    def resolve(self, *, host_time: Number | None) -> HostLoopInputs | None:
        """The formula's numbers from the fields of a pipeline."""
        return None if host_time is None else HostLoopInputs(host_time)

    @staticmethod
    def cost(inputs: HostLoopInputs) -> Cost:
        """The same for every batch."""
        return Cost((Line(inputs.seconds, 0),))
