"""One registry with the lab's own dimensions, and the gate that every figure passes."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pint
import pytest

from starvelab import Q_, InputError
from starvelab.units import (
    base_number,
    convert,
    exact,
    format_quantity,
    has_dimension,
    nonnegative,
    positive,
    positive_int,
    registry,
    unit_name,
)
from tests.rejected import message, negative, other_dimension

# ---- The vocabulary ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "unit", "magnitude"), [
    ("1 KB", "B", 1000), ("1 kB", "B", 1000), ("1 MB", "B", 1e6), ("1 GB", "B", 1e9), ("1 TB", "B", 1e12),
    ("1 KiB", "B", 1024), ("1 MiB", "B", 1024**2), ("1 GiB", "B", 1024**3), ("8 bit", "B", 1),
    ("10 Gbit/s", "GB/s", 1.25), ("1 img", "sample", 1), ("100 images/s", "img/s", 100),
    ("1 TFLOP/s", "GFLOP/ms", 1), ("1 GMAC", "MAC", 1e9), ("1 us", "ms", 0.001), ("1 min", "s", 60),
    ("1 day", "h", 24), ("2 GHz", "1/s", 2e9), ("50 %", "", 0.5), ("3 USD", "dollar", 3),
    ("1 kWh", "J", 3.6e6), ("1 W", "J/s", 1),
])  # fmt: skip
def test_units_mean_what_the_labels_of_disks_and_datasheets_mean(text, unit, magnitude):
    assert Q_(text).m_as(unit) == pytest.approx(magnitude, rel=1e-12)


def test_data_samples_arithmetic_and_money_do_not_add_up_but_in_pints_own_registry():
    for text in ("3 GB/s + 2 GHz", "3 img + 2 KB", "1 GMAC + 1 GFLOP", "1 img/s + 1 Hz", "1 USD + 1 img"):
        left, right = text.split(" + ")
        with pytest.raises(pint.DimensionalityError):
            Q_(left) + Q_(right)
    ordinary = pint.UnitRegistry()
    assert (ordinary("3 GB/s") + ordinary("2 GHz")).check("1/[time]")
    assert pint.get_application_registry().get() is not registry


def test_making_a_quantity_takes_text_or_a_number_and_a_unit_or_a_quantity():
    size = Q_("500 KB")
    assert size == Q_(500, "KB") == Q_(0.5, "MB")
    assert Q_([1, 2], "GB/s").tolist() == [Q_("1 GB/s"), Q_("2 GB/s")]
    assert Q_(np.ones((2, 3)), "ms").shape == (2, 3)
    assert Q_(Fraction(1, 2), "KB").magnitude == Fraction(1, 2)
    assert Q_(size) is size
    assert Q_(size, "MB").magnitude == 0.5
    assert message(InputError, Q_, size, "ms") == other_dimension("ms", **{"the quantity": "500 KB"})[1]


# ---- What cannot be a quantity -----------------------------------------------------------------------------

EXAMPLE = 'Write for example Q_("500 KB").'
BITS = (
    "A unit must be unambiguous, got {0}: {1}b could be bits or bytes. "
    "Write {1}B for bytes or {1}bit for bits."
)
UNKNOWN = (
    "A unit must be one that the lab knows, got {}: {} is unknown. "
    'Use for example "ms", "KB", "GB/s", "img/s", "TFLOP/s".'
)
RATE = "A unit must be one that the lab knows, got {}: {} is unknown. Write {}."
COMMA = (
    "A quantity must be a number without a comma, got {}. "
    "Write a point before decimals, and thousands without a separator."
)
TWO = "A quantity is one number and a unit, got {}. Write no thousands separator."


@pytest.mark.parametrize(("arguments", "expected"), [
    (("5 Gb",), BITS.format("'5 Gb'", "G")),
    (("5 Mb/s",), BITS.format("'5 Mb/s'", "M")),
    ((5, "kb"), BITS.format("(5, 'kb')", "k")),
    (("5 b",), BITS.format("'5 b'", "")),
    (
        (24.5, "GFLOPS"),
        "A unit must be unambiguous, got (24.5, 'GFLOPS'): GFLOPS could be work or work per second. "
        "Write GFLOP for work or GFLOP/s for a rate.",
    ),
    (("1 parsec",), UNKNOWN.format("'1 parsec'", "parsec")),
    ((5, "Mbps"), RATE.format("(5, 'Mbps')", "Mbps", "Mbit/s")),
    (("200 MBps",), RATE.format("'200 MBps'", "MBps", "MB/s")),
    (("1,5 GB/s",), COMMA.format("'1,5 GB/s'")),
    (("1,281,167 img",), COMMA.format("'1,281,167 img'")),
    ((5, "GB,s"), COMMA.format("(5, 'GB,s')")),
    (("1 000 ms",), TWO.format("'1 000 ms'")),
    (("1.281.167 img",), TWO.format("'1.281.167 img'")),
    (("5 ms 3",), TWO.format("'5 ms 3'")),
    (("",), f"A quantity is a number and a unit, got ''. {EXAMPLE}"),
    (("2 GB + 1 s",), f"A quantity is a number and a unit, got '2 GB + 1 s'. {EXAMPLE}"),
    (("__import__('os')",), f"A quantity is a number and a unit, got \"__import__('os')\". {EXAMPLE}"),
    ((None,), f"A quantity is a number and a unit, got None. {EXAMPLE}"),
    ((None, "ms"), f"A quantity is a number and a unit, got (None, 'ms'). {EXAMPLE}"),
    ((True, "ms"), f"A quantity is a number and a unit, got (True, 'ms'). {EXAMPLE}"),
    (([1, "a"], "ms"), f"A quantity is a number and a unit, got ([1, 'a'], 'ms'). {EXAMPLE}"),
    (([1, [2, 3]], "ms"), f"A quantity is a number and a unit, got ([1, [2, 3]], 'ms'). {EXAMPLE}"),
    ((5, 3), f"A quantity is a number and a unit, got (5, 3). {EXAMPLE}"),
    (("500",), f"A quantity needs a unit, got '500'. {EXAMPLE}"),
    ((500,), 'A quantity needs a unit, got 500. Write for example Q_(500, "ms").'),
    (("5 GB", "MB"),
     f"A quantity is a number and a unit, or one text with both, got ('5 GB', 'MB'). {EXAMPLE}"),
])  # fmt: skip
def test_what_is_no_quantity_is_refused_with_the_reason(arguments, expected):
    assert message(InputError, Q_, *arguments) == expected


# ---- The gate ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("figure", [-5.0, 0, float("nan"), float("inf"), -float("inf")])
def test_a_figure_must_be_finite_and_positive_and_is_shown_as_it_came(figure):
    expected = f"size must be finite and positive, got {figure:g} KB. Check the value and its sign."
    assert message(InputError, positive, Q_(figure, "KB"), "B", "size") == expected
    assert message(InputError, positive, Q_([1, figure, 3], "KB"), "B", "size") == expected
    assert nonnegative(Q_("0 ms"), "s", "latency") == 0
    assert message(InputError, nonnegative, Q_("-1 ms"), "s", "latency") == negative(latency="-1 ms")[1]


@pytest.mark.parametrize(("value", "expected"), [
    (500, 'size needs a unit, got the bare int 500. Write for example Q_(500, "KB").'),
    (2.5, 'size needs a unit, got the bare float 2.5. Write for example Q_(2.5, "KB").'),
    ([1, 2], 'size needs a unit, got the bare list [1, 2]. Write for example Q_(5, "KB").'),
    (None, 'size needs a unit, got the bare NoneType None. Write for example Q_(5, "KB").'),
    ("5 ms", "size must be convertible to KB, got 5 ms. Check what it counts."),
    (Q_([1, 2], "ms"), "size must be convertible to KB, got [1, 2] ms. Check what it counts."),
    ("5", f"A quantity needs a unit, got '5'. {EXAMPLE}"),
])  # fmt: skip
def test_a_figure_needs_a_unit_of_the_right_dimension(value, expected):
    assert message(InputError, positive, value, "B", "size") == expected
    assert message(InputError, convert, value, "KB", "size") == expected


@pytest.mark.parametrize(
    ("value", "came"),
    [("0.5", "'0.5'"), (True, "True"), (None, "None"), (Q_("5 ms"), repr(Q_("5 ms"))), (1j, "1j")],
)
def test_a_plain_number_is_a_number_and_nothing_that_looks_like_one(value, came):
    expected = f"efficiency must be a number, got {came}. Pass a number or an array of numbers."
    assert message(InputError, positive, value, None, "efficiency") == expected
    for long in (list(range(10_000)), Q_(np.ones(10_000), "ms")):
        assert len(message(InputError, positive, long, "B", "size")) < 200


def test_the_gate_gives_floats_and_float_arrays_of_the_same_shape():
    assert positive("500 KB", "B", "size") == 500_000.0
    assert type(positive(Q_(np.int64(5), "KB"), "B", "size")) is float
    array = positive(Q_(np.array([[1, 2]]), "KB"), "B", "size")
    assert (array.dtype, array.tolist()) == (np.float64, [[1000.0, 2000.0]])


@pytest.mark.parametrize("value", [256, 256.0, np.int32(256), np.float64(256)])
def test_a_whole_number_of_any_type_is_an_int_and_several_are_an_array(value):
    found = positive_int(value, "batch_size")
    assert (found, type(found)) == (256, int)
    for values in ([value, 2], (value, 2), np.array([value, 2])):
        found = positive_int(values, "batch_size")
        assert (found.dtype, found.tolist()) == (np.int64, [256, 2])
    assert positive_int(range(1, 3), "batch_size").tolist() == [1, 2]


@pytest.mark.parametrize(
    "value", [True, np.True_, [True, False], "256", None, Q_("256 img"), {256}, Decimal(256)]
)
def test_what_only_looks_like_a_whole_number_is_refused(value):
    said = message(InputError, positive_int, value, "batch_size")
    assert said.startswith("batch_size must be a whole number, got ")
    assert said.endswith("Pass an int such as 256.")


def test_an_exact_figure_is_the_one_decimal_number_that_was_meant():
    assert exact(positive("0.1 ms", "s", "overhead"), "overhead") == Fraction(1, 10_000)
    assert exact(positive("114.66 KB", "B", "size"), "size") == 114_660
    assert [exact(0.0, "latency"), exact(7, "workers")] == [0, 7]
    assert message(InputError, exact, np.array([1.0, 2.0]), "overhead") == (
        "overhead must be one value for an exact answer, got an array. Ask for one point at a time."
    )
    values = ("1 ms", "2 KB", "3 GB/s", "4 img/s", "5 TFLOP/s", "6 GMAC")
    assert [base_number(Q_(value)) for value in values] == pytest.approx([1e-3, 2e3, 3e9, 4, 5e12, 6e9])
    asked = ((Q_("5 KB"), "GB"), (Q_("5 KB"), "GB/s"), (5, "GB"), ("5 KB", "GB"))
    assert [has_dimension(*one) for one in asked] == [True, False, False, False]


# ---- Showing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "text"), [
    (Q_(11.743205, "ms"), "11.74 ms"),
    (Q_(64.0, "ms"), "64 ms"),
    (Q_(2, "GB/s"), "2 GB/s"),
    (Q_(21799.84, "img/s"), "21800 img/s"),
    (Q_(312, "TFLOP/s"), "312 TFLOP/s"),
    (Q_(0.1835, "percent"), "0.1835 %"),
    (Q_(0.000012346, "s"), "0.00001235 s"),
    (Q_(1e-9, "s"), "1e-09 s"),
    (Q_(0, "ms"), "0 ms"),
    (Q_(float("nan"), "ms"), "nan ms"),
    (Q_(-3, "GB"), "-3 GB"),
    (Q_([1, 2.55555], "ms"), "[1, 2.556] ms"),
    (Q_(list(range(20)), "ms"), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...] ms"),
    (Q_(3, "GB * img / s"), "3 GB·img/s"),
    (Q_(3, "s ** 2"), "3 s^2"),
])  # fmt: skip
def test_quantities_are_shown_with_four_digits_and_short_units(value, text):
    assert format_quantity(value) == text


def test_a_unit_is_written_as_people_write_it():
    for unit in ("img/s", "%", "GB/s"):
        assert unit_name(Q_(f"20 {unit}").units) == unit
    assert unit_name((Q_("5 img") / Q_("1 img")).units) == ""


def test_a_quantity_is_printed_as_people_write_it():
    # It was "2.0 gigabyte / second", where all other texts say GB/s.
    assert (str(Q_("2 GB/s")), f"{Q_('11.736 ms'):.1f}") == ("2.0 GB/s", "11.7 ms")
