"""The model held to the world: published measurements beside what the package predicts as it is shipped.

benchmarks/published.py reads and predicts the rows; this says how right they are, and which goals they miss.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from tabulate import tabulate

from starvelab import PUBLISHED, Q_
from starvelab.model.assumptions import COVERAGE
from starvelab.tables import cell

from .picture import draw
from .published import HALVES, KINDS, Published, Tested, source_of
from .report import options

WORST, MANY = 0.25, 10
BEFORE = "before the halves"  # when a row came that everybody had seen when the halves were drawn

# ---- Tables ------------------------------------------------------------------------------------------------


def lost_to_each_other(published: Published) -> list[tuple[str, str, str]]:
    """What a step of eight accelerators takes longer than a step of one."""
    rows = []
    for name in published.tested:
        one = name.replace("_8gpu", "_1gpu")
        if one in published.inputs and published.rows[name].get("since") == BEFORE:
            batch, *rates = published.rows[name]["pipeline"]["batch_size"], *map(published.value, (one, name))
            single, all_eight = (Q_(count * batch, "img") / r for count, r in zip((1, 8), rates, strict=True))
            rows.append(
                (published.rows[name]["what"], cell(single.to("ms")), cell((all_eight - single).to("ms")))
            )
    return rows


def _median(tests: Iterable[Tested]) -> float:
    """The middle error as a share; infinite where half of the rows or more have no prediction."""
    return statistics.median([abs(test.error) for test in tests] or [inf])


def _share(error: float) -> str:
    return "missed" if error == inf else f"{100 * error:.1f} %"


def sources(published: Published) -> set[str]:
    """The sources of all rows."""
    return {source_of(row) for row in published.rows.values()}


def summary(published: Published) -> str:
    """Median, mean and worst error, and of how many rows."""
    tests, errors = published.tests, [100 * abs(test.error) for test in published.tests]
    several = sum(len(test.at_work) >= 2 for test in tests)
    shipped = sum(not test.uses for test in tests)
    return (
        f"{len(published.rows)} rows of {len(sources(published))} sources, none its own input; "
        f"{len(published.missed)} of them have no prediction. The other {len(errors)}: "
        f"median error {statistics.median(errors):.1f} %, mean {statistics.mean(errors):.1f} %, "
        f"worst {max(errors):.1f} %. "
        f"{shipped} are predicted by PUBLISHED as it is shipped, {len(tests) - shipped} from another row; "
        f"in {several} two resources or more are at work"
    )


def _by_kind(published: Published) -> list[tuple[str, list[Tested]]]:
    """Each kind with its rows, and all."""
    return [*((kind, published.of_kind(kind)) for kind in KINDS), ("all", published.all)]


class Figures(NamedTuple):
    """How far off rows are by themselves, and how often their ranges hold."""

    rows: int
    abstains: int  # these have a range, but count in no median, and as farther off than `WORST`
    median: float
    beyond: int
    worst: float
    holds: float
    width: float


def figures(published: Published, rows: list[Tested]) -> Figures:
    """Count the errors and the ranges of some rows; one that is missed is off without end."""
    added, held = 1 + PUBLISHED.model_error, {row.what: row for row in published.held}
    errors = [abs(row.error) for row in rows if not row.abstains]
    ranges = [held[row.what] for row in rows if row.what in held]
    abstains = len(rows) - len(errors)
    return Figures(
        len(rows),
        abstains,
        statistics.median(errors),
        sum(error > WORST for error in errors) + abstains,
        max(error for error in errors if error < inf),
        sum(row.beyond <= PUBLISHED.model_error for row in ranges) / len(ranges),
        statistics.median(added**2 * row.high / row.low for row in ranges),
    )


KIND_HEADERS = (
    "kind",
    "rows",
    "abstains",
    "median error",
    "farther than 25 %",
    "worst",
    "range holds",
    "its width",
)


def by_kind(published: Published) -> list[tuple[str, ...]]:
    """How far off each kind is by itself, and how often its ranges hold, and how wide they are."""
    found = []
    for kind, rows in _by_kind(published):
        of = figures(published, rows)
        shares = f"{100 * of.holds:.0f} %", f"{of.width:.1f} times"
        errors = _share(of.median), str(of.beyond), _share(of.worst)
        found.append((kind, str(of.rows), str(of.abstains), *errors, *shares))
    return found


GOAL_HEADERS = ("goal", "wanted", "reached", "")


def goals(published: Published) -> list[tuple[str, ...]]:
    """Each goal that was set, what it wanted, what is reached, and whether that is enough."""
    of = {kind: figures(published, rows) for kind, rows in _by_kind(published)}
    every, loaders = of["all"], of["loader"]
    least = min(kind.holds for kind in of.values() if kind.rows >= MANY)
    checks = (
        ("median error", "below 8 %", _share(every.median), every.median < 0.08),
        ("median error of loaders", "below 15 %", _share(loaders.median), loaders.median < 0.15),
        (f"farther off than {100 * WORST:.0f} %", "one row in eight", f"{every.beyond} of {every.rows}",
         every.beyond <= every.rows / 8),
        ("abstains", "at most 15 %", _share(silent := every.abstains / every.rows), silent <= 0.15),
        (f"ranges hold, of {MANY} rows", f"{100 * COVERAGE:.0f} %", _share(least), least >= COVERAGE),
        ("width of a range", "at most 2.8 times", f"{every.width:.1f} times", every.width <= 2.8),
    )  # fmt: skip
    return [(*check, "yes" if reached else "**no**") for *check, reached in checks]


def farthest(published: Published) -> list[tuple[str, ...]]:
    """The row that is farthest off, of each kind."""
    found = []
    for kind, rows in _by_kind(published)[:-1]:
        for row in sorted(rows, key=lambda row: (row.abstains, -abs(row.error)))[:1]:
            if abs(row.error) > WORST and not row.abstains:
                values = cell(row.measured), cell(row.predicted), f"{100 * row.error:+.0f} %"
                found.append((kind, row.what, *values))
    return found


FARTHEST_HEADERS = ("kind", "what", "measured", "predicted", "error")


def _new(published: Published, name: str) -> list[Tested]:
    """The predicted rows of a half that nobody had seen when the halves were drawn."""
    rows = (one for one in published.tests if published.rows[one.name].get("since") != BEFORE)
    return [one for one in rows if published.rows[one.name]["half"] == name]


def both_halves(published: Published) -> str:
    """How far off either half is, where nobody had seen it before."""
    halves = [_new(published, half) for half in HALVES]
    seen, apart = (f"{_share(_median(rows))} ({len(rows)} rows)" for rows in halves)
    return (
        "Without what was known before, and of what is predicted, the median error of the half that was "
        f"seen is {seen}, and that of the half that was kept apart {apart}"
    )


HEADERS = ("kind", "half", "what", "at work", "predicted by", "measured", "predicted", "error", "rests on")


def rows_of(published: Published, tests: Iterable[Tested]) -> list[tuple[str, ...]]:
    """The rows of the table; those with two resources or more at work are marked."""
    return [
        (
            published.rows[t.name]["kind"],
            published.rows[t.name]["half"],
            t.what,
            " + ".join(t.at_work).join(("**", "**") if len(t.at_work) >= 2 else ("", "")),
            "" if t.predicted is None else "from another row" if t.uses else "as shipped",
            cell(t.measured),
            "" if t.predicted is None else cell(t.predicted),
            "missed" if t.predicted is None else f"{100 * t.error:+.1f} %",
            ", ".join(t.uses),
        )
        for t in tests
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__, rows=(None, 1))
    parser.add_argument("--format", default="simple", help="a format of tabulate, for example github")
    parser.add_argument("--uses", action="store_true", help="name the rows that each prediction rests on")
    parser.add_argument("--left-out", action="store_true", help="also list what is not predicted, and why")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="also draw the picture, as SVG")
    asked = parser.parse_args(arguments)

    def show(headers: tuple[str, ...], rows: list[Any]) -> None:
        print(tabulate(rows, headers=headers, tablefmt=asked.format, disable_numparse=True))

    published = Published()
    tests = published.all[: asked.rows]
    shown = len(HEADERS) if asked.uses else len(HEADERS) - 1
    show(HEADERS[:shown], [row[:shown] for row in rows_of(published, tests)])
    print(f"\n{summary(published)}.\n")
    show(GOAL_HEADERS, goals(published))
    print(f"\n{both_halves(published)}.\n")
    show(KIND_HEADERS, by_kind(published))
    if asked.picture:
        asked.picture.write_text(draw(published), encoding="utf-8", newline="\n")
    if asked.left_out:
        show(("left out", "because"), [*published.left_out.items()])
        print("\nWhat a step of eight takes longer than a step of one:\n")
        show(("what", "a step of one", "eight take longer by"), lost_to_each_other(published))


if __name__ == "__main__":
    main()
