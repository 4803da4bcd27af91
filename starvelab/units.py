"""One pint registry with the lab's own vocabulary, and the checks that every value passes on its way in.

A value must have the right dimension, be finite, and have the right sign; then it becomes a plain number.
"""

from __future__ import annotations

import copyreg
import re
from fractions import Fraction
from functools import cache, lru_cache
from importlib.resources import files
from math import inf, isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any, Never, TypeAlias

import numpy as np
import pint

from .errors import InputError

# Any: a float, an array of floats, or a fraction. One formula serves a point, a sweep and an exact answer,
# and no static type spans the arithmetic of all three.
Number: TypeAlias = Any
# Any: what a caller passed and nobody has checked yet. Checking it is the job of the functions that take it.
Unchecked: TypeAlias = Any

registry: pint.UnitRegistry[float] = pint.UnitRegistry(
    str(files(__package__) / "units.txt"), autoconvert_to_preferred=False
)
registry.formatter.default_format = "~C"  # 2.0 GB/s, as people write it
registry.separate_format_defaults = True  # also beside a format of the number, as in {:.1f}
if TYPE_CHECKING:

    class Quantity(pint.Quantity[Any]):
        """The type of `registry.Quantity`; pint's own decorators hide what these return from pyright."""

        def to(self, other: Unchecked = None, *contexts: Unchecked, **settings: Unchecked) -> Quantity: ...  # noqa: D102
        def __add__(self, other: Unchecked) -> Quantity: ...
        def m_as(self, units: Unchecked) -> Number: ...  # noqa: D102
else:
    Quantity = registry.Quantity
Amount: TypeAlias = Quantity | str


def _rebuild(magnitude: Number, unit: str) -> Quantity:
    return Quantity(magnitude, unit)


# Pint rebuilds a pickled quantity in whatever registry the other process uses. In pint's own, data is
# dimensionless: a value sent there would lose its dimension without a word. This one brings its registry.
copyreg.pickle(Quantity, lambda quantity: (_rebuild, (quantity.magnitude, f"{quantity.units:D}")))

# Units that mean two things: which, and what to write instead.
_AMBIGUOUS = {
    f"{prefix}b": ("bits or bytes", f"{prefix}B for bytes or {prefix}bit for bits")
    for prefix in ("", "k", "K", "M", "G", "T")
} | {
    f"{prefix}FLOPS": ("work or work per second", f"{prefix}FLOP for work or {prefix}FLOP/s for a rate")
    for prefix in ("", "M", "G", "T", "P")
}
# Rates as networks and tools print them, and how the lab writes them.
_RATES = {
    f"{prefix}{short}ps": f"{prefix}{unit}/s"
    for prefix in ("", "k", "K", "M", "G", "T")
    for short, unit in (("b", "bit"), ("B", "B"))
}
# A second number in a text: "1 000 ms" would be 1 times 0 ms, and "1.281.167 img" 1.281 times 0.167 img.
_SECOND_NUMBER = re.compile(r"[\w.]\s+\.?\d|\.\d*\.")
# The model computes in base units; people write these.
_CUSTOMARY = {"B": "KB", "B/s": "GB/s", "s": "ms", "sample/s": "img/s", "FLOP/s": "TFLOP/s", "MAC": "GMAC"}
_EXAMPLE = 'Write for example Q_("500 KB").'


def Q_(value: Unchecked = None, unit: str | None = None, *more: Never, **unknown: Never) -> Quantity:
    """Make a quantity: ``Q_("500 KB")`` or ``Q_(10.9, "GB/s")``.

    KB, MB and GB are powers of 1000; KiB, MiB and GiB are powers of 1024.

    Raises
    ------
    InputError
        If the text is no number with a unit, or the unit is not in the lab's vocabulary.

    Examples
    --------
    >>> Q_("500 KB").to("MB").magnitude
    0.5
    >>> f"{Q_(2, 'GB/s') * Q_('3 s'):~}"
    '6 GB'
    """
    if more or unknown:
        raise InputError(f"Q_ takes a value and a unit, got {_short([*more, *unknown])} too. {_EXAMPLE}")
    if unit is not None and _is_numeric(value):
        try:
            return Quantity(value, _unit(unit))
        except (InputError, TypeError):  # a unit that is no text may not even be hashable
            return _parse(f"({_short(value)}, {_short(unit)})", value, unit)  # which names the value as well
    if isinstance(value, Quantity):
        return value if unit is None else convert(value, unit, "the quantity")
    if isinstance(value, str) and unit is None:
        return Quantity(*_read(value))
    asked = _short(value) if unit is None else f"({_short(value)}, {_short(unit)})"
    if not _is_numeric(value):
        either = ", or one text with both" if isinstance(value, str) else ""
        raise InputError(f"A quantity is a number and a unit{either}, got {asked}. {_EXAMPLE}")
    raise InputError(f'A quantity needs a unit, got {asked}. Write for example Q_({asked}, "ms").')


def _short(value: Unchecked) -> str:
    """Return the first line of how a value is written, at most 80 characters."""
    return f"{repr(value).partition(chr(10))[0]:.80}"


def _is_numeric(value: Unchecked) -> bool:
    """True if it is a real number or an array of them; bools and texts are not."""
    if type(value) in (float, int):
        return True
    if isinstance(value, Quantity | bool):
        return False
    try:
        return isinstance(value, Real) or np.asarray(value).dtype.kind in "iuf"
    except ValueError:  # rows of unequal length
        return False


# A lab writes the same few units and texts again and again, and to parse one costs more than a whole solve.
@lru_cache(maxsize=1024)
def _unit(text: str) -> pint.Unit:
    """A unit by its name; an InputError where pint does not know it."""
    return registry.Unit(_parse(f"(1, {text!r})", 1, text).units)


@lru_cache(maxsize=1024)
def _read(text: str) -> tuple[Number, pint.Unit]:
    """The number and the unit of a text."""
    quantity = _parse(_short(text), text)
    if quantity.units == registry.dimensionless:
        raise InputError(f"A quantity needs a unit, got {text!r}. {_EXAMPLE}")
    return quantity.magnitude, registry.Unit(quantity.units)


def _parse(asked: str, *of: Unchecked) -> Quantity:
    """Return the quantity that pint makes of a text, or of a number and a unit."""
    text = " ".join(part for part in of if isinstance(part, str))
    if "," in text:  # pint leaves commas out, so that 1,5 becomes 15
        raise InputError(
            f"A quantity must be a number without a comma, got {asked}. "
            "Write a point before decimals, and thousands without a separator."
        )
    if _SECOND_NUMBER.search(text):
        raise InputError(f"A quantity is one number and a unit, got {asked}. Write no thousands separator.")
    try:
        quantity = Quantity(*of)
        _ = quantity.dimensionality  # an unknown unit is only noticed when it is looked up
    except pint.UndefinedUnitError as error:
        names = error.unit_names if isinstance(error.unit_names, tuple | list) else (error.unit_names,)
        for name in filter(_AMBIGUOUS.get, names):
            meant, instead = _AMBIGUOUS[name]
            raise InputError(
                f"A unit must be unambiguous, got {asked}: {name} could be {meant}. Write {instead}."
            ) from None
        rate = next(filter(None, map(_RATES.get, names)), None)
        instead = f"Write {rate}." if rate else 'Use for example "ms", "KB", "GB/s", "img/s", "TFLOP/s".'
        raise InputError(
            f"A unit must be one that the lab knows, got {asked}: {', '.join(names):.80} is unknown. "
            f"{instead}"
        ) from None
    except Exception:  # pint's parser lets many kinds of error through
        raise InputError(f"A quantity is a number and a unit, got {asked}. {_EXAMPLE}") from None
    return quantity


def convert(value: Unchecked, unit: str, what: str) -> Quantity:
    """Return `value` in `unit`, or say which unit was wanted; a string is read as a quantity."""
    return as_quantity(value, unit, what).to(unit)


def as_quantity(value: Unchecked, unit: str, what: str) -> Quantity:
    """Return `value` as a quantity of the dimension of `unit`; a string is read as one."""
    if isinstance(value, str):
        value = Q_(value)
    wanted = _CUSTOMARY.get(unit, unit)
    if not isinstance(value, Quantity):
        raise InputError(
            f"{what} needs a unit, got the bare {type(value).__name__} {value!r:.80}. "
            f'Write for example Q_({value if type(value) in (float, int) else 5}, "{wanted}").'
        )
    if not has_dimension(value, unit):
        raise InputError(
            f"{what} must be convertible to {wanted}, got {format_quantity(value)}. Check what it counts."
        )
    return value


def has_dimension(value: Unchecked, unit: str) -> bool:
    """True if `value` is a quantity that converts to `unit`."""
    return isinstance(value, Quantity) and _factor(value.units, unit) is not None


def positive(value: Unchecked, unit: str | None, what: str, *, zero: bool = False) -> Number:
    """Magnitude of `value` in `unit` (None for a plain number): a float, or a float array of the same shape.

    An InputError, which calls it `what`, refuses a bare number, a wrong dimension, and a value that is NaN,
    infinite, negative or, unless `zero` is allowed, zero.
    """
    if unit is None:
        return check_magnitude(value, what, zero=zero)
    value = as_quantity(value, unit, what)
    return check_magnitude(value.magnitude, what, units=value.units, zero=zero) * _factor(value.units, unit)


def checked_quantity(value: Unchecked, unit: str, what: str, *, zero: bool = False) -> Quantity:
    """Return `value` as a quantity that passes the same checks."""
    found = as_quantity(value, unit, what)
    positive(found, unit, what, zero=zero)
    return found


def nonnegative(value: Unchecked, unit: str | None, what: str) -> Number:
    """Like `positive`, and zero is allowed."""
    return positive(value, unit, what, zero=True)


@cache
def _factor(units: pint.Unit, unit: str) -> float | None:
    """Return what a magnitude is multiplied by to get into `unit`; None if the dimensions differ."""
    one = Quantity(1.0, units)
    return float(one.m_as(unit)) if one.is_compatible_with(unit) else None


def base_number(value: Quantity) -> Number:
    """The magnitude of a quantity in base units: seconds, bytes, samples, FLOP, MAC, dollars."""
    return value.magnitude * _base_factor(value.units)


@cache
def _base_factor(units: pint.Unit) -> float:
    return float(Quantity(1.0, units).to_base_units().magnitude)


def check_magnitude(
    value: Unchecked, what: str, *, units: pint.Unit | None = None, zero: bool = False
) -> Number:
    """A finite, positive float or float array; the same message for plain numbers and quantities."""
    if type(value) is int:
        value = _as_float(value)
    if type(value) is float and isfinite(value) and (value > 0 or (zero and value == 0)):
        return float(value)
    if not _is_numeric(value):
        raise InputError(f"{what} must be a number, got {value!r:.80}. Pass a number or an array of numbers.")
    array = np.asarray(value, dtype=float)
    bad = ~np.isfinite(array) | (array < 0 if zero else array <= 0)
    if bad.any():
        shown = f"{array[bad].flat[0]:g} {'' if units is None else unit_name(units)}".strip()
        rule = "finite and not negative" if zero else "finite and positive"
        raise InputError(f"{what} must be {rule}, got {shown}. Check the value and its sign.")
    return array if array.ndim else float(array)


_MAX_INT = 2**53  # beyond, a float does not hold each whole number


def _as_float(number: int) -> float:
    """Return a whole number as a float, infinite where it is too large for one."""
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf


def one_value(number: Number, what: str) -> Number:
    """Return a number that is no array, and reject one that is."""
    if np.ndim(number):
        raise InputError(f"{what} is one value, got an array. Ask for one value at a time.")
    return number


def positive_int(value: Unchecked, what: str) -> Number:
    """A whole number of at least one (an int, or an integer array of the same shape)."""
    if type(value) is int and 0 < value <= _MAX_INT:
        return value
    if not _is_numeric(value):
        raise InputError(f"{what} must be a whole number, got {value!r:.80}. Pass an int such as 256.")
    array = np.asarray(check_magnitude(value, what))
    if (array != np.floor(array)).any():
        fraction = array[array != np.floor(array)].flat[0]
        raise InputError(f"{what} must be a whole number, got {fraction:g}. Round it to the one you mean.")
    if (array > _MAX_INT).any():
        raise InputError(f"{what} must be at most 2^53, got {array.max():g}. Check the value.")
    return array.astype(np.int64) if array.ndim else int(array)


def exact(number: Number, what: str) -> Number:
    """A float as the fraction of the decimal number that was meant; whole numbers stay what they are.

    Twelve significant digits undo the rounding of unit conversion (0.1 ms is exactly 1/10000 s), so that
    counts of workers come out right where floats do not: 435.9968 and 32.9973 are one step from the next.
    """
    if np.ndim(number):
        raise InputError(
            f"{what} must be one value for an exact answer, got an array. Ask for one point at a time."
        )
    return Fraction(f"{number:.12g}") if isinstance(number, float) and isfinite(number) else number


_SHORT_UNITS = {"sample": "img", "token": "tokens", "pct": "%"}
_SHOWN = 12  # numbers of an array: a sweep of a million must not fill the screen


def format_number(value: Number, digits: int = 4) -> str:
    """A number to four significant digits without exponent: 21800, 11.74, 64, 0.4186."""
    value = float(value)
    if not np.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits}g}")
    if not 1e-6 <= abs(rounded) < 1e15:
        return f"{rounded:g}"
    return np.format_float_positional(rounded, trim="-")


def data_size(size: float) -> Quantity:
    """So many bytes, in the unit in which they are read most easily."""
    power = max(each for each in range(4) if not each or size >= 1000**each)
    return Q_(size / 1000**power, ("B", "KB", "MB", "GB")[power])


def format_quantity(value: Quantity, digits: int = 4) -> str:
    """A quantity as people write it: ``11.74 ms``, ``2 GB/s``, ``21800 img/s``; arrays as a list."""
    if np.ndim(value.magnitude):
        numbers = [format_number(x, digits) for x in np.ravel(value.magnitude)[:_SHOWN]]
        number = f"[{', '.join(numbers)}{', ...' if np.size(value.magnitude) > _SHOWN else ''}]"
    else:
        number = format_number(value.magnitude, digits)
    return f"{number} {unit_name(value.units)}".strip()


def unit_name(units: Unchecked) -> str:
    """Units of a quantity as people write them: ``GB/s``, ``img/s``, ``%``; nothing for a plain number."""
    text = f"{units:~C}".replace("**", "^").replace("*", "·")
    return "/".join("·".join(_SHORT_UNITS.get(u, u) for u in part.split("·")) for part in text.split("/"))
