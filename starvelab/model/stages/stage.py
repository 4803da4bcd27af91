"""What all stage models share, and the four stages whose seconds a pipeline gives.

A stage model resolves its fields once into plain numbers in base units (`resolve`), and its formula reads
only these (`cost`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Generic, TypeVar

from ...units import Number
from ..assumptions import TUTORIAL, Assumptions, check_assumptions
from ..cost import Cost, Inputs, Line
from ..resources import ACCELERATOR, DECODER, Resource

InputsT = TypeVar("InputsT", bound=Inputs)


@dataclass(frozen=True)
class StageModel(Generic[InputsT]):
    """A stage: the resource that it runs on, and what a batch costs it.

    A subclass has two methods besides `solve`. ``resolve(*, ...)`` takes fields of a pipeline by their names
    (quantities already as numbers in base units) and returns its `Inputs`, or None where more than one of
    them says that the pipeline does not model this stage. ``cost(inputs)`` is the formula.
    """

    NAME: ClassVar[str]
    RESOURCE: ClassVar[Resource]
    # The field without which a pipeline does not model this stage; one that each has, where it always does.
    NEEDS: ClassVar[str] = "batch_size"
    # False where the resource is taken meanwhile, but waits.
    BUSY: ClassVar[bool] = True

    assumptions: Assumptions = TUTORIAL

    def __post_init__(self) -> None:
        check_assumptions(self.assumptions)

    def inputs(self, numbers: Mapping[str, Number]) -> InputsT | None:
        """Resolve those of a pipeline's numbers that this stage reads."""
        resolve = type(self).resolve  # type: ignore[attr-defined]  # each takes fields of its own
        found: InputsT | None = resolve(self, **{name: numbers[name] for name in _parameters(resolve)})
        return found

    @staticmethod
    def cost(inputs: InputsT) -> Cost:
        """Seconds of a batch as a function of its size."""
        raise NotImplementedError


@cache
def _parameters(resolve: Callable[..., object]) -> tuple[str, ...]:
    """The fields of a pipeline that a stage reads."""
    return tuple(name for name in inspect.signature(resolve).parameters if name != "self")


@dataclass(frozen=True)
class Seconds(Inputs):
    """Seconds for each sample, and for each step whatever its batch."""

    sample: Number = 0
    step: Number = 0


@dataclass(frozen=True)
class GivenTimeModel(StageModel[Seconds]):
    """A stage that takes as long as the field that it needs says: for each sample, or for each step."""

    EACH: ClassVar[str] = "step"

    def inputs(self, numbers: Mapping[str, Number]) -> Seconds:
        """The seconds that the pipeline gives."""
        return Seconds(**{self.EACH: numbers[self.NEEDS]})

    @staticmethod
    def cost(inputs: Seconds) -> Cost:
        """``step + b sample``."""
        return Cost((Line(inputs.step, inputs.sample),))


@dataclass(frozen=True)
class DecoderModel(GivenTimeModel):
    """A batch of ``b`` takes ``b decoder_time`` of the accelerator's decoder, while its kernels compute."""

    NAME: ClassVar[str] = "decode"
    RESOURCE: ClassVar[Resource] = DECODER
    NEEDS: ClassVar[str] = "decoder_time"
    EACH: ClassVar[str] = "sample"


@dataclass(frozen=True)
class DeviceInputModel(GivenTimeModel):
    """A batch of ``b`` takes ``b device_time`` of the accelerator: its kernels decode or augment."""

    NAME: ClassVar[str] = "input on device"
    RESOURCE: ClassVar[Resource] = ACCELERATOR
    NEEDS: ClassVar[str] = "device_time"
    EACH: ClassVar[str] = "sample"


@dataclass(frozen=True)
class StepOverheadModel(GivenTimeModel):
    """A step takes ``step_overhead`` more of the accelerator: synchronizing several of them."""

    NAME: ClassVar[str] = "step overhead"
    RESOURCE: ClassVar[Resource] = ACCELERATOR
    NEEDS: ClassVar[str] = "step_overhead"


@dataclass(frozen=True)
class HostLoopModel(GivenTimeModel):
    """The training loop's own ``host_time`` in each step: the accelerator waits."""

    NAME: ClassVar[str] = "host time"
    RESOURCE: ClassVar[Resource] = ACCELERATOR
    NEEDS: ClassVar[str] = "host_time"
    BUSY: ClassVar[bool] = False
