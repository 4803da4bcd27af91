"""Answers that are nearly the same, for a person to look at: a finding proves nothing.

Most right answers of an exercise look alike. So only passages count that few students share and that were not
given out; which passages two texts share is found by winnowing, in the library copydetect.
"""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from copydetect import CodeFingerprint, compare_files
from nbformat import NotebookNode

PASSAGE = 25  # letters that must be the same in a row
WINDOW = 1  # every passage counts: texts are short
RARE = 0.02  # of the class, at most this share has a passage that counts; and two students always may
SHARED = 150  # letters in such passages
SHARE = 0.3  # of what either wrote


@dataclass(frozen=True)
class Pair:
    """Two students who share unusual passages.

    Attributes
    ----------
    one, other : str
    letters : int
        In passages that they share, and hardly anybody else has.
    share : float
        The larger of the shares that these are of what each wrote.
    passage : str
        The longest of them.
    """

    one: str
    other: str
    letters: int
    share: float
    passage: str


def written_by_student(nb: NotebookNode, given_out: Mapping[str, str]) -> str:
    """What a student wrote: answers that were changed, and cells that were added."""
    texts = []
    for cell in nb.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name is None or (name in given_out and cell.source.strip() != given_out[name].strip()):
            texts.append(cell.source)
    return "\n".join(texts)


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
    often = Counter(mark for text in texts.values() for mark in _fingerprint(text).hashes)
    most = max(2, int(RARE * len(texts)))
    common = everywhere | {mark for mark, students in often.items() if students > most}
    prints = {student: _fingerprint(text) for student, text in texts.items()}
    for each in prints.values():
        each.hashes -= common
    sharing = defaultdict(list)
    for student, each in prints.items():
        for mark in each.hashes:
            sharing[mark].append(student)
    found = []
    for one, other in {pair for students in sharing.values() for pair in combinations(sorted(students), 2)}:
        letters, shares, (slices, _) = compare_files(prints[one], prints[other])
        if letters >= SHARED and max(shares) >= SHARE:
            begin, end = max(zip(*slices, strict=True), key=lambda ends: ends[1] - ends[0])
            passage = " ".join(texts[one][int(begin) : int(end)].split())
            found.append(Pair(one, other, int(letters), float(max(shares)), passage))
    return sorted(found, key=lambda pair: (-pair.letters, pair.one, pair.other))


def _fingerprint(text: str) -> CodeFingerprint:
    # Unfiltered: names, comments and spaces are what tells who wrote a formula that all have.
    return CodeFingerprint("", PASSAGE, WINDOW, filter=False, fp=io.StringIO(text))
