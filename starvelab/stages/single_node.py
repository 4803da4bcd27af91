"""One training or forward step on the accelerator, with its input at hand.

It knows arithmetic, memory traffic and fixed overhead; not where the batch comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..assumptions import TUTORIAL, Assumptions, check_phase
from ..catalogue import measured_rate
from ..errors import InputError, MissingFigureError
from ..units import Q_, format_quantity, positive, whole
from .cost import Cost, Line

# Bytes of one element; fp16 and bf16 share the tensor cores' rate.
ELEMENT_BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2}


@dataclass(frozen=True)
class SingleNodeResult:
    """The answer of `SingleNodeModel.solve`; arrays where a swept argument was one.

    Attributes
    ----------
    latency : quantity [time]
        Of one step.
    throughput : quantity [sample/time]
    bottleneck : str
        "Compute" or "Memory", the larger of the two legs.
    cause : str
        "compute", "memory" or "overhead": what takes the largest part of the step.
    compute_time, memory_time, overhead_time : quantity [time]
        The arithmetic, the memory traffic (these two overlap) and the fixed part (which comes on top).
    work : quantity [compute]
        FLOP of one step of one sample.
    peak : quantity [compute/time]
    mfu : float
        Model FLOP utilisation: work done over what the datasheet's peak would have done.
    basis : str
        "peak x efficiency", or which measured rate the latency comes from.
    memory_needed : quantity [data] or None
        None where the catalogue has no activation size.
    feasible : bool
        Whether the step fits in the accelerator's memory, as far as both figures are known.
    infeasible_reason : str
    """

    latency: Any
    throughput: Any
    bottleneck: Any
    cause: Any
    compute_time: Any
    memory_time: Any
    overhead_time: Any
    work: Any
    peak: Any
    mfu: Any
    basis: str
    memory_needed: Any
    feasible: Any
    infeasible_reason: str


@dataclass(frozen=True)
class SingleNodeModel:
    """The accelerator alone: the larger of arithmetic and memory traffic, plus overhead.

    Parameters
    ----------
    assumptions : Assumptions

    Notes
    -----
    ``step = max(b work / (peak efficiency), weights (1 + traffic b) / bandwidth) + layers overhead + dispatch``.
    With `measured_rates` a published rate of the same model, accelerator and precision replaces this formula
    where there is one. Stops being true for several accelerators, whose communication it leaves out.

    References
    ----------
    Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009.
    """

    assumptions: Assumptions = TUTORIAL

    def solve(self, *, model: Any, hardware: Any, batch_size: Any, precision: str = "fp16", phase: str | None = None) -> SingleNodeResult:
        """Time one step of a batch.

        Parameters
        ----------
        model, hardware : catalogue entries
        batch_size : int or array
        precision : {"fp16", "bf16", "tf32", "fp32"}
        phase : {"forward", "training"}, optional
            That of the assumptions unless given.

        Raises
        ------
        InputError, MissingFigureError

        Examples
        --------
        >>> from starvelab import Hardware, Models
        >>> base = SingleNodeModel().solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256)
        >>> round(base.latency.to("ms").magnitude, 2), round(base.throughput.magnitude), base.bottleneck
        (11.74, 21800, 'Compute')
        """
        batch = whole(batch_size, "batch_size")
        phase = check_phase(phase or self.assumptions.phase)
        compute, memory, overhead = self._legs(model, hardware, precision, phase, positive)
        step = self.cost(model=model, hardware=hardware, precision=precision, phase=phase).at(batch)
        times = [line.at(batch) for line in (compute, memory, overhead)]
        flop = self._flop(model, phase)
        peak = _peak(hardware, precision)
        rate = self._measured(model, hardware, precision, phase)
        needed = self._memory(model, batch, precision, phase)
        feasible, reason = _fits(needed, hardware)
        return SingleNodeResult(
            latency=Q_(step * 1e3, "ms"),
            throughput=Q_(batch / step, "img/s"),
            bottleneck=_largest(("Compute", "Memory"), times[:2]),
            cause=_largest(("compute", "memory", "overhead"), times),
            compute_time=Q_(times[0] * 1e3, "ms"),
            memory_time=Q_(times[1] * 1e3, "ms"),
            overhead_time=Q_((times[2] if np.ndim(batch) == 0 else np.broadcast_to(times[2], batch.shape)) * 1e3, "ms"),
            work=Q_(flop / 1e9, "GFLOP"),
            peak=peak,
            mfu=flop * batch / (step * positive(peak, "FLOP/s", "peak")),
            basis="peak x efficiency" if rate is None else f"measured: {rate.framework}, {rate.fact.source}",
            memory_needed=None if needed is None else Q_(needed, "GB"),
            feasible=feasible,
            infeasible_reason=reason,
        )

    def cost(self, *, model: Any, hardware: Any, precision: str = "fp16", phase: str | None = None, figure: Any = positive) -> Cost:
        """Time of a step as a function of the batch size."""
        phase = check_phase(phase or self.assumptions.phase)
        rate = self._measured(model, hardware, precision, phase)
        if rate is not None:
            return Cost((Line(0, 1 / figure(rate.fact.value, "sample/s", "measured rate")),))
        compute, memory, overhead = self._legs(model, hardware, precision, phase, figure)
        return Cost((compute + overhead, memory + overhead))

    def _measured(self, model: Any, hardware: Any, precision: str, phase: str) -> Any:
        if not self.assumptions.measured_rates:
            return None
        return measured_rate(hardware=hardware, model=model, precision=precision, phase=phase)

    def _factor(self, phase: str, figure: Any = positive) -> Any:
        return figure(self.assumptions.training_factor if phase == "training" else 1, None, "training_factor")

    def _macs(self, model: Any) -> Any:
        return model.get(self.assumptions.macs_figure) or model.macs_forward

    def _flop(self, model: Any, phase: str) -> float:
        macs = positive(self._macs(model), "MAC", "macs_forward")
        return macs * self.assumptions.flop_per_mac * self._factor(phase)

    def _legs(self, model: Any, hardware: Any, precision: str, phase: str, figure: Any) -> tuple[Line, Line, Line]:
        a, factor = self.assumptions, self._factor(phase, figure)
        rate = figure(_peak(hardware, precision), "FLOP/s", "peak") * figure(a.efficiency, None, "efficiency")
        flop = figure(self._macs(model), "MAC", "macs_forward") * figure(a.flop_per_mac, None, "flop_per_mac")
        compute = Line(0, flop * factor / rate)
        bandwidth = figure(hardware.memory_bandwidth, "B/s", "memory_bandwidth")
        weights = figure(model.parameters * ELEMENT_BYTES[precision], None, "parameters") * factor / bandwidth
        memory = Line(weights, weights * figure(a.activation_traffic, None, "activation_traffic", zero=True))
        layers = figure(model.layers, None, "layers") * figure(a.overhead_per_layer, "s", "overhead_per_layer", zero=True)
        overhead = Line(layers * factor + figure(a.overhead_per_step, "s", "overhead_per_step", zero=True), 0)
        return compute, memory, overhead

    def _memory(self, model: Any, batch: Any, precision: str, phase: str) -> Any:
        """GB a step holds: parameters with their state, and the activations of every sample."""
        activation = model.get("activation_size")  # at two bytes an element
        if activation is None:
            return None
        a, element = self.assumptions, ELEMENT_BYTES[precision]
        held = positive(activation, "GB", "activation_size") * element / 2 * batch
        if phase == "training":
            return model.parameters * a.state_bytes / 1e9 + held
        return model.parameters * element / 1e9 + held * a.forward_activation


def _peak(hardware: Any, precision: str) -> Any:
    """Peak arithmetic rate [compute/time] of dense matrices at a precision."""
    if precision not in ELEMENT_BYTES:
        raise InputError(f"precision must be one of {', '.join(ELEMENT_BYTES)}, got {precision!r}.")
    peak = hardware.get(f"peak_{precision}_dense")
    if peak is None:
        listed = [name.split("_")[1] for name in hardware.facts if name.startswith("peak_")]
        raise MissingFigureError(
            f"SingleNodeModel needs peak_{precision}_dense, and {hardware.name} lists none. "
            f"It lists {', '.join(listed)}: pass one of them as precision."
        )
    return peak


def _largest(names: tuple[str, ...], times: Any) -> Any:
    """The name of the largest, in the order of the names when equal; an array of names for a sweep."""
    if all(np.ndim(t) == 0 for t in times):
        return names[max(range(len(names)), key=times.__getitem__)]
    largest, chosen = times[0], np.zeros(np.broadcast_shapes(*(np.shape(t) for t in times)), dtype=np.int8)
    for i, t in enumerate(times[1:], start=1):
        chosen = np.where(t > largest, np.int8(i), chosen)
        largest = np.maximum(largest, t)
    return np.array(names)[chosen]


def _fits(needed: Any, hardware: Any) -> tuple[Any, str]:
    """Whether `needed` GB fit in the accelerator's memory, as far as both are known, and if not, why."""
    capacity = hardware.get("memory_capacity")
    if needed is None or capacity is None:
        return True, ""
    fits = needed <= positive(capacity, "GB", "memory_capacity")
    if np.all(fits):
        return fits, ""
    return fits, (
        f"The step needs about {format_quantity(Q_(np.max(needed), 'GB'))} of memory, and "
        f"{hardware.name} has {format_quantity(capacity)}. Use a smaller batch."
    )
