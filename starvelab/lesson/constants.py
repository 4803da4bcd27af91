"""Signs that an answer would not survive a check with other figures: constants, unused arguments.

A check that a learner sees has one or two cases, and a function may pass them without computing anything.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import TypeGuard

# What a formula may hold for its own sake, whatever figures the check has.
_COMMON = {0, 1, 2, 10, 100, 1000}
# What a check says, and not what it asks.
_WORDS = {"mistakes", "what", "within"}


def constants_in_question(check: str, answers: Mapping[str, str]) -> list[str]:
    """Say what functions, given by name and source, have of a check, or leave out of their arguments."""
    asked = ast.parse(check)
    figures = {_key(value) for value in _constants(asked)}
    found = []
    for name, source in answers.items():
        answer = ast.parse(source).body[0]
        if not isinstance(answer, ast.FunctionDef):
            continue
        used = {node.id for node in ast.walk(answer) if isinstance(node, ast.Name)}
        arguments = [
            one.arg for one in (*answer.args.posonlyargs, *answer.args.args, *answer.args.kwonlyargs)
        ]
        unused = [one for one in arguments if one not in used]
        if unused == arguments != []:
            found.append(f"{name} uses none of its arguments: a constant would not survive.")
        elif unused:
            left_out = " and ".join(unused)
            found.append(f"{name} does not use {left_out}: if that makes a difference, it would not survive.")
        same = [
            value for statement in answer.body for value in _constants(statement) if _key(value) in figures
        ]
        found += [
            f"{value} stands in {name} and in this check: if it is there for the check, it would not survive."
            for value in dict.fromkeys(same)
        ]
    return found


def answers_of(check: str, names: Mapping[str, object]) -> dict[str, str]:
    """Return the source of each function that a check calls, of the `names` that other cells have defined."""
    asked = list(ast.walk(ast.parse(check)))
    used = [node for node in asked if isinstance(node, ast.Name)]
    own = {node.name for node in asked if isinstance(node, ast.FunctionDef)}
    own |= {node.id for node in used if isinstance(node.ctx, ast.Store)}
    found = {}
    for name in sorted({node.id for node in used} - own):
        answer = names.get(name)
        if isinstance(answer, FunctionType) and answer.__module__ == "__main__":
            with contextlib.suppress(OSError):  # it was made by exec, for example
                found[name] = inspect.getsource(answer)
    return found


def _constants(node: ast.AST) -> Iterator[float | str]:
    """Numbers, and quantities in quotation marks, that count as figures of the case."""
    if isinstance(node, ast.Constant):
        if _is_figure(node.value):
            yield node.value
        return
    if isinstance(node, ast.keyword) and node.arg in _WORDS:
        return
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Credit", "credit.part"):
        # Points and titles.
        parts = [part for part in parts if not isinstance(part, ast.Constant)]
    for part in parts:
        yield from _constants(part)


def _is_figure(value: object) -> TypeGuard[float | str]:
    if isinstance(value, str):
        number = re.match(r"\d+(\.\d+)?", value)
        return number is not None and float(number[0]) not in _COMMON
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) not in _COMMON


def _key(value: float | str) -> float | str:
    return value.replace(" ", "") if isinstance(value, str) else float(value)
