"""What an instructor's notebook says of its exercises: titles as people read them, and answers to essays."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import nbformat
from nbformat import NotebookNode

from .reference import ReferenceCell

HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
_POINTS = re.compile(r"\s*\([^()]*\bpoints?\b[^()]*\)$")
# What nbgrader takes out of a cell stands between such lines, which look like headings.
_REGION = re.compile(r"^### (BEGIN|END) [A-Z ]+$", re.MULTILINE)
_SCHEME = re.compile(r"^### BEGIN MARK SCHEME$(.*?)^### END MARK SCHEME$", re.MULTILINE | re.DOTALL)


def _cells(content: bytes) -> Iterator[tuple[NotebookNode, dict[str, object]]]:
    """The cells of a notebook, with what nbgrader knows of each."""
    for cell in nbformat.reads(content.decode(), as_version=4).cells:
        yield cell, cell.metadata.get("nbgrader", {})


def title_of(content: bytes, name: str) -> str:
    """Return the title of an instructor's notebook: its first heading, or the name of its file."""
    texts = (cell.source for cell, _ in _cells(content) if cell.cell_type == "markdown")
    return next((match[1] for match in map(HEADING.search, texts) if match), name)


def titles_of(content: bytes, reference: Iterable[ReferenceCell]) -> dict[str, str]:
    """Return a title for each graded cell of an instructor's notebook: the last heading before it.

    Where several stand under one heading, the name of the cell follows the heading.
    """
    titles = {cell.name: "" for cell in reference if cell.grade or cell.task}
    heading = ""
    for cell, flags in _cells(content):
        # The headings of an answer are no titles.
        if cell.cell_type == "markdown" and not flags.get("solution"):
            headings = HEADING.findall(_REGION.sub("", cell.source))
            heading = _POINTS.sub("", headings[-1]) if headings else heading
        if (name := str(flags.get("grade_id"))) in titles:
            titles[name] = heading
    count = Counter(titles.values())
    for name, heading in titles.items():
        words = re.sub(r"[-_]+", " ", re.sub(r"[-_]test$", "", name)).strip()
        if not heading or count[heading] > 1:
            titles[name] = f"{heading}: {words}" if heading else words
    return titles


@dataclass(frozen=True)
class ModelAnswer:
    """An answer that an instructor wrote into the cell of an essay, which learners get without it."""

    text: str  # Markdown, or code
    scheme: str  # what earns points, as Markdown; empty where nothing says so
    in_code: bool = False

    @classmethod
    def of(cls, source: str, cell_type: str = "markdown") -> ModelAnswer:
        """Read it from the source of an instructor's cell."""
        scheme = "\n".join(_SCHEME.findall(source)).strip()
        text = _REGION.sub("", _SCHEME.sub("", source)).strip()
        return cls(text, scheme, cell_type == "code")

    @property
    def markdown(self) -> str:
        """The answer as Markdown."""
        return f"```python\n{self.text}\n```" if self.in_code else self.text


def model_answers(content: bytes) -> dict[str, ModelAnswer]:
    """Return the model answers in an instructor's notebook, by cell, in its order."""
    answers = {
        str(flags["grade_id"]): ModelAnswer.of(cell.source, cell.cell_type)
        for cell, flags in _cells(content)
        if flags.get("grade") and flags.get("solution")
    }
    return {name: answer for name, answer in answers.items() if answer.text}
