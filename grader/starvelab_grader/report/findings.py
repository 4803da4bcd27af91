"""Statistics of a class: how hard exercises were, how points are distributed, which mistakes were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import StatisticsError, correlation, fmean, median

from ..autograde.nbgrader_private import NO_RESPONSE
from ..batch.records import GradedSubmission
from ..submissions.reference import ReferenceCell

Cells = Mapping[str, Sequence[ReferenceCell]]  # by notebook


@dataclass(frozen=True)
class Item:
    """How a class did in an exercise that a test grades."""

    notebook: str
    cell: str
    points: float
    tried: int  # how many wrote something; of these got all points, or none
    full: int
    none: int
    difficulty: float  # mean share of the points, over all who submitted: 1 is easy
    discrimination: float | None  # correlation with the points of all other exercises; None: one is constant


def items(records: Sequence[GradedSubmission], cells: Cells) -> list[Item]:
    """Item statistics, in the order of the exercises.

    The discrimination is the corrected item-total correlation: Crocker and Algina, Introduction to Classical
    and Modern Test Theory, 1986, chapter 14.
    """
    results = []
    totals = _totals(records, cells)
    for notebook, cell in _tests(cells):
        earned = [_points(one, notebook, cell.name) for one in records]
        rest = [total - own for total, own in zip(totals, earned, strict=True)]
        share = [points / cell.points for points in earned]
        answers = [name for name, graded in graded_by(cells[notebook]).items() if graded == cell.name]
        tried = [_tried(one, notebook, answers) for one in records]
        results.append(
            Item(
                notebook=notebook,
                cell=cell.name,
                points=cell.points,
                tried=sum(tried),
                full=sum(one >= 1 for one in share),
                none=sum(one <= 0 and did for one, did in zip(share, tried, strict=True)),
                difficulty=fmean(share) if share else 0.0,
                discrimination=_correlation(share, rest),
            )
        )
    return results


def _tests(cells: Cells) -> list[tuple[str, ReferenceCell]]:
    return [(name, cell) for name, each in cells.items() for cell in each if cell.is_test and cell.points > 0]


def _totals(records: Sequence[GradedSubmission], cells: Cells) -> list[float]:
    """The points by test of each student."""
    return [sum(_points(one, notebook, cell.name) for notebook, cell in _tests(cells)) for one in records]


def graded_by(cells: Iterable[ReferenceCell]) -> dict[str, str]:
    """By answer, the cell that is graded for it: the test that follows, or the essay itself."""
    results: dict[str, str] = {}
    waiting: list[str] = []
    for cell in cells:
        if cell.answered:
            waiting.append(cell.name)
        if cell.grade:
            results |= dict.fromkeys(waiting, cell.name)
            waiting = []
    return results


def _points(record: GradedSubmission, notebook: str, cell: str) -> float:
    points, _ = record.grades.get(notebook, {}).get(cell, (0.0, False))
    return points or 0.0


def _tried(record: GradedSubmission, notebook: str, answers: Iterable[str]) -> bool:
    comments = record.comments.get(notebook, {})
    return notebook not in record.rejected and all(comments.get(name) != NO_RESPONSE for name in answers)


def _correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    try:
        return correlation(a, b)
    except StatisticsError:  # one of the two is constant, or there is one student only
        return None


@dataclass(frozen=True)
class Distribution:
    """The points of a class by test, of those that are `possible`."""

    possible: float
    mean: float
    median: float
    bins: list[tuple[float, float, int]]  # bounds in points, and how many are in it; the last holds its upper


def distribution(records: Sequence[GradedSubmission], cells: Cells, bins: int = 10) -> Distribution | None:
    """How the points by test are distributed over those who submitted; None where nobody did."""
    possible = sum(cell.points for _, cell in _tests(cells))
    if not records or not possible:
        return None
    totals = _totals(records, cells)
    at = Counter(max(0, min(bins - 1, int(bins * total / possible))) for total in totals)
    width = possible / bins
    counted = [(number * width, (number + 1) * width, at[number]) for number in range(bins)]
    return Distribution(possible, fmean(totals), median(totals), counted)


def mistakes(records: Iterable[GradedSubmission]) -> list[tuple[int, str, str, str]]:
    """Students, notebook, exercise and message of each mistake that checks named, the commonest first."""
    counted = Counter(
        (notebook, cell, str(message))
        for one in records
        for notebook, cells in one.notes.items()
        for cell, notes in cells.items()
        for message in notes.get("mistake", ())
    )
    return [(students, *what) for what, students in counted.most_common()]


def for_a_person(records: Iterable[GradedSubmission]) -> list[tuple[str, str, str]]:
    """Student, notebook and warning, where somebody should look."""
    return [
        (one.student, notebook, warning.text)
        for one in records
        for notebook, warnings in one.warnings.items()
        for warning in warnings
        if warning.person
    ]
