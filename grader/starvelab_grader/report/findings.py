"""Findings in a class: statistics, whom a person should look at, and answers that are nearly the same.

Answers that are nearly the same are for a person to look at, and prove nothing. Most right answers of an
exercise look alike. So only passages count that few students share and that were not given to them; which
passages two texts share is found by winnowing, in the library copydetect. Each exercise and each essay is
compared by itself: in a whole submission one copied essay is a small share.
"""

import io
import json
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import StatisticsError, correlation, fmean, median
from typing import Any, TypeAlias

from nbformat import NotebookNode

from ..autograde.definition import Cells
from ..autograde.execution import NOTE_ID
from ..autograde.nbgrader_private import NO_RESPONSE
from ..batch.records import GradedSubmission, GradedSubmissions
from ..files import fingerprint, write_whole
from ..submissions.reference import ReferenceCell, graded_by, name_of

Records: TypeAlias = Iterable[GradedSubmission]
Texts: TypeAlias = Mapping[str, str]


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
LOOKED_AT = "looked-at"  # the file beside the records: of each student the remarks that a person has read


@dataclass(frozen=True)
class ToLookAt:
    """A student whose submission a person should look at."""

    student: str
    to_do: str
    remarks: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        """Another one where the remarks are others."""
        return fingerprint({}, self.remarks)

    def __str__(self) -> str:
        first, more = self.remarks[0], len(self.remarks) - 1
        return f"{self.student}: {self.to_do}. {first}{f' And {more} more.' if more else ''}"


def to_look_at(records: Records, looked_at: Texts | None = None) -> list[ToLookAt]:
    """Return whom a person should look at, the worst first; not those who were `looked_at` as they are."""
    found = []
    for one in records:
        said = ((notebook, each) for notebook, warnings in one.warnings.items() for each in warnings)
        remarks = [(notebook, warning.text) for notebook, warning in said if warning.person]
        others = dict.fromkeys(notebook for notebook, _ in remarks if notebook not in one.rejected)
        to_do = [f"ask again for {', '.join(one.rejected)}"] * bool(one.rejected)
        to_do += [f"look into {', '.join(others)}"] * bool(others)
        lines = tuple(f"{notebook}: {text}" for notebook, text in remarks)
        made = ToLookAt(one.student, " and ".join(to_do), lines)
        if remarks and (looked_at or {}).get(one.student) != made.fingerprint:
            found.append((-len(one.rejected), -len(remarks), made))
    return [one for *_, one in sorted(found, key=lambda each: (*each[:2], each[2].student))]


def load_looked_at(records: GradedSubmissions) -> dict[str, str]:
    """Return the fingerprints of the remarks that a person has looked at, by student."""
    try:
        text = (records.folder / LOOKED_AT).read_text(encoding="utf-8")
        return {str(student): str(value) for student, value in json.loads(text).items()}
    except (OSError, ValueError, AttributeError):  # then everybody is listed once more
        return {}


def save_looked_at(records: GradedSubmissions, found: Iterable[ToLookAt]) -> None:
    """Remember that a person has looked at these."""
    looked_at = load_looked_at(records) | {one.student: one.fingerprint for one in found}
    write_whole(records.folder / LOOKED_AT, json.dumps(looked_at, indent=1))


# --- answers that are nearly the same ---------------------------------------------------------------------
MIN_PASSAGE = 25  # characters that must be the same in a row
WINDOW = 1  # every passage counts: texts are short
MAX_TEXT = 50_000  # characters that are compared; each takes half a kilobyte of memory
MIN_SHARED = 100  # such passages, each a character further than the one before
MIN_SHARE = 0.3  # of all passages of the shorter text
WHOLE = "all together"
SAME_FILE = "the same file, byte for byte"
PUBLISHED = "the published answer"  # in the place of a student
# How many students may share a passage that counts: so many always, and this share of a large class. Three
# who think alike may write the same line of code, and no two write the same sentence twice.
CODE, PROSE = (3, 0.02), (6, 0.1)


@dataclass(frozen=True)
class Pair:
    """Two students who share unusual passages."""

    one: str
    other: str
    characters: int  # in passages that they share, and hardly anybody else has
    share: float  # of all passages of the shorter text
    passage: str  # the longest
    where: str = WHOLE  # the exercise, or what else was compared


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


def similar(texts: Mapping[str, Texts], essays: Texts, known: Iterable[str] = ()) -> list[Pair]:
    """Return pairs of students who share unusual passages, in any exercise or in all of them together.

    `texts` has what each student wrote, by exercise. Those in `essays` are answered in prose, and come with
    the answer that was published, which makes a pair with whoever took it. Everybody may have the texts that
    are `known`: what students were given, and the solution.
    """
    exercises = list(dict.fromkeys(exercise for each in texts.values() for exercise in each))
    known, results = list(known), []
    for exercise in exercises:
        written = {student: each[exercise] for student, each in texts.items() if exercise in each}
        rare = PROSE if exercise in essays else CODE
        found = [*pairs(written, known, rare), *taken_from(essays.get(exercise, ""), written)]
        results += [replace(pair, where=exercise) for pair in found]
    met = {(pair.one, pair.other) for pair in results}
    whole = pairs({student: _together(each) for student, each in texts.items()}, known)
    results += [pair for pair in whole if (pair.one, pair.other) not in met]
    return sorted(results, key=lambda pair: (-pair.characters, pair.one, pair.other, pair.where))


def _together(texts: Mapping[str, str]) -> str:
    """Return all that a student wrote. A text that is too long takes no place from the others."""
    return "\n".join(text for text in texts.values() if len(text) <= MAX_TEXT)


def too_long(texts: Mapping[str, str]) -> list[str]:
    """Return the exercises in which only the beginning of what a student wrote is compared."""
    long = [exercise for exercise, text in texts.items() if len(text) > MAX_TEXT]
    return [*long, WHOLE] if len(_together(texts)) > MAX_TEXT else long


@dataclass(frozen=True)
class Group:
    """Students of whom each shares unusual passages with another one of them."""

    students: list[str]
    pairs: list[Pair]  # with the most in common first


def groups(found: Sequence[Pair]) -> list[Group]:
    """Return pairs as groups, the largest first: of twenty who copied from one, nobody reads 190 pairs."""
    group_of: dict[str, set[str]] = {}
    for pair in found:
        joined = {pair.one, pair.other}.union(*(group_of.get(each, ()) for each in (pair.one, pair.other)))
        group_of |= dict.fromkeys(joined, joined)
    members = {id(each): each for each in group_of.values()}.values()
    made = [Group(sorted(each), [pair for pair in found if pair.one in each]) for each in members]
    return sorted(made, key=lambda group: (-len(group.students), group.students))


def same_files(prints: Mapping[str, Mapping[str, str]]) -> list[Pair]:
    """Return pairs of students with byte-identical notebooks, by fingerprints of those that were changed."""
    having = defaultdict(list)
    for student, each in sorted(prints.items()):
        for notebook, content in each.items():
            if content:
                having[notebook, content].append(student)
    shared = defaultdict(list)
    for (notebook, _), (first, *others) in having.items():
        for other in others:  # of many with one file each is listed with the first
            shared[first, other].append(notebook)
    return [
        Pair(one, other, characters=0, share=1.0, passage=", ".join(sorted(notebooks)), where=SAME_FILE)
        for (one, other), notebooks in sorted(shared.items())
    ]


def _fingerprint(text: str) -> Any:
    # Loaded here: it brings all of matplotlib, a third of a second for every command that compares nothing.
    from copydetect import CodeFingerprint

    # Unfiltered: names, comments and spaces are what tells who wrote a formula that all have.
    return CodeFingerprint("", MIN_PASSAGE, WINDOW, filter=False, fp=io.StringIO(text[:MAX_TEXT]))


def _pair(one: str, other: str, text: str, marks: int, counts: Sequence[int], prints: Any) -> list[Pair]:
    """Return what two share, if that is enough; the longest passage is one of the first's `text`."""
    from copydetect import compare_files

    if marks < MIN_SHARED or (share := marks / min(counts)) < MIN_SHARE:
        return []
    characters, _, (slices, _) = compare_files(*prints)
    begin, end = max(zip(*slices, strict=True), key=lambda ends: ends[1] - ends[0])
    return [Pair(one, other, int(characters), share, " ".join(text[int(begin) : int(end)].split()))]


def taken_from(published: str, texts: Mapping[str, str]) -> list[Pair]:
    """Return a pair with `PUBLISHED` for each student whose text shares passages with a published one."""
    results: list[Pair] = []
    for student, text in sorted(texts.items()):
        if min(len(text), len(published)) > MIN_PASSAGE:
            prints = [_fingerprint(text), _fingerprint(published)]
            hashes = [set(each.hashes) for each in prints]
            marks, sizes = len(set.intersection(*hashes)), [len(each.hashes) for each in prints]
            results += _pair(student, PUBLISHED, text, marks, sizes, prints)
    return results


def pairs(texts: Mapping[str, str], known: Iterable[str] = (), rare: tuple[int, float] = CODE) -> list[Pair]:
    """Return pairs of students whose texts share passages that hardly anybody else has, most alike first."""
    texts = {student: text for student, text in texts.items() if len(text) > MIN_PASSAGE}
    everywhere = {mark for text in known if len(text) > MIN_PASSAGE for mark in _fingerprint(text).hashes}
    prints = {student: _fingerprint(text) for student, text in sorted(texts.items())}
    often = Counter(mark for each in prints.values() for mark in each.hashes)
    always, share_of_class = rare
    # In a class of seven and more these are at most half of it.
    limit = min(max(always, int(share_of_class * len(texts))), max(3, len(texts) // 2))
    common = everywhere | {mark for mark, students in often.items() if students > limit}
    count = {student: len(each.hashes) for student, each in prints.items()}
    having = defaultdict(list)
    for student, each in prints.items():
        each.hashes -= common
        for mark in each.hashes:
            having[mark].append(student)
    shared = Counter(pair for students in having.values() for pair in combinations(students, 2))
    results: list[Pair] = []
    for (one, other), marks in shared.items():
        sizes, both = (count[one], count[other]), (prints[one], prints[other])
        results += _pair(one, other, texts[one], marks, sizes, both)
    return sorted(results, key=lambda pair: (-pair.characters, pair.one, pair.other))
