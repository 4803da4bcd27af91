"""What a little more of each resource would bring, and where the next bottleneck takes over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import InputError
from ...tables import TableRepr, percent
from ...units import Q_, Quantity, Unchecked, format_number, format_quantity
from ..catalogue import Entry
from ..cost import exceeds
from ..description import Description
from ..resources import ACCELERATOR, CPU, LABELS, LINK, STORAGE
from ..step import Step
from ._point import one_point, overlapping
from ._supply import cpu_cost, launching, min_workers


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

    @property
    def summary(self) -> str:
        """Above the table: what binds now."""
        return f"What would help while {LABELS[self.bottleneck]} binds"

    @property
    def rows(self) -> list[list[str]]:
        """One row for each change, as shown."""
        return [
            [one.change, format_quantity(one.throughput), f"+{percent(one.gain)}", one.limit]
            for one in self.changes
        ]


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
    times = {name: _ms(step, name) for name in step.resource_times}
    changes = []
    for resource, time in times.items():
        change, faster, limit = _more(resource, pipeline, step)
        gain = max(times.values()) / max({**times, resource: faster}.values()) - 1
        if resource != step.bottleneck:
            limit = f"not now: {LABELS[step.bottleneck]} binds"
        elif not exceeds(time, times[step.next_bottleneck]):
            limit = f"not now: {LABELS[step.next_bottleneck]} takes as long"
        changes.append(Sensitivity(change, resource, step.throughput * (1 + gain), gain, limit))
    return Sensitivities(tuple(changes), step.bottleneck, step.note)


def _ms(step: Step, resource: str) -> float:
    return float(step.resource_times[resource].m_as("ms"))


def _more(resource: str, pipeline: Description, step: Step) -> tuple[str, float, str]:
    """A change in words, the time [ms] of its resource after it, and how far more of the same would help.

    That is until the resource is as fast as the one that binds next.
    """

    def after(changes: Mapping[str, Unchecked]) -> float:
        return _ms(pipeline.solve(changes), resource)

    time, following = _ms(step, resource), step.next_bottleneck
    times, then = time / _ms(step, following), f", then {LABELS[following]}"
    if resource == CPU.name and not isinstance(pipeline.workers, Quantity):
        count = pipeline.workers.count
        wanted = pipeline.resource_costs(exact=True)[following].at(pipeline.batch_size)
        enough = min_workers(lambda workers: cpu_cost(pipeline, workers).at(pipeline.batch_size) <= wanted)
        limit = f"no number of workers is as fast as {LABELS[following]}"
        return (
            f"{count + 1} workers instead of {count}",
            after({"workers": count + 1}),
            limit if enough is None else f"{enough} workers{then}",
        )
    if resource in (STORAGE.name, LINK.name):
        change = f"{resource} with 1 GB/s more"
        if time == 0:  # memory serves every read
            return change, 0.0, ""
        now = pipeline.link_bandwidth if resource == LINK.name else pipeline.storage_bandwidth
        drive = pipeline.storage.of if resource == STORAGE.name and pipeline.storage else None

        def at(bandwidth: Quantity) -> float:
            """The time with another bandwidth, and of a drive the same latency."""
            if isinstance(drive, Entry) and drive.kind == "Storage":
                return after({resource: drive.replace(bandwidth_sustained=bandwidth)})
            return after({resource: bandwidth})

        wanted = (now * times).to("GB/s")
        limit = f"{format_quantity(wanted)}{then}"
        if resource == STORAGE.name and exceeds(at(wanted), _ms(step, following) * (1 + 1e-9)):
            limit = _beside_bandwidth(pipeline, step)
        return change, at(now + Q_("1 GB/s")), limit
    change, limit = f"{resource} a tenth faster", f"{format_number(times, 3)} times as fast{then}"
    if resource == ACCELERATOR.name and launching(pipeline) > 0:
        return change, time, "not now: launches take longest"
    return change, time / 1.1, limit


def _beside_bandwidth(pipeline: Description, step: Step) -> str:
    """Return what it is about a drive that more bandwidth does not help."""
    if pipeline.numbers["cache_bandwidth"] is not None:
        return "a faster drive alone is not enough: what memory serves takes its time too"
    most = pipeline.numbers["connections"]
    more = step if most is None else pipeline.solve({"storage.requests.at_most": 2 * most})
    if exceeds(_ms(step, STORAGE.name), _ms(more, STORAGE.name)):
        return "more connections: the requests under way bind, not bandwidth"
    return "more drives: the requests that one serves bind, not bandwidth"
