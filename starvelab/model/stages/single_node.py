"""One training or forward step on the accelerator, with its input at hand."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import ClassVar, NamedTuple

import numpy as np

from ...errors import InputError, MissingValueError
from ...fields import Kind, Meaning
from ...units import Q_, Number, Quantity, format_quantity, positive, positive_int
from ..assumptions import PHASES
from ..catalogue import Entry, check_entry
from ..cost import Cost, Line, name_of_largest
from ..inputs import Inputs
from ..rates import measured_rate, measured_rates
from ..resources import ACCELERATOR, Resource
from .stage import StageModel

# The basis of a step whose rate the caller gave.
GIVEN = "measured: given as accelerator_rate"

# Bytes of one element; fp16 and bf16 share the tensor cores' rate.
ELEMENT_BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2}


@dataclass(frozen=True)
class SingleNodeResult:
    """The answer of `SingleNodeModel.solve`; arrays where a swept argument was one.

    Where the latency comes from a measured rate, the three times are still those of the formula: a guess at
    what such a step is made of, which need not add up to it. Where the caller gave the rate and no model or
    no hardware, there is no formula: all that it would say is None, and the two words are "".

    Attributes
    ----------
    latency : quantity [time]
        Of one step.
    throughput : quantity [sample/time]
    bottleneck : str
        "Compute" or "Memory", the larger of the two.
    cause : str
        "compute", "memory" or "overhead": what takes the largest part of the step.
    compute_time, memory_time, overhead_time : quantity [time]
        The arithmetic, the memory traffic (these two overlap) and the fixed part (which comes on top).
    work : quantity [compute] or None
        FLOP of one step of one sample.
    peak : quantity [compute/time] or None
    mfu : float or None
        Model FLOP utilization: work done over what the datasheet's peak would have done.
    basis : str
        "peak x efficiency", or which measured rate the latency comes from: a published one, or the caller's.
    memory_needed : quantity [data] or None
        None where the catalogue has no activation size.
    feasible : bool
        Whether the step fits in the accelerator's memory; True where either value is not known.
    infeasible_reason : str
    """

    latency: Quantity
    throughput: Quantity
    bottleneck: Number
    cause: Number
    compute_time: Quantity | None
    memory_time: Quantity | None
    overhead_time: Quantity | None
    work: Quantity | None
    peak: Quantity | None
    mfu: Number | None
    basis: str
    memory_needed: Quantity | None
    feasible: Number
    infeasible_reason: str


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
    layers: Number
    overhead_per_layer: Number
    overhead_per_step: Number

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
class SingleNodeInputs(Inputs):
    """A measured rate [sample/s] and where it is from, or the formula's inputs, or both.

    Attributes
    ----------
    rate : float or None
    basis : str
    formula : FormulaInputs or None
        None where only a rate is known.
    memory : MemoryInputs or None
        None where a value that it needs is not known.
    """

    rate: Number | None
    basis: str
    formula: FormulaInputs | None
    memory: MemoryInputs | None


class Parts(NamedTuple):
    """What a step is made of, each as a function of the batch size."""

    compute: Line
    memory: Line
    overhead: Line


@dataclass(frozen=True)
class SingleNodeModel(StageModel[SingleNodeInputs]):
    """The accelerator alone: the larger of arithmetic and memory traffic, plus overhead.

    Parameters
    ----------
    assumptions : Assumptions

    Notes
    -----
    For a batch of ``b``,
    ``step = max(b work / (peak efficiency), weights (1 + traffic b) / bandwidth) + overhead``.
    A rate given by the caller replaces this formula; with `measured_rates` or a `framework` so does a
    published rate of the same model, accelerator and precision. Stops being true for several accelerators,
    whose communication it leaves out.

    References
    ----------
    Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009.
    """

    NAME: ClassVar[str] = "model"
    RESOURCE: ClassVar[Resource] = ACCELERATOR

    def solve(
        self,
        *,
        batch_size: Number,
        model: Entry | None = None,
        hardware: Entry | None = None,
        precision: str = "fp16",
        phase: str | None = None,
        accelerator_rate: Quantity | None = None,
        framework: str | None = None,
    ) -> SingleNodeResult:
        """Time one step of a batch.

        Parameters
        ----------
        batch_size : int or array
        model, hardware : catalogue entries
            Not needed beside `accelerator_rate`.
        precision : {"fp16", "bf16", "tf32", "fp32"}
        phase : {"forward", "training"}, optional
            That of the assumptions unless given.
        accelerator_rate : quantity [sample/time], optional
            What the accelerator was measured to do when its input is at hand.
        framework : str, optional
            Whose measured rate to take from the catalogue, for example "MXNet".

        Raises
        ------
        InputError, MissingValueError

        Examples
        --------
        >>> from starvelab import Hardware, Models
        >>> a100 = Hardware.Cloud.A100
        >>> base = SingleNodeModel().solve(model=Models.ResNet50, hardware=a100, batch_size=256)
        >>> round(base.latency.to("ms").magnitude, 2), round(base.throughput.magnitude), base.bottleneck
        (11.74, 21800, 'Compute')
        """
        batch = positive_int(batch_size, "batch_size")
        if phase is not None:
            Meaning(Kind.CHOICE, choices=PHASES).read(phase, "phase")
        if accelerator_rate is not None:
            accelerator_rate = positive(accelerator_rate, "sample/s", "accelerator_rate")
        inputs = self.resolve(
            model=model,
            hardware=hardware,
            precision=precision,
            phase=phase,
            accelerator_rate=accelerator_rate,
            framework=framework,
        )
        step = self.cost(inputs).at(batch)
        formula, memory = inputs.formula, inputs.memory
        if formula is None:
            compute = held = traffic = overhead = work = peak = mfu = None
        else:
            compute, traffic, overhead = (part.at(batch) for part in parts(formula))
            work, peak = Q_(formula.work / 1e9, "GFLOP"), Q_(formula.peak / 1e12, "TFLOP/s")
            mfu = formula.work * batch / (step * formula.peak)
        held = None if memory is None else Q_(memory.needed(batch) / 1e9, "GB")
        feasible, reason = fits(memory, batch)
        return SingleNodeResult(
            latency=Q_(step * 1e3, "ms"),
            throughput=Q_(batch / step, "img/s"),
            bottleneck="" if formula is None else name_of_largest({"Compute": compute, "Memory": traffic}),
            cause=cause(inputs, batch),
            compute_time=_ms(compute),
            memory_time=_ms(traffic),
            overhead_time=_ms(overhead),
            work=work,
            peak=peak,
            mfu=mfu,
            basis=inputs.basis,
            memory_needed=held,
            feasible=feasible,
            infeasible_reason=reason,
        )

    def resolve(
        self,
        *,
        model: Entry | None,
        hardware: Entry | None,
        precision: str,
        phase: str | None,
        accelerator_rate: Number | None,
        framework: str | None,
    ) -> SingleNodeInputs:
        """The formula's numbers from the fields of a pipeline.

        Raises
        ------
        InputError, MissingValueError
        """
        _check_accelerator(model, hardware, accelerator_rate, framework)
        if precision not in ELEMENT_BYTES:
            raise InputError(
                f"precision must be one of {', '.join(ELEMENT_BYTES)}, got {precision!r}. Pass one of these."
            )
        phase = self.assumptions.phase if phase is None else phase
        if model is None or hardware is None:
            return SingleNodeInputs(accelerator_rate, GIVEN, None, None)
        rate, basis = accelerator_rate, GIVEN
        if accelerator_rate is None:
            rate, basis = self._published_rate(model, hardware, precision, phase, framework)
        return SingleNodeInputs(
            rate=rate,
            basis=basis,
            formula=self._formula(model, hardware, precision, phase),
            memory=self._memory(model, hardware, precision, phase),
        )

    def _published_rate(
        self, model: Entry, hardware: Entry, precision: str, phase: str, framework: str | None
    ) -> tuple[Number | None, str]:
        """The published rate [sample/s] to use, if there is one, and where it is from."""
        if framework is None and not self.assumptions.numbers["measured_rates"]:
            return None, "peak x efficiency"
        found = measured_rate(
            hardware=hardware, model=model, precision=precision, phase=phase, framework=framework
        )
        if found is not None:
            return found.fact.number, f"measured: {found.framework}, {found.fact.source}"
        if framework is None:
            return None, "peak x efficiency"
        key = (hardware.path, model.path, precision, phase)
        known = sorted({r.framework for r in measured_rates() if r.key == key})
        raise MissingValueError(
            f"No rate of {model.name} on {hardware.name} was measured in {framework!r} at {precision}, "
            f"{phase}. There is: {', '.join(known) or 'none'}. Pass one of these, or your own "
            "accelerator_rate."
        )

    def _formula(self, model: Entry, hardware: Entry, precision: str, phase: str) -> FormulaInputs:
        a = self.assumptions.numbers
        model_layers, parameters = model.layers, model.parameters  # these say what is missing
        return FormulaInputs(
            macs=model.number(a["macs_field"], model.number("macs_forward")),
            flop_per_mac=a["flop_per_mac"],
            passes=a["training_factor"] if phase == "training" else 1.0,
            peak=_peak(hardware, precision),
            efficiency=a["efficiency"],
            parameters=parameters,
            element_bytes=ELEMENT_BYTES[precision],
            memory_bandwidth=positive(hardware.memory_bandwidth, "B/s", "memory_bandwidth"),
            activation_traffic=a["activation_traffic"],
            layers=model_layers,
            overhead_per_layer=a["overhead_per_layer"],
            overhead_per_step=a["overhead_per_step"],
        )

    def _memory(self, model: Entry, hardware: Entry, precision: str, phase: str) -> MemoryInputs | None:
        """What a step holds: parameters with their state, and the activations of every sample."""
        activation, capacity = model.number("activation_size"), hardware.number("memory_capacity")
        if activation is None or capacity is None:
            return None
        a, element = self.assumptions.numbers, ELEMENT_BYTES[precision]
        # The catalogue counts activations at two bytes a number.
        activation = activation * element / 2
        if phase == "training":
            return MemoryInputs(model.parameters * a["state_bytes"], activation, capacity, hardware.name)
        held = activation * a["forward_activation"]
        return MemoryInputs(model.parameters * element, held, capacity, hardware.name)

    @staticmethod
    def cost(inputs: SingleNodeInputs) -> Cost:
        """``max(compute, memory) + overhead``, or ``b / rate`` where the rate was measured."""
        if inputs.rate is not None:
            return Cost((Line(0, 1 / inputs.rate),))
        assert inputs.formula is not None  # `resolve` has one where there is no rate
        compute, memory, overhead = parts(inputs.formula)
        return Cost((compute + overhead, memory + overhead))


def parts(x: FormulaInputs) -> Parts:
    """``b work / (peak efficiency)``, ``weights (1 + traffic b) / bandwidth``, and the overhead."""
    weights = x.parameters * x.element_bytes * x.passes / x.memory_bandwidth
    return Parts(
        compute=Line(0, x.work / (x.peak * x.efficiency)),
        memory=Line(weights, weights * x.activation_traffic),
        overhead=Line(x.layers * x.overhead_per_layer * x.passes + x.overhead_per_step, 0),
    )


def cause(inputs: SingleNodeInputs, batch: Number) -> Number:
    """What takes the largest part of a step by the formula; "" where only a rate is known."""
    if inputs.formula is None:
        return ""
    return name_of_largest({name: part.at(batch) for name, part in parts(inputs.formula)._asdict().items()})


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
    return feasible, (f"The step needs about {need} of memory, and {memory.hardware} has {has}. {remedy}")


def _check_accelerator(
    model: Entry | None, hardware: Entry | None, accelerator_rate: Number | None, framework: str | None
) -> None:
    """Reject what is no entry, and an accelerator of which neither the model nor a rate is known."""
    missing = [name for name, entry in (("model", model), ("hardware", hardware)) if entry is None]
    if missing and accelerator_rate is None:
        raise InputError(
            "The accelerator's time comes from model and hardware, or from a measured accelerator_rate, "
            f"got no {' and no '.join(missing)}. Pass model=Models.ResNet50, hardware=Hardware.Cloud.A100, "
            'or accelerator_rate="2470 img/s".'
        )
    if model is not None:
        check_entry(model, "Models", "model")
    if hardware is not None:
        check_entry(hardware, "Hardware", "hardware")
    if accelerator_rate is not None and framework is not None:
        raise InputError(
            f"framework names a measured rate of the catalogue, got {framework!r} beside "
            "accelerator_rate. Pass one of them."
        )


def _peak(hardware: Entry, precision: str) -> Number:
    """Peak arithmetic rate [FLOP/s] of dense matrices at a precision."""
    peak = hardware.number(f"peak_{precision}_dense")
    if peak is None:
        listed = [name.split("_")[1] for name in hardware.facts if name.startswith("peak_")]
        raise MissingValueError(
            f"SingleNodeModel needs peak_{precision}_dense, and {hardware.name} lists none. "
            f"It lists {', '.join(listed)}: pass one of them as precision."
        )
    return peak


def _ms(seconds: Number | None) -> Quantity | None:
    return None if seconds is None else Q_(seconds * 1e3, "ms")
