"""Answers that are nearly the same, for a person to look at: a finding proves nothing.

Most right answers of an exercise look alike. So only passages count that few students share and that were not
given out; which passages two texts share is found by winnowing, in the library copydetect.
"""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from copydetect import CodeFingerprint, compare_files
from nbformat import NotebookNode

from .mending import NOTE

PASSAGE = 25  # letters that must be the same in a row
WINDOW = 1  # every passage counts: texts are short
RARE = 0.02  # of the class, at most this share has a passage that counts; and two students always may
SHARED = 100  # such passages, each a letter further than the one before
SHARE = 0.3  # of all passages of the shorter text


@dataclass(frozen=True)
class Pair:
    """Two students who share unusual passages.

    Attributes
    ----------
    one, other : str
    letters : int
        In passages that they share, and hardly anybody else has.
    share : float
        Of all passages of the shorter text.
    passage : str
        The longest of them.
    """

    one: str
    other: str
    letters: int
    share: float
    passage: str


def written_by_student(nb: NotebookNode, locked: Container[str], given_out: Container[str]) -> str:
    """What a student wrote: answers that were changed, and cells that were added.

    Parameters
    ----------
    locked : container of str
        Names of cells that are not for changing.
    given_out : container of str
        Stripped texts of the cells that students were given.
    """
    return "\n".join(
        cell.source
        for cell in nb.cells
        if cell.metadata.get("nbgrader", {}).get("grade_id") not in locked
        and cell.source.strip() not in given_out
        and cell.id != NOTE
    )


def pairs(texts: Mapping[str, str], known: Iterable[str] = ()) -> list[Pair]:
    """Pairs of students whose texts share passages that hardly anybody else has, the most alike first.

    Parameters
    ----------
    texts : mapping of str to str
        What each student wrote.
    known : iterable of str
        Texts that everybody may have: what was given out, and the solution.
    """
    texts = {student: text for student, text in texts.items() if len(text) > PASSAGE}
    everywhere = {mark for text in known if len(text) > PASSAGE for mark in _fingerprint(text).hashes}
    prints = {student: _fingerprint(text) for student, text in sorted(texts.items())}
    often = Counter(mark for each in prints.values() for mark in each.hashes)
    most = max(2, int(RARE * len(texts)))
    common = everywhere | {mark for mark, students in often.items() if students > most}
    in_all = {student: len(each.hashes) for student, each in prints.items()}
    having = defaultdict(list)
    for student, each in prints.items():
        each.hashes -= common
        for mark in each.hashes:
            having[mark].append(student)
    shared = Counter(pair for students in having.values() for pair in combinations(students, 2))
    found = []
    for (one, other), marks in shared.items():
        share = marks / min(in_all[one], in_all[other])
        if marks >= SHARED and share >= SHARE:
            letters, _, (slices, _) = compare_files(prints[one], prints[other])
            begin, end = max(zip(*slices, strict=True), key=lambda ends: ends[1] - ends[0])
            passage = " ".join(texts[one][int(begin) : int(end)].split())
            found.append(Pair(one, other, int(letters), share, passage))
    return sorted(found, key=lambda pair: (-pair.letters, pair.one, pair.other))


def _fingerprint(text: str) -> CodeFingerprint:
    # Unfiltered: names, comments and spaces are what tells who wrote a formula that all have.
    return CodeFingerprint("", PASSAGE, WINDOW, filter=False, fp=io.StringIO(text))
