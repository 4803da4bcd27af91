"""Outputs of cells that ran in a sandbox. Student code may have forged them, so each is checked."""

from __future__ import annotations

from collections.abc import Iterable

import nbformat
from nbformat import NotebookNode

from ..sandbox.channel import Message

MAX_OUTPUTS = 1000
MAX_DEPTH = 100  # of what an output holds; nbconvert copies it with Python's own stack
NOT_SHOWN = "The outputs of this cell cannot be shown."


def printed(text: str) -> Message:
    """A line of text as the output of a cell."""
    return {"output_type": "stream", "name": "stdout", "text": f"{text}\n"}


def as_nodes(outputs: Iterable[Message]) -> list[NotebookNode]:
    """Outputs as a notebook holds them."""
    return [nbformat.from_dict(output) for output in outputs]


def checked(outputs: object) -> list[NotebookNode] | None:
    """Outputs that a notebook can hold; None where these are not such."""
    try:
        if not isinstance(outputs, list) or len(outputs) > MAX_OUTPUTS:
            return None
        nodes = as_nodes(outputs)
        _require_shallow(outputs)
        nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=nodes)])
        nbformat.validate(nb)
        nbformat.writes(nb).encode()  # this fails for text that JSON can hold and a file cannot
    # A forged output can fail in any of these steps, in any way.
    except Exception:
        return None
    return nodes


def _require_shallow(value: object, depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(depth)
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _require_shallow(each, depth + 1)
