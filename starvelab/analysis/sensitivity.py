"""What a little more of each resource would buy, and where the next constraint takes over.

It moves one resource at a time and asks the rule of the pipeline again; it does not price anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import Any

from ..errors import InputError
from ..pipeline import RESOURCES
from ..stages.data import storage_bandwidth
from ..stages.transfer import link_bandwidth
from ..tables import percent, to_html, to_text
from ..units import Q_, format_number, format_quantity


@dataclass(frozen=True)
class Lever:
    """One change and what it buys.

    Attributes
    ----------
    change : str
    resource : str
    throughput : quantity [sample/time]
        After the change.
    gain : float
        Relative gain in throughput; 0 where the resource does not bind.
    limit : str
        How far the lever pays: where the next constraint takes over.
    """

    change: str
    resource: str
    throughput: Any
    gain: float
    limit: str


@dataclass(frozen=True)
class Sensitivity:
    """The levers of a pipeline; shows itself as a table."""

    levers: tuple[Lever, ...]
    binding: str

    @property
    def rows(self) -> list[list[str]]:
        return [[x.change, format_quantity(x.throughput), f"+{percent(x.gain)}", x.limit] for x in self.levers]

    headers = ("change", "throughput", "gain", "pays until")

    def __str__(self) -> str:
        return to_text(self.headers, self.rows)

    def _repr_html_(self) -> str:
        return to_html(self.headers, self.rows, caption=f"What would help (now binding: {self.binding})")


def sensitivity(pipeline: Any) -> Sensitivity:
    """Try one more worker, one more GB/s, a tenth faster accelerator.

    Parameters
    ----------
    pipeline : Pipeline
        At one point: no swept arguments.

    Raises
    ------
    InputError
        For a sweep, or for stages that do not overlap.

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline
    >>> found = sensitivity(Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=8))
    >>> [(lever.resource, round(lever.gain, 3)) for lever in found.levers]
    [('CPU', 0.125), ('accelerator', 0.0)]
    """
    step = pipeline.solve()
    if not isinstance(step.binding, str):
        raise InputError("sensitivity looks at one point, got a sweep. Pass one batch size and one number of workers.")
    if not pipeline.overlap:
        raise InputError("sensitivity asks which resource binds, got overlap=False: then all of them do.")
    times = {name: t.m_as("s") for name, t in step.resource_times.items()}
    a, levers = pipeline.assumptions, []

    def lever(change: str, resource: str, factor: float, limit: str) -> None:
        new = {**times, resource: times[resource] * factor}
        gain = max(times.values()) / max(new.values()) - 1
        levers.append(Lever(change, resource, step.throughput * (1 + gain), gain, limit))

    def others(resource: str) -> tuple[float, str]:
        """The slowest of the other resources: a lever pays until it is reached."""
        rest = {name: times[name] for name in RESOURCES if name in times and name != resource}
        slowest = max(rest, key=rest.__getitem__)
        return rest[slowest], slowest

    if pipeline.cpu_throughput is None:
        n = pipeline.workers
        wanted, following = others("CPU")
        speedup = a.speedup(n) * times["CPU"] / wanted
        enough = ceil(speedup - 1e-9) if a.peak_workers == inf and a.contention == 0 else _workers_for(a, speedup)
        limit = f"{enough} workers, then the {following}" if enough else "never reaches the " + following
        lever(f"{n + 1} workers instead of {n}", "CPU", a.speedup(n) / a.speedup(n + 1), _pays(limit, "CPU", step))
    else:
        lever("CPU a tenth faster", "CPU", 1 / 1.1, _pays(f"{format_number(times['CPU'] / others('CPU')[0], 3)} times, then the {others('CPU')[1]}", "CPU", step))
    for resource, bandwidth in _bandwidths(pipeline).items():
        wanted, following = others(resource)
        limit = f"{format_quantity(bandwidth * times[resource] / wanted)}, then the {following}"
        factor = (bandwidth / (bandwidth + Q_("1 GB/s"))).m_as("")
        lever(f"{resource} with 1 GB/s more", resource, factor, _pays(limit, resource, step))
    wanted, following = others("accelerator")
    limit = f"{format_number(times['accelerator'] / wanted, 3)} times as fast, then the {following}"
    lever("accelerator a tenth faster", "accelerator", 1 / 1.1, _pays(limit, "accelerator", step))
    return Sensitivity(tuple(levers), step.binding)


def _pays(limit: str, resource: str, step: Any) -> str:
    return limit if resource == step.binding else f"not now: the {step.binding} binds"


def _bandwidths(pipeline: Any) -> dict[str, Any]:
    found = {}
    if pipeline.storage is not None:
        found["storage"] = storage_bandwidth(storage=pipeline.storage).to("GB/s")
    if pipeline.link is not None:
        figure = pipeline.assumptions.link_figure
        found["link"] = link_bandwidth(pipeline.link, pinned=pipeline.pinned, figure=figure).to("GB/s")
    return found


def _workers_for(assumptions: Any, speedup: float) -> int | None:
    limit = min(assumptions.peak_workers, 10_000)
    return next((n for n in range(1, int(limit) + 1) if assumptions.speedup(n) >= speedup), None)
