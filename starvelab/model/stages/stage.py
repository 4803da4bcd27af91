"""What all stage models share, and the short ones: given seconds, the loop, the barrier, and the copy.

A stage model resolves its fields once into plain numbers in base units (`resolve`), and its formula reads
only these (`cost`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from math import erfc, log1p, sqrt
from typing import ClassVar, Generic, TypeVar, cast

import numpy as np

from ...units import Q_, Number, Quantity, Unchecked, positive, positive_int
from ..assumptions import TUTORIAL, Assumptions, check_assumptions, loader_kinds
from ..catalogue import Entry, bandwidth_of
from ..resources import ACCELERATOR, DECODER, LINK, LOOP, Cost, Inputs, Line, Resource

InputsT = TypeVar("InputsT", bound=Inputs)
# Whose hand-over is meant where a pipeline names no kind of workers.
_KIND = "processes"
# Where the standard normal distribution is integrated, and its distribution function there.
_Z = np.linspace(-9, 14, 1151)
_BELOW = np.array([erfc(-z / sqrt(2)) / 2 for z in _Z])
_WEIGHT = np.exp(-(_Z**2) / 2) / sqrt(2 * np.pi) * (_Z[1] - _Z[0])


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
    # How a sentence calls what the resource waits for, taken but idle; empty where it works.
    AWAITED: ClassVar[str] = ""

    assumptions: Assumptions = TUTORIAL

    def __post_init__(self) -> None:
        check_assumptions(self.assumptions)

    def inputs(self, numbers: Mapping[str, Number]) -> InputsT | None:
        """Resolve those of a pipeline's numbers that this stage reads."""
        resolve = type(self).resolve  # type: ignore[attr-defined]  # each takes fields of its own
        found: InputsT | None = resolve(self, **{name: numbers[name] for name in _parameters(resolve)})
        return found

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


@dataclass(frozen=True)
class Seconds(Inputs):
    """Seconds for each sample, and for each step whatever its batch."""

    sample: Number = 0
    step: Number = 0


class GivenTimeModel(StageModel[Seconds]):
    """A stage that takes as long as the field that it needs says: for each sample, or for each step."""

    EACH = "step"

    def inputs(self, numbers: Mapping[str, Number]) -> Seconds:
        """The seconds that the pipeline gives."""
        return Seconds(**{self.EACH: numbers[self.NEEDS]})

    @staticmethod
    def cost(inputs: Seconds) -> Cost:
        """``step + b sample``."""
        return Cost((Line(inputs.step, inputs.sample),))


class DecoderModel(GivenTimeModel):
    """A batch of ``b`` takes ``b decoder_time`` of the accelerator's decoder, while its kernels compute."""

    NAME, RESOURCE, NEEDS, EACH = "decode", DECODER, "decoder_time", "sample"


class DeviceInputModel(GivenTimeModel):
    """A batch of ``b`` takes ``b device_time`` of the accelerator: its kernels decode or augment."""

    NAME, RESOURCE, NEEDS, EACH = "input on device", ACCELERATOR, "device_time", "sample"


class StepOverheadModel(GivenTimeModel):
    """A step takes ``step_overhead`` more of the accelerator: synchronizing several of them."""

    NAME, RESOURCE, NEEDS = "step overhead", ACCELERATOR, "step_overhead"


class HostLoopModel(GivenTimeModel):
    """The training loop's own ``host_time`` in each step: the accelerator waits."""

    NAME, RESOURCE, NEEDS, AWAITED = "host time", ACCELERATOR, "host_time", "the training loop"


@dataclass(frozen=True)
class LoopInputs(Inputs):
    """Objects of a batch and bytes of a sample, with the seconds of each, and the loop's own seconds."""

    objects: Number
    size: Number
    object_time: Number
    byte_time: Number
    own: Number


class LoopModel(StageModel[LoopInputs]):
    """A batch takes ``objects object_time + bytes byte_time + own`` of one thread.

    It runs beside the accelerator, as far as steps may be in flight; what the accelerator waits for in any
    case is `HostLoopModel`. The two constants belong to the kind of workers (``data/loaders.toml``).
    """

    NAME, RESOURCE = "receive", LOOP

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


@lru_cache(maxsize=4096)
def mean_of_largest(count: int, spread: float) -> float:
    """The mean of the largest of so many lognormal numbers of mean 1 and standard deviation `spread`."""
    # The order statistic: the integral of n x(z) phi(z) Phi(z)^(n - 1) with x(z) = exp(s z - s^2 / 2).
    sigma = sqrt(log1p(spread**2))
    return float(np.exp(sigma * _Z - sigma**2 / 2) @ (count * _WEIGHT * _BELOW ** (count - 1)))


@dataclass(frozen=True)
class BarrierInputs(Inputs):
    """How much longer the slowest of all ranks takes than their mean, as a share of it."""

    lag: Number


class BarrierModel(StageModel[BarrierInputs]):
    """A step takes ``E[max over ranks]`` of what scatters in it: the mean of the largest of so many times.

    Ranks are all accelerators of all hosts, whose times are lognormal and independent. What one waits for is
    that mean less its own (David, Nagaraja: Order Statistics, 2003, ch. 3).
    """

    NAME, RESOURCE, AWAITED = "barrier", ACCELERATOR, "the barrier"

    def resolve(self, *, hosts: Number, accelerators: Number, rank_spread: float) -> BarrierInputs | None:
        """The formula's numbers from the fields of a pipeline."""
        if rank_spread == 0:
            return None
        ranks = hosts * accelerators
        if np.ndim(ranks):
            return BarrierInputs(np.vectorize(mean_of_largest)(ranks, rank_spread) - 1)
        return BarrierInputs(mean_of_largest(int(ranks), rank_spread) - 1) if ranks > 1 else None

    @staticmethod
    def cost(inputs: BarrierInputs, own: Cost) -> Cost:  # type: ignore[override]
        """``lag own``: a share of what the accelerator itself takes."""
        return own.times(inputs.lag)


_REMEDY = 'Pass link=Links.PCIe4_x16 or Q_("32 GB/s").'


@dataclass(frozen=True)
class TransferResult:
    """The answer of `TransferModel.solve`, with the bandwidth of the link as the assumptions believe it."""

    transfer_time: Quantity
    bandwidth: Quantity


@dataclass(frozen=True)
class TransferInputs(Inputs):
    """Bytes of a sample as they cross the link [B], and the link's bandwidth [B/s]."""

    size: Number
    bandwidth: Number


class TransferModel(StageModel[TransferInputs]):
    """The host-to-device link, from pinned or pageable memory.

    Parameters
    ----------
    assumptions : Assumptions
        `link_rate` says whether the datasheet's peak or the measured copy rate is believed.

    Notes
    -----
    A batch of ``b`` takes ``b size / bandwidth``. The bytes are those of the decoded tensor (224 x 224 x 3 is
    150,528 B as uint8, 602,112 B as float32), not those of the stored file. Stops being true for many small
    copies, whose launch cost it leaves out.

    References
    ----------
    NVIDIA/nvbandwidth@66746a3, README, for measured pinned copies.
    """

    NAME, RESOURCE, NEEDS, OVERLAPS = "copy", LINK, "link", True

    def solve(
        self, *, batch_size: Number, transfer_size: Quantity, link: Entry | Quantity, pinned: bool = True
    ) -> TransferResult:
        """Time to copy one batch.

        Parameters
        ----------
        batch_size : int or array
        transfer_size : quantity [data]
            Bytes of one sample as they cross the link.
        link : catalogue entry or quantity [data/time]
            An entry of Links, an accelerator (its own link), or a bandwidth.
        pinned : bool

        Raises
        ------
        MissingValueError, InputError

        Examples
        --------
        >>> from starvelab import Q_
        >>> copy = TransferModel().solve(batch_size=256, transfer_size=Q_("602112 B"), link=Q_("32 GB/s"))
        >>> round(copy.transfer_time.to("ms").magnitude, 3)
        4.817
        """
        bandwidth = link_bandwidth(link, pinned=pinned, rate=self.assumptions.link_rate)
        inputs = TransferInputs(
            size=positive(transfer_size, "B", "transfer_size"),
            bandwidth=positive(bandwidth, "B/s", "link bandwidth"),
        )
        seconds = self.cost(inputs).at(positive_int(batch_size, "batch_size"))
        return TransferResult(Q_(seconds * 1e3, "ms"), bandwidth)

    def resolve(
        self, *, transferred: Number, link: Entry | Number, pinned: bool, copy_overlaps: bool
    ) -> TransferInputs | None:
        """The formula's numbers from the fields of a pipeline; None for another copy."""
        if copy_overlaps is not self.OVERLAPS:
            return None
        if isinstance(link, Entry):
            found = link_bandwidth(link, pinned=pinned, rate=self.assumptions.link_rate)
            link = positive(found, "B/s", "link bandwidth")
        return TransferInputs(size=transferred, bandwidth=link)

    @staticmethod
    def cost(inputs: TransferInputs) -> Cost:
        """``b size / bandwidth``."""
        return Cost((Line(0, inputs.size / inputs.bandwidth),))


class SerializedCopyModel(TransferModel):
    """The same copy on the stream that computes: the link's bytes, but the accelerator waits for it."""

    NAME, RESOURCE, AWAITED, OVERLAPS = "serialized copy", ACCELERATOR, "the copy", False


def link_bandwidth(link: Unchecked, *, pinned: bool, rate: str) -> Quantity:
    """The bandwidth [data/time] of a link, of an accelerator's own link, or as it was given."""
    field = "bandwidth_" + (rate if pinned else "pageable_sustained")
    fields = {"Links": field, "Hardware": f"link_{field}"}
    return bandwidth_of(link, "link", fields, "TransferModel needs {}", _REMEDY)
