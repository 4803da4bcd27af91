"""The instructor's own answers to essays, which stand in the cells that learners get without them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import nbformat

from .reference import name_of
from .titles import REGION

_SCHEME = re.compile(r"^### BEGIN MARK SCHEME$(.*?)^### END MARK SCHEME$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class ModelAnswer:
    """What an instructor wrote into the cell of an essay.

    Attributes
    ----------
    text : str
        The answer; Markdown, or code.
    scheme : str
        What earns points, as Markdown; empty where nothing says so.
    in_code : bool
        Whether the answer is code.
    """

    text: str
    scheme: str
    in_code: bool = False

    @classmethod
    def of(cls, source: str, cell_type: str = "markdown") -> ModelAnswer:
        """Read it from the source of an instructor's cell."""
        scheme = "\n".join(_SCHEME.findall(source)).strip()
        text = REGION.sub("", _SCHEME.sub("", source)).strip()
        return cls(text, scheme, cell_type == "code")

    @property
    def markdown(self) -> str:
        """The answer as Markdown."""
        return f"```python\n{self.text}\n```" if self.in_code else self.text


def model_answers(content: bytes) -> dict[str, ModelAnswer]:
    """The model answers in an instructor's notebook, by cell, in its order."""
    found = {}
    for cell in nbformat.reads(content.decode(), as_version=4).cells:
        told = cell.metadata.get("nbgrader", {})
        if told.get("grade") and told.get("solution"):
            answer = ModelAnswer.of(cell.source, cell.cell_type)
            if answer.text:
                found[str(name_of(cell))] = answer
    return found
