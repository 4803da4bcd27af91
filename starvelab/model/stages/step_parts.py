"""What a step of the accelerator is made of: inputs of its law and of its formula, parts, and memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import NamedTuple

import numpy as np

from ...units import Q_, Number, format_quantity
from ..cost import Line, name_of_largest
from ..inputs import Inputs


@dataclass(frozen=True)
class FormulaInputs(Inputs):
    """What the formula of a step reads: the model, the accelerator, and how far its peak is reached."""

    macs: Number
    flop_per_mac: Number
    passes: Number
    peak: Number
    efficiency: Number
    parameters: Number
    element_bytes: Number
    memory_bandwidth: Number
    activation_traffic: Number
    launches: Number
    overhead_per_layer: Number
    overhead_per_step: Number
    overhead_overlaps: bool

    @property
    def work(self) -> Number:
        """FLOP of one sample."""
        return self.macs * self.flop_per_mac * self.passes


@dataclass(frozen=True)
class MemoryInputs(Inputs):
    """Bytes that a step holds whatever its batch and for each sample, and those that the accelerator has."""

    fixed: Number
    per_sample: Number
    capacity: Number
    hardware: str

    def needed(self, batch: Number) -> Number:
        """Bytes of a step."""
        return self.fixed + self.per_sample * batch


@dataclass(frozen=True)
class LawInputs(Inputs):
    """A step by a measured rate, itself or extrapolated.

    Attributes
    ----------
    rate : float or None
        As it was measured [sample/s]; None where it is extrapolated.
    arithmetic, traffic : float
        Seconds for each sample.
    launch : float
        Seconds that the host launches kernels in each step, while the accelerator computes.
    """

    rate: Number | None
    arithmetic: Number
    traffic: Number
    launch: Number


@dataclass(frozen=True)
class SingleNodeInputs(Inputs):
    """How a step is timed: by the caller's rate, else by the law of measured rates, else by the formula.

    Attributes
    ----------
    rate : float or None
        The caller's [sample/s].
    law : LawInputs or None
    formula : FormulaInputs or None
        None where only a rate is known.
    basis : str
    memory : MemoryInputs or None
        None where a value that it needs is not known.
    """

    rate: Number | None
    law: LawInputs | None
    formula: FormulaInputs | None
    basis: str
    memory: MemoryInputs | None


class Parts(NamedTuple):
    """What a step is made of [s]."""

    compute: Number
    memory: Number
    overhead: Number


def formula_parts(x: FormulaInputs) -> tuple[Line, Line, Line]:
    """``b work / (peak efficiency)``, ``weights (1 + traffic b) / bandwidth``, and the overhead."""
    weights = x.parameters * x.element_bytes * x.passes / x.memory_bandwidth
    return (
        Line(0, x.work / (x.peak * x.efficiency)),
        Line(weights, weights * x.activation_traffic),
        Line(x.launches * x.overhead_per_layer + x.overhead_per_step, 0),
    )


def parts(inputs: SingleNodeInputs, batch: Number) -> Parts | None:
    """What a step of a batch is made of; None where only a rate is known."""
    if inputs.law is not None:
        law = inputs.law
        work = batch * (law.arithmetic + law.traffic)
        return Parts(batch * law.arithmetic, batch * law.traffic, np.maximum(law.launch - work, 0.0)[()])
    if inputs.formula is None:
        return None
    return Parts(*(part.at(batch) for part in formula_parts(inputs.formula)))


def launch_wait(inputs: SingleNodeInputs, batch: Number) -> Number:
    """How long an accelerator has nothing to do in a step because the host is still launching [s].

    Where the overhead does not hide behind the work, as in the walkthrough, it counts as work.
    """
    formula = inputs.formula
    if inputs.rate is not None:
        return 0.0
    if inputs.law is not None:
        work = batch * (inputs.law.arithmetic + inputs.law.traffic)
        return np.maximum(inputs.law.launch - work, 0.0)[()]
    if formula is None or not formula.overhead_overlaps:
        return 0.0
    compute, memory, overhead = (part.at(batch) for part in formula_parts(formula))
    return np.maximum(overhead - np.maximum(compute, memory), 0.0)[()]


def cause(made_of: Parts) -> Number:
    """What takes the largest part of a step."""
    return name_of_largest(made_of._asdict())


def fits(memory: MemoryInputs | None, batch: Number) -> tuple[Number, str]:
    """Whether a step fits in the accelerator's memory, as far as both are known, and if not, why."""
    if memory is None:
        return True, ""
    needed = memory.needed(batch)
    feasible = needed <= memory.capacity
    if np.all(feasible):
        return feasible, ""
    largest = floor((memory.capacity - memory.fixed) / memory.per_sample) if memory.per_sample else 0
    remedy = (
        f"Use a batch of at most {largest}."
        if largest > 0
        else "No batch fits: use an accelerator with more memory."
    )
    need, has = (format_quantity(Q_(float(size) / 1e9, "GB")) for size in (np.max(needed), memory.capacity))
    step = "The largest step" if np.ndim(needed) else "The step"
    return feasible, (f"{step} needs about {need} of memory, and {memory.hardware} has {has}. {remedy}")
