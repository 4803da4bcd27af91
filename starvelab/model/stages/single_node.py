"""One training or forward step on the accelerator, with its input at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor
from typing import Any

import numpy as np

from ...errors import InputError, MissingValueError, check_choice, own_errors
from ...units import Q_, Number, Quantity, format_quantity, positive_int
from ..assumptions import PHASES, Assumptions
from ..catalogue import Entry, check_entry
from ..costs import Cost, Inputs, Line, StepTime, name_of_largest
from ..rates import (
    ELEMENT_BYTES,
    SampleTime,
    Work,
    frameworks_of,
    launch_time,
    launches_in_turn,
    sample_time,
)
from ..resources import ACCELERATOR
from .stage import StageModel

# XLA compiles whatever a TPU runs; on a GPU it is asked for.
COMPILED_FAMILY = "TPU"
# Of which framework, host and precision `overhead_per_layer` is; others take longer or shorter in proportion.
LAUNCHES_OF = ("PyTorch", "Cloud.V100", "fp16")
# Of which family of models the published share of a peak is.
EFFICIENCY_OF = "convolutional"
# The basis of a step whose rate the caller gave.
GIVEN = "measured: given as the rate of the GPU"


@dataclass(frozen=True)
class SingleNodeResult:
    """The result of `SingleNodeModel.solve` for one step; arrays where a swept argument was one.

    Of a measured rate the three times are those that the model would expect: a guess at what such a step is
    made of, which need not add up to it.
    """

    latency: Quantity  # of one step
    throughput: Quantity
    bottleneck: Number  # "Compute" or "Memory", the larger of the two
    cause: Number  # "compute", "memory" or "overhead": what takes the largest part of the step
    # Under `TUTORIAL` the first two overlap and the third comes on top, under `PUBLISHED` all three add up.
    compute_time: Quantity
    memory_time: Quantity
    overhead_time: Quantity
    work: Quantity  # FLOP of one step of one sample
    peak: Quantity
    mfu: float | Any  # work done over what the datasheet's peak would have done
    basis: str  # "measured: ...", "extrapolated from ..." such a rate, or "peak x efficiency"
    memory_needed: Quantity | None  # None where the catalogue has no activation size
    feasible: Number  # in the accelerator's memory; True where either value is not known
    infeasible_reason: str


@dataclass(frozen=True)
class StepInputs(Inputs):
    """What a step is made of: amounts, and at which rates they are done; of known times the rates are 1."""

    arithmetic: Number  # FLOP of each sample
    traffic: Number  # bytes that each sample moves through the memory
    overhead: Number  # seconds of each step
    in_turn: bool  # memory traffic follows the arithmetic, and does not overlap it
    hidden: bool  # the accelerator works while the host launches, so that the longer of the two counts
    speed: Number = 1.0  # [FLOP/s]
    weights: Number = 0.0  # bytes that a step moves, whatever its batch
    bandwidth: Number = 1.0  # [B/s]

    @property
    def lines(self) -> tuple[Line, Line, Line]:
        """Arithmetic, memory traffic and overhead by the size of a batch."""
        memory = Line(self.weights / self.bandwidth, self.traffic / self.bandwidth)
        return Line(0, self.arithmetic / self.speed), memory, Line(self.overhead, 0)


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
    """How a step is timed: by the caller's rate, else by a measured one, else by what it is made of."""

    basis: str
    rate: Number  # [sample/s], None where nobody measured it, or the caller's time of a step
    step: StepInputs | None = None  # None where only a rate is known
    work: Number = None  # FLOP of a sample
    peak: Number = None  # [FLOP/s]
    memory: MemoryInputs | None = None  # None where a value that it needs is not known
    together: Number = 1.0  # a step of one of several accelerators over that of one alone

    @property
    def launches(self) -> bool:
        """True if the step is known to hold launches."""
        return self.step is not None and self.basis != GIVEN


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
    of measured rates: ``step = max(b (arithmetic + traffic), launches)``, or the sum of the two in frameworks
    whose work follows its launches, with the time of a sample as it was measured, or extrapolated
    (`starvelab.model.rates`). What several accelerators lose to each other is one share of a training step
    (`accelerators_time` of the assumptions). Stops being true where they exchange over a slow link, or take
    short steps.

    References
    ----------
    Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009.
    """

    NAME, RESOURCE = "model", ACCELERATOR

    @own_errors
    def solve(
        self,
        *,
        batch_size: Number,
        model: Entry,
        hardware: Entry,
        precision: str = "fp16",
        phase: str | None = None,
    ) -> SingleNodeResult:
        """Time one step of a batch.

        Parameters
        ----------
        batch_size : int or array
        model, hardware : catalogue entries
        precision : {"fp16", "bf16", "tf32", "fp32"}
        phase : {"forward", "training"}, optional
            By default that of the assumptions.

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
        check_entry(model, "Models", "model")
        check_entry(hardware, "Hardware", "hardware")
        check_choice(precision, tuple(ELEMENT_BYTES), "precision")
        if phase is not None:
            check_choice(phase, PHASES, "phase")
        inputs = self.resolve(
            assumed=self.assumptions, model=model, hardware=hardware, precision=precision, phase=phase
        )
        step, work, peak, memory = self.cost(inputs).at(batch), inputs.work, inputs.peak, inputs.memory
        made_of = parts(inputs, batch)
        assert made_of is not None  # of a model on an accelerator it is known
        compute, traffic, overhead = (Q_(time * 1e3, "ms") for time in made_of.values())
        feasible, reason = fits(memory, batch)
        return SingleNodeResult(
            latency=Q_(step * 1e3, "ms"), throughput=Q_(batch / step, "img/s"), basis=inputs.basis,
            bottleneck=name_of_largest({"Compute": made_of["compute"], "Memory": made_of["memory"]}),
            cause=name_of_largest(made_of), mfu=work * batch / (step * peak),
            compute_time=compute, memory_time=traffic, overhead_time=overhead,
            work=Q_(work / 1e9, "GFLOP"), peak=Q_(peak / 1e12, "TFLOP/s"),
            memory_needed=None if memory is None else Q_(memory.needed(batch) / 1e9, "GB"),
            feasible=feasible, infeasible_reason=reason,
        )  # fmt: skip

    @staticmethod
    def resolve(
        *,
        assumed: Assumptions,
        model: Entry | None,
        hardware: Entry | None,
        precision: str,
        phase: str | None,
        accelerator_rate: Number | None = None,
        framework: str | None = None,
        compiled: bool = False,
        accelerators: Number = 1,
        hosts: Number = 1,
        rank_spread: Number | None = None,
    ) -> SingleNodeInputs:
        """The formula's numbers from the fields of a pipeline."""
        a, training = assumed.numbers, (phase or assumed.phase) == "training"
        # Where somebody gave the spread of the ranks, that is what they lose to each other.
        loses = training and rank_spread is None
        together = 1.0 + (accelerators * hosts > 1) * (a["accelerators_time"] - 1) if loses else 1.0
        if model is None or hardware is None:
            if accelerator_rate is None:
                missing = [name for name, it in (("model", model), ("hardware", hardware)) if it is None]
                raise InputError(
                    "The accelerator's time comes from model and hardware, or from a measured rate, got no "
                    f"{' and no '.join(missing)}. Pass model=Models.ResNet50, hardware=Hardware.Cloud.A100, "
                    'or the rate, such as "2470 img/s".'
                )
            return SingleNodeInputs(GIVEN, accelerator_rate, together=together)
        passes, peak = a["training_factor"] if training else 1.0, _peak(hardware, precision)
        work = model.number(a["macs_field"], model.number("macs_forward")) * a["flop_per_mac"] * passes
        weights = model.needed("parameters") * ELEMENT_BYTES[precision] * passes
        bandwidth = hardware.needed("memory_bandwidth")
        # A forward pass launches once for each layer, training more often, and a compiled step once.
        kernels = launches = model.needed("layers") * (a["launch_factor"] if training else 1.0)
        if compiled or hardware.get("family") == COMPILED_FAMILY:
            launches = 1.0
        phase = "training" if training else "forward"
        time = assumed_time(assumed, model, hardware, precision, phase, framework)
        if time is None and framework is not None:
            raise MissingValueError(
                f"No rate of {model.name} on {hardware.name} was measured in {framework!r}, or can be "
                f"extrapolated at {precision}, {phase}. {model.name} was measured in "
                f"{', '.join(frameworks_of(model))}. Pass one of these, or a rate of your own."
            )
        if time is None:
            # The published efficiency is that of ResNet-50, which says nothing of a model of another kind.
            if accelerator_rate is None and a["measured_rates"] and model.get("family") != EFFICIENCY_OF:
                family = model.get("family", "its family is not known")
                raise MissingValueError(
                    f"Nobody measured a neighbor of {model.name} ({family}) "
                    "from which its rate could follow. Pass its rate, measured with its input at hand: "
                    'hardware=Accelerator(Hardware.Cloud.A100, rate="100 img/s").'
                )
            basis, rate = "peak x efficiency", None
            step = StepInputs(
                arithmetic=work, speed=peak * a["efficiency"], bandwidth=bandwidth,
                traffic=weights * a["activation_traffic"], weights=weights,
                overhead=launches * a["overhead_per_layer"] + a["overhead_per_step"],
                in_turn=False, hidden=a["overhead_overlaps"],
            )  # fmt: skip
        else:
            basis, rate = time.basis, time.rate
            of_host, assumed = (
                launch_time(*of).number for of in ((time.framework, hardware.path, precision), LAUNCHES_OF)
            )
            per_launch = a["overhead_per_layer"] * of_host / assumed
            launch = launches * per_launch + a["overhead_per_step"] if a["overhead_overlaps"] else 0.0
            in_turn = bool(launch) and launches_in_turn(time.framework)
            if in_turn:
                # What a batch of one takes was measured, and what a large one takes: each with its launches.
                seconds = time.seconds
                if rate is not None:
                    seconds = (time.batch_size / rate - kernels * per_launch) / (time.batch_size - 1)
                    seconds = max(seconds, time.seconds / 2)
                    rate = 1 / seconds
                launch = max(launch - seconds, 0.0)
            off = a["extrapolated_time"] if rate is None else 1.0
            step = StepInputs(
                arithmetic=off * time.arithmetic, traffic=off * time.traffic, overhead=launch,
                in_turn=True, hidden=not in_turn,
            )  # fmt: skip
        if accelerator_rate is not None:
            basis, rate = GIVEN, accelerator_rate
        memory = _memory(a, model, hardware, precision, training)
        return SingleNodeInputs(basis, rate, step, work, peak, memory, together)

    @staticmethod
    def cost(inputs: SingleNodeInputs) -> Cost:
        """``b / rate``, ``max(b (arithmetic + traffic), launch)`` or ``max(compute, memory) + overhead``.

        A step of several accelerators that train together takes so much longer as the assumptions say.
        """
        together: Cost = _alone(inputs) * inputs.together
        return together


def _alone(inputs: SingleNodeInputs) -> Cost:
    """Return the cost of a step of one accelerator."""
    if isinstance(inputs.rate, StepTime):
        return Cost((Line(inputs.rate.seconds, 0),))
    if inputs.step is None or inputs.basis == GIVEN:
        return Cost((Line(0, 1 / inputs.rate),))
    compute, memory, overhead = inputs.step.lines
    work: tuple[Line, ...] = (compute, memory)
    if inputs.step.in_turn:
        work = (compute + memory if inputs.rate is None else Line(0, 1 / inputs.rate),)
    return Cost((*work, overhead) if inputs.step.hidden else tuple(line + overhead for line in work))


def assumed_time(
    assumed: Assumptions, model: Entry, hardware: Entry, precision: str, phase: str, framework: str | None
) -> SampleTime | None:
    """The time of a sample by the law of measured rates; None where it says nothing or is not asked."""
    a = assumed.numbers
    if framework is None and not a["measured_rates"]:
        return None
    work = Work(a["flop_per_mac"], a["training_factor"])
    return sample_time(model, hardware, precision, phase, work, framework)


def _memory(
    a: Mapping[str, Number], model: Entry, hardware: Entry, precision: str, training: bool
) -> MemoryInputs | None:
    """Return what a step holds: parameters with their state, and the activations of every sample."""
    activation, capacity = model.number("activation_size"), hardware.number("memory_capacity")
    if activation is None or capacity is None:
        return None
    # The catalogue counts activations at two bytes a number.
    element = ELEMENT_BYTES[precision]
    held = activation * element / 2 * (1 if training else a["forward_activation"])
    state = a["state_bytes"] if training else element
    return MemoryInputs(model.needed("parameters") * state, held, capacity, hardware.name)


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


def parts(inputs: SingleNodeInputs, batch: Number) -> dict[str, Number] | None:
    """Return what a step of a batch is made of [s]; None where only a rate is known."""
    if inputs.step is None:
        return None
    compute, memory, overhead = (line.at(batch) for line in inputs.step.lines)
    if inputs.step.in_turn and inputs.step.hidden:
        overhead = np.maximum(overhead - (compute + memory), 0.0)[()]
    return {"compute": compute, "memory": memory, "overhead": overhead}


def launching(inputs: SingleNodeInputs, batch: Number) -> Number:
    """How long an accelerator computes nothing in a step because the host is still launching [s]."""
    made_of = parts(inputs, batch) if inputs.launches else None
    if made_of is None or inputs.step is None:
        return 0.0
    if inputs.step.in_turn or not inputs.step.hidden:
        return made_of["overhead"]
    work = np.maximum(made_of["compute"], made_of["memory"])
    return np.maximum(made_of["overhead"] - work, 0.0)[()]


def launch_wait(inputs: SingleNodeInputs, batch: Number) -> Number:
    """How much of its launch time an accelerator is not busy in [s].

    Where the overhead does not hide behind the work, as in the walkthrough, it counts as work.
    """
    hides = inputs.step is not None and (inputs.step.hidden or inputs.step.in_turn)
    return launching(inputs, batch) if hides else 0.0


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
        f"Use a batch of at most {largest}." if largest > 0 else "No batch fits: use a GPU with more memory."
    )
    need, has = (format_quantity(Q_(float(size) / 1e9, "GB")) for size in (np.max(needed), memory.capacity))
    step = "The largest step" if np.ndim(needed) else "The step"
    return feasible, (f"{step} needs about {need} of memory, and {memory.hardware} has {has}. {remedy}")
