"""Four stages on four resources: stages on one resource add, stages on different resources overlap.

The slowest resource sets the step. It knows averages only: `starvelab.simulate` will know time and order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np

from ..errors import InputError, check_names
from ..tables import TableRepr, cell, percent
from ..units import Q_, Quantity, as_quantity, positive, whole
from .assumptions import TUTORIAL, Assumptions, check_assumptions, check_phase, supply_rate
from .catalogue import Entry
from .stages import Cost, DataModel, Line, SingleNodeModel, TransferModel, TransformationModel
from .stages.cost import largest, name_of_largest, plain
from .stages.data import storage_bandwidth
from .stages.single_node import check_accelerator
from .stages.transfer import link_bandwidth
from .stages.transformation import check_supply

# Stage -> the resource it runs on. In a tie the resource named first binds: a tie is no starvation.
RESOURCE_OF = MappingProxyType(
    {
        "model": "accelerator",
        "input on device": "accelerator",
        "step overhead": "accelerator",
        # A copy on the stream that computes: the link's bytes, but the accelerator's time.
        "copy in turn": "accelerator",
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
    "accelerator_rate",
    "step_overhead",
    "cpu_time",
    "cores",
    "read_wait",
    "handover_time",
    "accelerators",
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
    "accelerator_rate": "img/s",
    "step_overhead": "ms",
    "cpu_time": "ms",
    "read_wait": "ms",
    "handover_time": "ms",
}
_MAY_BE_ZERO = ("device_input_time", "step_overhead", "read_wait", "handover_time")
# They count and cost single workers, so they say nothing beside a supply as a whole.
_OF_WORKERS = ("cpu_time", "cores", "read_wait", "handover_time")


@dataclass(frozen=True, repr=False)
class Step(TableRepr):
    """What `Pipeline.solve` found; every figure has the shape of the swept arguments.

    Attributes
    ----------
    stage_times, resource_times : mapping of str to quantity [time]
        Only what is modelled: a pipeline without `storage` has no "read".
    step_time : quantity [time]
    throughput : quantity [sample/time]
        Of all accelerators together.
    utilization : float
        Busy share of the accelerator in a step, 0 to 1. `nvidia-smi` shows something else: the share of time
        in which any kernel ran. A copy that the accelerator waits for is not counted as busy.
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
        where input work on the accelerator takes more than each of these. Of a step that is known by its rate
        alone: "model", unless one of the latter two takes more.
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


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """An input pipeline in front of an accelerator, or of several on one host.

    Parameters
    ----------
    model, hardware : catalogue entries
        Not needed beside `accelerator_rate`.
    batch_size : int or array
        Of each accelerator.
    workers : int or array
        CPU workers that prepare samples, all of the host's together.
    sample_size : quantity [data], optional
        Stored bytes of one sample; that of the assumptions unless given.
    worker_rate : quantity [data/time] or [sample/time], optional
        What one worker prepares; that of the assumptions unless given.
    cpu_time : quantity [time], optional
        In place of `worker_rate`: the CPU time that one worker takes for a sample, alone.
    cores : int or array, optional
        Physical cores that the workers may use: more workers than these prepare no more. One for each worker
        unless given.
    read_wait : quantity [time], optional
        For each sample: how long its worker waits for storage before it can prepare it, as with small files
        read one by one. It takes the worker's time and no core's.
    handover_time : quantity [time], optional
        For each batch: what its worker spends on joining and handing it over.
    cpu_throughput : quantity [data/time] or [sample/time], optional
        What the CPU supplies altogether; `workers` and `worker_rate` are then not looked at, and the other
        figures of workers are refused.
    storage : catalogue entry or quantity [data/time], optional
        The drive; without it reading is not modelled.
    link : catalogue entry or quantity [data/time], optional
        The host-to-device link; without it the copy is not modelled.
    sent_size : quantity [data], optional
        Bytes of one sample as they cross the link; the stored size unless given.
    pinned : bool
        Whether the copy starts from pinned memory.
    device_input_time : quantity [time], optional
        Accelerator time that input work takes for each sample, for example decoding with DALI:
        ``Q_("1 img") / hardware.image_decode_rate`` where the catalogue knows that rate.
    accelerator_rate : quantity [sample/time], optional
        What one accelerator was measured to do with its input at hand; goes before any rate of the catalogue
        and before peak times efficiency.
    framework : str, optional
        Whose measured rate to take from the catalogue, for example "MXNet"; its default, where the
        assumptions believe in measured rates, unless given.
    step_overhead : quantity [time], optional
        For each step, on top: synchronising several accelerators, launching, logging.
    accelerators : int or array
        How many of them share this host's workers, cores and drive. Each has a link of its own, and all take
        their steps together.
    copy_overlaps : bool
        False where the copy runs on the stream that computes: the accelerator waits for it in each step.
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

    model: Any = None
    hardware: Any = None
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
    accelerator_rate: Any = None
    framework: str | None = None
    step_overhead: Any = None
    cpu_time: Any = None
    cores: Any = None
    read_wait: Any = None
    handover_time: Any = None
    accelerators: Any = 1
    copy_overlaps: bool = True
    precision: str = "fp16"
    phase: str | None = None
    overlap: bool = True
    assumptions: Assumptions = TUTORIAL

    def __post_init__(self) -> None:
        check_accelerator(self.model, self.hardware, self.accelerator_rate)
        check_assumptions(self.assumptions)
        if self.phase is not None:
            check_phase(self.phase)
        whole(self.batch_size, "batch_size")
        whole(self.workers, "workers")
        whole(self.accelerators, "accelerators")
        if self.cores is not None:
            whole(self.cores, "cores")
        for name in _UNITS:
            object.__setattr__(self, name, self._read(name))
        check_supply(
            cpu_throughput=self.cpu_throughput,
            worker_rate=self.worker_rate if self.cpu_throughput is None else None,
            **{name: getattr(self, name) for name in _OF_WORKERS},
        )
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
        positive(made, unit, name, zero=name in _MAY_BE_ZERO)
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
        if value is None or type(value) is int or isinstance(value, Entry):
            return ()
        return np.shape(getattr(value, "magnitude", value))

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
            one = DataModel(a).cost(sample_size=self.size, source=self.storage, figure=figure)
            costs["read"] = self._for_all(one)
        costs["transform"] = self.cpu_cost(self.workers, figure)
        if self.link is not None:
            costs["copy" if self.copy_overlaps else "copy in turn"] = TransferModel(a).cost(
                sent_size=self.sent, link=self.link, pinned=self.pinned, figure=figure
            )
        if self.device_input_time is not None:
            seconds = figure(self.device_input_time, "s", "device_input_time", zero=True)
            costs["input on device"] = Cost((Line(0, seconds),))
        costs["model"] = SingleNodeModel(a).cost(**self._accelerator, phase=self.phase, figure=figure)
        if self.step_overhead is not None:
            fixed = figure(self.step_overhead, "s", "step_overhead", zero=True)
            costs["step overhead"] = Cost((Line(fixed, 0),))
        return costs

    def cpu_cost(self, workers: Any, figure: Any = positive) -> Cost:
        """What preparing the batches of a step would cost the CPU with that many workers."""
        figures = {name: getattr(self, name) for name in _OF_WORKERS}
        if self.cpu_throughput is not None:
            figures = {"cpu_throughput": self.cpu_throughput}
        else:
            figures |= {"workers": workers, "worker_rate": self.worker_rate}
        model = TransformationModel(self.assumptions)
        return self._for_all(model.cost(sample_size=self.size, figure=figure, **figures))

    def _for_all(self, cost: Cost) -> Cost:
        """What one batch for each accelerator costs a resource that they share."""
        return cost.times(whole(self.accelerators, "accelerators"))

    @property
    def _accelerator(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "hardware": self.hardware,
            "precision": self.precision,
            "accelerator_rate": self.accelerator_rate,
            "framework": self.framework,
        }

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
        # While it waits for a copy, the accelerator is taken, but it does not work.
        own = resources["accelerator"] - stages.get("copy in turn", 0)
        step = reduce(np.maximum if self.overlap else np.add, resources.values())
        binding, following = _ranking(resources)
        model = SingleNodeModel(self.assumptions)
        single = model.solve(**self._accelerator, batch_size=batch, phase=self.phase)
        gigabytes = positive(self.size, "GB", "sample_size")
        together = batch * whole(self.accelerators, "accelerators")
        return Step(
            pipeline=self,
            stage_times={name: _ms(t) for name, t in stages.items()},
            resource_times={name: _ms(resources[name]) for name in FLOW if name in resources},
            step_time=_ms(step),
            throughput=Q_(plain(together / step), "img/s"),
            utilization=plain(own / step),
            stall=plain(1 - own / step),
            slowdown=plain(step / own),
            binding=binding,
            next_binding=following,
            headroom={name: plain(1 - resources[name] / step) for name in FLOW if name in resources},
            cause=_cause(single, stages, shape),
            basis=single.basis,
            demand_at_ceiling=Q_(plain(together / own * gigabytes), "GB/s"),
            actual_demand=Q_(plain(together / step * gigabytes), "GB/s"),
            feasible=np.broadcast_to(single.feasible, shape) if shape else single.feasible,
            infeasible_reason=single.infeasible_reason,
        )


def check_fields(names: Iterable[str]) -> None:
    """Refuse what is no field of a pipeline."""
    check_names(names, [f.name for f in dataclasses.fields(Pipeline)], "A pipeline")


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


def _cause(single: Any, stages: Mapping[str, Any], shape: tuple[int, ...]) -> Any:
    """What takes most of the accelerator's own time, counting all that runs on it; the first of equals."""
    cause, extra = single.cause, {"step overhead", "input on device"} & stages.keys()
    if single.compute_time is None:
        parts = {"model": stages["model"], "overhead": 0}
    elif extra:
        times = (single.compute_time, single.memory_time, single.overhead_time)
        parts = dict(zip(("compute", "memory", "overhead"), (t.m_as("s") for t in times), strict=True))
    if extra or single.compute_time is None:
        parts["overhead"] = parts["overhead"] + stages.get("step overhead", 0)
        cause = name_of_largest({**parts, "input": stages.get("input on device", 0)})
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
