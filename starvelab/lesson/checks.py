"""Checks: a learner's answer is compared with what it should be, and the mistake that was made is named.

The right answer is never printed. A check in parts gives partial credit: the points that it earns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from decimal import Decimal
from io import StringIO
from math import isfinite
from numbers import Integral, Real
from traceback import walk_tb
from typing import Any, Self, TypeAlias

import numpy as np

from .. import runtime, tables
from ..errors import InputError
from ..grading import note
from ..units import Quantity, format_number, format_quantity, unit_name
from . import notices, wording

# Any: whatever a learner's code returned; the checks find out what it is.
Answer: TypeAlias = Any
Expected: TypeAlias = Quantity | float | bool | np.integer[Any] | np.floating[Any] | np.bool_ | str | None

OTHER_VALUES = "Other values are checked when it is graded."
_OPEN = "Not written yet."
_SAME = "As above."

# How near a wrong number counts as close: a rounded step time makes less of a difference.
_CLOSE = 1e-2
# A bare batch size makes rates of images into rates of nothing.
_COUNTS_IMAGES = 'A batch counts images: write `Q_(batch_size, "img")`.'
_PER_IMAGE = (
    "It is for each image. What one image needs has no img in its unit: leave that out. "
    'For a batch, multiply by `Q_(batch_size, "img")`.'
)


class WrongAnswer(AssertionError):  # noqa: N818  # it is the answer that is wrong
    """An answer that a check does not accept; shown in a notebook as its message alone."""

    def _render_traceback_(self) -> list[str]:
        return [f"Not yet: {self}"]


class NotAnsweredError(WrongAnswer):
    """Nothing was answered yet, which is no mistake."""


def check(
    answer: Answer,
    expected: Expected,
    *,
    what: str = "the answer",
    within: float = 1e-3,
    mistakes: Mapping[str, Expected] | None = None,
    among: Collection[str] = (),
    means: str = "",
) -> None:
    """Accept an answer and say so, or raise an error that names what is wrong with it.

    Parameters
    ----------
    answer : object
        What the learner's code returned.
    expected : quantity, number, bool, str or None
        The right answer; an answer must have its kind and dimension. None if no answer exists.
    what : str
        How the message calls the answer.
    within : float
        Relative tolerance for numbers; an expected int or bool must be met exactly.
    mistakes : mapping of message to value, optional
        What plausible mistakes would have returned; the first that fits is named.
    among : collection of str
        The words that may be answered; the message to any other answer lists them.
    means : str
        What a right answer means, such as "So 44 workers, and a host has 16 cores."; said with the points.

    Raises
    ------
    WrongAnswer

    Examples
    --------
    >>> check(0.5714, 20 / 35, what="the utilization", within=1e-3)
    Right: the utilization.
    >>> check(20 / 55, 20 / 35, what="the utilization", mistakes={"You added stages that overlap.": 20 / 55})
    Traceback (most recent call last):
    starvelab.lesson.checks.WrongAnswer: the utilization is 0.3636. You added stages that overlap.
    """
    right = f"Right: {what}. {means}".rstrip()
    if expected is None:
        if answer is None:
            print(right)
            return
        raise WrongAnswer(f"{what} is {_format(answer)}, and there is no such value: return None.")
    if answer is None:
        raise WrongAnswer(
            f"{what} is None, and there is a value. "
            "Does each way through your function end with `return ...`?"
        )
    answer = _same_kind(answer, expected, what)
    if _agree(answer, expected, within):
        print(right)
        return
    _name_mistake(answer, mistakes or {}, what, within)
    if among and not any(_agree(answer, word, within) for word in among):
        words = " or ".join(f'"{word}"' for word in among)
        raise WrongAnswer(f"{what} is {_format(answer)}, and must be {words}.")
    if _agree(answer, expected, _CLOSE):
        # With four digits this could look like the right answer.
        raise WrongAnswer(
            f"{what} is {_format(answer, 8)}: close, but not right. Was something rounded on the way, "
            "or is a small part of it wrong?"
        )
    raise WrongAnswer(f"{what} is {_format(answer)}, and that is not right{_direction(answer, expected)}.")


def one_of(answer: Answer, position: int, returned: str) -> Answer:
    """Return one of several values that an answer returned, or raise an error that says what to return.

    Parameters
    ----------
    answer : object
        What the learner's code returned.
    position : int
        Which of its values is wanted, from 0.
    returned : str
        What follows `return`, such as ``"burned, added"``.

    Raises
    ------
    WrongAnswer

    Examples
    --------
    >>> one_of((3, "cores"), 1, 'gpus, "cores"')
    'cores'
    """
    count = returned.count(",") + 1
    if not isinstance(answer, tuple | list | np.ndarray) or len(answer) != count:
        raise WrongAnswer(f"Return {count} values: `return {returned}`. Got {answer!r:.60}.")
    return answer[position]


def _name_mistake(answer: Answer, mistakes: Mapping[str, Expected], what: str, within: float) -> None:
    for message, value in mistakes.items():
        if _agree(answer, value, within):
            note("mistake", message)
            raise WrongAnswer(f"{what} is {_format(answer)}. {message}")


def _same_kind(answer: Answer, expected: Expected, what: str) -> Answer:
    """The answer as the kind of thing that was asked for."""
    if isinstance(answer, Quantity) and not isinstance(expected, str | bool | np.bool_):
        answer = Quantity(_number(answer.magnitude, what), answer.units)
    if isinstance(answer, Quantity) and _counts_something(expected) and _images(answer / expected) == 1:
        answer = answer / Quantity(1, "img")
    if isinstance(expected, Quantity):
        unit = unit_name(expected.units)
        if not isinstance(answer, Quantity):
            said = f"is the bare value {_format(answer)} and needs a unit"
            if isinstance(answer, bool) or not isinstance(answer, Real | Decimal | np.ndarray):
                said = f"must be a quantity, got {answer!r:.80} ({type(answer).__name__})"
            raise WrongAnswer(f'{what} {said}. Write for example Q_(value, "{unit}").')
        if not answer.is_compatible_with(expected.units):
            raise WrongAnswer(
                f"{what} is {_in_fewest_units(answer)}, which does not convert to {unit}. "
                + _about_images(expected, answer)
            )
        return answer.to(expected.units)
    if isinstance(expected, bool | np.bool_):
        if not isinstance(answer, bool | np.bool_):
            raise WrongAnswer(f"{what} must be True or False, got {answer!r:.80}.")
        return bool(answer)
    if isinstance(expected, str):
        if not isinstance(answer, str):
            raise WrongAnswer(f"{what} must be a text in quotes, got {answer!r:.80}.")
        return answer.strip()
    if not isinstance(expected, Real):
        raise InputError(
            f"check compares quantities, numbers, truth and text, got expected={expected!r:.80}. "
            "Pass one of these."
        )
    if isinstance(answer, Quantity):
        if not answer.dimensionless:
            images_are_left = abs(_images(answer)) == 1 and not isinstance(expected, Integral)
            raise WrongAnswer(
                f"{what} is {_in_fewest_units(answer)}, and must be a plain number. "
                + (_COUNTS_IMAGES if images_are_left else "Do the units cancel?")
            )
        answer = answer.m_as("")
    number = _number(answer, what)
    if isinstance(expected, Integral) and not number.is_integer():
        raise WrongAnswer(f"{what} is {_format(number, 8)} and must be a whole number.")
    return number


def _counts_something(expected: Expected) -> bool:
    """Whether images may be what is counted: a rate such as 40 /s, or a batch size that need not be whole."""
    if isinstance(expected, Quantity):
        return dict(expected.dimensionality) == {"[time]": -1}
    # A share is at most 1, and what is left of its units is a mistake.
    return isinstance(expected, float) and expected > 1


def _about_images(expected: Quantity, answer: Quantity) -> str:
    """Say what to do where the units differ: an image is missing, or stands below the fraction bar."""
    if _images(expected / Quantity(1, answer.units)) != 1:  # an answer may be 0
        return "Follow the units through your formula."
    # "24.5 GFLOP/img" where the work of one image is asked for: there may be no batch to multiply by.
    return _PER_IMAGE if answer.dimensionality.get("[sample]") == -1 else _COUNTS_IMAGES


def _in_fewest_units(quantity: Quantity) -> str:
    """A quantity without units that cancel: 38.05 1/s and not 0.03805 TFLOP/GFLOP/s."""
    reduced = quantity.to_reduced_units()
    return format_quantity(Quantity(reduced.magnitude, reduced.units))


def _images(quantity: Quantity) -> int:
    """The power of images in a unit that has nothing else; 0 for any other."""
    powers = dict(quantity.dimensionality)
    # Pint would allow for complex powers.
    return int(powers["[sample]"]) if powers.keys() == {"[sample]"} else 0  # type: ignore[arg-type]


def _number(value: Answer, what: str) -> float:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise WrongAnswer(f"{what} must be a number, got {value!r:.80} ({type(value).__name__}).")
    try:
        number = float(value)
    except OverflowError:
        raise WrongAnswer(f"{what} is larger than any number here can be. Check your formula.") from None
    if not isfinite(number):
        raise WrongAnswer(f"{what} is {number}. Did something get divided by zero?")
    return number


def _agree(a: Answer, b: Expected, within: float) -> bool:
    if isinstance(b, Quantity):
        if not (isinstance(a, Quantity) and a.is_compatible_with(b.units)):
            return False
        a, b = a.m_as(b.units), float(b.magnitude)
    if isinstance(b, str):
        return isinstance(a, str) and a.casefold() == b.casefold()
    if isinstance(b, bool | np.bool_):
        return a is bool(b)
    if b is None or isinstance(a, str | bool | Quantity):
        return False
    return a == b if isinstance(b, Integral) else bool(abs(a - float(b)) <= within * abs(float(b)))


def _format(answer: Answer, digits: int = 4) -> str:
    if isinstance(answer, Quantity):
        return format_quantity(answer, digits)
    if not isinstance(answer, float):
        return f"{answer!r:.80}"
    # A count is shown in full: 10001 is not 10000.
    return format_number(answer, 15 if answer.is_integer() else digits)


def _direction(answer: Answer, expected: Expected) -> str:
    if expected is None or isinstance(expected, str | bool | np.bool_):
        return ""
    if answer < 0 * expected < expected:
        return ": it is negative"
    is_prefix = any(_agree(answer, expected * 1000.0**power, 1e-3) for power in (-3, -2, -1, 1, 2, 3))
    perhaps = ", perhaps by a prefix such as m, k or M" if is_prefix else ""
    return f": it is too {'large' if answer > expected else 'small'}{perhaps}"


class Points(float):
    """Points of a check: a plain number for a grader, and a sentence for a learner."""

    def __new__(cls, earned: float, most: float, hidden: float = 0.0, meaning: str = "") -> Self:
        """Return the points that were earned."""
        points = super().__new__(cls, earned)
        points.most, points.hidden, points.meaning = most, hidden, meaning
        return points

    most: float
    hidden: float
    meaning: str

    @property
    def sentence(self) -> str:
        """The points, and who decides the others, in one line."""
        more = f" Hidden checks decide {tables.points(self.hidden)} more." if self.hidden else ""
        return f"{tables.points(self)} of {tables.points(self.most)} points.{more}"

    def _repr_html_(self) -> str | None:
        # In a saved notebook the number stands beside the sentence, and whoever grades sees it alone.
        if runtime.current().is_for_nbgrader:
            return None
        if self < self.most:
            return f"<p>{self.sentence}</p>"
        return notices.notice(" ".join(filter(None, (self.meaning, self.sentence))), "Done")


@dataclass
class Credit:
    """Partial credit: each part earns its points on its own, and a failed part says why.

    The last line of a test cell is ``credit.total()``: a float, which nbgrader takes as the score.

    Parameters
    ----------
    points : float
        The most that can be earned.

    Examples
    --------
    >>> from starvelab.lesson.checks import check
    >>> credit = Credit(3)
    >>> credit.part(1, "doubling", lambda: check(2 * 2, 4))
    >>> credit.part(2, "halving", lambda: check(2 * 2, 1, what="half of 2"))
    >>> credit.total()
    1 of 1: doubling
    0 of 2: halving. Half of 2 is 4, and that is not right: it is too large.
    1.0
    """

    points: float
    earned: float = field(default=0.0, init=False)
    tried: float = field(default=0.0, init=False)
    # The points of each part, its title, and why they are not earned.
    _parts: list[tuple[str, str, str]] = field(default_factory=list, init=False)

    def part(self, points: float, what: str, test: Callable[[], object]) -> None:
        """Run one check and add its points, or say in the end why they are not earned."""
        self.share(points, what, lambda: (test(), 1.0)[1])

    def share(self, points: float, what: str, found: Callable[[], float]) -> None:
        """Add the share of the points that `found` returns, 0 to 1, or say in the end why none is earned."""
        self.tried += points
        earned, why = 0.0, ""
        try:
            with redirect_stdout(StringIO()):  # the part says itself what is right
                earned = round(points * min(max(found(), 0.0), 1.0), 2)
        except NotImplementedError:
            why = _OPEN
        except Exception as error:
            files = {frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)} - {__file__}
            if type(error) is NameError and len(files) == 1 and not runtime.current().is_for_nbgrader:
                raise NotAnsweredError(
                    f"The name {error.name} is not defined here: a cell above has not run. "
                    "Choose Run > Run All Above Selected Cell, then run this cell again."
                ) from error
            said = str(error) if isinstance(error, AssertionError) else wording.error_text(error)
            why = tables.as_sentence(said)
            above = next((before for *_, before in reversed(self._parts) if before != _SAME), "")
            why = _SAME if why == above else why
        self.earned += earned
        note("part", (earned, points))
        self._parts.append((f"{tables.points(earned)} of {points:g}", what, why))
        if runtime.current().is_for_nbgrader:  # a later part may never end
            print(_line(*self._parts[-1]))

    def total(self, meaning: str = "") -> float:
        """Return the points earned, a float from 0 to `points`; whoever has all is told what that means.

        nbgrader's *Validate* runs the released check, without its hidden parts. It gets all points where
        every part that it has is right: with fewer nbgrader says that the answer fails.

        Raises
        ------
        NotAnsweredError
            If a learner has written nothing yet; a grader gets 0.
        """
        if runtime.current().is_validating and self.earned >= self.tried:
            return Points(self.points, self.points)
        if not runtime.current().is_for_nbgrader:
            if self._parts and all(why == _OPEN for *_, why in self._parts):
                raise NotAnsweredError("Nothing is written yet.")
            _show_parts(self._parts)
        most = min(self.tried, self.points)
        return Points(round(min(max(self.earned, 0.0), self.points), 2), most, self.points - most, meaning)


def _line(points: str, what: str, why: str) -> str:
    return f"{points}: {what}. {why}" if why else f"{points}: {what}"


def _show_parts(parts: Sequence[tuple[str, str, str]]) -> None:
    """Show a learner what came of the parts; of a single one only why, since its points follow."""
    reasons = [why for *_, why in parts if why]
    if len(parts) < 2:
        for why in reasons:
            notices.say(why, "Not yet")
    elif runtime.shell() is None:
        print(*(_line(*part) for part in parts), sep="\n")
    else:
        headers = ("points", "part", "what is not right yet")[: 3 if reasons else 2]
        notices.table(headers, [part[: len(headers)] for part in parts])
