"""Statistics of a class: how hard exercises were, which mistakes were made, how sure the students were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import StatisticsError, correlation, fmean, median

from ..autograde.nbgrader_private import NO_RESPONSE
from ..batch.records import GradedSubmission
from ..submissions.reference import ReferenceCell


@dataclass(frozen=True)
class Item:
    """How a class did in an exercise that a test grades.

    Attributes
    ----------
    notebook, cell : str
    points : float
    tried, full, none : int
        How many wrote something, got all points, and got nothing although they tried.
    difficulty : float
        Mean share of the points, over all who submitted: 1 is easy.
    discrimination : float or None
        Correlation of that share with the points of all other exercises; None where either is constant.
    """

    notebook: str
    cell: str
    points: float
    tried: int
    full: int
    none: int
    difficulty: float
    discrimination: float | None


def items(records: Sequence[GradedSubmission], cells: Mapping[str, Sequence[ReferenceCell]]) -> list[Item]:
    """Item statistics, in the order of the exercises.

    References
    ----------
    The corrected item-total correlation: Crocker and Algina, Introduction to Classical and Modern Test
    Theory, 1986, chapter 14.
    """
    tests = [
        (notebook, cell)
        for notebook, each in cells.items()
        for cell in each
        if cell.is_test and cell.points > 0
    ]
    shares = {
        (notebook, cell.name): [_points(one, notebook, cell.name) / cell.points for one in records]
        for notebook, cell in tests
    }
    totals = [sum(_points(one, notebook, cell.name) for notebook, cell in tests) for one in records]
    results = []
    for notebook, cell in tests:
        share = shares[notebook, cell.name]
        rest = [total - cell.points * own for total, own in zip(totals, share, strict=True)]
        answers = answers_to(cells[notebook], cell)
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


def answers_to(cells: Sequence[ReferenceCell], test: ReferenceCell) -> list[str]:
    """The answers that stand before a test, behind the test before it."""
    answers: list[str] = []
    for cell in cells:
        if cell == test:
            return answers
        if cell.answered and not cell.grade:
            answers.append(cell.name)
        elif cell.grade:
            answers = []
    return answers


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
    """The points of a class.

    Attributes
    ----------
    possible : float
        The most that tests give.
    mean, median : float
    bins : list of tuple
        Lower and upper bound in points, and how many students are in it. The last bin holds its upper bound.
    """

    possible: float
    mean: float
    median: float
    bins: list[tuple[float, float, int]]


def distribution(
    records: Sequence[GradedSubmission], cells: Mapping[str, Sequence[ReferenceCell]], bins: int = 10
) -> Distribution | None:
    """How the points by test are distributed over those who submitted; None where nobody did."""
    tests = [
        (notebook, cell)
        for notebook, each in cells.items()
        for cell in each
        if cell.is_test and cell.points > 0
    ]
    possible = sum(cell.points for _, cell in tests)
    if not records or not possible:
        return None
    totals = [sum(_points(one, notebook, cell.name) for notebook, cell in tests) for one in records]
    at = Counter(max(0, min(bins - 1, int(bins * total / possible))) for total in totals)
    width = possible / bins
    counted = [(number * width, (number + 1) * width, at[number]) for number in range(bins)]
    return Distribution(possible, fmean(totals), median(totals), counted)


@dataclass(frozen=True)
class Mistake:
    """A mistake that checks named, and how many students made it."""

    notebook: str
    cell: str
    message: str
    students: int


def mistakes(records: Iterable[GradedSubmission]) -> list[Mistake]:
    """Named mistakes, the commonest first."""
    counted = Counter(
        (notebook, cell, str(message))
        for one in records
        for notebook, cells in one.notes.items()
        for cell, notes in cells.items()
        for message in notes.get("mistake", ())
    )
    return [Mistake(*what, students) for what, students in counted.most_common()]


def for_a_person(records: Iterable[GradedSubmission]) -> list[tuple[str, str, str]]:
    """Student, notebook and warning, where somebody should look."""
    return [
        (one.student, notebook, warning.text)
        for one in records
        for notebook, warnings in one.warnings.items()
        for warning in warnings
        if warning.person
    ]
