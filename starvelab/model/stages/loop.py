"""The training loop's own thread: receiving, and its own work beside the accelerator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...units import Number
from ..cost import Cost, Inputs, Line
from ..resources import LOOP, Resource
from ..scaling import loader_kinds
from .stage import StageModel

# Whose hand-over is meant where a pipeline names no kind of workers.
_KIND = "processes"


@dataclass(frozen=True)
class LoopInputs(Inputs):
    """Objects of a batch and bytes of a sample, with the seconds of each, and the loop's own seconds."""

    objects: Number
    size: Number
    object_time: Number
    byte_time: Number
    own: Number


@dataclass(frozen=True)
class LoopModel(StageModel[LoopInputs]):
    """A batch takes ``objects object_time + bytes byte_time + own`` of one thread.

    That thread runs beside the accelerator, as far as steps may be in flight. No worker helps it: only work
    that moves out of it does, to the workers, or into fewer objects. What the accelerator waits for whatever
    is in flight is `HostLoopModel`. The two constants belong to the kind of workers (``data/loaders.toml``).
    """

    NAME: ClassVar[str] = "receive"
    RESOURCE: ClassVar[Resource] = LOOP

    def resolve(
        self, *, loop_time: Number | None, objects: Number | None, transferred: Number, loader: str | None
    ) -> LoopInputs | None:
        """The formula's numbers from the fields of a pipeline."""
        if loop_time is None and objects is None:
            return None
        own = 0.0 if loop_time is None else loop_time
        if objects is None:
            return LoopInputs(0, 0.0, 0.0, 0.0, own)
        kind = loader_kinds()[loader or _KIND]
        return LoopInputs(objects, transferred, kind.object_time, kind.byte_time, own)

    @staticmethod
    def cost(inputs: LoopInputs) -> Cost:
        """``objects object_time + own + b size byte_time``."""
        fixed = inputs.objects * inputs.object_time + inputs.own
        return Cost((Line(fixed, inputs.size * inputs.byte_time),))
