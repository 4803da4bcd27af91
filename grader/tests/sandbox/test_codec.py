"""Plain data comes back as it was; all else is refused, and no message makes anything run."""

import base64
import enum
import json
import sys
from collections import Counter, OrderedDict, defaultdict, namedtuple
from dataclasses import asdict, dataclass  # noqa: F401 (of what checks ask)
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import chain, count, islice
from math import inf, isnan, nan
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as some

from starvelab import PUBLISHED, Q_, DataModel, Pipeline
from starvelab.units import Quantity
from starvelab_grader.sandbox import codec
from starvelab_grader.sandbox.codec import (
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_VALUES,
    Decoder,
    Encoder,
    SerializationError,
)


def out_of_a_sandbox(value):
    """Through JSON and back, as a student's answer travels."""
    return Decoder().decode(json.loads(json.dumps(Encoder().encode(value))))


def into_a_sandbox(value):
    """Through JSON and back, as an argument of a check travels."""
    sent = json.loads(json.dumps(Encoder(refer=lambda function: 7).encode(value)))
    return Decoder(call=lambda number: f"calls {number}").decode(sent)


BOTH_WAYS = [out_of_a_sandbox, into_a_sandbox]


def spelled(value):
    """All that makes a value what it is, to be compared with ==: its type, its bits, its shape, its order."""
    kind = type(value)
    if isinstance(value, np.ndarray | np.generic):
        return kind, value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, Quantity):
        return kind, frozenset(value._units.items()), spelled(value.magnitude)
    if isinstance(value, float):
        return kind, "nan" if isnan(value) else value.hex()
    if isinstance(value, complex):
        return kind, spelled(value.real), spelled(value.imag)
    if isinstance(value, dict):
        return kind, [(spelled(key), spelled(each)) for key, each in value.items()]
    if isinstance(value, list | tuple):
        return kind, [spelled(each) for each in value]
    if isinstance(value, set | frozenset):
        return kind, Counter(repr(spelled(each)) for each in value)
    return kind, repr(value)


# Every kind of number that NumPy has, but for longdouble: each letter, in either order of bytes.
DTYPES = [np.dtype(letter).newbyteorder(order) for letter in "?bhilqBHILQefdFD" for order in "<>"]


@st.composite
def arrays_of_any_bits(draw):
    """An array that holds whatever its bytes can mean, and that may stand in memory in any order."""
    dtype, shape = draw(st.sampled_from(DTYPES)), draw(some.array_shapes(min_dims=0, min_side=0, max_side=3))
    length = int(np.prod(shape)) * dtype.itemsize
    data = draw(st.binary(min_size=length, max_size=length))
    if dtype.kind == "b":
        data = bytes(byte % 2 for byte in data)
    array = np.frombuffer(data, dtype).reshape(shape)
    return draw(st.sampled_from([array, array.T, array[..., ::-1] if shape else array]))


ARRAYS = arrays_of_any_bits()
SCALARS = ARRAYS.filter(lambda array: array.size).map(lambda array: array.reshape(-1)[0])
NUMBERS = st.integers(-(10**300), 10**300) | st.floats() | st.fractions() | st.decimals(allow_nan=False)
UNITS = st.sampled_from(["ms", "img/s", "GB/s", "TFLOP/s", "1 / s", "", "ms**2 / img", "ms**0.5", "%"])
QUANTITIES = st.builds(
    Quantity,
    NUMBERS | ARRAYS.filter(lambda array: array.dtype.kind != "b"),
    UNITS.map(lambda unit: Q_(1, unit).units),
)
KEYS = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text() | st.complex_numbers() | SCALARS,
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=3,
)
VALUES = st.recursive(
    KEYS | ARRAYS | QUANTITIES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.sets(KEYS, max_size=4)
    ),
    max_leaves=12,
)


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


# Arrays and scalars at the ends of their ranges, in either order of bytes; keys that nearly fall together;
# numbers that JSON does not know, or not so exactly.
ODD = [
    np.array([2**63, 2**63 + 1, 2**64 - 1], np.uint64), np.array([-(2**63), 2**63 - 1], np.int64),
    np.array([-128, 127], np.int8), np.array([2**53 + 1], ">i8"), np.array([1.5, -0.0], ">f8"),
    np.array([1.5, 65504, 6e-8, -0.0, inf, nan], np.float16), np.zeros((2, 0, 3), ">f4"), np.zeros((1,) * 64),
    np.array([0x7FF8000000000001, 0x7FF0000000000001, 0xFFF8000000000000], np.uint64).view(float),
    np.array([complex(0, inf), complex(-0.0, nan), complex(nan, -0.0)], np.complex64), np.array(True),
    np.array([True, False]), np.array([], np.int32), np.array(4.0), np.arange(6).reshape(2, 3).T,
    np.uint64(2**63 + 1), np.longlong(3), np.bool_(True), np.float32(0.1), np.complex128(complex(-0.0, nan)),
    [inf, -inf, nan, -0.0, 5e-324], complex(-0.0, -inf), 10**399, Fraction(10**300 + 1, 3),
    Decimal("-0E-7"), Decimal("0.1" + "0" * 300), {0.0: "a key", 1: "an int", "1": "a text", None: -0.0},
    {-0.0: -0.0}, {True: 1, False: 0}, {float("nan"): 1, float("nan"): 2}, {float("nan"), float("nan")},
    {np.uint64(2**63 + 1): 1, (1, (True, -0.0)): 2}, Quantity(3, "ms"), Quantity(np.float32(0.1), "GB/s"),
    Quantity(np.arange(3, dtype=">i2"), "img"), Quantity(np.array(4.0), ""), Quantity(Fraction(1, 3), "ms"),
    Quantity(8.0, "ms") ** np.float64(0.5), Quantity(8, "ms") ** Fraction(1, 3),
]  # fmt: skip


@pytest.mark.programs
@given(VALUES)
def test_plain_data_comes_back_as_it_was_in_both_directions(value):
    for across in BOTH_WAYS:
        assert spelled(across(value)) == spelled(value)


@pytest.mark.parametrize("across", BOTH_WAYS)
def test_odd_values_come_back_as_they_were(across):
    for number, value in enumerate(ODD):  # pint cannot print all of them
        assert spelled(across(value)) == spelled(value), number


class Rung(enum.IntEnum):
    SECOND = 2


class Part(enum.StrEnum):
    READ = "read"


class Culprit(str, enum.Enum):  # noqa: UP042 (str() of it is its name, and no StrEnum)
    CPU = "the CPU"


class Lie(float):
    def __eq__(self, other):
        return True

    def __float__(self):
        return 4.0

    __hash__ = float.__hash__


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize("across", BOTH_WAYS)
@pytest.mark.parametrize(("value", "plain"), [
    (Rung.SECOND, 2),
    (Part.READ, "read"),
    (Culprit.CPU, "the CPU"),
    ({Rung.SECOND: Part.READ}, {2: "read"}),
    (Lie(3), 3.0),
    (defaultdict(lambda: 0, a=1), {"a": 1}),
    (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
    (Path("a/b"), PurePosixPath("a/b")),
    (bytearray(b"x"), b"x"),
    (memoryview(b"x"), b"x"),
    (np.str_("CPU"), "CPU"),
    (np.where(True, "CPU", "storage"), "CPU"),
    (np.array([[1, 2]]).view(np.matrix), np.array([[1, 2]])),
], ids=lambda value: type(value).__name__)  # fmt: skip
def test_a_subclass_arrives_as_the_plain_type_that_it_is_a_kind_of(value, plain, across):
    assert spelled(across(value)) == spelled(plain)


@pytest.mark.parametrize(("value", "items"), [
    (reversed([1, 2]), [2, 1]),
    (map(str, [1]), ["1"]),
    ((n * n for n in (1, 2)), [1, 4]),
    (chain([1], islice(count(5), 2)), [1, 5, 6]),
    ({"a": map(abs, [-1])}, {"a": [1]}),
])  # fmt: skip
def test_an_iterator_crosses_as_a_list(value, items):
    found = out_of_a_sandbox(value)
    assert found == items
    assert type(found) is type(items)


@dataclass
class Host:
    name: str
    cores: int = 4


# What a right answer may be, with what a check may ask of it.
AS_AT_HOME = [
    (b"\0\xff", "value == b'\\0\\xff'"),
    (range(1, 9, 2), "value == range(1, 9, 2) and 5 in value"),
    (date(2026, 11, 23), "value.isoformat() == '2026-11-23'"),
    (datetime(2026, 11, 23, 9, 30, tzinfo=timezone(timedelta(hours=1))), "value.utcoffset().seconds == 3600"),
    (datetime(2026, 11, 23, 9, 30, tzinfo=ZoneInfo("Europe/Berlin")), "value.utcoffset().seconds == 3600"),
    (time(9, 30, 0, 5), "value.microsecond == 5"),
    (timedelta(days=-1, microseconds=3), "value.days == -1"),
    (Path("a") / "b.txt", "value == PurePosixPath('a/b.txt') and value.suffix == '.txt'"),
    (Counter("aab"), "value == {'a': 2, 'b': 1}"),
    ({"a": 1}.keys(), "value == {'a'} and value & {'a', 'b'} == {'a'}"),
    ({"a": 1}.items(), "value == {('a', 1)}"),
    ({"a": 1, "b": 1}.values(), "list(value) == [1, 1]"),
    (Point(1, -0.0), "value == (1, 0) and value.x == 1 and value._asdict() == {'x': 1, 'y': 0}"),
    (Host("a"), "value.cores == 4 and asdict(value) == {'name': 'a', 'cores': 4}"),
    (np.array([["CPU", "GPU"]]), "value.tolist() == [['CPU', 'GPU']] and (value == 'CPU').sum() == 1"),
    (np.array([b"x", b"yz"]), "value.tolist() == [b'x', b'yz']"),
    (np.array(["2026-01-01"], "M8[D]"), "value[0] == np.datetime64('2026-01-01')"),
    (np.timedelta64(3, "s"), "value == np.timedelta64(3000, 'ms')"),
    (np.zeros(300_000), "value.sum() == 0 and value.shape == (300_000,)"),
    (np.arange(3), "value.put(0, 7) is None and value.tolist() == [7, 1, 2]"),
    (2**2000, "value == 2 ** 2000"),
]


@pytest.mark.parametrize(("value", "holds"), AS_AT_HOME, ids=lambda one: type(one).__name__)
def test_a_right_answer_passes_as_at_home(value, holds):
    assert eval(holds, globals() | {"value": out_of_a_sandbox(value)})


NUMBERS_ONLY = "bools, integers, text, dates, floats and complex numbers up to double precision can cross"


@pytest.mark.parametrize(("value", "why"), [
    (object(), "it is of the type object"),
    (print, "it is of the type builtin_function_or_method"),
    (np.array([print]), f"it is a NumPy array of object; {NUMBERS_ONLY}"),
    (np.array([(1, 2.0)], "i,f"), f"it is a NumPy array of {np.dtype('i,f')}; {NUMBERS_ONLY}"),
    (np.longdouble(3), f"it is a NumPy scalar of {np.dtype('g')}; {NUMBERS_ONLY}"),
    (np.zeros(2, np.clongdouble), f"it is a NumPy array of {np.dtype('G')}; {NUMBERS_ONLY}"),
    (
        np.ma.masked_array([1, 2], [True, False]),
        "it is a masked array; its method filled() makes an array that can cross",
    ),
    (Q_(1, "ms").units, "it is of the type Unit"),
    (10**MAX_DIGITS, "it is too large"),
    (Fraction(1, 10**MAX_DIGITS), "it is too large"),
    (Decimal("0." + MAX_DIGITS * "1"), "it is a decimal of too many digits"),
    (Decimal("1e999999999"), "it is a decimal of too many digits"),
    (Decimal("1e-999999999"), "it is a decimal of too many digits"),
    (SimpleNamespace(a=1), "it is of the type SimpleNamespace"),
    ("x" * 1_000_001, "the text is too long"),
    (np.str_("x" * 1_000_001), "the text is too long"),
    ("half \ud83d", "the text holds half a character (a surrogate), which no file can hold"),
    (np.zeros(500_001), "it has more than 4 MB"),
    ([bytes(2_000_000), np.zeros(2_000_001, np.int8)], "it has more than 4 MB"),
    ([Point, Host], "it is of the type type"),
    ([0] * (MAX_VALUES + 1), "it is nested too deeply or holds too many values"),
    (nested(MAX_DEPTH + 1), "it is nested too deeply or holds too many values"),
])  # fmt: skip
def test_what_is_not_plain_is_refused(value, why):
    with pytest.raises(SerializationError) as caught:
        Encoder().encode(value)
    assert str(caught.value) == why


@pytest.mark.parametrize("endless", [count(), range(10**12)])
def test_what_would_go_on_without_end_is_refused(endless, monkeypatch):
    monkeypatch.setattr(codec, "MAX_VALUES", 1000)
    with pytest.raises(SerializationError, match="holds too many values"):
        Encoder().encode(endless)


def tagged(kind, *parts):
    return {"!": kind, "parts": list(parts)}


def forged_array(dtype="<d", shape=(2,), content=bytes(16)):
    """An array as it crosses: right, but for what is given."""
    data = base64.b64encode(content).decode()
    return {"!": "array", "dtype": dtype, "shape": list(shape), "data": data}


# Python's whole numbers have the same hash where they differ by multiples of this.
SAME_HASH = [n * sys.hash_info.modulus for n in range(1, 1000)]
SAME_PAIRS = [each for key in SAME_HASH for each in (key, 1)]
PREFIXES, UNITS_OF = ("nano", "micro", "milli", "kilo", "mega", "giga", "tera"), ("second", "byte", "hertz")
MANY_UNITS = dict.fromkeys((f"{prefix}{unit}" for prefix in PREFIXES for unit in UNITS_OF), 1)


def test_what_the_forgeries_start_from_is_read():
    assert spelled(Decoder().decode(forged_array())) == spelled(np.zeros(2))
    right = {"fraction": [1, 3], "decimal": ["1"], "complex": [1, 2], "range": [0, 5, 1], "path": ["a"]}
    right |= {"timedelta": [1, 0, 0], "dict": [1, 2]}
    right |= {"namedtuple": ["A", "a", 1], "dataclass": ["A", "a", 1]}
    for kind, parts in [*right.items(), *(("quantity", [1, name, 1]) for name in MANY_UNITS)]:
        Decoder().decode({"!": kind, "parts": parts})
    assert Decoder().decode({"!": "set", "parts": SAME_HASH[:50]}) == set(SAME_HASH[:50])


FORGED = {
    "lab": [("os", "system", "command", "true")],
    "callback": [(0,)],
    "quantity": [
        (1, "__import__('os')", 1), (1, "millisecond", 10**9), (1, "bananas", 1), (1, "millisecond", nan),
        (1, *chain.from_iterable(MANY_UNITS.items())), ("5 ms", "millisecond", 1), ([1], "millisecond", 1),
        (True, "millisecond", 1), (1, "millisecond", [1]), (1, "millisecond"),
    ],
    "dict": [([], 1), (3,), (1, 1, True, 1), SAME_PAIRS],
    "set": [(0.0, -0.0), SAME_HASH],
    "frozenset": [SAME_HASH],
    "fraction": [(1, 0), ("1e999999999",), ("1e999999999", 1), (10**MAX_DIGITS, 1)],
    "decimal": [("x",), ("1" * (MAX_DIGITS + 1),), ("1e999999999",), ("-1e-999999999",)],
    "complex": [("x", 1)],
    "range": [(0, 10**12, 1)],
    "keys": [SAME_HASH],
    "items": [SAME_PAIRS],
    "path": [(1,)],
    "timedelta": [(10**20, 0, 0)],
    "namedtuple": [("A", "a", 1, "b"), ("A(print())", "a", 1)],
    "dataclass": [("A", "__class__", 1), ("A", "a=print()", 1)],
    "unheard-of": [()],
}  # fmt: skip
FORGED_ARRAYS = [
    {"dtype": "|O"}, {"dtype": "<d,<d"}, {"dtype": "<M8[x]"}, {"dtype": ["<d"]},
    {"dtype": "<U2", "content": b"\0\0\x11\0" * 4}, {"dtype": "<U2", "content": b"\0\xd8\0\0" * 4},
    {"dtype": "<U0", "shape": [2, 2], "content": b""}, {"dtype": "|?", "shape": [1], "content": b"\2"},
    {"shape": [10**12]}, {"shape": [-1]}, {"shape": [-1, -2]}, {"shape": [1]}, {"shape": [0, 2**70]},
    {"shape": [0, 10**9], "content": b""}, {"shape": [1] * 65, "content": bytes(8)},
    {"shape": [2], "content": bytes(15)},
]  # fmt: skip


@pytest.mark.parametrize("message", [
    *(tagged(kind, *parts) for kind, forgeries in FORGED.items() for parts in forgeries),
    *(forged_array(**odd) for odd in FORGED_ARRAYS),
    forged_array() | {"data": "no base64"},
    forged_array() | {"data": 3},
    {"!": "dict", "parts": 3},
    {"!": "bytes", "data": "no base64"},
    [tagged("namedtuple", f"A{n}", "a", 1) for n in range(51)],
    {},
    10**MAX_DIGITS,
    "half \ud83d",
    [0] * (MAX_VALUES + 1),
    nested(2 * MAX_DEPTH + 1),
])  # fmt: skip
def test_a_forged_message_says_nothing(message):
    with pytest.raises(SerializationError):
        Decoder().decode(message)


@pytest.mark.parametrize(
    "value",
    [Pipeline(hardware="20 ms", workers=3), PUBLISHED, DataModel(PUBLISHED)],
    ids=lambda value: type(value).__name__,
)
def test_the_checks_may_send_objects_of_the_lab_and_a_sandbox_may_not(value):
    assert repr(into_a_sandbox([value])) == repr([value])
    with pytest.raises(SerializationError, match=f"^it is of the type {type(value).__name__}$"):
        Encoder().encode(value)


def test_the_checks_may_send_functions_and_nothing_unknown():
    assert into_a_sandbox({"call": len}) == {"call": "calls 7"}
    with pytest.raises(SerializationError, match="of the type object"):
        Encoder(refer=len).encode(object())
