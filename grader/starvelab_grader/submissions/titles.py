"""Titles of exercises as people read them: from headings, and not from names of cells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import nbformat

from starvelab.lesson.exercises import HEADING, POINTS

from .reference_cell import ReferenceCell

# What nbgrader takes out of a cell stands between such lines, which look like headings.
REGION = re.compile(r"^### (BEGIN|END) [A-Z ]+$", re.MULTILINE)


def title_of(content: bytes, name: str) -> str:
    """The title of an instructor's notebook: its first heading, or the name of its file."""
    for cell in nbformat.reads(content.decode(), as_version=4).cells:
        if cell.cell_type == "markdown" and (match := HEADING.search(cell.source)):
            return match[1]
    return name


def titles_of(content: bytes, reference: Iterable[ReferenceCell]) -> dict[str, str]:
    """A title for each graded cell of an instructor's notebook: the last heading before it.

    Where several stand under one heading, the name of the cell follows the heading.
    """
    graded = {cell.name for cell in reference if cell.grade or cell.task}
    titles: dict[str, str] = {}
    heading = ""
    for cell in nbformat.reads(content.decode(), as_version=4).cells:
        metadata = cell.metadata.get("nbgrader", {})
        name = metadata.get("grade_id")
        # The headings of an answer are no titles.
        if cell.cell_type == "markdown" and not metadata.get("solution"):
            headings = HEADING.findall(REGION.sub("", cell.source))
            heading = POINTS.sub("", headings[-1]) if headings else heading
        if name in graded:
            titles[name] = heading
    count = Counter(titles.values())
    return {name: _with_name(name, titles.get(name, ""), count) for name in graded}


def _with_name(name: str, heading: str, count: Mapping[str, int]) -> str:
    """A heading that stands over one cell; otherwise the heading and the name of the cell."""
    words = re.sub(r"[-_]+", " ", re.sub(r"[-_]test$", "", name)).strip()
    if not heading:
        return words
    return heading if count[heading] == 1 else f"{heading}: {words}"
