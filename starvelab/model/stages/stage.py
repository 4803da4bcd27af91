"""What all stage models share: a resource, and a formula for what a batch costs it.

A stage model resolves its fields once into plain numbers in base units (`resolve`), and its formula reads
only these (`cost`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Generic, TypeVar, cast

from ...units import Number
from ..assumptions import TUTORIAL, Assumptions, check_assumptions
from ..resources import Cost, Inputs, Resource

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
    # A pipeline models this stage if it has one of these fields; each has a batch size.
    NEEDS: ClassVar[tuple[str, ...]] = ("batch_size",)
    # How a sentence calls what the resource waits for, taken but idle; empty where it works.
    AWAITED: ClassVar[str] = ""

    assumptions: Assumptions = TUTORIAL

    def __post_init__(self) -> None:
        check_assumptions(self.assumptions)

    def inputs(self, numbers: Mapping[str, Number]) -> InputsT | None:
        """Resolve those of a pipeline's numbers that this stage reads."""
        resolve = type(self).resolve  # type: ignore[attr-defined]  # each takes fields of its own
        inputs: InputsT | None = resolve(self, **{name: numbers[name] for name in _parameters(resolve)})
        return inputs

    @classmethod
    def among(cls, inputs: Mapping[str, Inputs]) -> InputsT:
        """Its own of the inputs of all stages, by their names."""
        return cast(InputsT, inputs[cls.NAME])

    @staticmethod
    def cost(inputs: InputsT) -> Cost:
        """Seconds of a batch as a function of its size."""
        raise NotImplementedError


@cache
def _parameters(resolve: Callable[..., object]) -> tuple[str, ...]:
    """The fields of a pipeline that a stage reads."""
    return tuple(name for name in inspect.signature(resolve).parameters if name != "self")
