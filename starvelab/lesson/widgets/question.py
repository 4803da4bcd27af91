"""A question that asks for a prediction: what may be answered, what is a hit, and what came of it."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from pathlib import Path
from typing import TypeAlias, TypeGuard

from ...errors import InputError
from ...prediction_file import Prediction
from ...units import Quantity, convert
from ..exercises import read_questions
from ..wording import grouped, number, percent, quoted, truth, value

# 21.800 is 21,800 to many people.
_THOUSANDS = re.compile(r"\d{1,3}(\.\d{3})+")

# What a learner answers, or a notebook passes as the truth. It is checked here.
Answer: TypeAlias = Quantity | float | str | None

# What "sure" means for a number: sure to be this near to it, as a share of the true value.
WITHIN = 0.25
# The same in words. "Within 25 %" might mean percentage points where the answer is a percentage.
NEAR = "within a quarter of the answer"
# Of a factor only what it gains says anything: 1 is within a quarter of 1.16, and no gain at all.
NEAR_CHANGE = "within a quarter of the gain or loss"
# So near to "nothing" a change is no change: measurements differ by as much. A share, or 5 percentage points.
NO_CHANGE = 0.05
NEVER_SHOWN = "Its answer was not shown before this was submitted."

# The least and the most that a number can be; None where there is no end.
Range: TypeAlias = tuple[float | None, float | None]
# A percentage is a share, and no other quantity of the lab is negative, unless its question says otherwise.
SHARE: Range = (0, 100)
NOT_NEGATIVE: Range = (0, None)


@dataclass(frozen=True)
class Question:
    """One question, with its choices, or with its unit and what a number can be."""

    key: str  # in the notebook and in predictions.json
    _: KW_ONLY
    text: str | None = None
    choices: Sequence[str] | None = None
    unit: str | None = None
    between: Range | None = None  # in `unit`; as it is for most quantities unless given
    whole: bool = False  # it counts something, as workers are counted
    unchanged: float | None = None  # of what a change brings, the value that says "nothing", in `unit`

    def __post_init__(self) -> None:
        check_key(self.key)
        if self.choices is None:
            between = SHARE if self.unit == "%" else NOT_NEGATIVE
            object.__setattr__(self, "between", _checked_range(self.between or between))
            return
        if (self.unit, self.between, self.whole, self.unchanged) != (None, None, False, None):
            beside = "a range of numbers" if self.unit is None else "a unit"
            raise InputError(
                f"A prediction is a choice or a number, and {self.key!r} has choices and {beside}. "
                "Pass one of them."
            )
        choices = self.choices
        if isinstance(choices, str) or not all(isinstance(choice, str) for choice in choices):
            raise InputError(
                f'choices must be a list of texts, got {choices!r}. Pass for example ["CPU", "storage"].'
            )
        if len({_normalized(choice) for choice in choices}) != len(choices) or len(choices) < 2:
            raise InputError(
                f"choices must be two or more different texts, got {list(choices)!r}. Correct the list."
            )
        object.__setattr__(self, "choices", tuple(choices))

    @property
    def lowest_confidence(self) -> float:
        """Confidence of somebody who guesses, 0 to 1: one in the number of choices, or 0 for a number."""
        return 1 / len(self.choices) if self.choices else 0.0

    def check_answer(self, answer: Answer) -> str | float:
        """Return `answer` as it is stored: the choice as its author spelt it, or a number in the unit."""
        if self.choices is not None:
            found = next((choice for choice in self.choices if _same_choice(choice, answer)), None)
            if found is None:
                offered = ", ".join(self.choices)
                raise InputError(
                    f"The prediction must be one of {offered}, got {answer!r:.80}. Choose one of them."
                )
            return found
        if isinstance(answer, Quantity):
            answer = in_unit(answer, self.unit, "The prediction")
        elif isinstance(answer, str) and self.unit is not None:
            return self.read_number(answer)
        elif isinstance(answer, str):
            if not answer.strip():
                raise InputError("The prediction must say something, got an empty text. Write your answer.")
            number = _read_float(answer)  # "22" and 22 are the same prediction
            if not math.isfinite(number):
                return answer.strip()
            answer = number
        if not _is_finite(answer):
            beside = f" in {self.unit}" if self.unit else ""
            raise InputError(f"The prediction must be a number{beside}, got {answer!r:.80}. Write a number.")
        return self._check_range(float(answer))

    def read_number(self, text: str) -> float:
        """Read what was typed in a number field; no refusal has a number, which might be the answer."""
        typed = text.strip()
        if not typed:
            raise InputError("Type a number first.")
        bare = typed.removesuffix(self.unit).strip() if self.unit else typed
        if "," in bare:
            kind, how = "a number", "Type a point before decimals, and thousands without a separator."
            if self.whole:
                kind, how = "a whole number", "Type digits only."
            raise InputError(f"The prediction must be {kind} without a comma, got {typed!r}. {how}")
        if _THOUSANDS.fullmatch(bare) and not bare.startswith("0"):
            raise InputError(
                f"The prediction must be a number without a thousands separator, got {typed!r}. "
                "Type thousands without a separator, and fewer than three decimals."
            )
        number = _read_float(bare.replace(" ", ""))
        if not math.isfinite(number):
            beside = f" The unit, {self.unit}, is there already." if self.unit else ""
            raise InputError(f"The prediction must be a number, got {typed!r}. Type digits only.{beside}")
        if self.unit == "%" and 0 < number < 1:
            raise InputError(
                f"{typed} % is less than one in a hundred. For a share of {typed} type {100 * number:g}."
            )
        return self._check_range(number)

    def check_confidence(self, confidence: Answer) -> float | None:
        """Return a confidence between guessing and certain, or None if none was given."""
        if confidence is None:
            return None
        low = self.lowest_confidence
        # The slider's lowest step and a typed 0.33 both mean one in three.
        if not _is_finite(confidence) or not low - 0.01 <= confidence <= 1:
            raise InputError(
                f"confidence must be a number from {low:.2g} (a guess) to 1, got {confidence!r:.80}. "
                "Write it as a share."
            )
        return float(confidence)

    def _check_range(self, number: float) -> float:
        """Reject a number that the quantity cannot have: a share of 140 %, or half a worker."""
        low, high = self.between or NOT_NEGATIVE
        ends = ((low, "more", number < (low or 0)), (high, "less", number > (high or 0)))
        rule = ""
        if any(beyond for end, _, beyond in ends if end is not None):
            said = (f"{value(end, self.unit)} or {side}" for end, side, _ in ends if end is not None)
            rule = f"must be {' and '.join(said)}"
        elif self.whole and not number.is_integer():
            rule = "counts something and must be a whole number"
        if rule:
            raise InputError(
                f"The prediction {rule}, got {value(number, self.unit)}. Nothing is locked: correct it."
            )
        return number


def _checked_range(between: Range) -> Range:
    low, high = between if isinstance(between, tuple) and len(between) == 2 else (1, 0)
    if low is not None and high is not None and not low < high:
        raise InputError(
            f"between must be the least and the most that a number can be, got {between!r}. "
            "Pass for example (0, 100), or (1, None) without an upper end."
        )
    return low, high


def near(unchanged: float | None) -> str:
    """Say what counts as near."""
    return NEAR if unchanged is None else NEAR_CHANGE


def check_key(key: Answer) -> None:
    """Reject a key that is no text, or an empty one."""
    if not isinstance(key, str) or not key.strip():
        raise InputError(f'A prediction is kept under a name, got {key!r}. Pass a text such as "cpu-wall".')


def in_unit(value: Quantity, unit: str | None, what: str) -> float:
    """Magnitude of a quantity in the unit of a prediction; without a unit it must be a plain number."""
    if unit is None:
        if not value.dimensionless:
            raise InputError(
                f"{what} has no unit, got {value:~}. Write the number alone, or pass unit= where it is asked."
            )
        return float(value.to("").magnitude)
    return float(convert(value, unit, what).magnitude)


def _same_choice(one: Answer, other: Answer) -> bool:
    """True if two answers name the same thing, whatever their case and spaces."""
    return _normalized(one) == _normalized(other)


def _normalized(text: Answer) -> str:
    return " ".join(str(text).split()).casefold()


def _read_float(text: str) -> float:
    """The number that a text says; not a number (nan) if it says none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _is_finite(number: object) -> TypeGuard[float]:
    return isinstance(number, Real) and not isinstance(number, bool) and math.isfinite(number)


# --- which questions there are ----------------------------------------------------------------------------


def known_questions(folder: Path, asked: Mapping[str, Question]) -> dict[str, Question]:
    """Every question that can be answered in code: those of the notebooks of a folder, and those `asked`."""
    found = {}
    for key, given in read_questions(*sorted(folder.glob("*.ipynb"))).items():
        with contextlib.suppress(InputError):  # somebody changed the cell
            found[key] = Question(key, text=given.pop("question"), **given)
    return found | dict(asked)


def no_such_question(key: object, keys: Collection[str]) -> str:
    """Refuse a key under which nothing is asked."""
    return f"No question has the key {key!r:.80}. The keys are {', '.join(map(repr, keys))}. Correct the key."


# --- a prediction beside its truth ------------------------------------------------------------------------


def comparable(truth: Answer, prediction: Prediction) -> str | float:
    """The truth as it is stored: a text, or a number in the unit of the prediction."""
    what = f"The truth of {prediction.key!r}"
    # Locked in code without its question, a prediction knows neither unit nor choices. If it turns out to be
    # of another kind than the truth, that is a miss and not a fault of the notebook.
    free = prediction.unit is None and prediction.choices is None
    if isinstance(truth, Quantity):
        truth = truth.magnitude if free else in_unit(truth, prediction.unit, what)
    if isinstance(truth, str):
        if free or any(_same_choice(truth, one) for one in prediction.choices or ()):
            return truth
    elif prediction.choices is None and _is_finite(truth):
        return float(truth)
    expected = f"one of {', '.join(prediction.choices)}" if prediction.choices else "a finite number"
    raise InputError(f"{what} must be {expected}, got {truth!r}. Correct the call of reveal.")


def is_hit(prediction: Prediction, truth: str | float, within: float = WITHIN) -> bool:
    """True if a prediction came true: the same choice, or a number within a share of the truth.

    Of what a change brings it is a share of the gain or loss, which is not told from nothing below 5 %.
    """
    if isinstance(prediction.answer, str) or isinstance(truth, str):
        return _same_choice(prediction.answer, truth)
    tolerance = within * abs(truth)
    if prediction.unchanged is not None:
        least = NO_CHANGE * (100 if prediction.unit == "%" else 1)
        tolerance = max(within * abs(truth - prediction.unchanged), least)
    return abs(prediction.answer - truth) <= tolerance * (1 + 1e-12)


# --- in words ---------------------------------------------------------------------------------------------


def how_sure(locked: Prediction) -> str:
    """Say how sure a learner was: ``70 % sure``, or nothing if they did not say."""
    if locked.confidence is None:
        return ""
    about = "" if isinstance(locked.answer, str) else f" to be {near(locked.unchanged)}"
    return f"{percent(locked.confidence)} sure{about}"


def sentence_of(locked: Prediction) -> str:
    """A locked prediction as one sentence of plain text."""
    parts = [f"You predicted {quoted(value(locked.answer, locked.unit), locked.answer)}", how_sure(locked)]
    return ", ".join(filter(None, parts)) + "."


def result_of(
    locked: Prediction, *, now: str | float | None, within: float = WITHIN, why: str = ""
) -> tuple[str, str]:
    """Say what came of a prediction whose truth was shown and is `now` this, and the word in front of it.

    After a miss it begins with `why`, the likeliest reason, or else ends with how far off a number was.
    """
    if locked.truth is None:
        return f"{sentence_of(locked)} {NEVER_SHOWN}", "Please note"
    lines = [f"The answer is {quoted(truth(locked), locked.truth)}.", sentence_of(locked)]
    # With a credit for what was measured it counts as a hit, and still misses what the model says.
    hit = locked.hit if locked.measured is None else is_hit(locked, locked.truth, within)
    if why and not hit:
        lines.insert(0, why)
    elif not (hit or isinstance(locked.answer, str) or isinstance(locked.truth, str)):
        lines.append(_distance(locked.answer, locked.truth, locked.unit, locked.unchanged))
    if now != locked.truth:
        lines.append(
            f"The cell now gives {truth(replace(locked, truth=now))}; "
            "the score card keeps the answer that was shown first."
        )
    return " ".join(filter(None, lines)), "Hit" if hit else "Miss"


def _distance(answer: float, truth: float, unit: str | None, unchanged: float | None) -> str:
    """Say how far off a number was: the difference when it was near, a factor when it was not."""
    if unchanged is not None:
        of_truth, yours = (number(one - unchanged, unit) for one in (truth, answer))
        return f"What counts is the gain or loss: {of_truth} in the answer, {yours} in your number."
    if not truth:
        return ""
    # Two digits that count, without an exponent where people write none: 540 and not 5.4e+02.
    ratio = answer / truth
    if ratio >= 2:
        return f"Your number is {grouped(ratio, 2)} times the answer."
    if 0 < ratio <= 0.5:
        return f"The answer is {grouped(1 / ratio, 2)} times your number."
    side = "above" if answer > truth else "below"
    if unit == "%":
        return f"Your number is {grouped(abs(answer - truth), 2)} percentage points {side} the answer."
    return f"Your number is {percent(abs(ratio - 1))} {side} the answer."
