"""What all stage models share: assumptions, a name, a resource, and a formula over plain numbers.

A stage model resolves its fields once into plain numbers in base units (`resolve`), and its formula reads
only these (`cost`).
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Generic, TypeVar

from ..assumptions import TUTORIAL, Assumptions, check_assumptions
from ..cost import Cost
from ..inputs import Inputs
from ..resources import Resource

InputsT = TypeVar("InputsT", bound=Inputs)


@dataclass(frozen=True)
class StageModel(Generic[InputsT]):
    """A stage: the resource that it runs on, and what a batch costs it.

    Parameters
    ----------
    assumptions : Assumptions
        `TUTORIAL` unless others are given.

    Notes
    -----
    A subclass has two methods besides `solve`. ``resolve(*, ...)`` takes fields of a pipeline by their names
    (quantities already as numbers in base units) and returns its `Inputs`, or None where the pipeline does
    not model this stage. ``cost(inputs)`` is the formula.
    """

    NAME: ClassVar[str]
    RESOURCE: ClassVar[Resource]
    # Whether the resource works meanwhile; otherwise it is taken, and waits.
    BUSY: ClassVar[bool] = True

    assumptions: Assumptions = TUTORIAL

    def __post_init__(self) -> None:
        check_assumptions(self.assumptions)

    @staticmethod
    def cost(inputs: InputsT) -> Cost:
        """Seconds of a batch as a function of its size."""
        raise NotImplementedError


@cache
def field_names(stage: type[StageModel[InputsT]]) -> tuple[str, ...]:
    """The fields of a pipeline that a stage reads: the parameters of its `resolve`."""
    return tuple(name for name in inspect.signature(stage.resolve).parameters if name != "self")  # type: ignore[attr-defined]
