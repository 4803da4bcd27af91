"""One pint registry with the lab's own vocabulary, and the gate that every figure passes on its way in.

It does not know what a stage or a GPU is: only dimensions, finite numbers and signs.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from importlib.resources import files
from math import isfinite
from numbers import Number
from typing import Any

import numpy as np
import pint

from .errors import InputError

registry = pint.UnitRegistry(str(files(__package__) / "units.txt"), autoconvert_to_preferred=False)
# A pickled quantity is rebuilt in pint's application registry. In pint's default one data is dimensionless,
# so that a figure sent to another process would silently lose its dimension.
pint.set_application_registry(registry)

Quantity = registry.Quantity

# Parsing a unit costs more than the arithmetic of a whole solve, so those of the results are parsed once.
_COMMON = {unit: registry.Unit(unit) for unit in ("ms", "GB", "GB/s", "img/s", "GFLOP")}
_AMBIGUOUS_BITS = ("b", "kb", "Kb", "Mb", "Gb", "Tb")


def Q_(value: Any, unit: str | None = None) -> Any:
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
    '6.0 GB'
    """
    if isinstance(value, Quantity):
        return value if unit is None else convert(value, unit, "the quantity")
    if unit in _COMMON and not isinstance(value, str):
        return Quantity(value, _COMMON[unit])
    asked = f"{value!r}" if unit is None else f"({value!r}, {unit!r})"
    try:
        made = Quantity(value) if unit is None else Quantity(value, unit)
        made.dimensionality  # an unknown unit is only noticed when it is looked up
    except pint.UndefinedUnitError as error:
        names = error.unit_names if isinstance(error.unit_names, tuple | list) else (error.unit_names,)
        if any(name in _AMBIGUOUS_BITS for name in names):
            raise InputError(
                f"A unit must be unambiguous, got {asked}: {names[0]} could be bits or bytes. "
                f"Write {names[0][:-1]}B for bytes or {names[0][:-1]}bit for bits."
            ) from None
        raise InputError(
            f"A unit must be one that the lab knows, got {asked}: {', '.join(names)} is unknown. "
            'Use for example "ms", "KB", "GB/s", "img/s", "TFLOP/s".'
        ) from None
    except Exception:
        raise InputError(f'A quantity is a number and a unit, got {asked}. Write for example Q_("500 KB").') from None
    if unit is None and not isinstance(value, str):
        raise InputError(f"A quantity needs a unit, got {asked}. Write for example Q_({value!r}, \"ms\").")
    return made


def convert(value: Any, unit: str, what: str) -> Any:
    """Return `value` in `unit`, or say which unit was wanted; a string is read as a quantity."""
    if isinstance(value, str):
        value = Q_(value)
    if not isinstance(value, Quantity):
        raise InputError(f'{what} needs a unit, got the bare {type(value).__name__} {value!r}. Write Q_({value!r}, "{unit}").')
    if not value.is_compatible_with(unit):
        raise InputError(f"{what} must be convertible to {unit}, got {format_quantity(value)}. Check what the figure counts.")
    return value.to(unit)


def positive(value: Any, unit: str | None, what: str, *, zero: bool = False) -> Any:
    """Magnitude of `value` in `unit`: a float, or a float array of the same shape.

    Parameters
    ----------
    value : quantity or str
        The figure as the caller gave it.
    unit : str or None
        The unit whose dimension it must have; None for a plain number.
    what : str
        Its name in the error message.
    zero : bool
        Whether zero is allowed.

    Raises
    ------
    InputError
        For a bare number, a wrong dimension, NaN, an infinite, negative or (unless allowed) zero figure.
    """
    if unit is None:
        return check_magnitude(value, what, zero=zero)
    factor = _factor(value.units, unit) if isinstance(value, Quantity) else None
    magnitude = convert(value, unit, what).magnitude if factor is None else value.magnitude * factor
    return check_magnitude(magnitude, what, unit=unit, zero=zero)


@cache
def _factor(units: Any, unit: str) -> float | None:
    """What a magnitude is multiplied by to get into `unit`; None if the dimensions differ."""
    one = Quantity(1.0, units)
    return one.m_as(unit) if one.is_compatible_with(unit) else None


def check_magnitude(value: Any, what: str, *, unit: str = "", zero: bool = False) -> Any:
    """A finite, positive float or float array; the same message for plain numbers and quantities."""
    if type(value) in (float, int) and isfinite(value) and (value > 0 or (zero and value == 0)):
        return float(value)
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be a number, got {value!r}. Pass a number or an array of numbers.") from None
    bad = ~np.isfinite(array) | (array < 0 if zero else array <= 0)
    if bad.any():
        shown = f"{array[bad].flat[0]:g} {unit}".strip()
        rule = "finite and not negative" if zero else "finite and positive"
        raise InputError(f"{what} must be {rule}, got {shown}. Check the figure and its sign.")
    return array if array.ndim else float(array)


def whole(value: Any, what: str) -> Any:
    """A whole number of at least one (an int, or an integer array of the same shape)."""
    if type(value) is int and value > 0:
        return value
    if isinstance(value, bool) or not isinstance(value, Number | np.ndarray | list | tuple | range | np.generic):
        raise InputError(f"{what} must be a whole number, got {value!r}. Pass an int such as 256.")
    array = np.asarray(check_magnitude(value, what))
    if (array != np.floor(array)).any():
        odd = array[array != np.floor(array)].flat[0]
        raise InputError(f"{what} must be a whole number, got {odd:g}. Round it to the one you mean.")
    return array.astype(np.int64) if array.ndim else int(array)


def exact(value: Any, unit: str | None, what: str, *, zero: bool = False) -> Fraction:
    """Like `positive`, but as an exact fraction of the decimal number that was meant.

    Twelve significant digits undo the rounding of unit conversion (0.1 ms is exactly 1/10000 s), so that
    counts of workers come out right where floats do not: 435.9968 and 32.9973 are one step from the next.
    """
    magnitude = positive(value, unit, what, zero=zero)
    if np.ndim(magnitude):
        raise InputError(f"{what} must be one figure for an exact answer, got an array. Ask for one point at a time.")
    return Fraction(f"{magnitude:.12g}")


_SHORT_UNITS = {"sample": "img", "pct": "%"}


def format_number(value: Any, digits: int = 4) -> str:
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


def format_quantity(value: Any, digits: int = 4) -> str:
    """A quantity as people write it: ``11.74 ms``, ``2 GB/s``, ``21800 img/s``; arrays as a list."""
    if np.ndim(value.magnitude):
        number = "[" + ", ".join(format_number(x, digits) for x in np.ravel(value.magnitude)) + "]"
    else:
        number = format_number(value.magnitude, digits)
    unit = f"{value.units:~C}".replace("**", "^").replace("*", "·")
    unit = "/".join(_short(part) for part in unit.split("/"))
    return f"{number} {unit}".strip()


def _short(unit: str) -> str:
    return "·".join(_SHORT_UNITS.get(part, part) for part in unit.split("·"))
