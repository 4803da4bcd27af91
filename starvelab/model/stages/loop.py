"""The training loop's own thread: receiving the objects of a batch, and its own work on it."""

from __future__ import annotations

from dataclasses import dataclass

from ...units import Number
from ..assumptions import Assumptions, loader_kinds
from ..costs import Cost, Inputs, Line
from ..resources import LOOP
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
    loop_work: Number


class LoopModel(StageModel[LoopInputs]):
    """A batch takes ``objects object_time + bytes byte_time + loop_work`` of one thread.

    It runs beside the accelerator, as far as steps may be in flight; what the accelerator waits for in any
    case is `HostLoopModel`. The two constants belong to the kind of workers (``data/loaders.toml``). A batch
    that is pickled has the assumptions' time for each byte, and none for each object.
    """

    NAME, RESOURCE, NEEDS = "receive", LOOP, ("loop_time", "objects", "pickled")

    @staticmethod
    def resolve(
        *,
        assumed: Assumptions,
        loop_time: Number | None,
        objects: Number | None,
        pickled: bool | None,
        transferred: Number,
        loader: str | None,
    ) -> LoopInputs:
        """The formula's numbers from the fields of a pipeline."""
        loop_work = 0.0 if loop_time is None else loop_time
        kind = loader_kinds()[loader or _KIND]
        if pickled:  # threads share the memory of the loop, and pickle nothing
            byte_time = 1 / assumed.numbers["unpickling_bandwidth"] if kind.byte_time else 0.0
            return LoopInputs(0, transferred, 0.0, byte_time, loop_work)
        if objects is not None:
            return LoopInputs(objects, transferred, kind.object_time, kind.byte_time, loop_work)
        return LoopInputs(0, 0.0, 0.0, 0.0, loop_work)

    @staticmethod
    def cost(inputs: LoopInputs) -> Cost:
        """``objects object_time + loop_work + b size byte_time``."""
        fixed = inputs.objects * inputs.object_time + inputs.loop_work
        return Cost((Line(fixed, inputs.size * inputs.byte_time),))
