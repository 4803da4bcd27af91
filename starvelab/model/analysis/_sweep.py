"""A pipeline solved many times, in one table: for each combination of values and of catalogue entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from ...errors import InputError, MissingValueError, check_names
from ...tables import TableRepr, percent, to_frame
from ...units import Q_, Number, Quantity, Unchecked, convert
from ..assumptions import COVERAGE
from ..catalogue import Entry, Group
from ..description import Changes, Description
from ..equality import EqualByFields
from ..paths import PLAIN, SWEEPABLE, by_path, check_fields, field_label
from ..resources import ACCELERATOR, LABELS, RESOURCES, Labels
from ._remarks import foreign_rate

# The fields that take each entry of a group of the catalogue.
_CATALOGUE = ("storage", "link", "hardware")
# Shown when a table is long: enough at both ends to see where it leads.
_MAX_ROWS = 12


@dataclass(frozen=True, repr=False)
class Sweep(EqualByFields, TableRepr):
    """The table of a sweep: columns of equal length, quantities where there is a unit.

    The `columns` are the swept fields, the time of each resource, whether a point is feasible (where some are
    not), step time, throughput, its range (`sweep` says when), utilization and bottleneck. The `note` says of
    which entries too little is known, what the range claims, what counts as busy where the accelerator waits
    for part of its own time, and on which samples the rate of preparing was measured, where that was on
    others.
    """

    columns: dict[str, Number]
    note: str = ""
    labels: Labels = LABELS

    summary = ""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Number:
        check_names([name], self.columns, "A sweep", "column")
        return self.columns[name]

    @property
    def headers(self) -> list[str]:
        """The names of the columns, as shown."""
        of_resource = {f"{name}_time": f"{self.labels[name]} time" for name in RESOURCES}
        named = {**of_resource, "utilization": f"{self.labels[ACCELERATOR.name]} busy", "bottleneck": "binds"}
        return [named.get(name) or field_label(name) for name in self.columns]

    @property
    def rows(self) -> list[list[Unchecked]]:
        """The rows as shown: all of a short table, both ends of a long one."""
        n = len(self)
        chosen = range(n) if n <= _MAX_ROWS else [*range(_MAX_ROWS // 2), None, *range(n - _MAX_ROWS // 2, n)]
        return [["..." if i is None else self._cell(name, i) for name in self.columns] for i in chosen]

    def to_pandas(self) -> Any:
        """Return all rows as a data frame of pandas: numbers, with the unit of a column after its name.

        Raises
        ------
        MissingPackageError
            If pandas is not installed.
        """
        return to_frame([*self.columns], self.columns.values())

    def _cell(self, name: str, i: int) -> Unchecked:
        value = self.columns[name][i]
        if name == "bottleneck":
            return self.labels[value]
        return percent(value) if name == "utilization" else value


def sweep(pipeline: Description, changes: Changes = None, /, **fields: Unchecked) -> Sweep:
    """Solve a pipeline for every combination of the given values.

    Parameters
    ----------
    **fields : sequence, array or quantity array
        Fields of the pipeline and their values, for example ``batch_size=[32, 64]`` or
        ``storage=Q_([1, 7], "GB/s")``. The last one varies fastest. One of storage, link and
        hardware may be entries of the catalogue, or a group of them: ``hardware=Hardware.Cloud``. They vary
        slowest.
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
    fields = {**by_path(changes), **fields}
    if not fields:
        raise InputError(
            "A sweep needs a field with values, got none. Pass for example batch_size=[32, 64, 128]."
        )
    check_fields(fields, pipeline.assumptions)
    numbers = {name: values for name, values in fields.items() if not _are_entries(values)}
    for name in numbers:
        if PLAIN.get(name, name) not in SWEEPABLE:
            raise InputError(
                f"A sweep takes fields that are numbers or quantities ({', '.join(SWEEPABLE)}), got {name}. "
                f"Solve once for each {name} instead."
            )
    name, *others = [name for name in fields if name not in numbers] or [""]
    if others or name not in ("", *_CATALOGUE):
        raise InputError(
            f"A sweep takes entries of the catalogue for one of {', '.join(_CATALOGUE)}, got them for "
            f"{', '.join([name, *others])}. Solve once for each entry of the others."
        )
    if name == "hardware" and isinstance(pipeline.hardware.rate, Quantity):
        raise InputError(
            "A sweep over hardware takes the time of each GPU from the catalogue, got a rate of your "
            "own, which belongs to one of them. Leave the rate out."
        )
    if not name:
        columns, notes = _over_numbers(pipeline, numbers)
        return Sweep(columns, " ".join(filter(None, notes)))
    return _over_entries(pipeline, name, _entries(name, fields[name]), numbers)


def _over_entries(
    pipeline: Description,
    name: str,
    entries: Sequence[Entry],
    numbers: Mapping[str, Unchecked],
) -> Sweep:
    """Put the tables of the pipeline with each entry below each other."""
    tables: list[dict[str, Number]] = []
    sentences: dict[str, None] = {}
    unknown: list[str] = []
    for entry in entries:
        try:
            columns, notes = _over_numbers(pipeline.replace({name: entry}), numbers)
        except MissingValueError:
            unknown.append(entry.path)
            continue
        length = len(columns["step_time"])
        tables.append({name: np.full(length, entry.path), "feasible": np.full(length, True)} | columns)
        sentences |= dict.fromkeys(notes)
    if not tables:
        raise MissingValueError(f"Not enough is known of any of {', '.join(unknown)}. Pass other entries.")
    stacked = {column: np.concatenate([table[column] for table in tables]) for column in tables[0]}
    if stacked["feasible"].all():
        del stacked["feasible"]
    left_out = f"Not enough is known of {', '.join(unknown)}." if unknown else ""
    return Sweep(stacked, " ".join(filter(None, (left_out, *sentences))))


def _over_numbers(
    pipeline: Description, numbers: Mapping[str, Unchecked]
) -> tuple[dict[str, Number], tuple[str, ...]]:
    """Solve a pipeline for every combination of the numbers: the columns, and what stands below them."""
    # Without numbers to sweep, a point is a column of length one.
    swept = numbers or {"batch_size": np.atleast_1d(pipeline.batch_size)}
    values = {name: _values(name, column_values) for name, column_values in swept.items()}
    index = np.indices([len(column) for column in values.values()], dtype=np.intp).reshape(len(values), -1)
    grid = {name: column[i] for (name, column), i in zip(values.items(), index, strict=True)}
    pipeline = pipeline.replace(grid)
    step, claim = pipeline.solve(), ""
    columns: dict[str, Number] = {name: grid[name] for name in numbers}
    columns |= {f"{name}_time": time for name, time in step.resource_times.items()}
    if not np.all(step.feasible):
        columns["feasible"] = step.feasible
    columns |= {"step_time": step.step_time, "throughput": step.throughput}
    if pipeline.assumptions.ranged:
        columns["lowest_throughput"], columns["highest_throughput"] = step.ranges.throughput
        if pipeline.assumptions.model_error:
            held = percent(COVERAGE, 0)
            claim = f"Lowest and highest throughput claim to hold the truth in {held} of the cases."
    columns |= {"utilization": step.utilization, "bottleneck": step.bottleneck}
    return columns, (claim, step.spoken_busy, foreign_rate(pipeline))


def _are_entries(values: Unchecked) -> bool:
    """True for a group of the catalogue, or a list of its entries."""
    return isinstance(values, Group) or (
        isinstance(values, list | tuple) and bool(values) and isinstance(values[0], Entry | Group)
    )


def _entries(name: str, values: Unchecked) -> list[Entry]:
    """Return the entries to sweep over."""
    members: list[Unchecked] = [values] if isinstance(values, Group) else values
    entries: list[Unchecked] = [
        *chain.from_iterable(entry if isinstance(entry, Group) else [entry] for entry in members)
    ]
    if other := next((entry for entry in entries if not isinstance(entry, Entry)), None):
        raise InputError(
            f"{name} must be entries of the catalogue where the first is one, got {other!r:.80}. "
            "Pass bandwidths, or entries."
        )
    return entries


def _values(name: str, values: Unchecked) -> Number:
    if isinstance(values, Quantity):
        return np.atleast_1d(values)
    if isinstance(values, str | Entry) or not np.iterable(values):
        raise InputError(f"{name} must be several values to sweep, got {values!r:.80}. Pass a list.")
    values = values if isinstance(values, np.ndarray | range) else list(values)
    if len(values) == 0:
        raise InputError(f"{name} must have at least one value to sweep, got none. Pass a list of values.")
    if isinstance(values[0], str | Quantity):
        first = Q_(values[0])
        unit = f"{first.units:~C}"
        return Q_(np.array([convert(value, unit, name).magnitude for value in values]), unit)
    if np.iterable(values[0]):
        raise InputError(f"{name} must be a list of single values, got {values!r:.80}. Pass a list of these.")
    return np.asarray(values)
