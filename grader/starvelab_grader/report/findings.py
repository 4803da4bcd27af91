"""Findings in a class: statistics, and whom a person should look at."""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from statistics import StatisticsError, correlation, fmean, median
from typing import TypeAlias

from nbformat import NotebookNode

from ..autograde.definition import Cells
from ..autograde.execution import NOTE_ID
from ..autograde.losses import NOT_INSTALLED
from ..autograde.nbgrader_private import NO_RESPONSE
from ..batch.records import GradedSubmission
from ..submissions.reference import ReferenceCell, graded_by, name_of

Records: TypeAlias = Iterable[GradedSubmission]


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
    """Return item statistics, in the order of the exercises."""
    # The discrimination is the corrected item-total correlation: Crocker and Algina, Introduction to
    # Classical and Modern Test Theory, 1986, chapter 14.
    results, points = [], _points(records, cells)
    totals = [sum(each) for each in zip(*points.values(), strict=True)]
    for (notebook, cell), earned in points.items():
        answers = [name for name, graded in graded_by(cells[notebook]).items() if graded == cell.name]
        comments = [one.comments.get(notebook, {}) for one in records]
        tried = [
            notebook not in one.rejected and all(each.get(name) != NO_RESPONSE for name in answers)
            for one, each in zip(records, comments, strict=True)
        ]
        share = [one / cell.points for one in earned]
        try:
            rest = [total - own for total, own in zip(totals, earned, strict=True)]
            discrimination = correlation(share, rest)
        except StatisticsError:  # one of the two is constant, or there is one student only
            discrimination = None
        full = sum(one >= 1 for one in share)
        none = sum(one <= 0 and did for one, did in zip(share, tried, strict=True))
        mean, place = fmean(share) if share else 0.0, (notebook, cell.name, cell.points)
        results.append(Item(*place, sum(tried), full, none, mean, discrimination))
    return results


def _points(records: Records, cells: Cells) -> dict[tuple[str, ReferenceCell], list[float]]:
    """Return the points of each student, by notebook and by the cell of a test that gives some."""
    grades = [one.grades for one in records]
    tests = [(name, one) for name, each in cells.items() for one in each if one.is_test and one.points > 0]
    return {
        (notebook, cell): [each.get(notebook, {}).get(cell.name, (0.0, False))[0] or 0.0 for each in grades]
        for notebook, cell in tests
    }


@dataclass(frozen=True)
class Distribution:
    """The points of a class by test, of those that are `possible`."""

    possible: float
    mean: float
    median: float
    bins: list[tuple[float, float, int]]  # bounds in points, and how many are in it; the last holds its upper


def distribution(records: Sequence[GradedSubmission], cells: Cells, bins: int = 10) -> Distribution | None:
    """Return how the points by test are distributed over those who submitted; None where nobody did."""
    points = _points(records, cells)
    possible = sum(cell.points for _, cell in points)
    if not records or not possible:
        return None
    totals = [sum(each) for each in zip(*points.values(), strict=True)]
    at = Counter(max(0, min(bins - 1, int(bins * total / possible))) for total in totals)
    width = possible / bins
    counted = [(number * width, (number + 1) * width, at[number]) for number in range(bins)]
    return Distribution(possible, fmean(totals), median(totals), counted)


def mistakes(records: Iterable[GradedSubmission]) -> list[tuple[str, str, str, list[str]]]:
    """Return what checks named, by notebook and exercise, and who made each mistake; the commonest first."""
    made = defaultdict(list)
    for one in records:
        for notebook, cells in one.notes.items():
            for what in ((notebook, cell, each) for cell in cells for each in _mistakes(one, notebook, cell)):
                made[what].append(one.student)
    return [(*what, students) for what, students in sorted(made.items(), key=lambda each: -len(each[1]))]


def _mistakes(record: GradedSubmission, notebook: str, cell: str) -> list[str]:
    return [str(one) for one in record.notes.get(notebook, {}).get(cell, {}).get("mistake", ())]


def should_come(records: Records, cells: Cells) -> list[tuple[str, float, list[tuple[str, str, list[str]]]]]:
    """Return who has less than half of the points by test, the fewest first.

    With each come the tests that gave none, and the mistakes that these named.
    """
    records = list(records)
    points = _points(records, cells)
    possible, found = sum(cell.points for _, cell in points), []
    for at, one in enumerate(records):
        lost = ((notebook, cell.name) for (notebook, cell), earned in points.items() if earned[at] <= 0)
        nothing = [(notebook, cell, _mistakes(one, notebook, cell)) for notebook, cell in lost]
        total = sum(earned[at] for earned in points.values())
        if total < possible / 2:
            found.append((one.student, total, nothing))
    return sorted(found, key=lambda each: each[1])


# --- whom a person should look at -------------------------------------------------------------------------
MAX_NAMED = 3  # notebooks in a line about one student
MISSING_PACKAGE = re.compile(re.escape(NOT_INSTALLED).replace(re.escape("{}"), r"(\w+)"))


@dataclass(frozen=True)
class ToLookAt:
    """A student whose submission a person should look at."""

    student: str
    to_do: str
    remarks: tuple[str, ...]

    def __str__(self) -> str:
        first, more = self.remarks[0], len(self.remarks) - 1
        return f"{self.student}: {self.to_do}. {first}{f' And {more} more.' if more else ''}"


def to_look_at(records: Records) -> list[ToLookAt]:
    """Return whom a person should look at, the worst first."""
    found = []
    for one in records:
        said = ((notebook, each) for notebook, warnings in one.warnings.items() for each in warnings)
        remarks = [(notebook, warning.text) for notebook, warning in said if warning.person]
        others = dict.fromkeys(notebook for notebook, _ in remarks if notebook not in one.rejected)
        to_do = [f"ask again for {_several(one.rejected)}"] * bool(one.rejected)
        to_do += [f"look into {_several(list(others))}"] * bool(others)
        said_of: dict[str, list[tuple[str, str]]] = {}  # what is said of twenty notebooks is said once
        for notebook, text in remarks:
            said_of.setdefault(text.replace(f"`{notebook}.ipynb`", "It"), []).append((notebook, text))
        lines = tuple(
            f"{_several([notebook for notebook, _ in same])}: {common if same[1:] else same[0][1]}"
            for common, same in said_of.items()
        )
        if remarks:
            found.append(
                (-len(one.rejected), -len(remarks), ToLookAt(one.student, " and ".join(to_do), lines))
            )
    return [one for *_, one in sorted(found, key=lambda each: (*each[:2], each[2].student))]


def _several(notebooks: Sequence[str]) -> str:
    """Name notebooks, or of many the first and how many there are."""
    if len(notebooks) <= MAX_NAMED:
        return ", ".join(notebooks)
    return f"{notebooks[0]} and {len(notebooks) - 1} more notebooks"


def missing_packages(records: Records) -> dict[str, list[str]]:
    """Return who imports each package that the grader lacks, and lost points; the commonest first."""
    students: dict[str, list[str]] = {}
    for one in records:
        texts = {warning.text for warnings in one.warnings.values() for warning in warnings}
        for match in filter(None, map(MISSING_PACKAGE.fullmatch, texts)):
            students.setdefault(match[1], []).append(one.student)
    return dict(sorted(students.items(), key=lambda pair: (-len(pair[1]), pair[0])))


# --- what a student wrote ---------------------------------------------------------------------------------
def texts_by_exercise(
    nb: NotebookNode, reference: Sequence[ReferenceCell], released: Container[str], own: str
) -> dict[str, str]:
    """Return what a student wrote that was not given out, by the cell that is graded for it.

    Cells of the student's own stand together under the name `own`.
    """
    names, exercise_of = {cell.name for cell in reference}, graded_by(reference)
    texts: dict[str, list[str]] = {}
    for cell in nb.cells:
        exercise = exercise_of.get(name_of(cell) or "", "") if name_of(cell) in names else own
        if exercise and cell.source.strip() not in released and cell.id != NOTE_ID:
            texts.setdefault(exercise, []).append(cell.source)
    return {exercise: "\n".join(each) for exercise, each in texts.items()}
