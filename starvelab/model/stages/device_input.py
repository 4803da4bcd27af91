"""Input work on the accelerator: by kernels, whose time it takes, or by a decoder that works beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...units import Number
from ..cost import Cost, Line
from ..inputs import Inputs
from ..resources import ACCELERATOR, DECODER, Resource
from .stage import StageModel


@dataclass(frozen=True)
class DeviceInputInputs(Inputs):
    """Seconds for each sample."""

    seconds: Number


@dataclass(frozen=True)
class DeviceInputModel(StageModel[DeviceInputInputs]):
    """A batch of ``b`` takes ``b device_input_time`` of the accelerator: its kernels decode or augment."""

    NAME: ClassVar[str] = "input on device"
    RESOURCE: ClassVar[Resource] = ACCELERATOR

    def resolve(self, *, device_input_time: Number | None) -> DeviceInputInputs | None:
        """The formula's numbers from the fields of a pipeline."""
        return None if device_input_time is None else DeviceInputInputs(device_input_time)

    @staticmethod
    def cost(inputs: DeviceInputInputs) -> Cost:
        """``b seconds``."""
        return Cost((Line(0, inputs.seconds),))


@dataclass(frozen=True)
class DecoderModel(StageModel[DeviceInputInputs]):
    """A batch of ``b`` takes ``b decoder_time`` of the accelerator's decoder, while its kernels compute."""

    NAME: ClassVar[str] = "decode"
    RESOURCE: ClassVar[Resource] = DECODER

    def resolve(self, *, decoder_time: Number | None) -> DeviceInputInputs | None:
        """The formula's numbers from the fields of a pipeline."""
        return None if decoder_time is None else DeviceInputInputs(decoder_time)

    cost = DeviceInputModel.cost
