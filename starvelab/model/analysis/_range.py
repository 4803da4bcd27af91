"""Between which throughputs a prediction lies, if each of its values is what one of its sources says."""

from __future__ import annotations

from dataclasses import dataclass

from ...tables import TableRepr, cell, percent
from ...units import Q_, Quantity, format_number
from ..description import Description
from ..disagreement import Choice, choices, corners
from ..resources import LABELS
from ..step import Step
from ._point import one_point


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
    def headers(self) -> tuple[str, ...]:
        """Of the table that shows it."""
        return ("value", "its sources say", "throughput from", "to")

    @property
    def rows(self) -> list[list[str]]:
        """One for each disagreement."""
        return [
            [one.name, " or ".join(one.values), cell(one.lowest), cell(one.highest)]
            for one in self.disagreements
        ]


def throughput_range(pipeline: Description) -> ThroughputRange:
    """The lowest and the highest throughput that the sources of a prediction's values allow."""
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
