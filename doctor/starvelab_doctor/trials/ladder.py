"""The caching ladder of one's own job: how much faster it would be, whatever is done to its input.

Trials serve the batches of the first seconds again: with items that are prepared already, from the host's
memory, and from the device; and as the job is. What a rung brings is measured by turns with the job as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from starvelab.errors import InputError
from starvelab.measure.verdict import SLIGHT

from .ascent import CLEAR
from .replay import DEVICE, HOST, PREPARED
from .runs import Runs

TURNS = 2
# From the lowest rung to the highest: its name in a sentence, and what a gain over the rung below is due to.
RUNGS = {
    PREPARED: ("with items that are prepared already", "the dataset"),
    HOST: ("from the host's memory", "collating, workers and the hand-over"),
    DEVICE: ("from the device", "the copy to it"),
}
NO_GPU = "no GPU was in use, so the host's memory is the highest rung"


@dataclass(frozen=True)
class Ladder:
    """The batches a second of a job as it is and on each rung, turn by turn."""

    now: tuple[float, ...]
    rungs: Mapping[str, tuple[float, ...]]
    left_out: Mapping[str, str] = field(default_factory=dict)  # rungs, and why
    whole: bool = False  # passes were counted with the start of their workers

    def gain(self, rung: str) -> float:
        """Return how many times the batches a second of the job as it is a rung brings."""
        return median(self._gains(rung))

    def _gains(self, rung: str) -> list[float]:
        return [rate / now for rate, now in zip(self.rungs[rung], self.now, strict=True)]

    @property
    def disturbed(self) -> bool:
        """True where the job was slower without its loader, or its turns differ: it did not run alone."""
        slower = any(self.gain(rung) < 1 - SLIGHT for rung in self.rungs.keys() & {HOST, DEVICE})
        return slower or max(self.now) > CLEAR * min(self.now)

    @property
    def ceiling(self) -> float | None:
        """The most that any rung brought in any turn; None where none left out the loader, or disturbed."""
        gains = [gain for rung in self.rungs for gain in self._gains(rung)]
        return max(1.0, *gains) if self.rungs.keys() & {HOST, DEVICE} and not self.disturbed else None

    @property
    def fed(self) -> bool:
        """True where the job is nearly as fast as on the highest rung: then it is not the data."""
        return self.ceiling is not None and self.ceiling < 1 + SLIGHT

    @property
    def largest(self) -> str:
        """The part of the input that costs most: what a rung saves over the one below it."""
        below, saved = 1.0, {}
        for rung in self.rungs:
            saved[RUNGS[rung][1]] = self.gain(rung) / below
            below = max(below, self.gain(rung))
        return max(saved, key=saved.__getitem__, default="")

    @property
    def verdict(self) -> str:
        """Say what the ladder comes to."""
        if self.disturbed:
            return (
                "The job was slower without its loader, or much slower in one turn than in another, as "
                "beside another program. Measure again when the machine is less busy."
            )
        if self.ceiling is None:
            return "The highest rung could not be measured, so the gain of a faster input is not known."
        if self.fed:
            return (
                f"Not the data: without its loader the job is at most {self.ceiling:.2f} times as fast. "
                "Look at the training step."
            )
        return (
            f"No change of the input brings more than {self.ceiling:.2g} times the batches a second. Most of "
            f"it is lost by {self.largest}."
        )

    @property
    def lines(self) -> list[str]:
        """One line for each rung, and what they come to."""
        lines = [f"as the job is: {_rate(median(self.now))} batches a second"]
        for rung, (name, _) in RUNGS.items():
            if rung in self.rungs:
                lines.append(
                    f"{name}: {_rate(median(self.rungs[rung]))} batches a second, {self.gain(rung):.2g} times"
                )
            else:
                lines.append(f"{name}: not measured, since {self.left_out[rung]}")
        return [*lines, self.verdict]

    def to_json(self) -> dict[str, Any]:  # Any: for a JSON file
        """Return what a JSON file holds of it."""
        rates = {"now": self.now, **self.rungs}
        return {"ceiling": self.ceiling, "rates": rates, "left_out": self.left_out, "passes": self.whole}


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def rungs_of(*, on_gpu: bool) -> list[str]:
    """Return the rungs that a job has."""
    return [rung for rung in RUNGS if on_gpu or rung != DEVICE]


def climb_ladder(runs: Runs, *, on_gpu: bool, say: Callable[[str], object]) -> Ladder:
    """Measure a job as it is and on each rung, by turns, and say what each run found."""
    rates: dict[str, list[float]] = {"": [], **{rung: [] for rung in rungs_of(on_gpu=on_gpu)}}
    left_out = {} if on_gpu else {DEVICE: NO_GPU}
    for turn in range(1, TURNS + 1):
        for rung in [*rates]:
            name = RUNGS[rung][0] if rung else "as the job is"
            try:
                rates[rung].append(runs.run({}, rung)["pace"]["rate"])
            except InputError as error:
                if not rung:
                    raise
                left_out[rung] = str(error)
                del rates[rung]
                continue
            say(f"  ladder, turn {turn} of {TURNS}, {name}: {_rate(rates[rung][-1])} batches a second")
    now = tuple(rates.pop(""))
    return Ladder(now, {rung: tuple(each) for rung, each in rates.items()}, left_out, bool(runs.whole))
