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
from ..cost import Cost, Inputs, Line, name_of_largest
from ..parts import StepTime
from ..rates import ELEMENT_BYTES, SampleTime, Work, frameworks_of, launch_time, sample_time
from ..resources import ACCELERATOR, Resource
from .stage import StageModel

# XLA compiles whatever a TPU runs; on a GPU it is asked for.
COMPILED_FAMILY = "TPU"
# Of which framework and host `overhead_per_layer` is; others take longer or shorter in proportion.
LAUNCHES_OF = ("PyTorch", "Cloud.V100")
# The basis of a step whose rate the caller gave.
GIVEN = "measured: given as the rate of the accelerator"


@dataclass(frozen=True)
class SingleNodeResult:
    """The answer of `SingleNodeModel.solve`; arrays where a swept argument was one.

    Where the caller gave the rate, the three times are those that the model would expect: a guess at what
    such a step is made of, which need not add up to it. Where there is no model or no hardware beside it, all
    that depends on them is None, and the two words are "".

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
        The arithmetic, the memory traffic and the fixed part: under `TUTORIAL` the first two overlap and the
        third comes on top, under `PUBLISHED` all three add up to the step.
    work : quantity [compute] or None
        FLOP of one step of one sample.
    peak : quantity [compute/time] or None
    mfu : float or None
        Model FLOP utilization: work done over what the datasheet's peak would have done.
    basis : str
        Where the latency comes from: "measured: ..." (a published rate, or the caller's), "extrapolated from
        ..." such a rate, or "peak x efficiency".
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
    """A step by a measured rate, itself or extrapolated."""

    rate: Number | None  # as it was measured [sample/s]; None where it is extrapolated
    arithmetic: Number  # seconds for each sample, as `traffic`
    traffic: Number
    launch: Number  # seconds that the host launches kernels in each step, while the accelerator computes


@dataclass(frozen=True)
class SingleNodeInputs(Inputs):
    """How a step is timed: by the caller's rate, else by the law of measured rates, else by the formula."""

    rate: Number | None  # the caller's [sample/s]
    law: LawInputs | None
    formula: FormulaInputs | None  # None where only a rate is known
    basis: str
    memory: MemoryInputs | None  # None where a value that it needs is not known


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
    A rate given by the caller replaces this formula. So does, with `measured_rates` or a `framework`, the law
    of measured rates: ``step = max(b (arithmetic + traffic), launches)``, with the time of a sample as it was
    measured, or extrapolated (`starvelab.model.rates`). Stops being true for several accelerators, whose
    communication it leaves out.

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
        compiled: bool = False,
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
        compiled : bool
            Whether the host launches the step as a whole; that of a TPU always is.

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
            compiled=compiled,
        )
        step = self.cost(inputs).at(batch)
        formula, memory = inputs.formula, inputs.memory
        made_of = parts(inputs, batch)
        if formula is None:
            work = peak = mfu = None
        else:
            work, peak = Q_(formula.work / 1e9, "GFLOP"), Q_(formula.peak / 1e12, "TFLOP/s")
            mfu = formula.work * batch / (step * formula.peak)
        held = None if memory is None else Q_(memory.needed(batch) / 1e9, "GB")
        feasible, reason = fits(memory, batch)
        return SingleNodeResult(
            latency=Q_(step * 1e3, "ms"),
            throughput=Q_(batch / step, "img/s"),
            bottleneck=""
            if made_of is None
            else name_of_largest({"Compute": made_of.compute, "Memory": made_of.memory}),
            cause="" if made_of is None else cause(made_of),
            compute_time=None if made_of is None else _ms(made_of.compute),
            memory_time=None if made_of is None else _ms(made_of.memory),
            overhead_time=None if made_of is None else _ms(made_of.overhead),
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
        compiled: bool,
    ) -> SingleNodeInputs:
        """The formula's numbers from the fields of a pipeline."""
        _check_accelerator(model, hardware, accelerator_rate, framework, compiled)
        if precision not in ELEMENT_BYTES:
            raise InputError(
                f"precision must be one of {', '.join(ELEMENT_BYTES)}, got {precision!r}. Pass one of these."
            )
        phase = self.assumptions.phase if phase is None else phase
        if model is None or hardware is None:
            return SingleNodeInputs(accelerator_rate, None, None, GIVEN, None)
        compiled = compiled or hardware.get("family") == COMPILED_FAMILY
        law, basis = None, "peak x efficiency"
        if framework is not None or self.assumptions.numbers["measured_rates"]:
            time = self._sample_time(model, hardware, precision, phase, framework)
            if time is not None:
                law, basis = self._law(time, model, hardware, phase, compiled), time.basis
        return SingleNodeInputs(
            rate=accelerator_rate,
            law=law,
            formula=self._formula(model, hardware, precision, phase, compiled),
            basis=basis if accelerator_rate is None else GIVEN,
            memory=self._memory(model, hardware, precision, phase),
        )

    def _sample_time(
        self, model: Entry, hardware: Entry, precision: str, phase: str, framework: str | None
    ) -> SampleTime | None:
        """The time of a sample by the law of measured rates; None where it says nothing."""
        work = Work(self.assumptions.numbers["flop_per_mac"], self.assumptions.numbers["training_factor"])
        found = sample_time(model, hardware, precision, phase, work, framework)
        if found is None and framework is not None:
            raise MissingValueError(
                f"No rate of {model.name} on {hardware.name} was measured in {framework!r}, or can be "
                f"extrapolated at {precision}, {phase}. {model.name} was measured in "
                f"{', '.join(frameworks_of(model))}. Pass one of these, or a rate of your own."
            )
        return found

    def _law(self, time: SampleTime, model: Entry, hardware: Entry, phase: str, compiled: bool) -> LawInputs:
        a = self.assumptions.numbers
        launches = self._launches(model.number("layers", 0), phase, compiled)
        own, assumed = (launch_time(*of).number for of in ((time.framework, hardware.path), LAUNCHES_OF))
        launch = launches * a["overhead_per_layer"] * own / assumed + a["overhead_per_step"]
        off = a["extrapolated_time"] if time.rate is None else 1.0
        return LawInputs(
            rate=time.rate,
            arithmetic=off * time.arithmetic,
            traffic=off * time.traffic,
            launch=launch if a["overhead_overlaps"] else 0.0,
        )

    def _launches(self, layers: Number, phase: str, compiled: bool) -> Number:
        """As many as a forward pass has layers, more in training; one where the step is compiled."""
        if compiled:
            return 1.0
        return layers * (self.assumptions.numbers["launch_factor"] if phase == "training" else 1.0)

    def _formula(
        self, model: Entry, hardware: Entry, precision: str, phase: str, compiled: bool
    ) -> FormulaInputs:
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
            launches=self._launches(model_layers, phase, compiled),
            overhead_per_layer=a["overhead_per_layer"],
            overhead_per_step=a["overhead_per_step"],
            overhead_overlaps=a["overhead_overlaps"],
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
        """``b / rate``, ``max(b (arithmetic + traffic), launch)`` or ``max(compute, memory) + overhead``."""
        if isinstance(inputs.rate, StepTime):
            return Cost((Line(inputs.rate.seconds, 0),))
        if inputs.rate is not None:
            return Cost((Line(0, 1 / inputs.rate),))
        if inputs.law is not None:
            law = inputs.law
            sample = law.arithmetic + law.traffic if law.rate is None else 1 / law.rate
            return Cost((Line(0, sample), Line(law.launch, 0)))
        assert inputs.formula is not None  # `resolve` has one where there is no rate
        compute, memory, overhead = formula_parts(inputs.formula)
        if inputs.formula.overhead_overlaps:
            return Cost((compute, memory, overhead))
        return Cost((compute + overhead, memory + overhead))


def _check_accelerator(
    model: Entry | None,
    hardware: Entry | None,
    accelerator_rate: Number | None,
    framework: str | None,
    compiled: bool,
) -> None:
    """Reject what is no entry, and an accelerator of which neither the model nor a rate is known."""
    missing = [name for name, entry in (("model", model), ("hardware", hardware)) if entry is None]
    if missing and accelerator_rate is None:
        raise InputError(
            "The accelerator's time comes from model and hardware, or from a measured rate, got no "
            f"{' and no '.join(missing)}. Pass model=Models.ResNet50, hardware=Hardware.Cloud.A100, or "
            'the rate, such as "2470 img/s".'
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
    if accelerator_rate is not None and compiled:
        raise InputError(
            "compiled=True says that a step is launched once, got it beside accelerator_rate, which holds "
            "all that a step takes. Pass one of them."
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


def _ms(seconds: Number) -> Quantity:
    return Q_(seconds * 1e3, "ms")


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
    """Say if a step fits in the memory of the accelerator, as far as both are known, and if not, why."""
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
