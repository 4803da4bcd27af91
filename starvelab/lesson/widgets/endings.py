"""The end of an exercise for somebody who learns alone: a final answer is checked with new values.

What is drawn stands beside its exercise, in `solutions/`. The build puts it into `endings.json`, below the
model answer, which says what is right of it; in base64, against reading by accident.
"""

from __future__ import annotations

import json
import linecache
from base64 import b64decode
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from ... import runtime
from ...errors import check_names
from ...prediction_file import Prediction
from ...tables import points as in_points
from ...units import Q_, Quantity, format_number, format_quantity
from ..checks import Answer, Credit, WrongAnswer, check
from ..exercises import FINAL, NOT_ANSWERED, digest
from ..notices import Sentences
from .store import PredictionStore, now

FILE = Path(__file__).parents[1] / "endings.json"
# Adds parts to a credit, and returns sentences that say what nobody was told before.
Check: TypeAlias = Callable[[Credit, Answer, Random], Sequence[str]]
CASES = 20
# As near as the nearest hidden check asks for: the model answer rounds nothing.
WITHIN = 2e-4
_PER_MINUTE = Q_("1 s/min").units
GRADED = "It is for somebody who learns alone. This notebook is being graded, and hidden checks decide."
OPEN = "There is nothing to finish yet: write your answer, run its cell, and then this one."
ASK = (
    "Do you learn alone, and is your answer final? With final=True you see what hidden checks say, "
    "and your report says that you did."
)
ASKED = "__finish_asked_at__"  # a name of the notebook's, so that another notebook asks again
CHANGED = "You have changed your answer since it was final, and your report says so."


@cache
def endings() -> dict[str, dict[str, str]]:
    """What the build has written: by the id of the answer's cell and the name of its function."""
    found: dict[str, dict[str, str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def ending_of(key: str, answer: Callable[..., Answer]) -> tuple[float, Check]:
    """Return the points that the hidden checks of an exercise give, and a check of their kind."""
    check_names([key], endings(), "finish", kind="exercise")
    # The model answer finds what the notebook has imported, and leaves the names of the notebook alone.
    # Any: whatever the text defines.
    names: dict[str, Any] = dict(answer.__globals__)
    # An answer may be a lambda that has the name.
    called = next((name for name in endings()[key] if names.get(name) is answer), answer.__name__)
    check_names([called], endings()[key], f'finish("{key}")', kind="answer")
    exec(b64decode(endings()[key][called]), names)
    points, *how = names["ending"]
    return points, how[0] if len(how) == 1 else _of_cases(names[called], points, *how)


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


@dataclass(frozen=True, repr=False)
class Finished(Sentences):
    """What somebody hears at the end of an exercise."""

    said: tuple[str, ...]

    def sentences(self) -> list[str]:
        """Say what came of it, or what to do first."""
        return list(self.said)


def finish(key: str, answer: Callable[..., Answer], *, final: bool = False) -> Finished | None:
    """Finish an exercise: lock the answer as final, check it with new values, and tell what was hidden.

    Parameters
    ----------
    key : str
        The exercise, by the id of its answer.
    answer : function
        Your answer.
    final : bool
        True says that the answer is final; until then nothing is checked.

    Returns
    -------
    Finished or None
        Shows itself when it ends a cell. None if the answer is not final and is not written yet, is being
        graded, or was asked about before.

    Raises
    ------
    UnknownNameError
        If there is no such exercise, or another function answers it.
    """
    if runtime.current().is_grading:
        return Finished((GRADED,)) if final else None
    points, check_of = ending_of(key, answer)
    source = "".join(linecache.getlines(answer.__code__.co_filename))
    if NOT_ANSWERED in source:
        # Else the check above says so already.
        return Finished((OPEN,)) if final else None
    store = PredictionStore()
    locked = store.get(FINAL + key)
    if locked is None and not final:
        return Finished((ASK,)) if answer.__globals__.setdefault(ASKED, key) == key else None
    mine, problem = digest(source, store.folder), None
    if locked is None:
        stored = store.lock(Prediction(key=FINAL + key, answer=mine, locked_at=now()))
        locked, problem = stored.prediction, stored.problem
    credit = Credit(points)
    told = check_of(credit, answer, Random())
    changed = CHANGED if locked.answer != mine else ""
    store.memory.finished[key] = credit.earned, points
    earned = f"{in_points(credit.total())} of the {in_points(points)} points that hidden checks give"
    return Finished(tuple(filter(None, (f"{earned}.", *told, changed, problem))))
