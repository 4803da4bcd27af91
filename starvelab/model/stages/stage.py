"""What all stage models share: a resource, and a formula for what a batch costs it.

A stage model resolves fields of a pipeline once into plain numbers in base units (`resolve`), and its formula
reads only these (`cost`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, cast

from ...errors import own_errors
from ..assumptions import TUTORIAL, Assumptions, not_assumptions
from ..costs import Cost, Inputs
from ..resources import Resource

InputsT = TypeVar("InputsT", bound=Inputs)


@dataclass(frozen=True)
class StageModel(Generic[InputsT]):
    """A stage: the resource that it runs on, and what a batch costs it.

    A subclass has two static methods besides `solve`. ``resolve(*, ...)`` takes fields of a pipeline by their
    names (quantities already as numbers in base units), or what is assumed as `assumed`, and returns its
    `Inputs`, or None where more than one of them says that the pipeline does not model this stage.
    ``cost(inputs)`` is the formula.
    """

    NAME: ClassVar[str]
    RESOURCE: ClassVar[Resource]
    # A pipeline models this stage if it has one of these fields; each has a batch size.
    NEEDS: ClassVar[tuple[str, ...]] = ("batch_size",)
    # The fields that `resolve` takes.
    READS: ClassVar[tuple[str, ...]]
    # How a sentence calls what the resource waits for, taken but idle; empty where it works.
    AWAITED: ClassVar[str] = ""
    resolve: ClassVar[Callable[..., Any]]  # Any: each takes fields of its own

    assumptions: Assumptions = TUTORIAL

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if hasattr(cls, "resolve"):
            cls.READS = tuple(inspect.signature(cls.resolve).parameters)

    def __post_init__(self) -> None:
        if not isinstance(self.assumptions, Assumptions):
            raise not_assumptions(self.assumptions)

    @classmethod
    def among(cls, inputs: Mapping[str, Inputs]) -> InputsT:
        """Its own of the inputs of all stages, by their names."""
        return cast(InputsT, inputs[cls.NAME])

    @staticmethod
    def cost(inputs: InputsT) -> Cost:
        """Seconds of a batch as a function of its size."""
        raise NotImplementedError


StageModel.__init__ = own_errors(StageModel.__init__)  # type: ignore[method-assign]
