"""Published measurements beside what the package predicts for them under PUBLISHED, as it is shipped.

They stand in one table, tests/golden/published.csv. The column `section` says what a line is:

- row: one published figure that counts, with its kind, its half, its `value`, `what` was measured, under
  which `conditions`, and its `source`. With a `pipeline` it is predicted: the fields of a Pipeline, whose
  `figure` (throughput unless named) is set beside the value; where that is a gain, what else is `changed`
  for it. The `packing` of a figure about padding is what `pack` counts. `error` is what comes out [percent].
  Without a pipeline it waits for its prediction, from the figures that are `given`, or the `note` says why
  it was given up; either counts as missed. `since` says when a row came. A row is `outside` of what the
  model can know if one of `OUTSIDE` is missing. Rows of one `group` are one job at many batch sizes.
  `told` is a loader's pipeline with what else its source says of the host, for the table of the lab; it
  counts nowhere.
- input: a figure from which another one is predicted. "@NAME" stands for it, for another row, or for a
  constant, which a `rule` of benchmarks/rules.py computes `with` these.
- left out: names of figures that are no row, with the reason as `note`.

In a cell of several fields each is `NAME=VALUE`, a field of a part is `PART.NAME`, and "; " stands between.

A row counts if every resource that was at work is in the prediction with a sourced figure; where the
package ships the row itself as a fact, it is held out. Where the CPU's part was not published and did not
bind, the workers supply "1e9 img/s", as good as unlimited; where only a loader was measured no accelerator
waits for it, and the hardware takes "1e9 img/s".
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, reduce
from hashlib import sha256
from math import ceil, inf
from pathlib import Path
from typing import Any
from unittest.mock import patch

from starvelab import (
    PUBLISHED,
    Q_,
    Accelerator,
    Framework,
    Handover,
    Host,
    Pipeline,
    Ranks,
    Requests,
)
from starvelab.lesson.course.packing import lognormal_lengths, pack
from starvelab.model import rates
from starvelab.model.assumptions import COVERAGE, Assumptions
from starvelab.model.catalogue import entry_at
from starvelab.model.parts import PARTS
from starvelab.model.step import Step
from starvelab.units import Quantity

from .report import REPOSITORY
from .rules import RULES

GOLDEN = REPOSITORY / "tests" / "golden" / "published.csv"
KINDS = (
    "one accelerator", "several accelerators", "loader", "launch", "ladder", "storage", "object storage",
    "text",
)  # fmt: skip
# Fields of a pipeline of which the table names an entry of the catalogue.
NAMED = {
    "dataset": "Datasets",
    "model": "Models",
    "hardware": "Hardware",
    "link": "Links",
    "storage": "Storage",
}
# What the model needs, and a row's source does not say.
OUTSIDE = {
    "software": "as what the rates of the package were measured in: NVIDIA's examples in its containers",
    "cores": "which the workers of a loader share",
}
AT_WORK = 0.1  # the share of a step from which a resource counts as at work

# ---- What is set beside a row ------------------------------------------------------------------------------


def real_share(pipe: Pipeline, _: Step, *, rows: Mapping[str, Any]) -> float:
    """Return what of that which is computed on belongs to documents."""
    return 1 - pack(**rows, batch_size=pipe.batch_size).padding


def packing_speedup(pipe: Pipeline, step: Step, *, rows: Mapping[str, Any], **changed: Any) -> float:
    """Return the gain from packing, where what is computed on is what a row costs."""
    packed = {**rows, "strategy": "first-fit", **changed}
    return real_share(pipe, step, rows=packed) / real_share(pipe, step, rows=rows)


FIGURES: dict[str, Callable[..., Any]] = {
    "throughput": lambda _, step: step.throughput,
    "step_time": lambda _, step: step.step_time,
    "speedup": lambda pipe, step: (step.throughput / pipe.solve(workers=1).throughput).m_as(""),
    "copy_rate": lambda pipe, step: pipe.transferred * pipe.batch_size / step.stage_times["copy"],
    "real_share": real_share,
    "packing_speedup": packing_speedup,
    "delivered": lambda pipe, step: step.throughput * pipe.size / Q_("1 img"),
}


def samples_per_second(figure: str, pipe: Pipeline, value: Any) -> float | None:
    """A figure as samples per second; None for what is no rate."""
    one = Q_("1 img")
    match figure:
        case "throughput":
            rate = value
        case "step_time":
            rate = one * pipe.batch_size * pipe.hardware.count / value
        case "copy_rate":
            rate = one * value / pipe.transferred
        case "delivered":
            rate = one * value / pipe.size
        case _:
            return None
    return float(rate.m_as("img/s"))


def source_of(row: dict[str, Any]) -> str:
    """What was published together: a repository, a paper or a site, however many of its files are cited."""
    return re.split("[@,:] |@|,", row["source"].removeprefix("https://"))[0].strip().lower()


HALVES = ("seen", "kept apart")


def half(name: str) -> str:
    """Which half of the rows one belongs to: a hash of its name decides, so that nobody chooses."""
    return HALVES[int(sha256(name.encode()).hexdigest()[0], 16) % 2]


def _scalar(text: str) -> Any:
    """Return a number or a list as such, and any other text, such as a quantity, as it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _fields(cell: str) -> dict[str, Any]:
    """Return the fields that a cell names, those of a part in a dictionary of its own."""
    fields: dict[str, Any] = {}
    for item in cell.split("; "):
        path, _, value = item.partition("=")
        *parts, name = path.split(".")
        reduce(lambda inner, part: inner.setdefault(part, {}), parts, fields)[name] = _scalar(value)
    return fields


# How the cells of a column are read, unless as text.
CELLS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("pipeline", "changed", "packing", "told", "with"), _fields),
    **dict.fromkeys(("value", "error"), _scalar),
    "given": lambda cell: cell.split("; "),
}


def read(path: Path = GOLDEN) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the lines of each section by their names, each without its empty cells."""
    table: dict[str, dict[str, dict[str, Any]]] = {}
    with path.open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            entry = {column: CELLS.get(column, str)(cell) for column, cell in line.items() if cell}
            section, name = table.setdefault(entry.pop("section"), {}), entry.pop("name")
            if name in section:
                raise ValueError(f"Each name stands once in its section: {path.name} has {name!r} again.")
            section[name] = entry
    for name, row in table.get("row", {}).items():
        if row.get("half") != half(name):
            raise ValueError(f"The name of a row decides its half: {name!r} is {half(name)!r}.")
    return table


@dataclass(frozen=True)
class Tested:
    """One row and its prediction."""

    name: str
    what: str
    measured: Any
    predicted: Any  # None where there is no prediction yet
    error: float  # as a share of the measured value; infinite where there is no prediction
    at_work: tuple[str, ...]  # the resources that take a tenth of a step or more, in the prediction
    uses: tuple[str, ...]  # the rows that it rests on beside the facts that the package ships
    samples: tuple[float | None, ...]  # measured and predicted, a second; None where that is no rate
    abstains: bool = False  # nobody says which cores the workers of a loader share: the range is the answer


@dataclass(frozen=True)
class Held:
    """One measurement that a range is held to, as rates in samples per second."""

    what: str
    group: str  # of measurements that share a source and a job, and err together
    measured: float
    predicted: float
    low: float  # what the sources of the prediction's values allow
    high: float

    @property
    def beyond(self) -> float:
        """By which share it lies outside of that."""
        return max(self.low / self.measured, self.measured / self.high, 1.0) - 1


def own_error(rows: list[Held]) -> float:
    """The share by which a range must be wider to hold one more measurement as often as it claims."""
    return sorted(row.beyond for row in rows)[ceil(COVERAGE * (len(rows) + 1)) - 1]


def inside(rows: list[Held]) -> int:
    """How many lie inside, each within a range to which neither it nor its group contributed."""
    others = {group: [row for row in rows if row.group != group] for group in {row.group for row in rows}}
    return sum(row.beyond <= own_error(others[row.group]) for row in rows)


def allowed(pipe: Pipeline) -> list[Any]:
    """The throughput of a pipeline, and the lowest and the highest that its sources allow [sample/s]."""
    step, off = pipe.solve(), 1 + pipe.assumptions.model_error
    low, high = (end.m_as("img/s") for end in step.ranges.throughput)
    return [step.throughput.m_as("img/s"), low * off, high / off]


def of_framework(hardware: str, framework: str, precision: str) -> Accelerator:
    """An accelerator whose rate is the one that was measured in a framework."""
    return Accelerator(entry_at("Hardware", hardware), rate=Framework(framework), precision=precision)


@contextmanager
def without(left_out: rates.Rate | None) -> Iterator[tuple[rates.Rate, ...]]:
    """Leave a rate out of the catalogue, and say which are left."""
    others = tuple(rate for rate in rates.measured_rates() if rate is not left_out)
    if left_out is None:
        yield others
        return
    with patch.object(rates, "measured_rates", lambda: others):
        rates.sample_time.cache_clear()
        yield others
    rates.sample_time.cache_clear()


def held_rates() -> list[Held]:
    """Each rate of the catalogue, extrapolated from the others of its framework."""
    rows = []
    for rate in rates.measured_rates():
        with without(rate) as others:
            if not any((one.model, one.framework) == (rate.model, rate.framework) for one in others):
                continue
            what = f"{rate.model}, {rate.framework}, {rate.hardware}, {rate.precision}, {rate.phase}"
            pipe = Pipeline(
                model=entry_at("Models", rate.model),
                hardware=of_framework(rate.hardware, rate.framework, rate.precision),
                phase=rate.phase,
                batch_size=rate.batch_size or 256,
                workers="1e9 img/s",
                # The factor itself is what these rows are there to find.
                assumptions=PUBLISHED.replace(extrapolated_time=1.0),
            )
            rows.append(Held(what, what, rate.fact.number, *allowed(pipe)))
    return rows


class Published:
    """The rows, inputs, constants and reasons of the table."""

    def __init__(self, table: dict[str, dict[str, dict[str, Any]]] | None = None) -> None:
        self.table = table = read() if table is None else table
        self.rows, self.inputs, self.constants = table["row"], table["input"], table["constant"]
        self.left_out = {names: line["note"] for names, line in table["left out"].items()}

    @property
    def tested(self) -> tuple[str, ...]:
        """The rows with a prediction."""
        return tuple(name for name, row in self.rows.items() if "pipeline" in row)

    @cached_property
    def tests(self) -> list[Tested]:
        """Every prediction that counts."""
        return [self.test(name) for name in self.tested]

    @cached_property
    def missed(self) -> list[Tested]:
        """Every row that has no prediction."""
        return [
            Tested(name, row["what"], _quantity(row["value"]), None, inf, (), (), (None, None))
            for name, row in self.rows.items()
            if "pipeline" not in row
        ]

    def of_kind(self, kind: str) -> list[Tested]:
        """The rows of one kind, predicted or missed."""
        return [one for one in (*self.tests, *self.missed) if self.rows[one.name]["kind"] == kind]

    @property
    def all(self) -> list[Tested]:
        """Every row, predicted or missed, kind by kind."""
        return [one for kind in KINDS for one in self.of_kind(kind)]

    def _claims(self, tests: list[Tested], assumed: Assumptions = PUBLISHED) -> list[Held]:
        """What the package claims of rows."""
        claims = []
        for test in tests:
            if test.samples[0] is None:
                continue
            group = self.rows[test.name].get("group", test.name)
            with without(self.shipped(test.name)):
                ends = allowed(self.pipeline(test.name)[0].replace(assumptions=assumed))
            claims.append(Held(test.what, group, test.samples[0], *ends))
        return claims

    def shipped(self, name: str) -> rates.Rate | None:
        """Return the rate of the catalogue that a row is, which its prediction leaves out, or None."""
        pipe, source = self.pipeline(name)[0], source_of(self.rows[name])
        chip = pipe.hardware
        if pipe.model is None or chip.framework.name is None or chip.count != 1:
            return None
        key = (chip.of.path, pipe.model.path, chip.precision, pipe.phase or PUBLISHED.phase)
        for rate in rates.measured_rates():
            alike = rate.is_of(chip.framework.name) and rate.key == key
            same = source_of({"source": rate.fact.source}) == source
            if alike and same and rate.batch_size == pipe.batch_size:
                return rate
        return None

    def held_workers(self, *, cores: bool) -> list[Held]:
        """Each measurement of a loader by what follows from fewer workers, its cores stated or not."""
        rows = [t for t in self.of_kind("loader") if (self.rows[t.name].get("outside") != "cores") == cores]
        # The factor itself is what these rows are there to find.
        return self._claims(rows, PUBLISHED.replace(workers_time=1.0, workers_time_without_cores=1.0))

    @cached_property
    def held(self) -> list[Held]:
        """Every measurement to which a range is held."""
        return self._claims(self.tests)

    def value(self, name: str) -> Any:
        """What was measured."""
        return _quantity((self.rows.get(name) or self.inputs[name])["value"])

    def pipeline(self, name: str) -> tuple[Pipeline, tuple[str, ...]]:
        """The pipeline of a row, under PUBLISHED, and the rows that its fields rest on."""
        uses: dict[str, None] = {}
        fields = self._fill(self.rows[name]["pipeline"], uses)
        given = {field: _given(field, value) for field, value in fields.items()}
        return Pipeline(**given, assumptions=PUBLISHED), tuple(uses)

    def _rows_of(self, entry: Mapping[str, Any], uses: dict[str, None]) -> dict[str, Any]:
        """Return the rows that documents become, as `pack` takes them, where an entry has some."""
        if "packing" not in entry:
            return {}
        rows = self._fill(entry["packing"], uses)
        documents = rows.pop("documents")
        if isinstance(documents, str):
            documents = entry_at("Datasets", documents)
        elif isinstance(documents, dict):
            documents = lognormal_lengths(**documents)
        return {"rows": {"documents": documents, **rows}}

    def test(self, name: str) -> Tested:
        """Predict a row, and compare."""
        entry = self.rows[name]
        with without(self.shipped(name)):
            pipe, uses = self.pipeline(name)
            step = pipe.solve()
        figure, documents = entry.get("figure", "throughput"), dict[str, None]()
        changed = {**entry.get("changed", {}), **self._rows_of(entry, documents)}
        measured, predicted = _quantity(entry["value"]), FIGURES[figure](pipe, step, **changed)
        share = predicted / measured
        error = float(share.m_as("") if isinstance(share, Quantity) else share) - 1
        if isinstance(measured, Quantity):
            predicted = predicted.to(measured.units)
        shares = {name: (time / step.step_time).m_as("") for name, time in step.resource_times.items()}
        at_work = tuple(name for name, share in shares.items() if share >= AT_WORK)
        samples = tuple(samples_per_second(figure, pipe, value) for value in (measured, predicted))
        return Tested(
            name,
            entry["what"],
            measured,
            predicted,
            error,
            at_work,
            (*uses, *documents),
            samples,
            abstains=entry.get("outside") == "cores",
        )

    def told(self, name: str) -> Tested:
        """Predict a loader with what else its source says of the host; it counts nowhere."""
        row = self.rows[name]
        told = {**row, "pipeline": row.get("told", row["pipeline"])}
        return Published({**self.table, "row": {**self.rows, name: told}}).test(name)

    def _fill(self, value: Any, uses: dict[str, None]) -> Any:
        """`value` with every "@NAME" in it replaced; the rows that were looked at are added to `uses`."""
        if isinstance(value, dict):
            return {key: self._fill(one, uses) for key, one in value.items()}
        if not (isinstance(value, str) and value.startswith("@")):
            return value
        name = value[1:]
        if name in self.rows or name in self.inputs:
            uses[name] = None
            return self.value(name)
        constant = self.constants[name]
        return RULES[constant["rule"]](**self._fill(constant["with"], uses))


def _given(field: str, value: Any) -> Any:
    """What the table gives for a field: a part by its fields, an entry by its name, or the value itself."""
    if isinstance(value, dict):
        part = {**PARTS, "handover": Handover, "requests": Requests, "host": Host, "ranks": Ranks}[field]
        return part(**{name: _given(field if name == "of" else name, v) for name, v in value.items()})
    # A text with a space is a quantity.
    named = field in NAMED and isinstance(value, str) and " " not in value
    return entry_at(NAMED[field], value) if named else value


def _quantity(value: Any) -> Any:
    """A text with a unit as a quantity, and a number as it is."""
    return Q_(value) if isinstance(value, str) else value
