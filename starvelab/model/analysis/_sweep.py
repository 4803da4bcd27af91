"""A pipeline solved many times, in one table: over a grid of values, or with each entry of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...errors import InputError, MissingValueError, UnknownNameError
from ...tables import TableRepr, percent
from ...units import Q_, Number, Quantity, Unchecked, convert
from ..assumptions import COVERAGE
from ..catalogue import Entry, Group
from ..description import Changes, Description, check_asked, check_fields
from ..groups import Hardware, Links, Storage
from ..parts import PLAIN, SWEEPABLE, by_path, field_label
from ..resources import LABELS
from ..step import Step

GROUPS: Mapping[str, Group] = {"storage": Storage, "link": Links, "hardware": Hardware}
# Shown when a table is long: enough at both ends to see where it leads.
_MAX_ROWS = 12


@dataclass(frozen=True, repr=False)
class Sweep(TableRepr):
    """The table of a sweep: columns of equal length, quantities where there is a unit.

    The `columns` are the swept fields, the time of each resource, whether a point is feasible (where some are
    not), step time, throughput, its range (`sweep` says when), utilization and bottleneck. The `note` says
    what the range claims, what counts as busy where the accelerator waits for part of its own time, and on
    which samples the rate of preparing was measured, where that was on others.
    """

    columns: dict[str, Number]
    note: str = ""

    summary = ""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Number:
        return self.columns[name]

    @property
    def headers(self) -> list[str]:
        """The names of the columns, as shown."""
        return [field_label(name) for name in self.columns]

    @property
    def rows(self) -> list[list[Unchecked]]:
        """The rows as shown: all of a short table, both ends of a long one."""
        n = len(self)
        chosen = range(n) if n <= _MAX_ROWS else [*range(_MAX_ROWS // 2), None, *range(n - _MAX_ROWS // 2, n)]
        return [["..." if i is None else self._cell(name, i) for name in self.columns] for i in chosen]

    def _cell(self, name: str, i: int) -> Unchecked:
        value = self.columns[name][i]
        return percent(value) if name == "utilization" else value


def sweep(
    pipeline: Description, changes: Changes = None, /, *, ranges: bool | None = None, **fields: Unchecked
) -> Sweep:
    """Solve a pipeline for every combination of the given values.

    Parameters
    ----------
    ranges : bool, optional
        Whether to add the lowest and the highest throughput that the sources of the values allow; where
        the assumptions have ranges, unless given.
    **fields : sequence, array or quantity array
        Fields of the pipeline and their values, for example ``batch_size=[32, 64]`` or
        ``storage=Q_([1, 7], "GB/s")``. The last one varies fastest.
    changes : mapping of str, optional
        The same for fields of parts, by their path: ``{"workers.cores": [8, 16]}``.

    Raises
    ------
    InputError, UnknownNameError

    Examples
    --------
    >>> from starvelab import Hardware, Models, Pipeline
    >>> pipe = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100)
    >>> table = pipe.sweep(batch_size=[32, 64, 128])
    >>> (100 * table["utilization"]).round(1).tolist()
    [73.2, 41.9, 26.2]
    """
    fields = {**by_path(changes or {}), **fields}
    if not fields:
        raise InputError(
            "A sweep needs a field with values, got none. Pass for example batch_size=[32, 64, 128]."
        )
    check_fields(fields)
    for name in fields:
        if PLAIN.get(name, name) not in SWEEPABLE:
            raise InputError(
                f"A sweep takes fields that are numbers or quantities ({', '.join(SWEEPABLE)}), got {name}. "
                f"Solve once for each {name} instead."
            )
    values = {name: _values(name, given) for name, given in fields.items()}
    index = np.indices([len(column) for column in values.values()], dtype=np.intp).reshape(len(values), -1)
    columns = {name: column[i] for (name, column), i in zip(values.items(), index, strict=True)}
    pipeline = pipeline.replace(columns)
    step, claim = pipeline.solve(), ""
    columns |= {f"{name}_time": time for name, time in step.resource_times.items()}
    if not np.all(step.feasible):
        columns["feasible"] = step.feasible
    columns |= {"step_time": step.step_time, "throughput": step.throughput}
    if pipeline.assumptions.ranged if ranges is None else ranges:
        columns["lowest_throughput"], columns["highest_throughput"] = step.ranges.throughput
        if pipeline.assumptions.model_error:
            held = percent(COVERAGE, 0)
            claim = f"Lowest and highest throughput claim to hold the truth in {held} of the cases."
    columns |= {"utilization": step.utilization, "bottleneck": step.bottleneck}
    return Sweep(columns, " ".join(filter(None, (claim, step.spoken_busy, pipeline.foreign_rate))))


def _values(name: str, given: Unchecked) -> Number:
    if isinstance(given, Quantity):
        return np.atleast_1d(given)
    if isinstance(given, str | Entry) or not np.iterable(given):
        raise InputError(f"{name} must be several values to sweep, got {given!r:.80}. Pass a list.")
    given = given if isinstance(given, np.ndarray | range) else list(given)
    if len(given) == 0:
        raise InputError(f"{name} must have at least one value to sweep, got none. Pass a list of values.")
    if isinstance(given[0], Entry):
        raise InputError(
            f"{name} can be swept over numbers and quantities, got {given[0].name}. Pass bandwidths."
        )
    if isinstance(given[0], str | Quantity):
        first = Q_(given[0])
        unit = f"{first.units:~C}"
        return Q_(np.array([convert(value, unit, name).magnitude for value in given]), unit)
    if np.iterable(given[0]):
        raise InputError(f"{name} must be a list of single values, got {given!r:.80}. Pass a list of these.")
    return np.asarray(given)


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
        own = (f"{self.field} busy",) if self._is_busy else ()
        return self.field, "throughput", "binds", "accelerator busy", *own

    @property
    def _is_busy(self) -> bool:
        """True if it has a share of its own: of a copy that is waited for the accelerator's holds that."""
        return self.field != "hardware" and all(self.field in one.headroom for one in self.steps.values())

    @property
    def rows(self) -> list[tuple[object, ...]]:
        """What each of them allows."""
        rows = []
        for name, step in self.steps.items():
            binds = LABELS[step.bottleneck] if step.feasible else "the batch does not fit into memory"
            own = (percent(1 - step.headroom[self.field]),) if self._is_busy else ()
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
    check_asked(pipeline, "compare", whatever=(field,))
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
