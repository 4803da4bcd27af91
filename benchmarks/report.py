"""What the benchmarks share: notes on the machine, medians with their spread, the other side's interpreter.

It measures nothing itself.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
NOT_MEASURED = "mlsysim {} was not measured: name its interpreter with --mlsysim (see benchmarks/__init__.py)"


def machine() -> str:
    """The interpreter and the processors that the figures belong to."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    model = _processor()
    return f"Python {platform.python_version()}, {platform.system()}, {count} CPUs ({model or 'unknown'})"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "")


def number(value: float, digits: int = 3) -> str:
    """A number without exponent: 1234567 is written 1,230,000, and 21 million as "21 million"."""
    rounded = float(f"{value:.{digits}g}")
    if rounded >= 1e6:
        return f"{float(f'{value / 1e6:.2g}'):g} million"
    return f"{rounded:,.0f}" if rounded >= 10 ** (digits - 1) else f"{rounded:g}"


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Median, and the quartiles around it."""
    if len(values) < 2:
        return number(values[0], digits)
    low, middle, high = (number(one, digits) for one in statistics.quantiles(values, n=4, method="inclusive"))
    return f"{middle} ({low} to {high})"


def turns(count: int) -> str:
    """What the figures below it are."""
    return "1 turn" if count == 1 else f"{count} turns, median (quartiles)"


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Theirs over ours, turn by turn."""
    return [their / our for our, their in zip(ours, theirs, strict=True)]


class _Smallest(argparse.Action):
    def __init__(self, *arguments: Any, sizes: dict[str, Any], **more: Any) -> None:
        super().__init__(*arguments, nargs=0, **more)
        self.sizes = sizes

    def __call__(self, _parser: Any, namespace: argparse.Namespace, *_: Any) -> None:
        vars(namespace).update(self.sizes)


def options(
    description: str, *, variable: str | None = None, **sizes: tuple[Any, Any]
) -> argparse.ArgumentParser:
    """The options of a benchmark; `variable` is the environment variable of the other side's interpreter.

    `sizes` are what makes it large: by name, the value of a usual run and that of the smallest case.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(saved=True, **{name: usual for name, (usual, _) in sizes.items()})
    smallest = {name: least for name, (_, least) in sizes.items()} | {"saved": False}
    parser.add_argument("--smallest", action=_Smallest, sizes=smallest, help="run only the smallest case")
    if "rounds" in sizes:
        parser.add_argument("--rounds", type=int, help="turns of each side (default %(default)s)")
    if variable is not None:
        parser.add_argument(
            "--mlsysim",
            metavar="PYTHON",
            default=os.environ.get(variable),
            help=f"interpreter of the environment with mlsysim (default: ${variable})",
        )
    return parser


class Record:
    """What a benchmark of many jobs knows, so that a run that was ended goes on; its table is in a page."""

    def __init__(self, file: Path, page: Path, name: str) -> None:
        self.file, self.page = file, page
        self.begin, self.end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        self.known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}

    def run(
        self,
        parser: argparse.ArgumentParser,
        arguments: Sequence[str] | None,
        jobs: Iterable[str],
        *,
        measure: Callable[[str, argparse.Namespace], dict[str, Any]],
        row: Callable[[str, dict[str, Any]], Sequence[str]],
        table: Callable[[dict[str, Any]], str],
    ) -> None:
        """Measure the jobs that are not known, and keep each with its day; or write the table."""
        parser.add_argument("--jobs", nargs="+", choices=tuple(jobs), metavar="JOB")
        parser.add_argument("--again", action="store_true", help="also those that are known")
        parser.add_argument(
            "--write", action="store_true", help="write the table into the documents, and run nothing"
        )
        asked = parser.parse_args(arguments)
        if asked.write:
            self.write(table(self.known))
            return
        print(machine())
        for job in asked.jobs:
            if job in self.known and asked.saved and not asked.again:
                continue
            seen = measure(job, asked) | {"date": f"{datetime.now(UTC):%Y-%m-%d}"}
            print(line(row(job, seen)), flush=True)
            if asked.saved:
                self.known[job] = seen
                self.save()

    def save(self) -> None:
        """Write what is known into the file."""
        self.file.write_text(json.dumps(self.known, indent=1) + "\n", encoding="utf-8")

    def write(self, text: str) -> None:
        """Write a table into the page, between its two markers."""
        if not self.known:
            raise SystemExit("Nothing was measured so far: run this benchmark without --write first.")
        head, begin, rest = self.page.read_text(encoding="utf-8").partition(self.begin)
        tail = rest.partition(self.end)[2]
        self.page.write_text(f"{head}{begin}\n{text}\n{self.end}{tail}", encoding="utf-8")


def line(cells: Iterable[str]) -> str:
    """A line of a table of Markdown."""
    return f"| {' | '.join(cells)} |"


def listed(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    return "".join(f"{line(cells)}\n" for cells in (heads, ["---"] * len(heads), *rows))


def days(seen: Iterable[dict[str, Any]]) -> str:
    """The days of what was measured, from the first to the last."""
    dates = sorted(one["date"] for one in seen)
    return " to ".join(dict.fromkeys((dates[0], dates[-1])))
