"""What exercises are called where people read of them: by their headings, and not by names of cells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import nbformat

from .structure import TrueCell

HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
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
        if cell.cell_type == "markdown" and (headings := HEADING.findall(cell.source)):
            heading = POINTS.sub("", headings[-1])
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in graded:
            found[name] = heading
    often = Counter(found.values())
    return {name: _own(name, found.get(name, ""), often) for name in graded}


def _own(name: str, heading: str, often: Mapping[str, int]) -> str:
    own = re.sub(r"[-_]+", " ", re.sub(r"[-_]test$", "", name)).strip()
    if not heading:
        return own
    return heading if often[heading] == 1 else f"{heading}: {own}"
