"""A prediction beside its truth: whether it is a hit, and what is said of it."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Real

from ...errors import InputError
from ...prediction_file import Prediction
from ...units import Quantity
from . import words
from .question import WITHIN, Answer, in_unit, same_choice

# So near to "nothing" a change is no change: measurements differ by as much. A share, or 5 percentage points.
NO_CHANGE = 0.05
NEVER_SHOWN = "Its answer was not shown before this was submitted."


def comparable(truth: Answer, prediction: Prediction) -> str | float:
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


def is_hit(prediction: Prediction, truth: str | float, within: float) -> bool:
    """Whether a prediction came true: the same choice, or a number within a share of the truth.

    Of what a change brings it is a share of the gain or loss, which is not told from nothing below 5 %.
    """
    if isinstance(prediction.answer, str) or isinstance(truth, str):
        return same_choice(prediction.answer, truth)
    tolerance = within * abs(truth)
    if prediction.unchanged is not None:
        least = NO_CHANGE * (100 if prediction.unit == "%" else 1)
        tolerance = max(within * abs(truth - prediction.unchanged), least)
    return abs(prediction.answer - truth) <= tolerance * (1 + 1e-12)


def result_in_words(
    prediction: Prediction, *, now: str | float | None, within: float = WITHIN
) -> tuple[str, str]:
    """What is said of a prediction whose truth was revealed, and the word in front of it.

    Parameters
    ----------
    prediction : Prediction
    now : str, float or None
        The truth as it is now; the one that was revealed first counts.
    within : float
        How near a number must be to count as a hit, as a share of the truth.
    """
    if prediction.truth is None:
        return f"{words.prediction(prediction)} {NEVER_SHOWN}", "Please note"
    answer = words.quoted(words.truth(prediction), prediction.truth)
    lines = [f"The answer is {answer}.", words.prediction(prediction)]
    # With a credit for what was measured it counts as a hit, and still misses what the model says.
    hit = prediction.hit
    if prediction.measured is not None:
        hit = is_hit(prediction, prediction.truth, within)
    if not (hit or isinstance(prediction.answer, str) or isinstance(prediction.truth, str)):
        lines.append(_distance(prediction.answer, prediction.truth, prediction.unit, prediction.unchanged))
    if now != prediction.truth:
        lines.append(
            f"The cell now gives {words.truth(replace(prediction, truth=now))}; "
            "the score card keeps the answer that was shown first."
        )
    return " ".join(filter(None, lines)), "Hit" if hit else "Miss"


def _distance(answer: float, truth: float, unit: str | None, unchanged: float | None) -> str:
    """How far off a number was: the difference when it was near, a factor when it was not."""
    if unchanged is not None:
        of_truth, yours = (words.number(one - unchanged, unit) for one in (truth, answer))
        return f"What counts is the gain or loss: {of_truth} in the answer, {yours} in your number."
    ratio = answer / truth if truth else 0.0
    if ratio >= 2:
        return f"Your number is {_rounded(ratio)} times the answer."
    if 0 < ratio <= 0.5:
        return f"The answer is {_rounded(1 / ratio)} times your number."
    if not truth:
        return ""
    side = "above" if answer > truth else "below"
    if unit == "%":
        return f"Your number is {_rounded(abs(answer - truth))} percentage points {side} the answer."
    return f"Your number is {words.percent(abs((answer - truth) / truth))} {side} the answer."


def _rounded(number: float) -> str:
    """Two digits that count, without an exponent where people write none: 540 and not 5.4e+02."""
    return words.grouped(number, 2)
