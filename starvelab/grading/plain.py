"""Plain data as JSON: all that may cross between a student's code and the checks.

Both sides encode and decode with this. What comes out of a sandbox may have been written by anybody, so
decoding makes only values of known types, bounded in depth and number, and never runs what it reads.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from ..errors import StarvelabError
from ..units import Q_, Quantity
from .drawn import described

DEPTH = 20  # lists within lists
ITEMS = 200_000  # values in all
LETTERS = 1_000_000  # of one text
DIGITS = 400  # of one whole number; floats end at 308
NAME = re.compile(r"[A-Za-z_]\w{0,60}")
DTYPES = frozenset(["?", "b", "h", "i", "l", "q", "B", "H", "I", "L", "Q", "e", "f", "d", "F", "D"])
TAG = "!"


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
        if value is None or type(value) in (bool, float):
            return value
        if isinstance(value, np.generic | np.ndarray):
            return self._array(value)
        if isinstance(value, Quantity):
            units = {str(name): float(power) for name, power in value._units.items()}
            return {TAG: "quantity", "magnitude": self.encode(value.magnitude, down), "units": units}
        if isinstance(value, int):
            number = int(value)
            if abs(number) >= 10**DIGITS:
                raise NotPlainError("it is too large")
            return number
        if isinstance(value, float):
            return float(value)
        if isinstance(value, str):
            if len(value) > LETTERS:
                raise NotPlainError("the text is too long")
            # Halves of characters that no file can hold are marked rather than lost.
            return str(value).encode("utf-8", "backslashreplace").decode()
        if value is ...:
            return {TAG: "ellipsis"}
        if isinstance(value, complex):
            return {TAG: "complex", "parts": [value.real, value.imag]}
        if isinstance(value, Decimal):
            return {TAG: "decimal", "text": str(value)[:DIGITS]}
        if isinstance(value, Fraction):
            return {TAG: "fraction", "parts": [self.encode(n) for n in value.as_integer_ratio()]}
        if isinstance(value, Mapping):
            pairs = [[self.encode(key, down), self.encode(each, down)] for key, each in value.items()]
            return {TAG: "dict", "pairs": pairs}
        if isinstance(value, list | tuple | set | frozenset):
            kind = next(kind for kind in (list, tuple, set, frozenset) if isinstance(value, kind))
            values = [self.encode(each, down) for each in value]
            return values if kind is list else {TAG: kind.__name__, "values": values}
        if (figure := described(value)) is not None:
            return self.encode(figure, down)
        if self.refer is not None:
            return self._of_the_lab(value, down)
        raise NotPlainError(f"it is of the type {type(value).__name__}")

    def _array(self, value: Any) -> Any:
        if value.dtype.char == "U" and value.ndim == 0:
            return str(value)
        if value.dtype.char not in DTYPES:
            raise NotPlainError(f"it is a NumPy array of {value.dtype}")
        self.left -= value.size
        if self.left < 0:
            raise NotPlainError("the array is too large")
        flat = value.reshape(-1)
        parts = [flat.real.tolist(), flat.imag.tolist()] if value.dtype.kind == "c" else [flat.tolist()]
        scalar = isinstance(value, np.generic)
        shape = None if scalar else list(value.shape)
        return {TAG: "array", "dtype": value.dtype.char, "shape": shape, "parts": parts}

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
        if isinstance(value, int) and abs(value) >= 10**DIGITS:
            raise NotPlainError("it is too large")
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, list):
            return [self._decode(each, down) for each in value]
        kind = value[TAG]
        if kind in ("tuple", "set", "frozenset"):
            made = [self._decode(each, down) for each in value["values"]]
            return {"tuple": tuple, "set": set, "frozenset": frozenset}[kind](made)
        if kind == "dict":
            return {self._decode(key, down): self._decode(each, down) for key, each in value["pairs"]}
        if kind == "quantity":
            return Q_(self._decode(value["magnitude"], down), _unit(value["units"]))
        if kind == "array":
            return self._array(value)
        if kind == "ellipsis":
            return ...
        if kind == "complex":
            return complex(*(float(part) for part in value["parts"]))
        if kind == "decimal":
            return Decimal(value["text"][:DIGITS])
        if kind == "fraction":
            return Fraction(*(self._decode(part, down) for part in value["parts"]))
        if self.call is not None and kind == "callback":
            return self.call(value["number"])
        if self.call is not None and kind == "lab":
            made_of = {name: self._decode(each, down) for name, each in value["fields"].items()}
            return getattr(import_module(value["module"]), value["name"])(**made_of)
        raise NotPlainError("it is of an unknown kind")

    def _array(self, value: Mapping[str, Any]) -> Any:
        if value["dtype"] not in DTYPES:
            raise NotPlainError("it is an array of an unknown kind")
        shape = () if value["shape"] is None else tuple(int(length) for length in value["shape"])
        self.left -= math.prod(shape)
        if (
            self.left < 0
            or len(shape) > DEPTH
            or any(len(part) != math.prod(shape) for part in value["parts"])
        ):
            raise NotPlainError("the array is too large, or not of its shape")
        real, *imaginary = value["parts"]
        flat = np.empty(len(real), dtype=value["dtype"])
        # Part by part: an infinite one would make a sum of the two no number.
        flat.real = real
        for part in imaginary:
            flat.imag = part
        return flat[0] if value["shape"] is None else flat.reshape(shape)


def _unit(powers: Mapping[str, Any]) -> Any:
    """A unit from names and exponents; no expression is ever parsed."""
    unit = Q_(1, "").units
    for name, power in powers.items():
        if not NAME.fullmatch(name) or not abs(power) <= DEPTH:
            raise NotPlainError("its unit cannot be read")
        exponent = int(power) if float(power).is_integer() else float(power)
        unit = unit * Q_(1, name).units ** exponent
    return unit
