"""The questions of a notebook, read from the calls of `predict` in its cells."""

from __future__ import annotations

import ast
from typing import Any

# The arguments of `predict` that make a question.
ARGUMENTS = frozenset(("question", "choices", "unit", "between", "whole", "unchanged"))


# Any: a literal that stands in a notebook.
def questions_in(source: str) -> dict[str, dict[str, Any]]:
    """The questions that a code cell asks.

    Parameters
    ----------
    source : str

    Returns
    -------
    dict of dict
        By key, the arguments that make the question. A call that computes one of them is left out.
    """
    if "predict(" not in source:
        return {}
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[str, dict[str, Any]] = {}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "predict"):
            continue
        try:
            key = ast.literal_eval(node.args[0]) if node.args else None
            asked = {one.arg: ast.literal_eval(one.value) for one in node.keywords if one.arg in ARGUMENTS}
        except (ValueError, TypeError, RecursionError, MemoryError):
            continue
        if isinstance(key, str) and isinstance(asked.get("question"), str):
            found.setdefault(key, {str(name): value for name, value in asked.items()})
    return found
