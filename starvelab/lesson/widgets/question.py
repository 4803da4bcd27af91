"""A question that asks for a prediction: what may be answered, and how sure one may be of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

from ...errors import InputError
from ...units import Quantity, convert

# Any: what a learner answered, or a notebook passed. It is checked here.
Answer: TypeAlias = Any

# What "sure" means for a number: sure to be this near to it, as a share of the true value.
WITHIN = 0.25


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question, with its choices or its unit.

    Attributes
    ----------
    key : str
        Its name in the notebook and in ``predictions.json``.
    text : str or None
        What is asked.
    choices : tuple of str or None
        What may be chosen; None for a number or a free answer in code.
    unit : str or None
        Unit of a number, such as "img/s", "%" or "ms".
    """

    key: str
    text: str | None = None
    choices: tuple[str, ...] | None = None
    unit: str | None = None

    @classmethod
    def ask(
        cls,
        key: str,
        *,
        text: str | None = None,
        choices: Sequence[str] | None = None,
        unit: str | None = None,
    ) -> Question:
        """Make a question.

        Raises
        ------
        InputError
            If the key, the choices or the unit make no sense.
        """
        check_key(key)
        if choices is None:
            return cls(key=key, text=text, unit=unit)
        if unit is not None:
            raise InputError(
                f"A prediction is a choice or a number, and {key!r} has choices and a unit. Pass one of them."
            )
        if isinstance(choices, str) or not all(isinstance(choice, str) for choice in choices):
            raise InputError(
                f'choices must be a list of texts, got {choices!r}. Pass for example ["CPU", "storage"].'
            )
        if len({_normalized(choice) for choice in choices}) != len(choices) or len(choices) < 2:
            raise InputError(
                f"choices must be two or more different texts, got {list(choices)!r}. Correct the list."
            )
        return cls(key=key, text=text, choices=tuple(choices))

    @property
    def lowest_confidence(self) -> float:
        """Confidence of somebody who guesses, 0 to 1: one in the number of choices, or 0 for a number."""
        return 1 / len(self.choices) if self.choices else 0.0

    def check_answer(self, answer: Answer) -> str | float:
        """Return `answer` as it is stored: the choice as its author spelt it, or a number in the unit.

        Raises
        ------
        InputError
            If it is no choice, no finite number, or a quantity of another dimension.
        """
        if self.choices is not None:
            return self._check_choice(answer)
        if isinstance(answer, Quantity):
            return self._check_number(in_unit(answer, self.unit, f"The prediction {self.key!r}"))
        if isinstance(answer, str) and self.unit is None:
            return self._read_text(answer)
        return self._check_number(answer)

    def read_number(self, text: str) -> float:
        """Read what was typed in a number field."""
        typed = text.strip()
        if not typed:
            raise InputError("Type a number first.")
        bare = typed.removesuffix(self.unit).strip() if self.unit else typed
        if "," in bare:
            raise InputError(
                f"A number is written with a point and no commas, got {typed!r}. Type for example 1234.5."
            )
        try:
            number = float(bare.replace(" ", ""))
        except ValueError:
            beside = f" The unit, {self.unit}, is there already." if self.unit else ""
            raise InputError(
                f"The prediction must be a number, got {typed!r}. Type digits only.{beside}"
            ) from None
        if self.unit == "%" and 0 < number < 1:
            raise InputError(
                f"{typed} % is less than one in a hundred. For a share of {typed} type {100 * number:g}."
            )
        return self._check_number(number)

    def check_confidence(self, confidence: Answer) -> float | None:
        """Return a confidence between guessing and certain, or None if none was given."""
        if confidence is None:
            return None
        low = self.lowest_confidence
        if isinstance(confidence, bool) or not isinstance(confidence, Real):
            raise InputError(
                f"confidence must be a number from {low:.2g} to 1, got {confidence!r}. Write 0.7 for 70 %."
            )
        # The slider's lowest step and a typed 0.33 both mean one in three.
        if not low - 0.01 <= float(confidence) <= 1:
            why = f": among {len(self.choices)} choices guessing is right that often" if self.choices else ""
            raise InputError(
                f"confidence must lie from {low:.2g} to 1{why}, got {confidence:g}. Write 0.7 for 70 %."
            )
        return float(confidence)

    def _read_text(self, text: str) -> str | float:
        """A number if it reads as one: "22" and 22 are the same prediction."""
        if not text.strip():
            raise InputError(
                f"The prediction {self.key!r} must say something, got an empty text. Write your answer."
            )
        try:
            return self._check_number(float(text))
        except ValueError:  # InputError is one: "nan" is a text
            return text.strip()

    def _check_choice(self, answer: Answer) -> str:
        for choice in self.choices or ():
            if _normalized(choice) == _normalized(answer):
                return choice
        raise InputError(
            f"The prediction {self.key!r} must be one of {', '.join(self.choices or ())}, got {answer!r}. "
            "Choose one of them."
        )

    def _check_number(self, answer: Answer) -> float:
        if isinstance(answer, str):
            return self.read_number(answer)
        if isinstance(answer, bool) or not isinstance(answer, Real) or not math.isfinite(answer):
            raise InputError(
                f"The prediction {self.key!r} must be a finite number, got {answer!r}. Pass for example 18.3."
            )
        return float(answer)


def check_key(key: Answer) -> None:
    """Reject a key that is no text, or an empty one."""
    if not isinstance(key, str) or not key.strip():
        raise InputError(f'A prediction is kept under a name, got {key!r}. Pass a text such as "cpu-wall".')


def in_unit(value: Quantity, unit: str | None, what: str) -> float:
    """Magnitude of a quantity in the unit of a prediction; without a unit it must be a plain number."""
    if unit is None:
        if not value.dimensionless:
            raise InputError(f"{what} has no unit, got {value:~}. Pass unit= where it is predicted.")
        return float(value.to("").magnitude)
    return float(convert(value, unit, what).magnitude)


def same_choice(one: Answer, other: Answer) -> bool:
    """Whether two answers name the same thing, whatever their case and spaces."""
    return _normalized(one) == _normalized(other)


def _normalized(text: Answer) -> str:
    return " ".join(str(text).split()).casefold()
