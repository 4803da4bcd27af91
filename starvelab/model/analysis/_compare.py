"""The catalogue's drives, links or accelerators side by side, each in the place of a pipeline's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import InputError, MissingValueError, UnknownNameError
from ...tables import TableRepr, percent
from ...units import Quantity
from ..catalogue import Group
from ..description import Description
from ..groups import Hardware, Links, Storage
from ..resources import LABELS
from ..step import Step
from ._point import one_point

GROUPS: Mapping[str, Group] = {"storage": Storage, "link": Links, "hardware": Hardware}


@dataclass(frozen=True, repr=False)
class Comparison(TableRepr):
    """The answer of `compare`.

    Attributes
    ----------
    field : str
        What was exchanged: "storage", "link" or "hardware".
    steps : mapping of str to Step
        By the name of the entry, the fastest first.
    unknown : tuple of str
        Entries of which the catalogue does not know enough.
    """

    field: str
    steps: Mapping[str, Step]
    unknown: tuple[str, ...]

    @property
    def summary(self) -> str:
        """What is compared."""
        return f"The pipeline with each {self.field} of the catalogue, the fastest first"

    @property
    def headers(self) -> tuple[str, ...]:
        """One for each column."""
        own = () if self.field == "hardware" else (f"{self.field} busy",)
        return self.field, "throughput", "binds", "accelerator busy", *own

    @property
    def rows(self) -> list[tuple[object, ...]]:
        """What each of them allows."""
        rows = []
        for name, step in self.steps.items():
            binds = LABELS[step.bottleneck] if step.feasible else "the batch does not fit into memory"
            own = () if self.field == "hardware" else (percent(1 - step.headroom[self.field]),)
            rows.append((name, step.throughput, binds, percent(step.utilization), *own))
        return rows

    @property
    def note(self) -> str:
        """Which entries are left out."""
        return f"Not enough is known of {', '.join(self.unknown)}." if self.unknown else ""


def compare(pipeline: Description, field: str) -> Comparison:
    """Solve the pipeline with each drive, link or accelerator of the catalogue in place of its own.

    Parameters
    ----------
    field : {"storage", "link", "hardware"}
        What to exchange; everything else stays, also how many of them there are.

    Raises
    ------
    InputError, UnknownNameError

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline
    >>> pipeline = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, workers=64)
    >>> found = pipeline.compare("storage")
    >>> [round(found.steps[name].throughput.m_as("img/s")) for name in ("NVMe_Gen4", "HDD")]
    [14000, 360]
    """
    if field not in GROUPS:
        names = ", ".join(GROUPS)
        raise UnknownNameError(f"compare exchanges {names}, got {field!r:.80}. Pass one of these.")
    one_point(pipeline, "compare", whatever=(field,))
    if field == "hardware" and isinstance(pipeline.hardware.rate, Quantity):
        raise InputError(
            "compare takes the time of each accelerator from the catalogue, got a rate of your own, which "
            "belongs to one of them. Leave the rate out."
        )
    steps, unknown = {}, []
    for entry in GROUPS[field]:
        try:
            steps[entry.path] = pipeline.solve({field: entry})
        except MissingValueError:
            unknown.append(entry.path)
    fastest = sorted(steps, key=lambda name: -steps[name].throughput.m_as("sample/s"))
    return Comparison(field, {name: steps[name] for name in fastest}, tuple(unknown))
