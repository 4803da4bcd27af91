"""Showing the truth beside a prediction, once one is locked.

It does not know how the truth was worked out, nor what is displayed after it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from numbers import Real
from typing import Any

from IPython.display import display

from ..errors import InputError
from ..units import Quantity
from . import words
from .question import WITHIN, check_key, in_unit, same_choice
from .store import PredictionStore, Record

LOCK_FIRST = "Lock your prediction above first, then run this cell again."


def reveal(
    key: str,
    truth: Any,
    *,
    then: Callable[[], Any] | None = None,
    within: float = WITHIN,
    folder: str | os.PathLike[str] | None = None,
) -> None:
    """Show `truth` beside the prediction locked under `key`, then call `then`.

    While nothing is locked it shows neither, says what to do, and raises nothing: Run All gets through.

    Parameters
    ----------
    key : str
        Name of the prediction.
    truth : str, number or quantity
        The answer. A quantity is converted to the unit of the prediction; a plain number is taken to
        be in that unit.
    then : function without arguments, optional
        Prints or displays what follows; what it returns is displayed too.
    within : float
        How near a number must be to count as a hit, as a share of the truth.
    folder : path, optional
        Where ``predictions.json`` stands; the folder the notebook runs in unless given.
    """
    check_key(key)
    store = PredictionStore(folder)
    contents = store.read()
    record = contents.records.get(key)
    if record is None:
        _show(LOCK_FIRST if contents.problem is None else f"{LOCK_FIRST} {contents.problem}", "Please note")
        return
    try:
        plain = _comparable(truth, record)
    except InputError as error:
        # A mistake of the notebook, not of the learner: say it, and go on with what was to be shown.
        _show(str(error), "Problem")
    else:
        outcome = store.reveal(key, truth=plain, hit=_is_hit(record, plain, within))
        _show_outcome(outcome.record, now=plain)
        if outcome.problem is not None:
            _show(outcome.problem, "Please note")
    if then is not None:
        returned = then()
        if returned is not None:
            display(returned)


def _comparable(truth: Any, record: Record) -> str | float:
    """The truth in the form of the prediction: a text for a text, a number in its unit for a number."""
    if isinstance(truth, Quantity) and not isinstance(record.answer, str):
        truth = in_unit(truth, record.unit, f"The truth of {record.key!r}")
    if isinstance(record.answer, str):
        if isinstance(truth, str) and (
            record.choices is None or any(same_choice(truth, one) for one in record.choices)
        ):
            return truth
        expected = f"one of {', '.join(record.choices)}" if record.choices else "a text"
    else:
        if isinstance(truth, Real) and not isinstance(truth, bool) and math.isfinite(truth):
            return float(truth)
        expected = f"a finite number in {record.unit}" if record.unit else "a finite number"
    raise InputError(
        f"The truth of {record.key!r} must be {expected}, got {truth!r}. Correct the call of reveal."
    )


def _is_hit(record: Record, truth: str | float, within: float) -> bool:
    if isinstance(truth, str):
        return same_choice(record.answer, truth)
    return abs(float(record.answer) - truth) <= within * abs(truth) * (1 + 1e-12)


def _show_outcome(record: Record, *, now: str | float) -> None:
    lines = [words.prediction(record), f"The answer: {words.value(record.truth, record.unit)}."]
    if not record.hit and not isinstance(record.truth, str) and record.truth:
        off = (float(record.answer) - record.truth) / abs(record.truth)
        lines.append(f"You were {words.percent(abs(off))} {'above' if off > 0 else 'below'} it.")
    if now != record.truth:
        lines.append(
            f"The cell now gives {words.value(now, record.unit)}; "
            "the score card keeps the answer that was shown first."
        )
    _show(" ".join(lines), "Hit" if record.hit else "Miss")


def _show(text: str, word: str) -> None:
    display({"text/html": words.notice(words.escape(text), word), "text/plain": f"{word}. {text}"}, raw=True)
