"""Stages whose time is a field: decoding and input work on the accelerator, and what a step takes more."""

from __future__ import annotations

from dataclasses import dataclass

from ...units import Number
from ..costs import Cost, Inputs, Line
from ..resources import ACCELERATOR, DECODER
from .stage import StageModel


@dataclass(frozen=True)
class Seconds(Inputs):
    """Seconds for each sample, and for each step whatever its batch."""

    sample: Number = 0
    step: Number = 0


class GivenTimeModel(StageModel[Seconds]):
    """A stage that takes as long as the field that it needs says: for each sample, or for each step."""

    EACH = "step"

    def __init_subclass__(cls) -> None:
        cls.READS = cls.NEEDS

    @classmethod
    def resolve(cls, **field: Number) -> Seconds:
        """The seconds that the pipeline gives."""
        return Seconds(**{cls.EACH: field[cls.NEEDS[0]]})

    @staticmethod
    def cost(inputs: Seconds) -> Cost:
        """``step + b sample``."""
        return Cost((Line(inputs.step, inputs.sample),))


class DecoderModel(GivenTimeModel):
    """A batch of ``b`` takes ``b decoder_time`` of the accelerator's decoder, while its kernels compute."""

    NAME, RESOURCE, NEEDS, EACH = "decode", DECODER, ("decoder_time",), "sample"


class DeviceInputModel(GivenTimeModel):
    """A batch of ``b`` takes ``b device_time`` of the accelerator: its kernels decode or augment."""

    NAME, RESOURCE, NEEDS, EACH = "input on device", ACCELERATOR, ("device_time",), "sample"


class StepOverheadModel(GivenTimeModel):
    """A step takes ``step_overhead`` more of the accelerator: synchronizing several of them."""

    NAME, RESOURCE, NEEDS = "step overhead", ACCELERATOR, ("step_overhead",)


class HostLoopModel(GivenTimeModel):
    """The training loop's own ``host_time`` in each step: the accelerator waits."""

    NAME, RESOURCE, NEEDS, AWAITED = "host time", ACCELERATOR, ("host_time",), "the training loop"
