"""What a little more of each resource would bring, and where the next bottleneck takes over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...errors import InputError
from ...tables import TableRepr, paragraph, percent, to_html
from ...units import Q_, Quantity, format_number, format_quantity
from ..catalogue import Entry
from ..cost import exceeds
from ..description import Description
from ..resources import ACCELERATOR, CPU, DECODER, LABELS, LINK, STORAGE
from ..step import Step
from ._point import one_point, overlapping
from ._workers import cpu_cost, launching, min_workers


@dataclass(frozen=True)
class Sensitivity:
    """One change to a resource, the throughput [sample/time] after it, and its relative gain.

    `limit` says how far more of the same helps: where the next bottleneck takes over. The gain is 0 where the
    resource does not bind.
    """

    change: str
    resource: str
    throughput: Quantity
    gain: float
    limit: str


@dataclass(frozen=True, repr=False)
class Sensitivities(TableRepr):
    """What each change to a pipeline would bring; shows itself as a table."""

    changes: tuple[Sensitivity, ...]
    bottleneck: str
    note: str = ""

    headers = ("change", "throughput", "gain", "pays until")
    summary = ""

    @property
    def rows(self) -> list[list[str]]:
        """One row for each change, as shown."""
        return [
            [one.change, format_quantity(one.throughput), f"+{percent(one.gain)}", one.limit]
            for one in self.changes
        ]

    def _repr_html_(self) -> str:
        caption = f"What would help while {LABELS[self.bottleneck]} binds"
        return to_html(self.headers, self.rows, caption=caption) + paragraph(self.note)


def sensitivity(pipeline: Description) -> Sensitivities:
    """Try one more worker, one more GB/s, a tenth faster accelerator.

    Raises
    ------
    InputError
        For a sweep, or for stages or a copy that do not overlap.

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline
    >>> found = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=8).sensitivity()
    >>> [(change.resource, round(change.gain, 3)) for change in found.changes]
    [('CPU', 0.125), ('accelerator', 0.0)]
    """
    one_point(pipeline, "sensitivity")
    overlapping(pipeline, "sensitivity")
    if pipeline.link is not None and not pipeline.link.overlaps:
        raise InputError(
            "sensitivity looks at one resource at a time, got Link(overlaps=False): then a copy takes the "
            "time of two. Pass overlaps=True, and compare the step with and without."
        )
    step = pipeline.solve()
    times = {name: time.m_as("ms") for name, time in step.resource_times.items()}
    changes = []
    for resource, time in times.items():
        change, faster, limit = _CHANGES[resource](pipeline, step)
        gain = max(times.values()) / max({**times, resource: faster}.values()) - 1
        if resource != step.bottleneck:
            limit = f"not now: {LABELS[step.bottleneck]} binds"
        elif not exceeds(time, times[step.next_bottleneck]):
            limit = f"not now: {LABELS[step.next_bottleneck]} takes as long"
        changes.append(Sensitivity(change, resource, step.throughput * (1 + gain), gain, limit))
    return Sensitivities(tuple(changes), step.bottleneck, step.note)


# Each of these gives the change in words, the time [ms] of its resource after it, and how far more of the
# same would help: until that resource is as fast as the one that binds next.


def _more_workers(pipeline: Description, step: Step) -> tuple[str, float, str]:
    if isinstance(pipeline.workers, Quantity):
        return _a_tenth_faster(CPU.name, step)
    n, following = pipeline.workers.count, step.next_bottleneck
    more = pipeline.solve(workers=n + 1).resource_times[CPU.name].m_as("ms")
    batch = pipeline.batch_size
    wanted = pipeline.resource_costs(exact=True)[following].at(batch)
    enough = min_workers(lambda workers: cpu_cost(pipeline, workers).at(batch) <= wanted)
    none = f"no number of workers is as fast as {LABELS[following]}"
    limit = none if enough is None else f"{enough} workers, then {LABELS[following]}"
    return f"{n + 1} workers instead of {n}", more, limit


def _more_storage(pipeline: Description, step: Step) -> tuple[str, float, str]:
    drive = pipeline.storage
    assert drive is not None  # it is among the resources

    def time(bandwidth: Quantity) -> float:
        """Reading time with another bandwidth and the same latency."""
        storage: Entry | Quantity = bandwidth
        if isinstance(drive.of, Entry) and drive.of.kind == "Storage":
            storage = drive.of.replace(bandwidth_sustained=bandwidth)
        return float(pipeline.solve(storage=storage).resource_times[STORAGE.name].m_as("ms"))

    now, change = pipeline.storage_bandwidth, "storage with 1 GB/s more"
    if step.resource_times[STORAGE.name].magnitude == 0:  # memory serves every read
        return change, 0.0, ""
    enough, limit = _until(now, STORAGE.name, step)
    if exceeds(time(enough), step.resource_times[step.next_bottleneck].m_as("ms") * (1 + 1e-9)):
        a = pipeline.assumptions
        more = pipeline.solve(assumptions=a.replace(requests_in_flight=2 * a.requests_in_flight))
        before, after = (one.resource_times[STORAGE.name].m_as("ms") for one in (step, more))
        limit = "more drives: the requests that one serves bind, not bandwidth"
        if exceeds(before, after):
            limit = "more requests in flight: latency binds, not bandwidth"
        if pipeline.numbers["cache_bandwidth"] is not None:
            limit = "a faster drive alone is not enough: what memory serves takes its time too"
    return change, time(now + Q_("1 GB/s")), limit


def _more_link(pipeline: Description, step: Step) -> tuple[str, float, str]:
    now = pipeline.link_bandwidth
    faster = pipeline.solve(link=now + Q_("1 GB/s")).resource_times[LINK.name].m_as("ms")
    return "link with 1 GB/s more", faster, _until(now, LINK.name, step)[1]


def _until(bandwidth: Quantity, resource: str, step: Step) -> tuple[Quantity, str]:
    """The bandwidth at which a resource is as fast as the one that binds next."""
    ratio = step.resource_times[resource] / step.resource_times[step.next_bottleneck]
    enough = (bandwidth * ratio).to("GB/s")
    return enough, f"{format_quantity(enough)}, then {LABELS[step.next_bottleneck]}"


def _a_tenth_faster(resource: str, step: Step) -> tuple[str, float, str]:
    now, wanted = (step.resource_times[name].m_as("ms") for name in (resource, step.next_bottleneck))
    limit = f"{format_number(now / wanted, 3)} times as fast, then {LABELS[step.next_bottleneck]}"
    return f"{resource} a tenth faster", now / 1.1, limit


def _faster_accelerator(pipeline: Description, step: Step) -> tuple[str, float, str]:
    change, faster, limit = _a_tenth_faster(ACCELERATOR.name, step)
    if launching(pipeline) > 0:
        return change, step.resource_times[ACCELERATOR.name].m_as("ms"), "not now: launches take longest"
    return change, faster, limit


_CHANGES: Mapping[str, Callable[[Description, Step], tuple[str, float, str]]] = {
    STORAGE.name: _more_storage,
    CPU.name: _more_workers,
    LINK.name: _more_link,
    DECODER.name: lambda _, step: _a_tenth_faster(DECODER.name, step),
    ACCELERATOR.name: _faster_accelerator,
}
