"""The codec: values as JSON, which is all that passes between a student's code and the checks.

Both sides encode and decode with this. What comes out of a sandbox may be forged, so decoding makes only
values of known types, bounded in depth and number, and never runs what it reads.

A value arrives as it was sent, with the same type, or an error says why it cannot be sent:

- Arrays and NumPy's scalars keep each bit: every width of integer, -0.0, the payload of a NaN, the order of
  bytes, text, dates. Not sent are longdouble, whose bits differ between machines, objects and records.
- Python's floats keep each bit, but for NaN: there is one NaN, without sign or payload.
- A subclass arrives as its base type: an IntEnum as int, a numpy.matrix as array, a text of NumPy as str, a
  path as one that opens no file. A named tuple and a dataclass arrive as one of their names.
- An iterator arrives as a list.
"""

from __future__ import annotations

import base64
import dataclasses
import math
import re
from array import array
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import (
    Callable,
    Collection,
    ItemsView,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from pathlib import PurePath, PurePosixPath
from types import SimpleNamespace
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from pint.facets.plain import PlainUnit

from ...errors import StarvelabError
from ...units import Q_, Quantity
from .channel import Message
from .figures import describe_figure

MAX_DEPTH = 20  # lists within lists
MAX_VALUES = 200_000  # values in all
MAX_CHARACTERS = 1_000_000  # of one text
MAX_BYTES = 4_000_000  # of all arrays and bytes
MAX_TYPES = 50  # named tuples and dataclasses of different fields
MAX_SAME_HASH = 100  # keys or members whose hash another one has, too
MAX_DIMENSIONS = 64  # of an array
MAX_DIGITS = 4000  # of one whole number; Python itself writes no longer ones
TOO_LARGE = 10**MAX_DIGITS
NAME = re.compile(r"[A-Za-z_]\w{0,60}")
# The order of bytes, and NumPy's own letter: it tells the two 64-bit integers apart, which have one name.
DTYPE = re.compile(r"[<>|][?bhilqBHILQefdFD]|[<>|][US]\d{1,7}|[<>][mM]8(\[\d{0,4}[A-Za-z]{1,2}\])?")
MAGNITUDES = (int, float, complex, Decimal, Fraction, np.number, np.ndarray)  # of a quantity
TAG = "!"
T = TypeVar("T")
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Function: TypeAlias = Callable[..., object]
Array: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
# What a student's value may be, in words for whoever writes checks.
CAN_CROSS = (
    "numbers, text, bytes, truth values, None, lists, tuples, named tuples, dataclasses, dicts, sets, "
    "ranges, dates and times, paths, NumPy arrays of numbers, text or dates, quantities, functions of those"
)
FACTORIES = {kind.__name__: kind for kind in (bool, dict, float, int, list, set, str)}  # of a defaultdict
ARRAY_CODES = "bBhHiIlLqQfd"


class SerializationError(StarvelabError, TypeError):
    """A value that cannot be sent, or a message that holds no value."""


def _dict(parts: object) -> dict[Any, Any]:
    if not isinstance(parts, dict):  # a list of keys might have one hash for all
        raise SerializationError("it is no dict")
    return parts


def _short(values: range) -> range:
    if values[MAX_VALUES:]:
        raise SerializationError(TOO_MANY)
    return values


def _array_of(parts: tuple[str, list[Any]]) -> array[Any]:
    code, values = parts
    if code not in ARRAY_CODES or len(code) != 1:
        raise SerializationError("it is an array of an unknown kind")
    return array(code, values)


TOO_MANY = "it is nested too deeply or holds too many values"
# By their tags: types, what is sent of a value, and how it is made again. The first type that fits counts.
KINDS: dict[str, tuple[type, Callable[[Any], object], Callable[[Any], object]]] = {
    "complex": (complex, lambda v: [v.real, v.imag], lambda parts: complex(*map(float, parts))),
    "decimal": (
        Decimal,
        lambda v: _checked_decimal(Decimal.__str__(v)),
        lambda text: Decimal(_checked_decimal(text)),
    ),
    # Of a text such as "1e999999999" it would compute for ever.
    "fraction": (Fraction, Fraction.as_integer_ratio, lambda parts: Fraction(*map(_checked_int, parts))),
    "datetime": (datetime, datetime.isoformat, datetime.fromisoformat),
    "date": (date, date.isoformat, date.fromisoformat),
    "time": (time, time.isoformat, time.fromisoformat),
    "timedelta": (timedelta, lambda v: [v.days, v.seconds, v.microseconds], lambda parts: timedelta(*parts)),
    "path": (PurePath, PurePath.__str__, PurePosixPath),
    "range": (
        range,
        lambda v: [_short(v).start, v.stop, v.step],
        lambda parts: _short(range(*map(_checked_int, parts))),
    ),
    "deque": (deque, lambda v: (list(v), v.maxlen), lambda parts: deque(*parts)),
    "array.array": (array, lambda v: (v.typecode, v.tolist()), _array_of),
    "counter": (Counter, dict, lambda parts: Counter(_dict(parts))),
    "ordered": (OrderedDict, dict, lambda parts: OrderedDict(_dict(parts))),
    "default": (
        defaultdict,
        lambda v: (getattr(v.default_factory, "__name__", ""), dict(v)),
        lambda parts: defaultdict(FACTORIES.get(parts[0]), _dict(parts[1])),
    ),
    "keys": (KeysView, dict.fromkeys, dict.keys),
    "items": (ItemsView, dict, dict.items),
    "values": (ValuesView, lambda v: dict(enumerate(v)), dict.values),
    "namespace": (SimpleNamespace, vars, lambda fields: SimpleNamespace(**fields)),
}


class Encoder:
    """Turns values into JSON's own types.

    Parameters
    ----------
    refer : callable, optional
        Takes a function and returns a number to call it back by. Without it functions do not cross, nor do
        objects of the lab: that is the direction out of a sandbox.
    """

    def __init__(self, refer: Callable[[Function], int] | None = None) -> None:
        self.refer = refer
        self.left, self.bytes_left = MAX_VALUES, MAX_BYTES

    def encode(self, value: object, depth: int = 0) -> Json:
        """`value` as dicts, lists, text and numbers.

        Raises
        ------
        SerializationError
        """
        self.left -= 1
        if depth > MAX_DEPTH or self.left < 0:
            raise SerializationError(TOO_MANY)
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
        if isinstance(value, bytes | bytearray | memoryview):
            return {TAG: "bytes", "data": self._base64(bytes(value))}
        for tag, (kind, parts, _) in KINDS.items():
            if isinstance(value, kind):
                return {TAG: tag, "parts": self.encode(parts(value), down)}
        if isinstance(value, Mapping):
            pairs: list[Json] = [
                [self.encode(key, down), self.encode(each, down)] for key, each in value.items()
            ]
            return {TAG: "dict", "pairs": pairs}
        if (names := getattr(type(value), "_fields", None)) and isinstance(value, tuple):
            return self._record("namedtuple", value, names, value, down)
        if isinstance(value, list | tuple | set | frozenset):
            kind = next(kind for kind in (list, tuple, set, frozenset) if isinstance(value, kind))
            values = [self.encode(each, down) for each in value]
            return values if kind is list else {TAG: kind.__name__, "values": values}
        if isinstance(value, Iterator) and not callable(value):
            # Counted one by one: it may be endless.
            return [self.encode(each, down) for each in value]
        if (description := describe_figure(value)) is not None:
            return self.encode(description, down)
        if self.refer is not None:
            return self._of_the_lab(value, self.refer, down)
        if dataclasses.is_dataclass(value) and not isinstance(value, type) and not _is_of_the_lab(value):
            fields = [one.name for one in dataclasses.fields(value)]
            return self._record("dataclass", value, fields, [getattr(value, one) for one in fields], down)
        raise SerializationError(f"it is of the type {type(value).__name__}")

    def _record(
        self, tag: str, value: object, names: Sequence[str], values: Sequence[object], depth: int
    ) -> Json:
        fields: list[Json] = list(names)
        parts = [self.encode(each, depth) for each in values]
        return {TAG: tag, "name": type(value).__name__, "fields": fields, "values": parts}

    def _base64(self, data: bytes) -> str:
        self.bytes_left -= len(data)
        if self.bytes_left < 0:
            raise SerializationError(f"it has more than {MAX_BYTES / 1e6:g} MB")
        return base64.b64encode(data).decode()

    def _array(self, value: np.generic | Array) -> Json:
        if value.dtype.char in "US" and value.ndim == 0:
            return self.encode(value.item())
        dtype = value.dtype.str if value.dtype.char in "USmM" else value.dtype.str[0] + value.dtype.char
        if not DTYPE.fullmatch(dtype):
            raise SerializationError(
                f"it is a NumPy {'scalar' if isinstance(value, np.generic) else 'array'} of {value.dtype}; "
                "bools, integers, text, dates, floats and complex numbers up to double precision can cross"
            )
        if isinstance(value, np.ma.MaskedArray):
            raise SerializationError(
                "it is a masked array; its method filled() makes an array that can cross"
            )
        shape: Json = None if isinstance(value, np.generic) else list(value.shape)
        # As bytes: a list of Python's numbers would lose what these cannot say, such as the payload of a NaN.
        data = np.asarray(value).tobytes() if value.nbytes <= MAX_BYTES else bytes(MAX_BYTES + 1)
        return {TAG: "array", "dtype": dtype, "shape": shape, "data": self._base64(data)}

    def _of_the_lab(self, value: object, refer: Callable[[Function], int], depth: int) -> Json:
        kind = type(value)
        if dataclasses.is_dataclass(value) and _is_of_the_lab(value):
            fields = {
                f.name: self.encode(getattr(value, f.name), depth)
                for f in dataclasses.fields(value)
                if f.init
            }
            return {TAG: "lab", "module": kind.__module__, "name": kind.__qualname__, "fields": fields}
        if callable(value):
            return {TAG: "callback", "number": refer(value)}
        raise SerializationError(f"it is of the type {kind.__name__}")


class Decoder:
    """Turns JSON's types back into values.

    Parameters
    ----------
    call : callable, optional
        Makes a function of the number of a callback. Without it neither functions nor objects of the lab are
        made: that is the direction out of a sandbox.
    """

    def __init__(self, call: Callable[[int], Function] | None = None) -> None:
        self.call = call
        self.left = MAX_VALUES
        self._types: dict[tuple[str, ...], Callable[..., object]] = {}

    def decode(self, value: object) -> object:
        """What `Encoder.encode` was given.

        Raises
        ------
        SerializationError
        """
        try:
            return self._decode(value, 0)
        except SerializationError:
            raise
        # Whatever is wrong with a forged message, it is wrong with the message.
        except Exception as error:
            raise SerializationError(f"it cannot be read ({type(error).__name__})") from None

    def _decode(self, value: object, depth: int) -> object:
        self.left -= 1
        if depth > 2 * MAX_DEPTH or self.left < 0:
            raise SerializationError(TOO_MANY)
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
        return self._tagged(cast(Message, value), down)  # of another type it fails there

    def _tagged(self, value: Message, down: int) -> object:
        """A value that JSON has no type for."""
        kind = value[TAG]
        if kind in ("tuple", "set", "frozenset"):
            values = [self._decode(each, down) for each in value["values"]]
            if kind == "tuple":
                return tuple(values)
            return _as_many({"set": set, "frozenset": frozenset}[kind], values, values)
        if kind == "dict":
            pairs = [(self._decode(key, down), self._decode(each, down)) for key, each in value["pairs"]]
            return _as_many(dict, pairs, [key for key, _ in pairs])
        if kind == "quantity":
            magnitude = self._decode(value["magnitude"], down)
            if not isinstance(magnitude, MAGNITUDES) or isinstance(magnitude, bool):
                raise SerializationError(f"it is a quantity of the type {type(magnitude).__name__}")
            powers = {name: self._decode(power, down) for name, power in value["units"].items()}
            return Quantity(magnitude, _unit(powers))
        if kind == "array":
            return self._array(value)
        if kind == "ellipsis":
            return ...
        if kind == "bytes":
            return base64.b64decode(value["data"], validate=True)
        if kind in KINDS:
            return KINDS[kind][2](self._decode(value["parts"], down))
        if kind in ("namedtuple", "dataclass"):
            return self._record(kind, value, [self._decode(each, down) for each in value["values"]])
        if self.call is not None and kind == "callback":
            return self.call(value["number"])
        if self.call is not None and kind == "lab":
            fields = {name: self._decode(each, down) for name, each in value["fields"].items()}
            return getattr(import_module(value["module"]), value["name"])(**fields)
        raise SerializationError("it is of an unknown kind")

    def _record(self, kind: str, value: Message, values: Sequence[object]) -> object:
        """A named tuple or a dataclass, of a type that is made of nothing but names."""
        key = (kind, value["name"], *value["fields"])
        if key not in self._types:
            if len(self._types) >= MAX_TYPES or not all(map(NAME.fullmatch, key)):
                raise SerializationError("its names cannot be read")
            if any(name.startswith("_") for name in value["fields"]):
                raise SerializationError("its names cannot be read")
            make = namedtuple if kind == "namedtuple" else dataclasses.make_dataclass
            self._types[key] = make(value["name"], value["fields"])
        return self._types[key](*values)

    def _array(self, value: Message) -> object:
        if not DTYPE.fullmatch(value["dtype"]):
            raise SerializationError("it is an array of an unknown kind")
        dtype = np.dtype(value["dtype"])
        shape = () if value["shape"] is None else tuple(int(length) for length in value["shape"])
        # The product of some thousand long numbers would take minutes.
        if len(shape) > MAX_DIMENSIONS or any(not 0 <= length <= MAX_BYTES for length in shape):
            raise SerializationError("the array is too large, or not of its shape")
        data, size = base64.b64decode(value["data"], validate=True), math.prod(shape)
        if len(data) != size * dtype.itemsize or (size and not data):
            raise SerializationError("the array is not of its shape")
        if dtype.char == "?" and data.strip(b"\0\1"):
            raise SerializationError("it is an array of bools that are neither true nor false")
        if dtype.char == "U":
            # A number that is no character would fail wherever a check looks at it.
            np.frombuffer(data, f"{dtype.str[0]}u4").astype("<u4").tobytes().decode("utf-32-le")
        # What is read from bytes cannot be written to; a copy can.
        made = np.frombuffer(data, dtype).reshape(shape).copy()
        return made[()] if value["shape"] is None else made


def _is_of_the_lab(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "starvelab"


def _checked_int(value: object) -> int:
    if not isinstance(value, int):
        raise SerializationError("it is no whole number")
    if abs(value) >= TOO_LARGE:
        raise SerializationError("it is too large")
    return value


def _checked_text(text: str) -> str:
    if len(text) > MAX_CHARACTERS:
        raise SerializationError("the text is too long")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SerializationError(
            "the text holds half a character (a surrogate), which no file can hold"
        ) from None
    return text


def _checked_decimal(text: str) -> str:
    if len(text) > MAX_DIGITS:
        raise SerializationError("it is a decimal of too many digits")
    return text


def _as_many(
    kind: Callable[[Sequence[T]], Collection[object]], sent: Sequence[T], keys: Sequence[object]
) -> object:
    """A set or a dict, unless some of its keys became equal and fell together."""
    # To put n keys with the same hash into a table takes n * n steps, and such numbers are easily found.
    if len(keys) - len(set(map(hash, keys))) > MAX_SAME_HASH:
        raise SerializationError("too many of its keys or members have the same hash")
    values = kind(sent)
    if len(values) != len(sent):
        raise SerializationError("two of its keys or members are equal once they have been sent")
    return values


def _unit(powers: Mapping[str, object]) -> PlainUnit:
    """A unit from names and exponents; no expression is ever parsed."""
    if len(powers) > MAX_DEPTH:
        raise SerializationError("its unit is a product of too many")
    unit: PlainUnit = Q_(1, "").units
    for name, power in powers.items():
        if not isinstance(power, int | float | Fraction) or not -MAX_DEPTH <= power <= MAX_DEPTH:
            raise SerializationError("its unit cannot be read")
        if not NAME.fullmatch(name):
            raise SerializationError("its unit cannot be read")
        unit = unit * Q_(1, name).units ** power
    return unit
