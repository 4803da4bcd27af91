"""Checks of final answers, of the kind of the hidden ones: each draws values that nobody has seen.

What is drawn stands beside its exercise, in `solutions/`. The build puts it into `endings.json`, below the
model answer, which says what is right of it; in base64, against reading by accident.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from ..errors import check_names
from ..units import Q_, Quantity, format_number, format_quantity
from .checks import Answer, Credit, WrongAnswer, check

FILE = Path(__file__).with_name("endings.json")
# Adds parts to a credit, and returns sentences that say what nobody was told before.
Check: TypeAlias = Callable[[Credit, Answer, Random], Sequence[str]]
CASES = 20
# As near as the nearest hidden check asks for: the model answer rounds nothing.
WITHIN = 2e-4
_PER_MINUTE = Q_("1 s/min").units


@dataclass(frozen=True)
class Ending:
    """The end of an exercise: the points that its hidden checks give, and a check of their kind."""

    points: float
    check: Check


@cache
def endings() -> dict[str, dict[str, str]]:
    """What the build has written: by the id of the answer's cell and the name of its function."""
    found: dict[str, dict[str, str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def model_answers(function: str) -> list[str]:
    """Return the model answers of the exercises that a function answers, each with what is drawn for it."""
    return [b64decode(one[function]).decode() for one in endings().values() if function in one]


def ending_of(key: str, answer: Callable[..., Answer]) -> Ending:
    """Return the ending of an exercise.

    Raises
    ------
    UnknownNameError
        If there is no such exercise, or another function answers it.
    """
    check_names([key], endings(), "finish", kind="exercise")
    # The model answer finds what the notebook has imported, and leaves the names of the notebook alone.
    # Any: whatever the text defines.
    names: dict[str, Any] = dict(answer.__globals__)
    # An answer may be a lambda that has the name.
    called = next((name for name in endings()[key] if names.get(name) is answer), answer.__name__)
    check_names([called], endings()[key], f'finish("{key}")', kind="answer")
    exec(b64decode(endings()[key][called]), names)
    points, *how = names["ending"]
    return Ending(points, how[0] if len(how) == 1 else _of_cases(names[called], points, *how))


def _of_cases(
    right: Callable[..., Answer],
    points: float,
    what: str,
    draw_case: Callable[[Random], Sequence[object]],
    exact: str = "",
) -> Check:
    """Hold an answer against the right one: each case has other values, and often other units.

    Where "exact" is said, units stay as they are drawn, since no rounding may decide a tie.
    """

    def told(credit: Credit, answer: Answer, draw: Random) -> Sequence[str]:
        def compare() -> None:
            for _ in range(CASES):
                case = [one if exact else _in_any_unit(one, draw) for one in draw_case(draw)]
                # An answer may change what it is given.
                expected = right(*deepcopy(case))
                try:
                    _agree(answer(*deepcopy(case)), expected)
                except WrongAnswer as error:
                    raise WrongAnswer(f"{error}{_values(case)}") from None

        credit.part(points, f"twenty random {what}", compare)
        return ()

    return told


def _agree(answer: Answer, right: Answer) -> None:
    if not isinstance(right, tuple | list):
        check(answer, right, what="the answer to random values", within=WITHIN)
        return
    values = list(answer)
    check(len(values), len(right), what="the number of values")
    for value, expected in zip(values, right, strict=True):
        check(value, expected, what="one of the results for random values", within=WITHIN)


# Any: what a case is made of.
def _in_any_unit(value: Any, draw: Random) -> Any:
    if isinstance(value, dict):
        return {key: _in_any_unit(one, draw) for key, one in value.items()}
    if not isinstance(value, Quantity) or draw.random() < 0.6:
        return value
    other = value.to_base_units()
    return other.to(other.units * _PER_MINUTE) if other.units == value.units else other


def _values(case: Sequence[object]) -> str:
    """Say what the answer was given, where that is a few values."""
    if not all(isinstance(one, int | float | str | Quantity) for one in case):
        return ""
    return f" It was given {', '.join(map(_value, case))}."


def _value(value: object) -> str:
    if isinstance(value, Quantity):
        return format_quantity(value)
    return format_number(value) if isinstance(value, float) else repr(value)
