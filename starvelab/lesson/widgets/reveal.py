"""Showing the truth beside a prediction, once one is locked.

It does not know how the truth was worked out, nor what is displayed after it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any

from IPython.display import display

from ... import runtime
from ...errors import InputError
from ...prediction_file import Prediction
from ...units import Quantity
from . import words
from .question import WITHIN, asked, check_key, in_unit, same_choice
from .store import PredictionStore

LOCK_FIRST = "Lock your prediction above first, then run this cell again."
NEVER_SHOWN = "Its answer was not shown before this was handed in."


def reveal(
    key: str,
    truth: Any = None,
    *,
    then: Callable[[], Any] | None = None,
    within: float = WITHIN,
    folder: str | os.PathLike[str] | None = None,
) -> None:
    """Show `truth` beside the prediction locked under `key`, then call `then`.

    While nothing is locked it shows neither, says what to do, and raises nothing: Run All gets through.
    Without a truth it only holds `then` back until the prediction is locked.

    Parameters
    ----------
    key : str
        Name of the prediction.
    truth : str, number or quantity, optional
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
    if truth is None and then is None:
        raise InputError("A reveal shows a truth, calls `then`, or both; it got neither. Pass one of them.")
    store = PredictionStore(folder)
    contents = store.read()
    record = contents.predictions.get(key)
    if record is None:
        _show(" ".join(filter(None, (LOCK_FIRST, _which(key), contents.problem))), "Please note")
        return
    if truth is not None:
        _show_truth(truth, record, store, within)
    if then is not None:
        returned = then()
        if returned is not None:
            display(returned)


def _which(key: str) -> str:
    """The question, as the learner has read it: nobody sees its key."""
    text = " ".join(asked.get(key, "").partition("\n\n")[0].replace("**", "").replace("`", "").split())
    return f'It is the one that asks: "{text}"' if text else ""


def _show_truth(truth: Any, record: Prediction, store: PredictionStore, within: float) -> None:
    try:
        plain = _comparable(truth, record)
    except InputError as error:
        # A mistake of the notebook, not of the learner: say it, and go on with what was to be shown.
        _show(str(error), "Problem")
        return
    if runtime.current().is_grading:
        # A grader's run measures nothing, and what it finds is no news to the learner: only the old is shown.
        _show_outcome(record, now=record.truth)
        return
    outcome = store.reveal(record.key, truth=plain, hit=_is_hit(record, plain, within))
    _show_outcome(outcome.record, now=plain)
    if outcome.problem is not None:
        _show(outcome.problem, "Please note")


def _comparable(truth: Any, record: Prediction) -> str | float:
    """The truth as it is stored: a text, or a number in the unit of the prediction."""
    what = f"The truth of {record.key!r}"
    # Locked in code without its question, a prediction knows neither unit nor choices. If it turns out to be
    # of another kind than the truth, that is a miss and not a fault of the notebook.
    free = record.unit is None and record.choices is None
    if isinstance(truth, Quantity):
        truth = truth.magnitude if free else in_unit(truth, record.unit, what)
    if isinstance(truth, str):
        if free or any(same_choice(truth, one) for one in record.choices or ()):
            return truth
    elif record.choices is None and _is_finite(truth):
        return float(truth)
    expected = f"one of {', '.join(record.choices)}" if record.choices else "a finite number"
    raise InputError(f"{what} must be {expected}, got {truth!r}. Correct the call of reveal.")


def _is_finite(number: Any) -> bool:
    return isinstance(number, Real) and not isinstance(number, bool) and math.isfinite(number)


def _is_hit(record: Prediction, truth: str | float, within: float) -> bool:
    if isinstance(record.answer, str) or isinstance(truth, str):
        return same_choice(record.answer, truth)
    return abs(record.answer - truth) <= within * abs(truth) * (1 + 1e-12)


def _show_outcome(record: Prediction, *, now: str | float | None) -> None:
    if record.truth is None:
        _show(f"{words.prediction(record)} {NEVER_SHOWN}", "Please note")
        return
    lines = [words.prediction(record), f"The answer: {words.truth(record)}."]
    if not record.hit and not isinstance(record.answer, str) and not isinstance(record.truth, str):
        lines.append(_distance(record.answer, record.truth))
    if now != record.truth:
        lines.append(
            f"The cell now gives {words.truth(replace(record, truth=now))}; "
            "the score card keeps the answer that was shown first."
        )
    _show(" ".join(filter(None, lines)), "Hit" if record.hit else "Miss")


def _distance(answer: float, truth: float) -> str:
    """How far off a number was: in percent when it was near, as a factor when it was not."""
    ratio = answer / truth if truth else 0.0
    if ratio >= 2:
        return f"That is {ratio:.3g} times as much."
    if 0 < ratio <= 0.5:
        return f"The answer is {1 / ratio:.3g} times as much."
    if not truth:
        return ""
    off = (answer - truth) / abs(truth)
    return f"You were {words.percent(abs(off))} {'above' if off > 0 else 'below'} it."


def _show(text: str, word: str) -> None:
    display({"text/html": words.notice(words.escape(text), word), "text/plain": f"{word}. {text}"}, raw=True)
