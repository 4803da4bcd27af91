"""The codec: values as JSON, which is all that passes between a student's code and the checks.

Both sides encode and decode with this. What comes out of a sandbox may be forged, so decoding makes only
values of known types, bounded in depth and number, and never runs what it reads.

A value arrives as it was sent, with the same type, or an error says why it cannot be sent:

- Arrays and NumPy's scalars keep each bit: every width of integer, -0.0, the payload of a NaN, the order of
  bytes, text, dates. Not sent are longdouble, whose bits differ between machines, objects and records.
- Python's floats keep each bit, but for NaN: there is one NaN, without sign or payload.
- A subclass arrives as its base type: an IntEnum as int, a Counter as dict, a numpy.matrix as array, a text
  of NumPy as str, a path as one that opens no file. A named tuple and a dataclass arrive as one of their
  names.
- An iterator arrives as a list.
"""

import base64
import dataclasses
import math
import re
from collections import namedtuple
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from itertools import chain
from pathlib import PurePath, PurePosixPath
from typing import Any, TypeAlias, cast

import numpy as np

from .. import plugins
from ..errors import GraderError
from ..text import storable
from . import frames
from .channel import Message

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
TAG = "!"
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Function: TypeAlias = Callable[..., object]
Array: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
# What a student's value may be, in words for whoever writes checks.
CAN_CROSS = (
    "numbers, text, bytes, truth values, None, lists, tuples, named tuples, dataclasses, dicts, sets, "
    "ranges, dates and times, paths, NumPy arrays of numbers, text or dates, data frames, quantities, "
    "functions of those"
)
TOO_MANY = "it is nested too deeply or holds too many values"


class SerializationError(GraderError, TypeError):
    """A value that cannot be sent, or a message that holds no value."""


def _require(condition: object, otherwise: str) -> None:
    if not condition:
        raise SerializationError(otherwise)


def _checked_int(value: Any) -> int:
    _require(isinstance(value, int), "it is no whole number")
    _require(abs(value) < TOO_LARGE, "it is too large")
    return cast(int, value)


def _checked_text(text: str) -> str:
    _require(len(text) <= MAX_CHARACTERS, "the text is too long")
    half = "the text holds half a character (a surrogate), which no file can hold"
    _require(text == storable(text), half)
    return text


def _checked_decimal(text: str) -> str:
    # Of 1e999999999 a check that asks for the whole number would compute for ever.
    fits = len(text) <= MAX_DIGITS and abs(Decimal(text).adjusted()) <= MAX_DIGITS
    _require(fits, "it is a decimal of too many digits")
    return text


def _short(values: range) -> range:
    _require(not values[MAX_VALUES:], TOO_MANY)
    return values


def _unique(make: Callable[[Any], Any], parts: Iterable[object], keys: tuple[object, ...]) -> Any:
    """Make a set or a dict, unless some of its keys became equal and fell together."""
    # To put n keys with the same hash into a table takes n * n steps, and such numbers are easily found.
    same_hash = len(keys) - len(set(map(hash, keys)))
    _require(same_hash <= MAX_SAME_HASH, "too many of its keys or members have the same hash")
    values = make(parts)
    _require(len(values) == len(keys), "two of its keys or members are equal once they have been sent")
    return values


def _dict(*parts: object) -> dict[Any, Any]:
    """Make a dict of its keys and values in turn, as `_flat` gives them."""
    return cast(dict[Any, Any], _unique(dict, zip(parts[::2], parts[1::2], strict=True), parts[::2]))


def _flat(mapping: Mapping[Any, object]) -> Iterable[object]:
    return chain.from_iterable(mapping.items())


# By their tags: types, the parts that are sent of a value, and how it is made of them again. The first type
# that fits counts. Parts are values themselves; those of a forged message may be any.
KINDS: dict[str, tuple[type, Callable[[Any], Iterable[object]], Callable[..., object]]] = {
    **plugins.declared("values"),
    "complex": (complex, lambda v: (v.real, v.imag), complex),
    "decimal": (Decimal, lambda v: [_checked_decimal(Decimal.__str__(v))],
                lambda text: Decimal(_checked_decimal(text))),
    # Of a text such as "1e999999999" it would compute for ever.
    "fraction": (Fraction, Fraction.as_integer_ratio, lambda *parts: Fraction(*map(_checked_int, parts))),
    "datetime": (datetime, lambda v: [datetime.isoformat(v)], datetime.fromisoformat),
    "date": (date, lambda v: [date.isoformat(v)], date.fromisoformat),
    "time": (time, lambda v: [time.isoformat(v)], time.fromisoformat),
    "timedelta": (timedelta, lambda v: (v.days, v.seconds, v.microseconds), timedelta),
    "path": (PurePath, lambda v: [PurePath.__str__(v)], PurePosixPath),
    "range": (range, lambda v: (_short(v).start, v.stop, v.step),
              lambda *parts: _short(range(*map(_checked_int, parts)))),
    "dict": (Mapping, _flat, _dict),
    "keys": (KeysView, iter, lambda *keys: _unique(dict.fromkeys, keys, keys).keys()),
    "items": (ItemsView, chain.from_iterable, lambda *parts: _dict(*parts).items()),
    "values": (ValuesView, iter, lambda *values: dict(enumerate(values)).values()),
    "tuple": (tuple, iter, lambda *members: members),
    "set": (set, iter, lambda *members: _unique(set, members, members)),
    "frozenset": (frozenset, iter, lambda *members: _unique(frozenset, members, members)),
}  # fmt: skip


class Encoder:
    """Turns values into JSON's own types; with `refer`, as for a sandbox, also functions."""

    def __init__(self, refer: Callable[[Function], int] | None = None) -> None:
        self.refer = refer
        self.left, self.bytes_left = MAX_VALUES, MAX_BYTES

    def encode(self, value: object, depth: int = 0) -> Json:
        """Return `value` as dicts, lists, text and numbers, or raise a `SerializationError`."""
        self.left -= 1
        _require(depth <= MAX_DEPTH and self.left >= 0, TOO_MANY)
        if isinstance(value, np.ndarray | np.generic):
            if value.dtype.char not in "US" or value.ndim != 0:
                return self._array(value)
            value = value.item()
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            # Of a subclass the value counts, not what it says of itself: str() of an Enum gives its name.
            return _checked_int(int.__int__(value))
        if isinstance(value, float):
            return float.__float__(value)
        if isinstance(value, str):
            return _checked_text(str.__str__(value))
        if isinstance(value, bytes | bytearray | memoryview):
            return {TAG: "bytes", "data": self._base64(bytes(value))}
        if isinstance(value, list):
            return self._all(value, depth)
        return self._tagged(value, depth)

    def _all(self, values: Iterable[object], depth: int) -> list[Json]:
        # Counted one by one: there may be no end of them.
        return [self.encode(each, depth + 1) for each in values]

    def _sent(self, tag: str, parts: Iterable[object], depth: int) -> Json:
        return {TAG: tag, "parts": self._all(parts, depth)}

    def _tagged(self, value: object, depth: int) -> Json:
        """A value that JSON has no type for."""
        kind = type(value)
        if (parts_of_it := frames.parts_of(value)) is not None:
            return self._sent("pandas", parts_of_it, depth)
        if isinstance(value, tuple) and (names := getattr(kind, "_fields", None)):
            fields = dict(zip(names, value, strict=True))
            return self._sent("namedtuple", [kind.__name__, *_flat(fields)], depth)
        for tag, (fitting, parts, _) in KINDS.items():
            if isinstance(value, fitting):
                return self._sent(tag, parts(value), depth)
        if isinstance(value, Iterator) and not callable(value):
            return self._all(value, depth)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            is_of_the_lab = kind.__module__.partition(".")[0] in plugins.packages()
            names = [each.name for each in dataclasses.fields(value) if each.init or not is_of_the_lab]
            fields = {name: getattr(value, name) for name in names}
            if is_of_the_lab and self.refer is not None:
                return self._sent("lab", [kind.__module__, kind.__qualname__, *_flat(fields)], depth)
            if not is_of_the_lab and self.refer is None:
                return self._sent("dataclass", [kind.__name__, *_flat(fields)], depth)
        if self.refer is not None and callable(value):
            return self._sent("callback", [self.refer(value)], depth)
        raise SerializationError(f"it is of the type {kind.__name__}")

    def _base64(self, data: bytes) -> str:
        self.bytes_left -= len(data)
        _require(self.bytes_left >= 0, f"it has more than {MAX_BYTES / 1e6:g} MB")
        return base64.b64encode(data).decode()

    def _array(self, value: np.generic | Array) -> Json:
        is_scalar = isinstance(value, np.generic)
        dtype = value.dtype.str if value.dtype.char in "USmM" else value.dtype.str[0] + value.dtype.char
        _require(
            DTYPE.fullmatch(dtype),
            f"it is a NumPy {'scalar' if is_scalar else 'array'} of {value.dtype}; "
            "bools, integers, text, dates, floats and complex numbers up to double precision can cross",
        )
        masked = "it is a masked array; its method filled() makes an array that can cross"
        _require(not isinstance(value, np.ma.MaskedArray), masked)
        # As bytes: a list of Python's numbers would lose what these cannot say, such as the payload of a NaN.
        data = np.asarray(value).tobytes() if value.nbytes <= MAX_BYTES else bytes(MAX_BYTES + 1)
        shape: Json = None if is_scalar else list(value.shape)
        return {TAG: "array", "dtype": dtype, "shape": shape, "data": self._base64(data)}


class Decoder:
    """Turns JSON's types back into values; with `call`, as a sandbox does, also into functions."""

    def __init__(self, call: Callable[[int], Function] | None = None) -> None:
        self.call = call
        self.left = MAX_VALUES
        self._types: dict[tuple[str, ...], Callable[..., object]] = {}

    def decode(self, value: object) -> object:
        """Return what `Encoder.encode` was given, or raise a `SerializationError`."""
        try:
            return self._decode(value, 0)
        except SerializationError:
            raise
        # Whatever is wrong with a forged message, it is wrong with the message.
        except Exception as error:
            raise SerializationError(f"it cannot be read ({type(error).__name__})") from None

    def _decode(self, value: object, depth: int) -> object:
        self.left -= 1
        _require(depth <= 2 * MAX_DEPTH and self.left >= 0, TOO_MANY)
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
            return [self._decode(each, depth + 1) for each in value]
        return self._tagged(cast(Message, value), depth)  # of another type it fails there

    def _tagged(self, value: Message, depth: int) -> object:
        """A value that JSON has no type for."""
        kind = value[TAG]
        if kind == "array":
            return _array(value)
        if kind == "bytes":
            return base64.b64decode(value["data"], validate=True)
        parts = [self._decode(each, depth + 1) for each in value["parts"]]
        if kind in ("namedtuple", "dataclass"):
            return self._record(kind, *parts)
        if self.call is not None and kind == "callback":
            return self.call(*cast(list[int], parts))
        if self.call is not None and kind == "lab":
            module, name, *fields = cast(list[str], parts)
            return getattr(import_module(module), name)(**_dict(*fields))
        return frames.made_of(*parts) if kind == "pandas" else KINDS[kind][2](*parts)

    def _record(self, kind: str, name: Any, *parts: Any) -> object:
        """A named tuple or a dataclass, of a type that is made of nothing but names."""
        key = (kind, name, *parts[::2])
        if key not in self._types:
            names_fit = all(map(NAME.fullmatch, key)) and not any(one.startswith("_") for one in parts[::2])
            _require(len(self._types) < MAX_TYPES and names_fit, "its names cannot be read")
            make = namedtuple if kind == "namedtuple" else dataclasses.make_dataclass
            self._types[key] = make(name, parts[::2])
        return self._types[key](*parts[1::2])


def _array(value: Message) -> object:
    """An array or a scalar of NumPy."""
    _require(DTYPE.fullmatch(value["dtype"]), "it is an array of an unknown kind")
    dtype = np.dtype(value["dtype"])
    shape = () if value["shape"] is None else tuple(int(length) for length in value["shape"])
    # The product of some thousand long numbers would take minutes.
    is_short = len(shape) <= MAX_DIMENSIONS and all(0 <= length <= MAX_BYTES for length in shape)
    _require(is_short, "the array is too large, or not of its shape")
    data, size = base64.b64decode(value["data"], validate=True), math.prod(shape)
    fits = len(data) == size * dtype.itemsize and (data or not size)
    _require(fits, "the array is not of its shape")
    if dtype.char == "?":
        _require(not data.strip(b"\0\1"), "it is an array of bools that are neither true nor false")
    if dtype.char == "U":
        # A number that is no character would fail wherever a check looks at it.
        np.frombuffer(data, f"{dtype.str[0]}u4").astype("<u4").tobytes().decode("utf-32-le")
    # What is read from bytes cannot be written to; a copy can.
    made = np.frombuffer(data, dtype).reshape(shape).copy()
    return made[()] if value["shape"] is None else made
