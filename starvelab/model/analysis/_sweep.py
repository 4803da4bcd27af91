"""A pipeline over a grid of values, by one vectorized solve, and over those on which its sources disagree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...tables import TableRepr, cell, percent
from ...units import Q_, Number, Quantity, Unchecked, convert, format_number, unit_name
from ..assumptions import COVERAGE
from ..catalogue import Entry
from ..description import PLAIN, SWEEPABLE, Changes, Description, check_fields
from ..disagreement import Choice, choices, corners
from ..resources import LABELS
from ..step import Step
from ._point import one_point

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

    def to_dict(self) -> dict[str, NDArray[np.generic]]:
        """Plain arrays; units move into the names: ``step_time_ms``, ``throughput_img_per_s``."""
        columns = {}
        for name, column in self.columns.items():
            if isinstance(column, Quantity):
                unit = unit_name(column.units).replace("/", "_per_")
                name, column = f"{name}_{unit}", column.magnitude
            columns[name] = np.asarray(column)
        return columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Number:
        return self.columns[name]

    @property
    def headers(self) -> list[str]:
        """The names of the columns, as shown."""
        return [name.replace("_", " ") for name in self.columns]

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
    fields = {**(changes or {}), **fields}
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
    counts = [len(v) for v in values.values()]
    index = np.indices(counts, dtype=np.intp).reshape(len(counts), -1)
    grid = {name: column[i] for (name, column), i in zip(values.items(), index, strict=True)}
    pipeline = pipeline.replace(grid)
    step, claim = pipeline.solve(), ""
    columns = dict(grid)
    for name, time in step.resource_times.items():
        columns[f"{name}_time"] = time
    if not np.all(step.feasible):
        columns["feasible"] = np.broadcast_to(step.feasible, step.utilization.shape)
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
    return np.asarray(given)


@dataclass(frozen=True)
class Disagreement:
    """A value of which sources disagree, and what that alone does to the prediction.

    Attributes
    ----------
    name : str
    values : tuple of str
        What the sources say.
    lowest, highest : quantity [sample/time]
        The throughput, if this value alone changes.
    origin : str
        The sources.
    """

    name: str
    values: tuple[str, ...]
    lowest: Quantity
    highest: Quantity
    origin: str


@dataclass(frozen=True, repr=False)
class ThroughputRange(TableRepr):
    """The answer of `throughput_range`.

    Attributes
    ----------
    step : Step
        The prediction itself.
    lowest, highest : Step
        With the values that are least and most favorable together.
    disagreements : tuple of Disagreement
        Those that change the throughput alone, the largest change first.
    model_error : float
        How far off the model itself is assumed to be, as a share.
    """

    step: Step
    lowest: Step
    highest: Step
    disagreements: tuple[Disagreement, ...]
    model_error: float = 0.0

    headers = ("value", "its sources say", "throughput from", "to")

    @property
    def summary(self) -> str:
        """The range in one line."""
        if self.lowest.throughput == self.highest.throughput:
            return f"{cell(self.step.throughput)}: no source of its values disagrees with another"
        low, high = (format_number(s.throughput.m_as("img/s")) for s in (self.lowest, self.highest))
        return (
            f"{low} to {high} img/s by its sources, and {cell(self.step.throughput)} as assumed: "
            f"{LABELS[self.lowest.bottleneck]} binds at the low end, and "
            f"{LABELS[self.highest.bottleneck]} at the high end"
        )

    @property
    def note(self) -> str:
        """Below the table: why the step cannot run, if it cannot, and how far off the model itself may be."""
        error = self.model_error
        own = f"With the model's own error of {percent(error, 0)} it is the {self.step.spoken_range}."
        return " ".join(filter(None, (self.step.note, own if error else "")))

    @property
    def rows(self) -> list[list[str]]:
        """One for each disagreement."""
        return [
            [one.name, " or ".join(one.values), cell(one.lowest), cell(one.highest)]
            for one in self.disagreements
        ]


def throughput_range(pipeline: Description) -> ThroughputRange:
    """The lowest and the highest throughput that the sources of a prediction's values allow.

    Notes
    -----
    Each assumption and each fact of the drive, the link and the data set lies between its `low` and `high`,
    where the catalogue has these. The accelerator's rate is that of any framework that was measured, unless
    the pipeline names one. The throughput never falls as one of these becomes more favorable, so it is lowest
    where each is at its less favorable end, and highest where each is at the other. A value of which only one
    source is known adds nothing. The error of the model itself stands below the table: a `Step` has it in its
    own `ranges`, and shows them where its assumptions have ranges.

    Examples
    --------
    >>> from starvelab import PUBLISHED, Hardware, Models, Pipeline
    >>> pipeline = Pipeline(model=Models.ResNet50, hardware=Hardware.Cloud.A100, assumptions=PUBLISHED)
    >>> found = pipeline.throughput_range()
    >>> [round(one.throughput.m_as("img/s")) for one in (found.lowest, found.step, found.highest)]
    [767, 1090, 1548]
    """
    one_point(pipeline, "throughput_range")
    lows, highs = ([one.solve() for one in ends] for ends in corners(pipeline))
    disagreements = (_alone(choice, pipeline) for choice in choices(pipeline))
    found = [one for one in disagreements if one.lowest != one.highest]
    return ThroughputRange(
        step=pipeline.solve(),
        lowest=min(lows, key=_throughput),
        highest=max(highs, key=_throughput),
        disagreements=tuple(sorted(found, key=lambda one: (one.lowest / one.highest).m_as(""))),
        model_error=pipeline.assumptions.model_error,
    )


def _alone(choice: Choice, pipeline: Description) -> Disagreement:
    reached = sorted(_throughput(change(pipeline).solve()) for change in choice.changes.values())
    lowest, highest = Q_(reached[0], "img/s"), Q_(reached[-1], "img/s")
    return Disagreement(choice.name, tuple(choice.changes), lowest, highest, choice.origin)


def _throughput(step: Step) -> float:
    return float(step.throughput.m_as("img/s"))
