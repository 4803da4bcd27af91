"""What exercises are called where people read of them: by their headings, and not by names of cells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import nbformat

from .notebooks import TrueCell

HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
# What nbgrader takes out of a cell stands between such lines, which look like headings.
REGION = re.compile(r"^### (BEGIN|END) [A-Z ]+$", re.MULTILINE)
POINTS = re.compile(r"\s*\([^()]*\bpoints?\b[^()]*\)$")


def title_of(content: bytes, name: str) -> str:
    """The title of an instructor's notebook: its first heading, or the name of its file."""
    for cell in nbformat.reads(content.decode(), as_version=4).cells:
        if cell.cell_type == "markdown" and (found := HEADING.search(cell.source)):
            return found[1]
    return name


def titles_of(content: bytes, truth: Iterable[TrueCell]) -> dict[str, str]:
    """A title for each graded cell of an instructor's notebook: the last heading before it.

    Where several stand under one heading, each has its own name behind it.
    """
    graded = {cell.name for cell in truth if cell.grade or cell.task}
    found: dict[str, str] = {}
    heading = ""
    for cell in nbformat.reads(content.decode(), as_version=4).cells:
        metadata = cell.metadata.get("nbgrader", {})
        name = metadata.get("grade_id")
        # The headings of an answer are no titles.
        if cell.cell_type == "markdown" and not metadata.get("solution"):
            headings = HEADING.findall(REGION.sub("", cell.source))
            heading = POINTS.sub("", headings[-1]) if headings else heading
        if name in graded:
            found[name] = heading
    often = Counter(found.values())
    return {name: _own(name, found.get(name, ""), often) for name in graded}


def _own(name: str, heading: str, often: Mapping[str, int]) -> str:
    own = re.sub(r"[-_]+", " ", re.sub(r"[-_]test$", "", name)).strip()
    if not heading:
        return own
    return heading if often[heading] == 1 else f"{heading}: {own}"
