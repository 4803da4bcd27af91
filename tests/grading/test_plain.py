"""Plain data comes back as it was; all else is refused, and no message makes anything run."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as some

from starvelab import Q_
from starvelab.grading.plain import DEPTH, ITEMS, Decoder, Encoder, NotPlainError
from starvelab.simulate import Loader

KEYS = st.none() | st.booleans() | st.integers(-(10**300), 10**300) | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    KEYS | st.complex_numbers(allow_nan=False) | st.fractions() | st.decimals(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.frozensets(KEYS, max_size=4)
    ),
    max_leaves=20,
)


def across(value):
    """Through JSON and back, as out of a sandbox."""
    return Decoder().decode(json.loads(json.dumps(Encoder().encode(value))))


@given(VALUES)
def test_plain_data_comes_back_as_it_was(value):
    assert across(value) == value
    assert type(across(value)) is type(value)


@given(
    some.arrays(
        st.sampled_from(["?", "b", "h", "i", "q", "B", "H", "I", "Q", "e", "f", "d", "F", "D"]),
        some.array_shapes(max_side=4),
    )
)
@example(np.array([complex(0, inf)], dtype=np.complex64))
def test_arrays_keep_their_type_and_shape(array):
    found = across(array)
    np.testing.assert_array_equal(found, array)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)


@pytest.mark.parametrize(
    "value", [np.float64(2.5), np.int64(-3), np.bool_(True), np.float32(inf), np.array(4.0)]
)
def test_numpy_scalars_stay_what_they_are(value):
    assert type(across(value)) is type(value)
    assert across(value) == value


@pytest.mark.parametrize("unit", ["ms", "img/s", "GB/s", "TFLOP/s", "1 / s", "", "ms**2 / img"])
@pytest.mark.parametrize("number", [3, 2.5, np.array([1.0, 2.0])])
def test_quantities_keep_their_units(number, unit):
    found = across(Q_(number, unit))
    assert found.units == Q_(number, unit).units
    np.testing.assert_array_equal(found.magnitude, number)


def test_a_subclass_crosses_as_what_it_pretends_to_be_a_kind_of():
    class Lie(float):
        def __eq__(self, other):
            return True

        __hash__ = float.__hash__

    assert type(across(Lie(3))) is float
    assert across(Lie(3)) != 4


def test_an_unfilled_place_is_told_from_nothing():
    assert across(...) is ...


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (object(), "it is of the type object"),
        (print, "it is of the type builtin_function_or_method"),
        (b"x", "it is of the type bytes"),
        (np.array([print]), "it is a NumPy array of object"),
        (10**400, "it is too large"),
        ("x" * 1_000_001, "the text is too long"),
        (np.zeros(ITEMS + 1), "the array is too large"),
        ([0] * (ITEMS + 1), "it is nested too deeply or holds too many values"),
    ],
)
def test_what_is_not_plain_is_refused(value, why):
    with pytest.raises(NotPlainError) as caught:
        Encoder().encode(value)
    assert str(caught.value) == why


def test_what_is_nested_too_deeply_is_refused():
    value = []
    for _ in range(DEPTH + 1):
        value = [value]
    with pytest.raises(NotPlainError, match="nested too deeply"):
        Encoder().encode(value)


@pytest.mark.parametrize(
    "message",
    [
        {"!": "lab", "module": "os", "name": "system", "fields": {"command": "true"}},
        {"!": "callback", "number": 0},
        {"!": "quantity", "magnitude": 1, "units": {"__import__('os')": 1}},
        {"!": "quantity", "magnitude": 1, "units": {"millisecond": 10**9}},
        {"!": "quantity", "magnitude": 1, "units": {"bananas": 1}},
        {"!": "array", "dtype": "O", "shape": [1], "parts": [[1]]},
        {"!": "array", "dtype": "d", "shape": [10**12], "parts": [[]]},
        {"!": "array", "dtype": "d", "shape": [-1], "parts": [[1]]},
        {"!": "array", "dtype": "d", "shape": [2], "parts": [["x", 1]]},
        {"!": "dict", "pairs": [[[], 1]]},
        {"!": "dict", "pairs": 3},
        {"!": "fraction", "parts": [1, 0]},
        {"!": "decimal", "text": "x"},
        {"!": "complex", "parts": ["x", 1]},
        {"!": "unheard-of"},
        {},
        10**400,
    ],
)
def test_a_forged_message_says_nothing(message):
    with pytest.raises(NotPlainError):
        Decoder().decode(message)


def test_the_checks_may_send_what_a_sandbox_may_not():
    loader = Loader(step_time="20 ms", prepare_time="80 ms", workers=3)
    sent = json.loads(json.dumps(Encoder(refer=lambda function: 7).encode({"loader": loader, "call": len})))
    found = Decoder(call=lambda number: f"calls {number}").decode(sent)
    assert repr(found["loader"]) == repr(loader)
    assert found["call"] == "calls 7"
    with pytest.raises(NotPlainError, match="of the type Loader"):
        Encoder().encode(loader)
    with pytest.raises(NotPlainError, match="of the type object"):
        Encoder(refer=len).encode(object())


def test_decimals_and_fractions_are_exact():
    assert across([Decimal("0.1"), Fraction(1, 3)]) == [Decimal("0.1"), Fraction(1, 3)]
