"""Questions, answers, shares and errors in words, as tables, notices and reports say them."""

from __future__ import annotations

import re
from textwrap import shorten

import pint

from .. import tables
from ..prediction_file import Prediction
from ..units import Quantity, format_number, unit_name

# No question of the lab is as long: a file can hold anything.
MAX_QUESTION_LENGTH = 400
# The most characters of an error's own message that are shown.
MAX_MESSAGE = 400


def one_line(text: str) -> str:
    """The same text without its marks, on one line: a name for a screen reader."""
    return " ".join(re.sub(r"\*\*|`", "", text).split())


def title(question: str) -> str:
    """Name a question by its first paragraph, whole, since what matters often stands at its end."""
    return shorten(one_line(question.partition("\n\n")[0]), MAX_QUESTION_LENGTH, placeholder=" ...")


def grouped(number: float, digits: int = 4) -> str:
    """A number with its thousands apart, so that 1,000,000,000 is not read as 100,000,000."""
    return re.sub(r"\d+", lambda whole: f"{int(whole[0]):,}", format_number(number, digits), count=1)


def value(answer: str | float, unit: str | None) -> str:
    """An answer with its unit: ``CPU``, ``18.3 %``, ``21,800 img/s``."""
    if isinstance(answer, str):
        return answer
    return f"{grouped(answer, 10)} {unit or ''}".strip()


def quoted(text: str, answer: str | float) -> str:
    """An answer within a sentence: a choice stands in quotation marks, a number does not."""
    return f'"{text}"' if isinstance(answer, str) else text


def truth(locked: Prediction) -> str:
    """The answer as it was revealed; nothing before that."""
    if locked.truth is None or isinstance(locked.truth, str):
        return locked.truth or ""
    return number(locked.truth, locked.unit)


def number(value: float, unit: str | None) -> str:
    """A number with its unit, to four significant digits; a percentage as tables have it: ``18.3 %``."""
    if unit == "%":
        return tables.percent(value / 100)
    return f"{grouped(value)} {unit or ''}".strip()


def percent(share: float) -> str:
    """A share as a whole percentage: ``70 %``."""
    return tables.percent(share, 0)


def error_text(error: BaseException) -> str:
    """An error in one sentence or two; units that do not fit are said in the lab's own words."""
    if isinstance(error, pint.DimensionalityError):
        pair = [Quantity(1, str(unit)).to_reduced_units().units for unit in (error.units1, error.units2)]
        units, bare = [unit_name(unit) or "a bare number" for unit in pair], ""
        if "a bare number" in units:
            # A number needs a unit of the kind that it meets.
            met = next((unit for unit in pair if not unit.dimensionless), pair[0])
            unit = "ms" if met.is_compatible_with("s") else unit_name(met)
            bare = f'A bare number needs a unit, such as Q_(15, "{unit}"). '
            bare += "For ceil, floor and round units have to cancel. "
        return (
            "Values that are added, subtracted, compared or converted need units of one kind, "
            f"got {' and '.join(units)}. {bare}Follow the units through your formula."
        )
    name = type(error).__name__
    message = f"{name}: {error}" if str(error) else name
    if name == pint.DimensionalityError.__name__:  # of a sandbox, which has put it into words
        message = str(error)
    if len(message) > MAX_MESSAGE:
        return f"{message[:MAX_MESSAGE]}..."
    return message if message.endswith((".", "?", "!")) else f"{message}."
