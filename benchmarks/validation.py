"""The model held to the world: published measurements beside what the model predicts for them.

The rows, what calibrates them and the errors stand in tests/golden/published.toml; this works them out again.
"""

from __future__ import annotations

import argparse
import statistics
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tabulate import tabulate

from starvelab import Q_, TUTORIAL, Hardware, Links, Models, Pipeline
from starvelab.model.analysis import extrapolate_rate
from starvelab.tables import cell
from starvelab.units import Quantity

from .report import REPOSITORY

GOLDEN = REPOSITORY / "tests" / "golden" / "published.toml"

# ---- What is worked out from rows --------------------------------------------------------------------------


def synchronisation(*, one: Any, all: Any, count: int, batch_size: int) -> Any:  # noqa: A002
    """What a step of several accelerators takes longer than a step of one."""
    return (count * batch_size / all - batch_size / one) * Q_("1 img")


def carried(
    *,
    count: int,
    model: str,
    matmul_a100: Any,
    matmul_h100: Any,
    rate: Any = None,
    step: Any = None,
    batch_size: int = 1,
) -> Any:
    """The rate of one H100 from that of one A100."""
    origin = Hardware.Cloud.A100.replace(matmul_bf16_sustained=matmul_a100)
    to = Hardware.Cloud.H100.replace(matmul_bf16_sustained=matmul_h100)
    total = Q_(batch_size, "img") / step if rate is None else rate
    return extrapolate_rate(total / count, model=getattr(Models, model), measured_on=origin, to=to)


def carried_by_peak(*, rate: Any, model: str, to: str, matmul_a100: Any) -> Any:
    """The same for an accelerator whose matrix products are taken to reach the A100's share of the peak."""
    group, name = to.split(".")
    entry, a100 = getattr(getattr(Hardware, group), name), Hardware.Cloud.A100
    reached = entry.peak_fp16_dense * (matmul_a100 / a100.peak_fp16_dense)
    return extrapolate_rate(
        rate,
        model=getattr(Models, model),
        measured_on=a100.replace(matmul_bf16_sustained=matmul_a100),
        to=entry.replace(matmul_bf16_sustained=reached.to("TFLOP/s")),
    )


def by_pixels(*, rate: Any, count: int, **side: int) -> Any:
    """The rate of one accelerator at another image size: convolutions cost what there are pixels."""
    return rate / count * (side["from"] / side["to"]) ** 2


def by_work(*, rate: Any, **name: str) -> Any:
    """The rate of another model at the same share of peak."""
    origin, other = (getattr(Models, name[key]).macs_forward for key in ("from", "to"))
    return rate * (origin / other).m_as("")


def contention(*, speedup: float, workers: int) -> float:
    """The serial share at which that many workers reach that speed-up."""
    return (workers / speedup - 1) / (workers - 1)


def cores_that_suffice(*, cores: float, rate: Any) -> Any:
    """CPU time of a sample that so many cores prepare at that rate."""
    return cores / rate * Q_("1 img")


def per_step(*, step: Any, batch_size: int) -> Any:
    return Q_(batch_size, "img") / step


def in_bytes(*, rate: Any, sample_size: Any) -> Any:
    return rate * sample_size / Q_("1 img")


def of_its_peak(*, measured: Any, **link: str) -> Any:
    """What another link sustains at the same share of its peak."""
    origin, other = (getattr(Links, link[key]).bandwidth_each_way for key in ("from", "to"))
    return measured * (other / origin).m_as("")


def in_samples(*, steps: Any, batch_size: int) -> Any:
    return steps * Q_(batch_size, "img")


def period_between(**steps: Any) -> Any:
    """What a part adds to a step, from the steps per second with and without it."""
    return 1 / steps["with"] - 1 / steps["without"]


def link_between(*, batch_size: int, transfer_size: Any, **steps: Any) -> Any:
    """The bandwidth of a copy, from the steps per second with and without it."""
    return batch_size * Q_(transfer_size) / period_between(**steps)


def sample_between(*, batch_size: int, workers: int, **steps: Any) -> Any:
    """What a part costs a worker for a sample, from the steps per second with and without it."""
    return period_between(**steps) * workers / batch_size


def left_of(*, steps: Any, part: Any, batch_size: int, workers: int) -> Any:
    """What is left of a worker's time for a sample when one part is taken off."""
    return workers / (steps * batch_size) - part


def sum_of(*, first: Any, second: Any, divided: int) -> Any:
    return first + second / divided


RULES: dict[str, Callable[..., Any]] = {
    rule.__name__: rule
    for rule in (
        synchronisation,
        carried,
        carried_by_peak,
        by_pixels,
        by_work,
        contention,
        cores_that_suffice,
        per_step,
        in_bytes,
        of_its_peak,
        in_samples,
        period_between,
        link_between,
        sample_between,
        left_of,
        sum_of,
    )
}

# ---- What is set beside a row ------------------------------------------------------------------------------

FIGURES: dict[str, Callable[[Pipeline], Any]] = {
    "throughput": lambda pipe: pipe.solve().throughput,
    "step_time": lambda pipe: pipe.solve().step_time,
    "steps": lambda pipe: 1 / pipe.solve().step_time,
    "stall": lambda pipe: pipe.solve().stall,
    "speedup": lambda pipe: (pipe.solve().throughput / pipe.solve(workers=1).throughput).m_as(""),
    "copy_rate": lambda pipe: pipe.transferred * pipe.batch_size / pipe.solve().stage_times["copy"],
}


@dataclass(frozen=True)
class Tested:
    """One row and its prediction; `error` is a share of the measured value, `uses` the rows it rests on."""

    name: str
    what: str
    measured: Any
    predicted: Any
    error: float
    uses: tuple[str, ...]


class Published:
    """The rows, constants and reasons of the golden file."""

    def __init__(self, table: dict[str, Any] | None = None) -> None:
        table = tomllib.loads(GOLDEN.read_text(encoding="utf-8")) if table is None else table
        self.rows: dict[str, dict[str, Any]] = table["row"]
        self.constants: dict[str, dict[str, Any]] = table["constant"]
        self.left_out: list[dict[str, Any]] = table["left_out"]
        self.guesses: dict[str, dict[str, Any]] = table["guess"]

    @property
    def tested(self) -> tuple[str, ...]:
        """The rows with a prediction."""
        return tuple(name for name, row in self.rows.items() if "pipeline" in row)

    def value(self, name: str) -> Any:
        """What was measured."""
        value = (self.rows.get(name) or self.guesses[name])["value"]
        return Q_(value) if isinstance(value, str) else value

    def test(self, name: str) -> Tested:
        """Predict a row, or a guess, and compare."""
        row, uses = self.rows.get(name) or self.guesses[name], {}
        fields = self._fill(row["pipeline"], uses)
        assumed = TUTORIAL.replace(**fields.pop("assumptions", {}) or {"contention": 0.0})
        predicted = FIGURES[row.get("figure", "throughput")](Pipeline(**fields, assumptions=assumed))
        measured = self.value(name)
        share = predicted / measured
        error = float(share.m_as("") if isinstance(share, Quantity) else share) - 1
        if isinstance(measured, Quantity):
            predicted = predicted.to(measured.units)
        return Tested(name, row["what"], measured, predicted, error, tuple(uses))

    def _fill(self, value: Any, uses: dict[str, None]) -> Any:
        """`value` with every "@NAME" in it replaced; the rows that were looked at are added to `uses`."""
        if isinstance(value, dict):
            return {key: self._fill(one, uses) for key, one in value.items()}
        if not (isinstance(value, str) and value.startswith("@")):
            return value
        name = value[1:]
        if name in self.rows:
            uses[name] = None
            return self.value(name)
        constant = self.constants[name]
        return RULES[constant["rule"]](**self._fill(constant["with"], uses))


def summary(tests: list[Tested]) -> str:
    """Median and worst error; the median also without the rows that come out exactly, which flatter it."""
    errors = {test.name: 100 * abs(test.error) for test in tests}
    worst = max(errors, key=errors.__getitem__)
    inexact = [error for error in errors.values() if error >= 0.05]
    return (
        f"{len(errors)} rows, none used to calibrate its own prediction: median error "
        f"{statistics.median(errors.values()):.1f} % ({statistics.median(inexact):.1f} % without the "
        f"{len(errors) - len(inexact)} that come out exactly), worst {errors[worst]:.1f} %"
    )


def rows_of(tests: list[Tested]) -> list[tuple[str, ...]]:
    """The rows of the table."""
    return [
        (t.what, cell(t.measured), cell(t.predicted), f"{100 * t.error:+.1f} %", ", ".join(t.uses))
        for t in tests
    ]


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.validation", description=__doc__)
    asked.add_argument("--format", default="simple", help="a format of tabulate, for example github")
    asked.add_argument("--uses", action="store_true", help="also name the rows that each prediction rests on")
    asked.add_argument("--left-out", action="store_true", help="also list what tests nothing, and why")
    options = asked.parse_args()
    published = Published()
    tests = [published.test(name) for name in published.tested]
    headers = ("what", "measured", "predicted", "error", "rests on")
    shown = len(headers) if options.uses else len(headers) - 1
    rows = [row[:shown] for row in rows_of(tests)]
    print(tabulate(rows, headers=headers[:shown], tablefmt=options.format, disable_numparse=True))
    print(f"\n{summary(tests)}")
    if options.left_out:
        reasons = [(", ".join(one["rows"]), one["reason"]) for one in published.left_out]
        print(f"\n{tabulate(reasons, headers=('left out', 'because'), tablefmt=options.format)}")
        print("\nSome of these with what is not known assumed; they count nowhere:\n")
        guesses = rows_of([published.test(name) for name in published.guesses])
        assumed = [
            (*row, one["assumed"]) for row, one in zip(guesses, published.guesses.values(), strict=True)
        ]
        headers = (*headers, "assumed")
        print(tabulate(assumed, headers=headers, tablefmt=options.format, disable_numparse=True))


if __name__ == "__main__":
    main()
