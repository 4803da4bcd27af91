"""Input work that runs on the accelerator itself and takes its time, such as decoding with DALI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...units import Number
from ..cost import Cost, Line
from ..inputs import Inputs
from ..resources import ACCELERATOR, Resource
from .stage import StageModel


@dataclass(frozen=True)
class DeviceInputInputs(Inputs):
    """Seconds for each sample."""

    seconds: Number


@dataclass(frozen=True)
class DeviceInputModel(StageModel[DeviceInputInputs]):
    """A batch of ``b`` takes ``b device_input_time`` of the accelerator."""

    NAME: ClassVar[str] = "input on device"
    RESOURCE: ClassVar[Resource] = ACCELERATOR

    def resolve(self, *, device_input_time: Number | None) -> DeviceInputInputs | None:
        """The formula's numbers from the fields of a pipeline."""
        return None if device_input_time is None else DeviceInputInputs(device_input_time)

    @staticmethod
    def cost(inputs: DeviceInputInputs) -> Cost:
        """``b seconds``."""
        return Cost((Line(0, inputs.seconds),))
