"""The model held to the world: published measurements beside what the package predicts as it is shipped.

benchmarks/published.py reads and predicts the rows; this says how right they are, and which goals they miss.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from math import inf
from pathlib import Path
from typing import Any

from tabulate import tabulate

from starvelab import PUBLISHED, Q_
from starvelab.tables import cell

from .picture import draw
from .published import HALVES, KINDS, Published, Tested, source_of
from .report import options

# What was set as a goal before the rows were predicted, beside the median of each kind.
ROWS, SOURCES, PER_KIND = 60, 25, 5
GOAL, WORST = 0.08, 0.25
APART = 1.3  # how many times the median of what was seen the median of what was kept apart may be

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


def guess_summary(guessed: list[Tested]) -> str:
    """Median and worst error of the guesses."""
    errors = [100 * abs(test.error) for test in guessed]
    return f"{len(errors)} guesses: median error {statistics.median(errors):.1f} %, worst {max(errors):.1f} %"


GOAL_HEADERS = (
    "kind",
    "rows",
    "no prediction",
    "median, seen",
    "median, kept apart",
    "worst",
    "goal: median",
    "median reached",
)


def _by_kind(published: Published) -> list[tuple[str, float, list[Tested]]]:
    """Each kind with the goal of its median and its rows, and all."""
    kinds = [(kind, goal, published.of_kind(kind)) for kind, goal in KINDS.items()]
    return [*kinds, ("all", GOAL, published.all)]


def goals(published: Published) -> list[tuple[str, ...]]:
    """For each kind, and for all: the median of either half, the worst error, and the goal."""
    found = []
    for kind, goal, rows in _by_kind(published):
        halves = [_median(one for one in rows if published.rows[one.name]["half"] == name) for name in HALVES]
        middle, none = _median(rows), sum(one.predicted is None for one in rows)
        worst = max((abs(one.error) for one in rows if one.predicted is not None), default=inf)
        reached = f"{'yes' if middle < goal else '**no**'} ({_share(middle)})"
        errors = (*map(_share, halves), _share(worst), f"below {100 * goal:.0f} %", reached)
        found.append((kind, str(len(rows)), str(none), *errors))
    return found


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
    """How far off each kind is by itself, and how often its ranges hold, and how wide they are.

    An answer that abstains has a range, but counts in no median, and as farther off than 25 %.
    """
    found, added = [], 1 + PUBLISHED.model_error
    held = {row.what: row for row in published.held}
    for kind, _, rows in _by_kind(published):
        errors = [abs(row.error) for row in rows if not row.abstains]
        abstains = len(rows) - len(errors)
        ranges = [held[row.what] for row in rows if row.what in held]
        holds = sum(row.beyond <= PUBLISHED.model_error for row in ranges) / len(ranges)
        width = statistics.median(added**2 * row.high / row.low for row in ranges)
        beyond = sum(error > WORST for error in errors) + abstains
        worst = max(error for error in errors if error < inf)
        median, largest = _share(statistics.median(errors)), _share(worst)
        span = f"{100 * holds:.0f} %", f"{width:.1f} times"
        found.append((kind, str(len(rows)), str(abstains), median, str(beyond), largest, *span))
    return found


def farthest(published: Published) -> list[tuple[str, ...]]:
    """The row that is farthest off, of each kind."""
    found = []
    for kind, _, rows in _by_kind(published)[:-1]:
        for row in sorted(rows, key=lambda row: (row.abstains, -abs(row.error)))[:1]:
            if abs(row.error) > WORST and not row.abstains:
                values = cell(row.measured), cell(row.predicted), f"{100 * row.error:+.0f} %"
                found.append((kind, row.what, *values))
    return found


FARTHEST_HEADERS = ("kind", "what", "measured", "predicted", "error")
OUTSIDE_HEADERS = ("kind", "what is not known", "rows within", "median", "rows outside", "median of these")


def within(published: Published) -> list[tuple[str, ...]]:
    """How far off the rows are whose conditions the model can know, and those outside, of each such kind."""
    found = []
    for kind, _, rows in _by_kind(published)[:-1]:
        why = {t.name: published.rows[t.name].get("outside") for t in rows}
        if names := ", ".join(dict.fromkeys(filter(None, why.values()))):
            parts = [[t for t in rows if bool(why[t.name]) is outside] for outside in (False, True)]
            counted = (text for part in parts for text in (str(len(part)), _share(_median(part))))
            found.append((kind, names, *counted))
    return found


def missed_goals(published: Published) -> list[str]:
    """Each goal that is not reached, in a sentence."""
    tests, said, found = published.all, [], len(sources(published))
    if len(tests) < ROWS or found < SOURCES:
        said.append(f"{ROWS} rows of {SOURCES} sources were wanted; there are {len(tests)} of {found}.")
    for kind, goal, rows in _by_kind(published):
        middle = _median(rows)
        if len(rows) < PER_KIND:
            said.append(f"{PER_KIND} rows of each kind were wanted; of {kind} there are {len(rows)}.")
        if middle >= goal:
            said.append(f"The median of {kind} is {_share(middle)}: less than {100 * goal:.0f} % was wanted.")
    far = [f"{t.what} ({_share(abs(t.error))})" for t in published.tests if abs(t.error) >= WORST]
    if published.missed:
        said.append(f"{len(published.missed)} rows have no prediction.")
    for test in published.missed:
        if reason := published.rows[test.name].get("note"):
            said.append(f"{test.what} has none, because {reason}.")
    if far:
        said.append(f"No row was to be off by {100 * WORST:.0f} % or more; {len(far)} are: {'; '.join(far)}.")
    ratio = _apart_by(published)
    if ratio > APART:
        said.append(f"What was kept apart is off by {ratio:.2g} times what was seen: {APART:g} was wanted.")
    return said


def _new(published: Published, name: str) -> list[Tested]:
    """The predicted rows of a half that nobody had seen when the halves were drawn."""
    rows = (one for one in published.tests if published.rows[one.name].get("since") != BEFORE)
    return [one for one in rows if published.rows[one.name]["half"] == name]


def _apart_by(published: Published) -> float:
    """How many times the median error of what was seen that of what was kept apart is."""
    seen, apart = (_median(_new(published, name)) for name in HALVES)
    return apart / seen


def both_halves(published: Published) -> str:
    """How far off either half is, where nobody had seen it before."""
    seen, apart = ((len(rows), _share(_median(rows))) for rows in (_new(published, one) for one in HALVES))
    return (
        "Without what was known before, and of what is predicted: the median error of the "
        f"{seen[0]} rows that were seen is {seen[1]}, and that of the {apart[0]} that were kept apart is "
        f"{apart[1]}, {_apart_by(published):.2g} times as much (at most {APART:g} times was wanted)"
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


def reasons(published: Published) -> list[tuple[str, str]]:
    """The rows that are not predicted, and why."""
    return [*published.left_out.items()]


def guesses(published: Published) -> list[tuple[str, ...]]:
    """What is not predicted, with what is not known assumed."""
    return [
        (
            t.what,
            cell(t.measured),
            cell(t.predicted),
            f"{100 * t.error:+.1f} %",
            published.guesses[t.name]["note"],
        )
        for t in published.guessed
    ]


GUESS_HEADERS = ("what", "measured", "predicted", "error", "assumed")


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
    print(f"\n{both_halves(published)}.")
    print("\n" + "\n".join(missed_goals(published)) + "\n")
    show(OUTSIDE_HEADERS, within(published))
    print()
    show(KIND_HEADERS, by_kind(published))
    if asked.picture:
        asked.picture.write_text(draw(published), encoding="utf-8", newline="\n")
    if asked.left_out:
        show(("left out", "because"), reasons(published))
        print("\nSome of these with what is not known assumed; they count nowhere:\n")
        show(GUESS_HEADERS, guesses(published))
        print(f"\n{guess_summary(published.guessed)}")
        print("\nWhat a step of eight takes longer than a step of one:\n")
        show(("what", "a step of one", "eight take longer by"), lost_to_each_other(published))


if __name__ == "__main__":
    main()
