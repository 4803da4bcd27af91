"""`starvelab-doctor compare before.json after.json`: whether a change made a job faster.

Batches resemble their neighbors, times drift, and two runs of one job differ. So the mean of a run is as
uncertain as its long parts say, or how much neighbors are alike, and as what it drifted from its beginning to
its end.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from starvelab.errors import InputError
from starvelab.measure.verdict import UNKNOWN
from starvelab.tables import percent

from .finding.job import BUSY
from .shares import NORMAL, RUNS, blocks_of

BETTER, WORSE, SAME = "better", "worse", "no difference"
SLOWER = 3  # the status where a loop became worse
PARTS = 10  # long ones, into which a run is cut
MIN_BLOCKS = 25  # of a run that is compared; so many of them show how much neighbors are alike
ALIKE = (-0.5, 0.95)  # correlation of neighbors: bursts make them unlike, and more alike ones tell nothing
CROWDED = 0.5  # and beside other programs, at least, over the share of the time in which they wait for a core
MAX_HIDDEN = 2.0  # times the throughput: an interval in which more can hide tells nothing
PASSES = 3  # that begin, from which on it counts what that takes
Loop = dict[str, Any]  # Any: the values of a JSON file
# "Images at train.py:15, 320 items, 4 workers": the dataset, the file and the line.
NAME = re.compile(r"(?P<dataset>.+) at (?P<file>.+):(?P<line>\d+)")
# Which loops of two runs are one, and how that is said; each counts for those that the ones above leave.
PAIRED: dict[str, Callable[[Loop], object]] = {
    "": lambda loop: loop["loop"],
    "dataset, file and batch size": lambda loop: (*_place(loop)[:2], loop["batch_size"]),
    "dataset and file": lambda loop: _place(loop)[:2],
    "place": lambda loop: _place(loop)[1:],
    "the time that they take, since neither dataset nor place agrees": lambda _: True,
}


@dataclass(frozen=True)
class Comparison:
    """A loop before and after a change, as doctor wrote it in both runs."""

    before: Loop
    after: Loop
    ratio: float  # throughput after the change over that before it
    interval: tuple[float, float] | None  # with 95 % confidence; None where a run had too few batches
    paired: str = ""  # by which facts the two are one loop; empty where both have one name

    @property
    def verdict(self) -> str:
        """Better, worse, or no difference; or that nobody can tell."""
        if self.interval is None:
            return UNKNOWN
        low, high = self.interval
        same = UNKNOWN if sqrt(high / low) > MAX_HIDDEN else SAME
        return BETTER if low > 1 else WORSE if high < 1 else same

    @property
    def summary(self) -> str:
        """Say that, with what it rests on."""
        places = [one["loop"] for one in (self.before, self.after)]
        name = places[0] if places[0] == places[1] else " and then ".join(places)
        name += f" (paired by {self.paired})" if self.paired else ""
        if self.interval is None:
            counts = " and ".join(str(one["counted"]) for one in (self.before, self.after))
            return (
                f"{name}: {UNKNOWN}, because {counts} batches count, and each run needs {MIN_BLOCKS}. "
                "Let doctor watch longer runs."
            )
        low, high = self.interval
        now, then = (percent(one["host_wait"]) for one in (self.after, self.before))
        parts = [
            f"{name}: {self.verdict}, {self.ratio:.2f} times the throughput (95 % interval {low:.2f} to "
            f"{high:.2f}). It waits {now} of its time, and {then} before."
        ]
        if self.verdict == SAME:
            parts.append(f"A change of less than {percent(sqrt(high / low) - 1, 0)} would not show.")
        elif self.verdict == UNKNOWN:
            parts.append("Even a doubling would not show: let doctor watch longer runs.")
        busy = max(map(_apart, (self.before, self.after))) - RUNS
        if busy > RUNS:
            parts.append("Other programs took cores from it: run both again while the machine does less.")
        return " ".join(parts)


def compare(before: Loop, after: Loop) -> Comparison:
    """Compare two runs of a loop, as `starvelab-doctor --json` wrote them."""
    runs = (before, after)
    if min(len(one["blocks"]) for one in runs) < MIN_BLOCKS:
        return Comparison(before, after, 1.0, None)
    passes = min(len(one["first_waits"]) for one in runs) >= PASSES
    seconds, sizes = [_seconds(one, passes=passes) for one in runs], [one["batch_size"] for one in runs]
    ratio = (sizes[1] / sizes[0] if all(sizes) else 1.0) * seconds[0] / seconds[1]
    error = hypot(_uncertainty(*runs), sum(map(_drift, runs)) / 2, NORMAL * hypot(*map(_apart, runs)))
    return Comparison(before, after, ratio, (ratio * exp(-error), ratio * exp(error)))


def _place(loop: Loop) -> tuple[str, str, int]:
    """Return the dataset of a loop, its file and its line."""
    parts = NAME.match(loop["loop"])
    return (parts["dataset"], parts["file"], int(parts["line"])) if parts else (loop["loop"], "", 0)


def pairs_of(before: Sequence[Loop], after: Sequence[Loop]) -> Iterator[tuple[Loop, Loop, str]]:
    """Yield the loops of two runs that are one, and by which facts, as `PAIRED` names them.

    Where a fact fits unequal numbers of loops, it tells nothing. What is left is paired in the order of the
    runs, in which the loop that took longest comes first.
    """
    rest = [[*before], [*after]]
    for how, fact in PAIRED.items():
        for value in dict.fromkeys(map(fact, rest[0])):
            same = [[loop for loop in run if fact(loop) == value] for run in rest]
            if value is not True:
                if len(same[0]) != len(same[1]):
                    continue
                same = [sorted(run, key=_place) for run in same]
            for pair in zip(*same, strict=False):
                yield (*pair, how)
            rest = [[loop for loop in run if loop not in gone] for run, gone in zip(rest, same, strict=True)]


def _apart(run: Loop) -> float:
    """Return by how much the mean of a run may be another one in the next: a standard deviation."""
    # Others may leave it more of the cores then, or less.
    crowd = (run["core_waits"] or 0.0) if (run["others_cpu"] or 0.0) >= BUSY else 0.0
    return RUNS + crowd * (CROWDED + crowd)


def _seconds(run: Loop, *, passes: bool) -> float:
    """Return the seconds from batch to batch, with what it takes to begin and to end passes if they count."""
    period = float(np.mean(run["blocks"]))
    if not passes:
        return period
    batches: float = run["batches"] / len(run["first_waits"])
    later = run["first_waits"][1:]
    return ((batches - 1) * period + float(np.mean(later)) + float(run["ending"] or 0.0)) / batches


def _uncertainty(*runs: Loop) -> float:
    """Return what the ratio of two means may be off within the runs, as its logarithm: Welch's test."""
    errors, freedoms = zip(*map(_of_mean, runs), strict=True)
    rest = sum(error**2 / freedom for error, freedom in zip(errors, freedoms, strict=True))
    return _student(sum(errors) ** 2 / max(rest, 1e-30)) * sqrt(sum(errors))


def _means(run: Loop, count: int) -> np.ndarray:
    """Return what a batch took in each of so many parts of a run, over its mean."""
    return blocks_of(np.array(run["blocks"]), count) / float(np.mean(run["blocks"]))


def _of_mean(run: Loop) -> tuple[float, float]:
    """Return the variance of the mean and its degrees of freedom, by how much neighbors are alike."""
    rest = (parts := _means(run, MIN_BLOCKS)) - parts.mean()
    count, variance = len(parts), max(float(np.mean(rest**2)), 1e-30)
    alike = float(np.sum(rest[1:] * rest[:-1])) / count / variance
    # A short run shows too little of it.
    alike = float(np.clip(alike + (1 + 4 * alike) / count, *ALIKE))
    fewer = (1 + alike) / (1 - alike)
    return variance * fewer / (count - 1), max(count / fewer - 1, 1)


def _drift(run: Loop) -> float:
    """Return by how much a run drifted, as a share of its mean, beyond what its noise makes of none."""
    (slope, _), errors = np.polyfit(np.linspace(-0.5, 0.5, PARTS), _means(run, PARTS), 1, cov=True)
    return sqrt(max(float(slope**2 - errors[0, 0]), 0.0))


def _student(freedom: float) -> float:
    """Return the 97.5 % quantile of Student's distribution, to half a percent from 4 degrees on."""
    z, n = NORMAL, max(freedom, 4.0)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + (z**3 + z) / 4 / n + second / n**2 + third / n**3


def read(file: Path) -> list[Loop]:
    """Return the loops that doctor wrote into a file."""
    why = "it holds no loops of doctor"
    try:
        loops: list[Loop] = json.loads(file.read_text(encoding="utf-8"))["loops"]
        if [loop["blocks"] for loop in loops]:
            return loops
    except (OSError, ValueError, LookupError, TypeError) as error:
        why = why if isinstance(error, LookupError | TypeError) else str(error)
    raise InputError(
        f"compare reads what doctor wrote, got {file}: {why}. Write it: starvelab-doctor --json {file} "
        "train.py"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `starvelab-doctor compare`. Returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="starvelab-doctor compare",
        description="Say whether a change made a job faster, by what starvelab-doctor --json wrote before "
        f"and after it. The status is {SLOWER} if a loop is worse.",
    )
    parser.add_argument("before", type=Path, help="what doctor wrote before the change")
    parser.add_argument("after", type=Path, help="what doctor wrote after it")
    asked = parser.parse_args(arguments)
    try:
        pairs = pairs_of(read(asked.before), read(asked.after))
        found = [replace(compare(*runs), paired=how) for *runs, how in pairs]
    except InputError as error:
        parser.error(str(error))
    for one in found:
        print(f"starvelab-doctor compare: {one.summary}")
    return SLOWER if any(one.verdict == WORSE for one in found) else 0
