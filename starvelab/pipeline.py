"""Four stages on four resources: stages on one resource add, stages on different resources overlap.

The slowest resource sets the step. It knows averages only: `starvelab.simulate` will know time and order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np

from .assumptions import TUTORIAL, Assumptions, check_assumptions, check_phase, supply_rate
from .catalogue import Entry, check_entry
from .errors import InputError, UnknownNameError
from .stages import Cost, DataModel, Line, SingleNodeModel, TransferModel, TransformationModel
from .stages.cost import largest, plain
from .stages.data import storage_bandwidth
from .stages.transfer import link_bandwidth
from .tables import cell, percent, to_html, to_text
from .units import Q_, Quantity, as_quantity, positive, whole

# Stage -> the resource it runs on. In a tie the resource named first binds: a tie is no starvation.
RESOURCE_OF = MappingProxyType(
    {
        "model": "accelerator",
        "input on device": "accelerator",
        "transform": "CPU",
        "read": "storage",
        "copy": "link",
    }
)
RESOURCES = ("accelerator", "CPU", "storage", "link")
# The order in which a sample meets them, which is the order people expect in a table or a picture.
FLOW = ("storage", "CPU", "link", "accelerator")
# How a sentence calls them.
CALLED = MappingProxyType(
    {
        "storage": "storage",
        "CPU": "the CPU",
        "link": "the link",
        "accelerator": "the accelerator",
        "": "nothing",
    }
)

# The fields that may be arrays.
SWEPT = (
    "batch_size",
    "workers",
    "sample_size",
    "worker_rate",
    "cpu_throughput",
    "storage",
    "link",
    "sent_size",
    "device_input_time",
)

# The unit of the fields that have one; a rate of preparing counts samples or bytes.
_UNITS = {
    "sample_size": "KB",
    "sent_size": "KB",
    "device_input_time": "ms",
    "storage": "GB/s",
    "link": "GB/s",
    "worker_rate": None,
    "cpu_throughput": None,
}


@dataclass(frozen=True)
class Step:
    """What `Pipeline.solve` found; every figure has the shape of the swept arguments.

    Attributes
    ----------
    stage_times, resource_times : mapping of str to quantity [time]
        Only what is modelled: a pipeline without `storage` has no "read".
    step_time : quantity [time]
    throughput : quantity [sample/time]
    utilization : float
        Busy share of the accelerator in a step, 0 to 1. `nvidia-smi` shows something else: the share of time
        in which any kernel ran.
    stall : float
        Share of a step the accelerator waits; utilization + stall = 1.
    slowdown : float
        Step time over the accelerator's own.
    binding, next_binding : str
        The slowest resource, and the slowest of the others ("" if there is no other).
    headroom : mapping of str to float
        Idle share of each resource in a step; the binding one has 0.
    cause : str
        What takes the largest part of the accelerator's own time: "compute", "memory", "overhead", or "input"
        where input work on the accelerator takes more than each of these.
    basis : str
        Where the time of the model on the accelerator comes from: "peak x efficiency", or a measured rate.
    demand_at_ceiling : quantity [data/time]
        What storage would have to deliver if the accelerator never waited.
    actual_demand : quantity [data/time]
        What is really read, behind whatever binds.
    feasible : bool
    infeasible_reason : str
    """

    pipeline: Any
    stage_times: Mapping[str, Any]
    resource_times: Mapping[str, Any]
    step_time: Any
    throughput: Any
    utilization: Any
    stall: Any
    slowdown: Any
    binding: Any
    next_binding: Any
    headroom: Mapping[str, Any]
    cause: Any
    basis: str
    demand_at_ceiling: Any
    actual_demand: Any
    feasible: Any
    infeasible_reason: str

    @property
    def headers(self) -> tuple[str, ...]:
        """Of the table that shows it."""
        return ("resource", "time of a step", "idle")

    @property
    def rows(self) -> list[list[str]]:
        """One row for each resource."""
        return [
            [name, cell(time), _percent(self.headroom[name])] for name, time in self.resource_times.items()
        ]

    @property
    def summary(self) -> str:
        """What binds, in one line."""
        shape = np.shape(self.utilization)
        if shape:
            return f"{np.prod(shape)} steps, an array of shape {shape}"
        return (
            f"A step of {cell(self.step_time)}, {cell(self.throughput)}: {CALLED[self.binding]} binds, "
            f"and the accelerator is busy {percent(self.utilization)}"
        )

    def __repr__(self) -> str:
        return f"{self.summary}\n{to_text(self.headers, self.rows)}"

    def _repr_html_(self) -> str:
        return to_html(self.headers, self.rows, caption=self.summary)


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """An input pipeline in front of an accelerator.

    Parameters
    ----------
    model, hardware : catalogue entries
    batch_size : int or array
    workers : int or array
        CPU workers that prepare samples.
    sample_size : quantity [data], optional
        Stored bytes of one sample; that of the assumptions unless given.
    worker_rate : quantity [data/time] or [sample/time], optional
        What one worker prepares; that of the assumptions unless given.
    cpu_throughput : quantity [data/time] or [sample/time], optional
        What the CPU supplies altogether; `workers` and `worker_rate` are then not looked at.
    storage : catalogue entry or quantity [data/time], optional
        The drive; without it reading is not modelled.
    link : catalogue entry or quantity [data/time], optional
        The host-to-device link; without it the copy is not modelled.
    sent_size : quantity [data], optional
        Bytes of one sample as they cross the link; the stored size unless given.
    pinned : bool
        Whether the copy starts from pinned memory.
    device_input_time : quantity [time], optional
        Accelerator time that input work takes for each sample, for example decoding with DALI.
    precision : {"fp16", "bf16", "tf32", "fp32"}
    phase : {"forward", "training"}, optional
        That of the assumptions unless given.
    overlap : bool
        False puts everything one after the other: the sum of all stages.
    assumptions : Assumptions

    Notes
    -----
    Numbers and quantities may be arrays whose shapes broadcast, as in NumPy; `sweep` tries every combination.
    A quantity may be given as text: ``sample_size="5 MB"``.

    Examples
    --------
    >>> from starvelab import Hardware, Models
    >>> wall = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256).solve()
    >>> wall.binding, round(wall.utilization, 3), round(wall.slowdown, 2)
    ('CPU', 0.183, 5.45)
    """

    model: Any
    hardware: Any
    batch_size: Any = 256
    workers: Any = 8
    sample_size: Any = None
    worker_rate: Any = None
    cpu_throughput: Any = None
    storage: Any = None
    link: Any = None
    sent_size: Any = None
    pinned: bool = True
    device_input_time: Any = None
    precision: str = "fp16"
    phase: str | None = None
    overlap: bool = True
    assumptions: Assumptions = TUTORIAL

    def __post_init__(self) -> None:
        check_entry(self.model, "Models", "model")
        check_entry(self.hardware, "Hardware", "hardware")
        check_assumptions(self.assumptions)
        if self.phase is not None:
            check_phase(self.phase)
        whole(self.batch_size, "batch_size")
        whole(self.workers, "workers")
        for name in _UNITS:
            object.__setattr__(self, name, self._read(name))
        # An entry that lacks its bandwidth is refused here rather than by the first solve.
        if self.storage is not None:
            storage_bandwidth(storage=self.storage)
        if self.link is not None:
            link_bandwidth(self.link, pinned=self.pinned, figure=self.assumptions.link_figure)
        _ = self._shape

    def _read(self, name: str) -> Any:
        """A field as it is kept: texts become quantities, and every figure is one that the model can mean."""
        value, unit = getattr(self, name), _UNITS[name]
        if isinstance(value, Entry) and name not in ("storage", "link"):
            entry = f"{value.kind}.{value.path}"
            raise InputError(
                f"{name} must be a quantity, got {entry}. Pass one of its figures: {entry}.<figure>."
            )
        if value is None or isinstance(value, Entry):
            return value
        if unit is None:
            return supply_rate(value, name)
        made = as_quantity(value, unit, name)
        positive(made, unit, name, zero=name == "device_input_time")
        return made

    def __repr__(self) -> str:
        shown = [f"{name}={_short(getattr(self, name))}" for name in self._given()]
        return f"Pipeline({', '.join(shown)})"

    def _given(self) -> list[str]:
        fields = dataclasses.fields(self)
        return [f.name for f in fields if f.name == "batch_size" or getattr(self, f.name) is not f.default]

    @property
    def swept(self) -> tuple[str, ...]:
        """The fields that are arrays."""
        return tuple(name for name in SWEPT if self._field_shape(name))

    def _field_shape(self, name: str) -> tuple[int, ...]:
        value = getattr(self, name)
        return (
            () if value is None or isinstance(value, Entry) else np.shape(getattr(value, "magnitude", value))
        )

    @property
    def _shape(self) -> tuple[int, ...]:
        shapes = {name: shape for name in SWEPT if (shape := self._field_shape(name))}
        try:
            return np.broadcast_shapes(*shapes.values())
        except ValueError:
            came = ", ".join(f"{name} of shape {shape}" for name, shape in shapes.items())
            raise InputError(
                f"Swept fields must have shapes that broadcast, got {came}. "
                "Use sweep(...) for every combination."
            ) from None

    def but(self, **changes: Any) -> Pipeline:
        """A copy with some fields changed."""
        check_fields(changes)
        return dataclasses.replace(self, **changes)

    @property
    def size(self) -> Any:
        """Stored bytes of one sample [data]."""
        return self.assumptions.sample_size if self.sample_size is None else self.sample_size

    @property
    def sent(self) -> Any:
        """Bytes of one sample as they cross the link [data]."""
        return self.size if self.sent_size is None else self.sent_size

    def costs(self, figure: Any = positive) -> dict[str, Cost]:
        """Cost of each modelled stage, in floats, or exactly with ``figure=exact``."""
        a = self.assumptions
        costs = {}
        if self.storage is not None:
            costs["read"] = DataModel(a).cost(sample_size=self.size, source=self.storage, figure=figure)
        counted = self.cpu_throughput is None
        costs["transform"] = TransformationModel(a).cost(
            sample_size=self.size,
            cpu_throughput=self.cpu_throughput,
            workers=self.workers if counted else None,
            worker_rate=self.worker_rate if counted else None,
            figure=figure,
        )
        if self.link is not None:
            costs["copy"] = TransferModel(a).cost(
                sent_size=self.sent, link=self.link, pinned=self.pinned, figure=figure
            )
        if self.device_input_time is not None:
            seconds = figure(self.device_input_time, "s", "device_input_time", zero=True)
            costs["input on device"] = Cost((Line(0, seconds),))
        costs["model"] = SingleNodeModel(a).cost(
            model=self.model,
            hardware=self.hardware,
            precision=self.precision,
            phase=self.phase,
            figure=figure,
        )
        return costs

    def resource_costs(self, figure: Any = positive) -> dict[str, Cost]:
        """Cost of each modelled resource: its stages one after the other."""
        return _by_resource(self.costs(figure))

    def solve(self, **changes: Any) -> Step:
        """Time a step; keyword arguments change fields first, and may be arrays.

        Raises
        ------
        InputError, MissingFigureError, UnknownNameError
        """
        if changes:
            return self.but(**changes).solve()
        batch, shape = whole(self.batch_size, "batch_size"), self._shape
        stages = {stage: _shaped(cost.at(batch), shape) for stage, cost in self.costs().items()}
        resources = _by_resource(stages)
        own = resources["accelerator"]
        step = reduce(np.maximum if self.overlap else np.add, resources.values())
        binding, following = _ranking(resources)
        single = SingleNodeModel(self.assumptions).solve(
            model=self.model,
            hardware=self.hardware,
            batch_size=batch,
            precision=self.precision,
            phase=self.phase,
        )
        gigabytes = positive(self.size, "GB", "sample_size")
        return Step(
            pipeline=self,
            stage_times={name: _ms(t) for name, t in stages.items()},
            resource_times={name: _ms(resources[name]) for name in FLOW if name in resources},
            step_time=_ms(step),
            throughput=Q_(plain(batch / step), "img/s"),
            utilization=plain(own / step),
            stall=plain(1 - own / step),
            slowdown=plain(step / own),
            binding=binding,
            next_binding=following,
            headroom={name: plain(1 - resources[name] / step) for name in FLOW if name in resources},
            cause=_cause(single, stages.get("input on device"), shape),
            basis=single.basis,
            demand_at_ceiling=Q_(plain(batch / own * gigabytes), "GB/s"),
            actual_demand=Q_(plain(batch / step * gigabytes), "GB/s"),
            feasible=np.broadcast_to(single.feasible, shape) if shape else single.feasible,
            infeasible_reason=single.infeasible_reason,
        )


def check_fields(names: Iterable[str]) -> None:
    """Refuse what is no field of a pipeline."""
    known = [f.name for f in dataclasses.fields(Pipeline)]
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"There is: {', '.join(known)}."
            raise UnknownNameError(f"A pipeline has no field {name!r}. {hint}")


def _by_resource(stages: Mapping[str, Any]) -> dict[str, Any]:
    """What stages take, costs or times, added up on the resource each runs on."""
    taken: dict[str, Any] = {}
    for stage, part in stages.items():
        resource = RESOURCE_OF[stage]
        taken[resource] = taken[resource] + part if resource in taken else part
    return {resource: taken[resource] for resource in RESOURCES if resource in taken}


def _ranking(resources: Mapping[str, Any]) -> tuple[Any, Any]:
    """Names of the slowest and the second slowest resource; near-ties go to the one named first."""
    names = np.array([*resources, ""])
    # Rounding must not turn a tie into a bottleneck: favour earlier resources by a part in 10^12.
    favour = 1 + 1e-12 * np.arange(len(resources), 0, -1)
    times = [time * factor for time, factor in zip(resources.values(), favour, strict=True)]
    first = largest(times)
    second = largest([np.where(first == i, -np.inf, time) for i, time in enumerate(times)])
    found = (names[first], names[second])
    return found if np.ndim(first) else (str(found[0]), str(found[1]))


def _cause(single: Any, on_device: Any, shape: tuple[int, ...]) -> Any:
    """What takes most of the accelerator's own time, counting input work that runs on it."""
    cause = single.cause
    if on_device is not None:
        parts = (single.compute_time, single.memory_time, single.overhead_time)
        most = reduce(np.maximum, (part.m_as("s") for part in parts))
        cause = np.where(on_device > most, "input", cause)
    return np.broadcast_to(cause, shape) if shape else str(cause)


def _shaped(seconds: Any, shape: tuple[int, ...]) -> Any:
    return np.broadcast_to(seconds, shape) if shape else float(seconds)


def _ms(seconds: Any) -> Any:
    return Q_(plain(seconds * 1e3), "ms")


def _percent(share: Any) -> str:
    return percent(share) if np.ndim(share) == 0 else cell(Q_(100 * share, "percent"))


def _short(value: Any) -> str:
    """A field as it stands in the representation of a pipeline."""
    if isinstance(value, Entry):
        return f"{value.kind}.{value.path}"
    if isinstance(value, Assumptions):
        return value.name
    return cell(value) if isinstance(value, Quantity) else f"{value!r:.80}"
