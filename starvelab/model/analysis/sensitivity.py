"""What a little more of each resource would buy, and where the next constraint takes over.

It moves one resource at a time and asks the rule of the pipeline again; it does not price anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import InputError
from ...tables import percent, to_html, to_text
from ...units import Q_, exact, format_number, format_quantity
from ..pipeline import CALLED
from ..stages.cost import longer
from ..stages.data import storage_bandwidth
from ..stages.transfer import link_bandwidth
from .point import one_point, overlapping
from .workers import fewest_workers, in_time


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

    headers = ("change", "throughput", "gain", "pays until")

    @property
    def rows(self) -> list[list[str]]:
        """One row for each lever, as shown."""
        return [
            [one.change, format_quantity(one.throughput), f"+{percent(one.gain)}", one.limit]
            for one in self.levers
        ]

    def __repr__(self) -> str:
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
        For a sweep, or for stages or a copy that do not overlap.

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline
    >>> found = sensitivity(Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=8))
    >>> [(lever.resource, round(lever.gain, 3)) for lever in found.levers]
    [('CPU', 0.125), ('accelerator', 0.0)]
    """
    one_point(pipeline, "sensitivity")
    overlapping(pipeline, "sensitivity")
    if pipeline.link is not None and not pipeline.copy_overlaps:
        raise InputError(
            "sensitivity looks at one resource at a time, got copy_overlaps=False: then a copy takes the "
            "time of two. Pass copy_overlaps=True, and compare the step with and without."
        )
    step = pipeline.solve()
    times = {name: time.m_as("ms") for name, time in step.resource_times.items()}
    levers = []
    for resource, time in times.items():
        change, faster, limit = _LEVERS[resource](pipeline, step)
        gain = max(times.values()) / max({**times, resource: faster}.values()) - 1
        if resource != step.binding:
            limit = f"not now: {CALLED[step.binding]} binds"
        elif not longer(time, times[step.next_binding]):
            limit = f"not now: {CALLED[step.next_binding]} takes as long"
        levers.append(Lever(change, resource, step.throughput * (1 + gain), gain, limit))
    return Sensitivity(tuple(levers), step.binding)


# Each lever gives the change in words, the time [ms] of its resource after it, and how far more of the same
# would pay: until that resource is as fast as the one that binds next.


def _more_workers(pipeline: Any, step: Any) -> tuple[str, float, str]:
    if pipeline.cpu_throughput is not None:
        return _a_tenth_faster("CPU", step)
    n, following = pipeline.workers, step.next_binding
    more = pipeline.solve(workers=n + 1).resource_times["CPU"].m_as("ms")
    wanted = pipeline.resource_costs(exact)[following].at(pipeline.batch_size)
    enough = fewest_workers(in_time(pipeline, pipeline.batch_size, wanted))
    if enough is None:
        limit = f"no number of workers is as fast as {CALLED[following]}"
    else:
        limit = f"{enough} workers, then {CALLED[following]}"
    return f"{n + 1} workers instead of {n}", more, limit


def _more_storage(pipeline: Any, step: Any) -> tuple[str, float, str]:
    def time(bandwidth: Any) -> float:
        """Reading time with another bandwidth and the same latency."""
        entry = getattr(pipeline.storage, "kind", "") == "Storage"
        storage = pipeline.storage.replace(bandwidth_sustained=bandwidth) if entry else bandwidth
        return pipeline.solve(storage=storage).resource_times["storage"].m_as("ms")

    now = storage_bandwidth(storage=pipeline.storage)
    enough, limit = _until(now, "storage", step)
    if longer(time(enough), step.resource_times[step.next_binding].m_as("ms") * (1 + 1e-9)):
        limit = "more requests in flight: latency binds, not bandwidth"
    return "storage with 1 GB/s more", time(now + Q_("1 GB/s")), limit


def _more_link(pipeline: Any, step: Any) -> tuple[str, float, str]:
    now = link_bandwidth(pipeline.link, pinned=pipeline.pinned, figure=pipeline.assumptions.link_figure)
    faster = pipeline.solve(link=now + Q_("1 GB/s")).resource_times["link"].m_as("ms")
    return "link with 1 GB/s more", faster, _until(now, "link", step)[1]


def _until(bandwidth: Any, resource: str, step: Any) -> tuple[Any, str]:
    """The bandwidth at which a resource is as fast as the one that binds next."""
    enough = (bandwidth * (step.resource_times[resource] / step.resource_times[step.next_binding])).to("GB/s")
    return enough, f"{format_quantity(enough)}, then {CALLED[step.next_binding]}"


def _a_tenth_faster(resource: str, step: Any) -> tuple[str, float, str]:
    now, wanted = (step.resource_times[name].m_as("ms") for name in (resource, step.next_binding))
    limit = f"{format_number(now / wanted, 3)} times as fast, then {CALLED[step.next_binding]}"
    return f"{resource} a tenth faster", now / 1.1, limit


_LEVERS = {
    "storage": _more_storage,
    "CPU": _more_workers,
    "link": _more_link,
    "accelerator": lambda _, step: _a_tenth_faster("accelerator", step),
}
