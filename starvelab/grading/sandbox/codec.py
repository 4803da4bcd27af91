"""Plain data as JSON: all that may cross between a student's code and the checks.

Both sides encode and decode with this. What comes out of a sandbox may have been written by anybody, so
decoding makes only values of known types, bounded in depth and number, and never runs what it reads.

A value arrives as it was sent, of the same type, or it is refused with the reason:

- Arrays and NumPy's scalars keep each bit: every width of integer, -0.0, the payload of a NaN, the order of
  bytes. Refused are longdouble, whose bits differ between machines, and all that are not numbers or bools.
- Python's floats keep each bit, but for NaN: there is one NaN, without sign or payload.
- A subclass arrives as the plain type that it is a kind of: an IntEnum as int, a namedtuple as tuple, a
  numpy.matrix as array, a text of NumPy as str, an OrderedDict as dict.
- What gives values one by one arrives as the list of them: an iterator, a range, a deque, the keys of a dict.
"""

from __future__ import annotations

import base64
import dataclasses
import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, MappingView
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from ...errors import StarvelabError
from ...units import Q_, Quantity
from .figures import described

DEPTH = 20  # lists within lists
ITEMS = 200_000  # values in all
LETTERS = 1_000_000  # of one text
MAX_SAME_HASH = 100  # keys or members whose hash another one has, too
MAX_DIMENSIONS = 64  # of an array
DIGITS = 400  # of one whole number; floats end at 308
NAME = re.compile(r"[A-Za-z_]\w{0,60}")
# The order of bytes, and NumPy's own letter: it tells the two 64-bit integers apart, which have one name.
DTYPE = re.compile(r"[<>|][?bhilqBHILQefdFD]")
MAGNITUDES = (int, float, complex, Decimal, Fraction, np.number, np.ndarray)  # of a quantity
TAG = "!"
# These cross as lists: what a check may do with a list it could not do with them.
AS_LISTS = (Iterator, MappingView, range, deque)


class NotPlainError(StarvelabError, TypeError):
    """A value that cannot cross, or a message that says nothing readable."""


class Encoder:
    """Turns values into JSON's own types.

    Parameters
    ----------
    refer : callable, optional
        Takes a function and returns a number to call it back by. Without it functions do not cross, nor do
        objects of the lab: that is the direction out of a sandbox.
    """

    def __init__(self, refer: Callable[[Any], int] | None = None) -> None:
        self.refer = refer
        self.left = ITEMS

    def encode(self, value: Any, depth: int = 0) -> Any:
        """`value` as dicts, lists, text and numbers.

        Raises
        ------
        NotPlainError
        """
        self.left -= 1
        if depth > DEPTH or self.left < 0:
            raise NotPlainError("it is nested too deeply or holds too many values")
        down = depth + 1
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, np.generic | np.ndarray):
            return self._array(value)
        if isinstance(value, Quantity):
            units = {str(name): self.encode(power, down) for name, power in value._units.items()}
            return {TAG: "quantity", "magnitude": self.encode(value.magnitude, down), "units": units}
        if isinstance(value, int):
            # Of a subclass the value counts, not what it says of itself: str() of an Enum gives its name.
            return _checked_int(int.__int__(value))
        if isinstance(value, float):
            return float.__float__(value)
        if isinstance(value, str):
            return _checked_text(str.__str__(value))
        if value is ...:
            return {TAG: "ellipsis"}
        if isinstance(value, complex):
            number = complex.__complex__(value)
            return {TAG: "complex", "parts": [number.real, number.imag]}
        if isinstance(value, Decimal):
            return {TAG: "decimal", "text": _checked_decimal(Decimal.__str__(value))}
        if isinstance(value, Fraction):
            return {TAG: "fraction", "parts": [self.encode(n) for n in value.as_integer_ratio()]}
        if isinstance(value, Mapping):
            pairs = [[self.encode(key, down), self.encode(each, down)] for key, each in value.items()]
            return {TAG: "dict", "pairs": pairs}
        if isinstance(value, list | tuple | set | frozenset):
            kind = next(kind for kind in (list, tuple, set, frozenset) if isinstance(value, kind))
            values = [self.encode(each, down) for each in value]
            return values if kind is list else {TAG: kind.__name__, "values": values}
        if isinstance(value, AS_LISTS) and not callable(value):
            # Counted one by one: it may be endless.
            return [self.encode(each, down) for each in value]
        if (figure := described(value)) is not None:
            return self.encode(figure, down)
        if self.refer is not None:
            return self._of_the_lab(value, down)
        raise NotPlainError(f"it is of the type {type(value).__name__}")

    def _array(self, value: np.generic | np.ndarray) -> Any:
        if value.dtype.char == "U" and value.ndim == 0:
            return _checked_text(value.item())
        dtype = value.dtype.str[0] + value.dtype.char
        if not DTYPE.fullmatch(dtype):
            raise NotPlainError(
                f"it is a NumPy {'scalar' if isinstance(value, np.generic) else 'array'} of {value.dtype}; "
                "bools, integers, and floats and complex numbers up to double precision can cross"
            )
        if isinstance(value, np.ma.MaskedArray):
            raise NotPlainError("it is a masked array; its method filled() makes an array that can cross")
        self.left -= value.size
        if self.left < 0:
            raise NotPlainError("the array is too large")
        shape = None if isinstance(value, np.generic) else list(value.shape)
        # As bytes: a list of Python's numbers would lose what these cannot say, such as the payload of a NaN.
        data = base64.b64encode(np.asarray(value).tobytes()).decode()
        return {TAG: "array", "dtype": dtype, "shape": shape, "data": data}

    def _of_the_lab(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if dataclasses.is_dataclass(value) and kind.__module__.partition(".")[0] == "starvelab":
            fields = {
                f.name: self.encode(getattr(value, f.name), depth)
                for f in dataclasses.fields(value)
                if f.init
            }
            return {TAG: "lab", "module": kind.__module__, "name": kind.__qualname__, "fields": fields}
        if callable(value):
            return {TAG: "callback", "number": self.refer(value)}
        raise NotPlainError(f"it is of the type {kind.__name__}")


class Decoder:
    """Turns JSON's types back into values.

    Parameters
    ----------
    call : callable, optional
        Makes a function of the number of a callback. Without it neither functions nor objects of the lab are
        made: that is the direction out of a sandbox.
    """

    def __init__(self, call: Callable[[int], Callable[..., Any]] | None = None) -> None:
        self.call = call
        self.left = ITEMS

    def decode(self, value: Any) -> Any:
        """What `Encoder.encode` was given.

        Raises
        ------
        NotPlainError
        """
        try:
            return self._decode(value, 0)
        except NotPlainError:
            raise
        # Whatever is wrong with a forged message, it is wrong with the message.
        except Exception as error:
            raise NotPlainError(f"it cannot be read ({type(error).__name__})") from None

    def _decode(self, value: Any, depth: int) -> Any:
        self.left -= 1
        if depth > 2 * DEPTH or self.left < 0:
            raise NotPlainError("it is nested too deeply or holds too many values")
        down = depth + 1
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return _checked_int(value)
        if isinstance(value, float):
            # `json` gives one object for every NaN, and two of them would be one key of a dict.
            return value if value == value else float("nan")
        if isinstance(value, str):
            return _checked_text(value)
        if isinstance(value, list):
            return [self._decode(each, down) for each in value]
        kind = value[TAG]
        if kind in ("tuple", "set", "frozenset"):
            made = [self._decode(each, down) for each in value["values"]]
            if kind == "tuple":
                return tuple(made)
            return _as_many({"set": set, "frozenset": frozenset}[kind], made, made)
        if kind == "dict":
            pairs = [(self._decode(key, down), self._decode(each, down)) for key, each in value["pairs"]]
            return _as_many(dict, pairs, [key for key, _ in pairs])
        if kind == "quantity":
            magnitude = self._decode(value["magnitude"], down)
            if not isinstance(magnitude, MAGNITUDES) or isinstance(magnitude, bool):
                raise NotPlainError(f"it is a quantity of the type {type(magnitude).__name__}")
            powers = {name: self._decode(power, down) for name, power in value["units"].items()}
            return Quantity(magnitude, _unit(powers))
        if kind == "array":
            return self._array(value)
        if kind == "ellipsis":
            return ...
        if kind == "complex":
            return complex(*(float(part) for part in value["parts"]))
        if kind == "decimal":
            return Decimal(_checked_decimal(value["text"]))
        if kind == "fraction":
            # Of a text such as "1e999999999" it would compute for ever.
            numerator, denominator = (_checked_int(part) for part in value["parts"])
            return Fraction(numerator, denominator)
        if self.call is not None and kind == "callback":
            return self.call(value["number"])
        if self.call is not None and kind == "lab":
            made_of = {name: self._decode(each, down) for name, each in value["fields"].items()}
            return getattr(import_module(value["module"]), value["name"])(**made_of)
        raise NotPlainError("it is of an unknown kind")

    def _array(self, value: Mapping[str, Any]) -> Any:
        if not DTYPE.fullmatch(value["dtype"]):
            raise NotPlainError("it is an array of an unknown kind")
        dtype = np.dtype(value["dtype"])
        shape = () if value["shape"] is None else tuple(int(length) for length in value["shape"])
        # The product of some thousand long numbers would take minutes.
        if len(shape) > MAX_DIMENSIONS or any(not 0 <= length <= ITEMS for length in shape):
            raise NotPlainError("the array is too large, or not of its shape")
        size = math.prod(shape)
        self.left -= size
        data = base64.b64decode(value["data"], validate=True)
        if self.left < 0 or len(data) != size * dtype.itemsize:
            raise NotPlainError("the array is too large, or not of its shape")
        if dtype.char == "?" and data.strip(b"\0\1"):
            raise NotPlainError("it is an array of bools that are neither true nor false")
        # What is read from bytes cannot be written to; a copy can.
        array = np.frombuffer(data, dtype).reshape(shape).copy()
        return array[()] if value["shape"] is None else array


def _checked_int(value: Any) -> int:
    if not isinstance(value, int):
        raise NotPlainError("it is no whole number")
    if abs(value) >= 10**DIGITS:
        raise NotPlainError("it is too large")
    return value


def _checked_text(text: str) -> str:
    if len(text) > LETTERS:
        raise NotPlainError("the text is too long")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotPlainError("the text holds half a character (a surrogate), which no file can hold") from None
    return text


def storable(text: str) -> str:
    """Without halves of characters (surrogates), which JSON can hold and a file cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _checked_decimal(text: str) -> str:
    if len(text) > DIGITS:
        raise NotPlainError("it is a decimal of too many digits")
    return text


def _as_many(kind: Callable[[list[Any]], Any], sent: list[Any], keys: list[Any]) -> Any:
    """A set or a dict, unless some of its keys became equal and fell together."""
    # To put n keys with the same hash into a table takes n * n steps, and such numbers are easily found.
    if len(keys) - len(set(map(hash, keys))) > MAX_SAME_HASH:
        raise NotPlainError("too many of its keys or members have the same hash")
    made = kind(sent)
    if len(made) != len(sent):
        raise NotPlainError("two of its keys or members are equal once they are plain")
    return made


def _unit(powers: Mapping[str, Any]) -> Any:
    """A unit from names and exponents; no expression is ever parsed."""
    if len(powers) > DEPTH:
        raise NotPlainError("its unit is a product of too many")
    unit = Q_(1, "").units
    for name, power in powers.items():
        if not NAME.fullmatch(name) or not abs(power) <= DEPTH:
            raise NotPlainError("its unit cannot be read")
        unit = unit * Q_(1, name).units ** power
    return unit
