"""Four stages on four resources: stages on one resource add, stages on different resources overlap.

The slowest resource sets the step. It knows averages only: `starvelab.simulate` will know time and order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np

from .assumptions import TUTORIAL, Assumptions, check_phase
from .errors import InputError, UnknownNameError
from .stages import Cost, DataModel, Line, SingleNodeModel, TransferModel, TransformationModel
from .units import Q_, convert, positive, whole

# Stage -> the resource it runs on. In a tie the resource named first binds: a tie is no starvation.
RESOURCE_OF = MappingProxyType(
    {"model": "accelerator", "device input": "accelerator", "transform": "CPU", "read": "storage", "copy": "link"}
)
RESOURCES = ("accelerator", "CPU", "storage", "link")
# The order in which a sample meets them, which is the order people expect in a table or a picture.
FLOW = ("storage", "CPU", "link", "accelerator")


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
        What takes the largest part of the accelerator's own time: "compute", "memory" or "overhead".
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
    demand_at_ceiling: Any
    actual_demand: Any
    feasible: Any
    infeasible_reason: str


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
        What the CPU supplies altogether, in place of counting workers.
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

    Examples
    --------
    >>> from starvelab import Hardware, Models
    >>> wall = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, batch_size=256, workers=8).solve()
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
        for name, kind in (("model", "Models"), ("hardware", "Hardware")):
            value = getattr(self, name)
            if getattr(value, "kind", None) != kind:
                raise InputError(f"{name} must be an entry of {kind}, got {value!r}. Pass for example {_EXAMPLE[name]}.")
        whole(self.batch_size, "batch_size")
        whole(self.workers, "workers")
        if self.phase is not None:
            check_phase(self.phase)

    def but(self, **changes: Any) -> Pipeline:
        """A copy with some fields changed."""
        known = [f.name for f in dataclasses.fields(self)]
        for key in changes:
            if key not in known:
                raise UnknownNameError(f"A pipeline has no field {key!r}. There is: {', '.join(known)}.")
        return dataclasses.replace(self, **changes)

    @property
    def size(self) -> Any:
        """Stored bytes of one sample [data]."""
        return convert(self.assumptions.sample_size if self.sample_size is None else self.sample_size, "KB", "sample_size")

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
            sent = self.size if self.sent_size is None else self.sent_size
            costs["copy"] = TransferModel(a).cost(sent_size=sent, link=self.link, pinned=self.pinned, figure=figure)
        if self.device_input_time is not None:
            costs["device input"] = Cost((Line(0, figure(self.device_input_time, "s", "device_input_time", zero=True)),))
        costs["model"] = SingleNodeModel(a).cost(
            model=self.model, hardware=self.hardware, precision=self.precision, phase=self.phase, figure=figure
        )
        return costs

    def resource_costs(self, figure: Any = positive) -> dict[str, Cost]:
        """Cost of each modelled resource: its stages one after the other."""
        by_resource: dict[str, Cost] = {}
        for stage, cost in self.costs(figure).items():
            resource = RESOURCE_OF[stage]
            by_resource[resource] = by_resource[resource] + cost if resource in by_resource else cost
        return {resource: by_resource[resource] for resource in RESOURCES if resource in by_resource}

    def solve(self, **changes: Any) -> Step:
        """Time a step; keyword arguments change fields first, and may be arrays.

        Raises
        ------
        InputError, MissingFigureError, UnknownNameError
        """
        if changes:
            return self.but(**changes).solve()
        batch = whole(self.batch_size, "batch_size")
        stages = {stage: cost.at(batch) for stage, cost in self.costs().items()}
        shape = np.broadcast_shapes(*(np.shape(t) for t in stages.values()), np.shape(self.workers))
        stages = {stage: np.broadcast_to(t, shape) for stage, t in stages.items()}
        resources: dict[str, Any] = {}
        for stage, seconds in stages.items():
            resource = RESOURCE_OF[stage]
            resources[resource] = resources.get(resource, 0) + seconds
        resources = {name: resources[name] for name in RESOURCES if name in resources}
        own = resources["accelerator"]
        step = reduce(np.add if not self.overlap else np.maximum, resources.values())
        binding, following = _ranking(resources)
        single = SingleNodeModel(self.assumptions).solve(
            model=self.model, hardware=self.hardware, batch_size=batch, precision=self.precision, phase=self.phase
        )
        size = self.size
        return Step(
            pipeline=self,
            stage_times=MappingProxyType({name: _ms(t) for name, t in stages.items()}),
            resource_times=MappingProxyType({name: _ms(resources[name]) for name in FLOW if name in resources}),
            step_time=_ms(step),
            throughput=Q_(_plain(batch / step), "img/s"),
            utilization=_plain(own / step),
            stall=_plain(1 - own / step),
            slowdown=_plain(step / own),
            binding=binding,
            next_binding=following,
            headroom=MappingProxyType({name: _plain(1 - resources[name] / step) for name in FLOW if name in resources}),
            cause=single.cause,
            demand_at_ceiling=Q_(_plain(batch / own) * size.m_as("GB"), "GB/s"),
            actual_demand=Q_(_plain(batch / step) * size.m_as("GB"), "GB/s"),
            feasible=single.feasible,
            infeasible_reason=single.infeasible_reason,
        )


_EXAMPLE = {"model": "Models.ResNet50", "hardware": "Hardware.Cloud.A100"}


def _ranking(resources: Mapping[str, Any]) -> tuple[Any, Any]:
    """Names of the slowest and the second slowest resource; near-ties go to the one named first."""
    names = np.array([*resources, ""])
    times = np.stack([np.asarray(t, dtype=float) for t in resources.values()])
    # Rounding must not turn a tie into a bottleneck: favour earlier resources by a part in 10^12.
    times *= (1 + 1e-12 * np.arange(len(times), 0, -1)).reshape(-1, *[1] * (times.ndim - 1))
    first = np.argmax(times, axis=0, keepdims=True)
    np.put_along_axis(times, first, -np.inf, axis=0)
    second = np.argmax(times, axis=0) if len(times) > 1 else np.full(times.shape[1:], 1)
    found = names[first[0]], names[second]
    return found if times.ndim > 1 else (str(found[0]), str(found[1]))


def _ms(seconds: Any) -> Any:
    return Q_(_plain(seconds) * 1e3, "ms")


def _plain(value: Any) -> Any:
    return np.asarray(value) if np.ndim(value) else float(value)
