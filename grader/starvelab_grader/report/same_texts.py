"""Essays and notebooks that are the same but for spaces, case and punctuation, which proves nothing."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from unicodedata import normalize

PUBLISHED = "the published answer"  # in the place of a student
MIN_WORDS = 8  # in an essay: two who write that the drive is too slow copied nothing
MAX_WORDS = 50_000
MIN_FILE_WORDS = 80  # in a notebook: right answers of ten lines are the same
Texts = Mapping[str, Mapping[str, str]]  # by student, and by exercise or notebook


@dataclass(frozen=True)
class SameText:
    """Students who wrote the same to an exercise, or in a notebook."""

    students: list[str]
    where: str
    text: str  # of the first


def words_of(text: str) -> tuple[str, ...]:
    """Return the first words of a text, in small letters, without spaces and punctuation."""
    # To normalize accents takes a time that grows with the square of their number.
    pieces = (normalize("NFKC", piece[0]).casefold() for piece in re.finditer(r"\S{1,100}", text))
    return tuple(islice((word for piece in pieces for word in re.findall(r"\w+", piece)), MAX_WORDS))


def same_texts(texts: Texts, least: int = MIN_WORDS) -> list[SameText]:
    """Return the groups of students with the same text of at least so many words, the largest first."""
    authors = defaultdict[tuple[str, tuple[str, ...]], list[str]](list)
    for student, written in sorted(texts.items()):
        for where, text in written.items():
            if len(words := words_of(text)) >= least:
                authors[where, words].append(student)
    groups = [(where, students) for (where, _), students in authors.items() if len(students) > 1]
    found = [SameText(students, where, texts[students[0]][where]) for where, students in groups]
    return sorted(found, key=lambda group: (-len(group.students), group.students, group.where))
