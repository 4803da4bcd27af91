"""One training or forward step on the accelerator, with its input at hand.

It knows arithmetic, memory traffic and fixed overhead; not where the batch comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import Any

import numpy as np

from ...errors import InputError, MissingFigureError
from ...units import Q_, format_quantity, positive, whole
from ..assumptions import check_phase
from ..catalogue import check_entry, measured_rate, measured_rates
from .cost import Cost, Line, name_of_largest
from .stage import Stage

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
        "Compute" or "Memory", the larger of the two legs.
    cause : str
        "compute", "memory" or "overhead": what takes the largest part of the step.
    compute_time, memory_time, overhead_time : quantity [time]
        The arithmetic, the memory traffic (these two overlap) and the fixed part (which comes on top).
    work : quantity [compute] or None
        FLOP of one step of one sample.
    peak : quantity [compute/time] or None
    mfu : float or None
        Model FLOP utilisation: work done over what the datasheet's peak would have done.
    basis : str
        "peak x efficiency", or which measured rate the latency comes from: a published one, or the caller's.
    memory_needed : quantity [data] or None
        None where the catalogue has no activation size.
    feasible : bool
        Whether the step fits in the accelerator's memory; True where either figure is not known.
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
class SingleNodeModel(Stage):
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

    def solve(
        self,
        *,
        batch_size: Any,
        model: Any = None,
        hardware: Any = None,
        precision: str = "fp16",
        phase: str | None = None,
        accelerator_rate: Any = None,
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
        InputError, MissingFigureError

        Examples
        --------
        >>> from starvelab import Hardware, Models
        >>> a100 = Hardware.Cloud.A100
        >>> base = SingleNodeModel().solve(model=Models.ResNet50, hardware=a100, batch_size=256)
        >>> round(base.latency.to("ms").magnitude, 2), round(base.throughput.magnitude), base.bottleneck
        (11.74, 21800, 'Compute')
        """
        batch = whole(batch_size, "batch_size")
        phase, rate, basis = self._rate(model, hardware, precision, phase, accelerator_rate, framework)
        if model is None or hardware is None:
            return _of_a_rate(batch, _measured_cost(rate, positive).at(batch))
        legs = self._legs(model, hardware, precision, phase, positive)
        cost = _modelled_cost(legs) if rate is None else _measured_cost(rate, positive)
        step = cost.at(batch)
        compute, memory, overhead = (leg.at(batch) for leg in legs)
        flop = self._flop(model, phase, positive)
        peak = _peak(hardware, precision)
        held = self._memory(model, precision, phase)
        feasible, reason = _fits(held, batch, hardware)
        return SingleNodeResult(
            latency=Q_(step * 1e3, "ms"),
            throughput=Q_(batch / step, "img/s"),
            bottleneck=name_of_largest({"Compute": compute, "Memory": memory}),
            cause=name_of_largest({"compute": compute, "memory": memory, "overhead": overhead}),
            compute_time=Q_(compute * 1e3, "ms"),
            memory_time=Q_(memory * 1e3, "ms"),
            overhead_time=Q_(overhead * 1e3, "ms"),
            work=Q_(flop / 1e9, "GFLOP"),
            peak=peak,
            mfu=flop * batch / (step * positive(peak, "FLOP/s", "peak")),
            basis=basis,
            memory_needed=None if held is None else Q_(held.at(batch), "GB"),
            feasible=feasible,
            infeasible_reason=reason,
        )

    def cost(
        self,
        *,
        model: Any = None,
        hardware: Any = None,
        precision: str = "fp16",
        phase: str | None = None,
        accelerator_rate: Any = None,
        framework: str | None = None,
        figure: Any = positive,
    ) -> Cost:
        """Time of a step as a function of the batch size."""
        phase, rate, _ = self._rate(model, hardware, precision, phase, accelerator_rate, framework)
        if rate is not None:
            return _measured_cost(rate, figure)
        return _modelled_cost(self._legs(model, hardware, precision, phase, figure))

    def _rate(
        self,
        model: Any,
        hardware: Any,
        precision: str,
        phase: str | None,
        accelerator_rate: Any,
        framework: str | None,
    ) -> tuple[str, Any, str]:
        """The phase and the measured rate to use, if there is one, and where it is from."""
        check_accelerator(model, hardware, accelerator_rate)
        if precision not in ELEMENT_BYTES:
            raise InputError(
                f"precision must be one of {', '.join(ELEMENT_BYTES)}, got {precision!r}. Pass one of these."
            )
        phase = check_phase(self.assumptions.phase if phase is None else phase)
        if accelerator_rate is not None:
            if framework is not None:
                raise InputError(
                    f"framework names a measured rate of the catalogue, got {framework!r} beside "
                    "accelerator_rate. Pass one of them."
                )
            return phase, accelerator_rate, GIVEN
        found = None
        if framework is not None or self.assumptions.measured_rates:
            of = {"hardware": hardware, "model": model, "precision": precision, "phase": phase}
            found = measured_rate(**of, framework=framework)
        if found is not None:
            return phase, found.fact.value, f"measured: {found.framework}, {found.fact.source}"
        if framework is not None:
            known = sorted(
                {r.framework for r in measured_rates() if measured_rate(**of, framework=r.framework)}
            )
            raise MissingFigureError(
                f"No rate of {model.name} on {hardware.name} was measured in {framework!r} at {precision}, "
                f"{phase}. There is: {', '.join(known) or 'none'}. Pass one of these, or your own "
                "accelerator_rate."
            )
        return phase, None, "peak x efficiency"

    def _factor(self, phase: str, figure: Any) -> Any:
        return figure(self.assumptions.training_factor if phase == "training" else 1, None, "training_factor")

    def _flop(self, model: Any, phase: str, figure: Any) -> Any:
        a = self.assumptions
        macs = figure(model.get(a.macs_figure, model.macs_forward), "MAC", a.macs_figure)
        return macs * figure(a.flop_per_mac, None, "flop_per_mac") * self._factor(phase, figure)

    def _legs(
        self, model: Any, hardware: Any, precision: str, phase: str, figure: Any
    ) -> tuple[Line, Line, Line]:
        """Arithmetic, memory traffic, fixed overhead."""
        a, factor = self.assumptions, self._factor(phase, figure)
        rate = figure(_peak(hardware, precision), "FLOP/s", "peak") * figure(a.efficiency, None, "efficiency")
        compute = Line(0, self._flop(model, phase, figure) / rate)
        bandwidth = figure(hardware.memory_bandwidth, "B/s", "memory_bandwidth")
        weights = figure(model.parameters * ELEMENT_BYTES[precision], None, "parameters") * factor / bandwidth
        memory = Line(weights, weights * figure(a.activation_traffic, None, "activation_traffic", zero=True))
        layer = figure(a.overhead_per_layer, "s", "overhead_per_layer", zero=True)
        dispatch = figure(a.overhead_per_step, "s", "overhead_per_step", zero=True)
        return compute, memory, Line(model.layers * layer * factor + dispatch, 0)

    def _memory(self, model: Any, precision: str, phase: str) -> Line | None:
        """GB that a step holds: parameters with their state, and the activations of every sample."""
        activation = model.get("activation_size")  # at two bytes an element
        if activation is None:
            return None
        a, element = self.assumptions, ELEMENT_BYTES[precision]
        sample = positive(activation, "GB", "activation_size") * element / 2
        if phase == "training":
            return Line(model.parameters * a.state_bytes / 1e9, sample)
        return Line(model.parameters * element / 1e9, sample * a.forward_activation)


def _modelled_cost(legs: tuple[Line, Line, Line]) -> Cost:
    """The larger of arithmetic and memory traffic, plus overhead."""
    compute, memory, overhead = legs
    return Cost((compute + overhead, memory + overhead))


def _measured_cost(rate: Any, figure: Any) -> Cost:
    return Cost((Line(0, 1 / figure(rate, "sample/s", "accelerator_rate")),))


def check_accelerator(model: Any, hardware: Any, accelerator_rate: Any) -> None:
    """Refuse what is no entry, and an accelerator of which neither the model nor a rate is known."""
    missing = [name for name, one in (("model", model), ("hardware", hardware)) if one is None]
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


def _of_a_rate(batch: Any, step: Any) -> SingleNodeResult:
    """The answer where only a rate is known."""
    nothing = dict.fromkeys(("compute_time", "memory_time", "overhead_time", "work", "peak", "mfu"))
    return SingleNodeResult(
        latency=Q_(step * 1e3, "ms"),
        throughput=Q_(batch / step, "img/s"),
        bottleneck="",
        cause="",
        basis=GIVEN,
        memory_needed=None,
        feasible=True,
        infeasible_reason="",
        **nothing,
    )


def _peak(hardware: Any, precision: str) -> Any:
    """Peak arithmetic rate [compute/time] of dense matrices at a precision."""
    peak = hardware.get(f"peak_{precision}_dense")
    if peak is None:
        listed = [name.split("_")[1] for name in hardware.facts if name.startswith("peak_")]
        raise MissingFigureError(
            f"SingleNodeModel needs peak_{precision}_dense, and {hardware.name} lists none. "
            f"It lists {', '.join(listed)}: pass one of them as precision."
        )
    return peak


def _fits(held: Line | None, batch: Any, hardware: Any) -> tuple[Any, str]:
    """Whether a step fits in the accelerator's memory, as far as both are known, and if not, why."""
    memory = hardware.get("memory_capacity")
    if held is None or memory is None:
        return True, ""
    capacity = positive(memory, "GB", "memory_capacity")
    needed = held.at(batch)
    fits = needed <= capacity
    if np.all(fits):
        return fits, ""
    most = floor((capacity - held.fixed) / held.per_sample) if held.per_sample else 0
    remedy = (
        f"Use a batch of at most {most}."
        if most > 0
        else "No batch fits: use an accelerator with more memory."
    )
    return fits, (
        f"The step needs about {format_quantity(Q_(np.max(needed), 'GB'))} of memory, and "
        f"{hardware.name} has {format_quantity(memory)}. {remedy}"
    )
