"""Showing the truth beside a prediction, once it is locked."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from numbers import Real

from IPython.display import display

from ... import runtime
from ...errors import InputError
from ...prediction_file import Prediction
from ...units import Quantity
from . import words
from .memory import KERNEL, Memory
from .question import WITHIN, Answer, check_key, in_unit, same_choice
from .store import PredictionStore

LOCK_FIRST = "Lock your prediction above first, then run this cell again."
NOT_COUNTED = (
    "This measurement was disturbed ({}), so it does not become the answer. Close what else runs on this "
    "machine, run the measuring cell again, and then this one."
)
NEVER_SHOWN = "Its answer was not shown before this was submitted."


def reveal(
    key: str,
    truth: Answer = None,
    *,
    then: Callable[[], object] | None = None,
    within: float = WITHIN,
    measured: Answer = None,
    disturbed: str = "",
    folder: str | os.PathLike[str] | None = None,
    memory: Memory = KERNEL,
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
    measured : number or quantity, optional
        What was measured, where the truth is what a model says. Whoever predicted this number gets credit for
        it: the score card counts a hit.
    disturbed : str
        What disturbed the measurement that `truth` comes from; empty if nothing did. A disturbed measurement
        is shown by `then`, and never becomes the answer.
    folder : path, optional
        Where ``predictions.json`` stands; the folder the notebook runs in unless given.
    memory : Memory
        What this kernel keeps beside the file.
    """
    check_key(key)
    if truth is None and then is None and measured is None:
        raise InputError("A reveal shows a truth, calls `then`, or both; it got neither. Pass one of them.")
    store = PredictionStore(folder, memory)
    contents = store.read()
    prediction = contents.predictions.get(key)
    if prediction is None:
        _show(
            " ".join(filter(None, (LOCK_FIRST, memory.which(key), contents.problem))),
            "Please note",
        )
        return
    if truth is not None and disturbed and not prediction.revealed and not runtime.current().is_grading:
        _show(f"{words.prediction(prediction)} {NOT_COUNTED.format(disturbed)}", "Please note")
    elif truth is not None:
        _show_truth(truth, prediction, store, within)
    if measured is not None:
        _show_measured(measured, prediction, store, within)
    if then is not None:
        returned = then()
        if returned is not None:
            display(returned)  # type: ignore[no-untyped-call]


def _show_truth(truth: Answer, prediction: Prediction, store: PredictionStore, within: float) -> None:
    try:
        value = _comparable(truth, prediction)
    except InputError as error:
        # A mistake of the notebook, not of the learner: say it, and go on with what was to be shown.
        _show(str(error), "Problem")
        return
    if runtime.current().is_grading:
        # A grader's run measures nothing, and what it finds is no news to the learner: only the old is shown.
        _show_result(prediction, now=prediction.truth, within=within)
        return
    result = store.reveal(prediction.key, truth=value, hit=_is_hit(prediction, value, within))
    _show_result(result.prediction, now=value, within=within)
    if result.problem is not None:
        _show(result.problem, "Please note")


def _show_measured(measured: Answer, prediction: Prediction, store: PredictionStore, within: float) -> None:
    """Give credit to whoever predicted what was measured and not what the model says."""
    try:
        value = _comparable(measured, prediction)
    except InputError as error:
        _show(str(error), "Problem")
        return
    if isinstance(value, str) or not _is_hit(prediction, value, within):
        return
    if not runtime.current().is_grading:
        store.credit(prediction.key, measured=value)
    _show(
        f"{words.prediction(prediction)} {words.number(value, prediction.unit)} were measured: your number "
        "is closer to that than the model's. The score card counts it as a hit.",
        "Credit",
    )


def _comparable(truth: Answer, prediction: Prediction) -> str | float:
    """The truth as it is stored: a text, or a number in the unit of the prediction."""
    what = f"The truth of {prediction.key!r}"
    # Locked in code without its question, a prediction knows neither unit nor choices. If it turns out to be
    # of another kind than the truth, that is a miss and not a fault of the notebook.
    free = prediction.unit is None and prediction.choices is None
    if isinstance(truth, Quantity):
        truth = truth.magnitude if free else in_unit(truth, prediction.unit, what)
    if isinstance(truth, str):
        if free or any(same_choice(truth, one) for one in prediction.choices or ()):
            return truth
    elif prediction.choices is None and _is_finite(truth):
        return float(truth)
    expected = f"one of {', '.join(prediction.choices)}" if prediction.choices else "a finite number"
    raise InputError(f"{what} must be {expected}, got {truth!r}. Correct the call of reveal.")


def _is_finite(number: Answer) -> bool:
    return isinstance(number, Real) and not isinstance(number, bool) and math.isfinite(number)


def _is_hit(prediction: Prediction, truth: str | float, within: float) -> bool:
    if isinstance(prediction.answer, str) or isinstance(truth, str):
        return same_choice(prediction.answer, truth)
    return abs(prediction.answer - truth) <= within * abs(truth) * (1 + 1e-12)


def _show_result(prediction: Prediction, *, now: str | float | None, within: float) -> None:
    if prediction.truth is None:
        _show(f"{words.prediction(prediction)} {NEVER_SHOWN}", "Please note")
        return
    lines = [words.prediction(prediction), f"The answer: {words.truth(prediction)}."]
    # With a credit for what was measured it counts as a hit, and still misses what the model says.
    hit = prediction.hit
    if prediction.measured is not None:
        hit = _is_hit(prediction, prediction.truth, within)
    if not (hit or isinstance(prediction.answer, str) or isinstance(prediction.truth, str)):
        lines.append(_distance(prediction.answer, prediction.truth, prediction.unit))
    if now != prediction.truth:
        lines.append(
            f"The cell now gives {words.truth(replace(prediction, truth=now))}; "
            "the score card keeps the answer that was shown first."
        )
    _show(" ".join(filter(None, lines)), "Hit" if hit else "Miss")


def _distance(answer: float, truth: float, unit: str | None) -> str:
    """How far off a number was: the difference when it was near, a factor when it was not."""
    ratio = answer / truth if truth else 0.0
    if ratio >= 2:
        return f"Your number is {ratio:.2g} times the answer."
    if 0 < ratio <= 0.5:
        return f"The answer is {1 / ratio:.2g} times your number."
    if not truth:
        return ""
    side = "above" if answer > truth else "below"
    if unit == "%":
        return f"Your number is {abs(answer - truth):.2g} percentage points {side} the answer."
    return f"Your number is {words.percent(abs((answer - truth) / truth))} {side} the answer."


def _show(text: str, word: str) -> None:
    formats = {"text/html": words.notice(words.escape(text), word), "text/plain": f"{word}. {text}"}
    display(formats, raw=True)  # type: ignore[no-untyped-call]
