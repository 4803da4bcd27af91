"""Checks: right answers pass in any honest form, wrong ones are named, the right one is never given away."""

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from starvelab import Q_, InputError
from starvelab.lesson.checks import WrongAnswer, check, one_of
from starvelab.units import format_number
from tests.rejected import message

EXPECTED = Q_("11.743205 ms")


def refusal(answer, expected, **options) -> str:
    return message(WrongAnswer, check, answer, expected, **options)


# --- right answers ---------------------------------------------------------------------------------

magnitudes = st.floats(min_value=1e-6, max_value=1e9)
UNITS = {
    "ms": ["s", "us", "min", "ms"],
    "GB/s": ["MB/s", "KB/ms", "Gbit/s", "GiB/s", "B/s"],
    "img/s": ["img/ms", "img/min", "image/hour"],
    "GFLOP": ["FLOP", "TFLOP"],
}


@given(st.data(), magnitudes, st.sampled_from(sorted(UNITS)))
def test_a_right_answer_is_accepted_in_any_unit_of_its_dimension(data, magnitude, unit):
    expected = Q_(magnitude, unit)
    check(expected.to(data.draw(st.sampled_from(UNITS[unit]))), expected, within=1e-9)


@given(magnitudes, st.floats(1e-6, 0.1), st.floats(-1, 1))
def test_an_answer_within_the_tolerance_is_accepted(value, within, share):
    check(value * (1 + 0.999 * share * within), value, within=within)


@given(magnitudes, st.floats(1e-6, 0.1), st.floats(1.001, 1e6), st.sampled_from([-1, 1]))
def test_an_answer_off_by_more_than_the_tolerance_never_is(value, within, times, sign):
    answer = value * (1 + sign * times * within)
    with pytest.raises(WrongAnswer):
        check(answer, value, within=within)
    with pytest.raises(WrongAnswer):
        check(Q_(answer, "GB/s"), Q_(value, "GB/s"), within=within)


@given(st.integers(-(10**9), 10**9), st.integers(-5, 5))
def test_a_whole_number_must_be_met_exactly_whatever_the_tolerance(expected, off):
    if off:
        assert "is not right" in refusal(expected + off, expected, within=0.5)
    else:
        check(expected, expected)


@pytest.mark.parametrize(("answer", "expected"), [
    *((kind(436), 436) for kind in (int, float, np.int64, np.float32, np.array, Fraction, Decimal)),
    (Q_(436, "ms/ms"), 436),
    *((kind(0.25), 0.25) for kind in (float, np.float64, np.float32, np.array, Fraction)),
    *((Q_("25 %"), 0.25), (Q_(250, "ms/s"), 0.25)),
    *((Q_(np.float64(11.743205), "ms"), EXPECTED), (Q_(np.int64(2), "s"), Q_("2000 ms"))),
    *((None, None), (True, True), (False, False), (np.bool_(True), True), (False, np.bool_(False))),
    *((text, "drive") for text in ("drive", "Drive", " DRIVE ", np.str_("drive"))),
], ids=repr)  # fmt: skip
def test_numbers_quantities_truth_and_texts_are_compared_as_they_are_meant(answer, expected):
    check(answer, expected)


def test_the_words_that_may_be_answered_are_said_to_whoever_answers_another():
    words = ("cores", "drive")
    check("Drive", "drive", among=words)
    said = 'what binds is \'CPU\', and must be "cores" or "drive".'
    assert refusal("CPU", "drive", what="what binds", among=words) == said
    assert refusal("cores", "drive", among=words) == "the answer is 'cores', and that is not right."
    named = refusal("CPU", "drive", among=words, mistakes={"Which of the two?": "CPU"})
    assert named == "the answer is 'CPU'. Which of the two?"


# --- the ladder of named failures ------------------------------------------------------------------


COUNTS_IMAGES = 'A batch counts images: write `Q_(batch_size, "img")`.'
# Where there may be no batch nobody is sent to one.
OF_EACH = (
    "It is for each image. What one image needs has no img in its unit: leave that out. "
    'For a batch, multiply by `Q_(batch_size, "img")`.'
)
ADDED = {"You added stages that overlap.": 20 / 55, "That is the slowdown.": 35 / 20}
OTHER_KINDS = {"a text": "5", "truth": True, "a quantity": Q_("5 ms")}


@pytest.mark.parametrize(
    ("answer", "expected", "options", "said"),
    [
        (7, None, {}, "is 7, and there is no such value: return None."),
        (None, 1, {},
         "is None, and there is a value. Does each way through your function end with `return ...`?"),
        (11.74321, EXPECTED, {},
         'is the bare value 11.74 and needs a unit. Write for example Q_(value, "ms").'),
        ("11.74 ms", EXPECTED, {},
         "must be a quantity, got '11.74 ms' (str). Write for example Q_(value, \"ms\")."),
        ([EXPECTED], EXPECTED, {},
         "must be a quantity, got [<Quantity(11.743205, 'millisecond')>] (list). "
         "Write for example Q_(value, \"ms\")."),
        (Q_("90 s"), Q_("90 ms"), {},
         "is 90000 ms, and that is not right: it is too large, perhaps by a prefix such as m, k or M."),
        (Q_("0.6 MB/s"), Q_("0.6 GB/s"), {},
         "is 0.0006 GB/s, and that is not right: it is too small, perhaps by a prefix such as m, k or M."),
        (Q_("-9 ms"), Q_("90 ms"), {}, "is -9 ms, and that is not right: it is negative."),
        (-26, 26, {}, "is -26, and that is not right: it is negative."),
        (Q_("3 GB"), Q_("3 img/s"), {},
         "is 3 GB, which does not convert to img/s. Follow the units through your formula."),
        *((Q_(0, unit), Q_("90 MB/s"), {},
           f"is 0 {unit}, which does not convert to MB/s. Follow the units through your formula.")
          for unit in ("ms", "GB", "img/s")),
        (Q_(10**400, "ms"), Q_("90 MB/s"), {}, "is larger than any number here can be. Check your formula."),
        (Q_("3 ms"), 0.5, {}, "is 3 ms, and must be a plain number. Do the units cancel?"),
        (16 / Q_("40 ms"), Q_("400 img/s"), {},
         f"is 0.4 1/ms, which does not convert to img/s. {COUNTS_IMAGES}"),
        (Q_("100 TFLOP/s") / Q_("4 GFLOP"), Q_("40 us"), {},
         "is 25000 1/s, which does not convert to us. Follow the units through your formula."),
        (Q_("24.5 GFLOP/img"), Q_("24.5 GFLOP"), {},
         f"is 24.5 GFLOP/img, which does not convert to GFLOP. {OF_EACH}"),
        (8 * Q_("4 GFLOP/img") / Q_("1 TFLOP/s"), Q_("32 ms"), {},
         f"is 0.032 s/img, which does not convert to ms. {OF_EACH}"),
        (Q_([1, 2], "ms"), EXPECTED, {}, "must be a number, got array([1, 2]) (ndarray)."),
        (10**400, 5, {}, "is larger than any number here can be. Check your formula."),
        (43.59968, 44, {}, "is 43.59968 and must be a whole number."),
        (20 / 55, 20 / 35, {"mistakes": ADDED}, "is 0.3636. You added stages that overlap."),
        (1.75, 20 / 35, {"mistakes": ADDED}, "is 1.75. That is the slowdown."),
        (Q_("0.0784 s"), Q_("64 ms"), {"mistakes": {"Sum.": Q_("78.4 ms")}}, "is 78.4 ms. Sum."),
        (3, 4, {"mistakes": {"first.": 3, "second.": 3}}, "is 3. first."),
        ("drive", "CPU", {"mistakes": {"This one.": "drive"}}, "is 'drive'. This one."),
        (True, False, {"mistakes": {"This one.": True}}, "is True. This one."),
        (np.bool_(False), True, {"mistakes": {"This one.": False}}, "is False. This one."),
        (5, 9, {"mistakes": OTHER_KINDS}, "is 5, and that is not right: it is too small."),
        (0.9, 0.5, {}, "is 0.9, and that is not right: it is too large."),
        (Q_("9 us"), EXPECTED, {}, "is 0.009 ms, and that is not right: it is too small."),
        (435, 436, {}, "is 435, and that is not right: it is too small."),
        (436437, 436, {}, "is 436437, and that is not right: it is too large."),
        ("drive", "CPU", {}, "is 'drive', and that is not right."),
        (True, False, {}, "is True, and that is not right."),
        (Q_("11.745 ms"), EXPECTED, {"within": 1e-5},
         "is 11.745 ms: close, but not right. Was something rounded on the way, or is a small "
         "part of it wrong?"),
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_wrong_with_an_answer_is_named(answer, expected, options, said):
    assert refusal(answer, expected, what="it(2)", **options) == f"it(2) {said}"


@pytest.mark.parametrize("share", [
    Q_("10 ms") * Q_("400 img/s") / 16, 16 / Q_("400 img/s") / Q_("10 ms"), Q_("0.75 img"),
])  # fmt: skip
def test_a_bare_batch_size_is_named_where_images_are_left_of_a_share(share):
    assert refusal(share, 0.75).endswith(f"and must be a plain number. {COUNTS_IMAGES}")


@pytest.mark.parametrize(("answer", "expected"), [
    (Q_("40 img/s"), Q_("40 / s")), (Q_("2400 img/min"), Q_("40 / s")), (Q_("35.65 img"), 35.65),
])  # fmt: skip
def test_what_may_count_images_may_have_them_in_its_unit(answer, expected):
    check(answer, expected)
    assert "it is too small" in refusal(answer / 2, expected)
    assert "sample^2" in refusal(answer * Q_("1 img"), expected)


@pytest.mark.parametrize(("answer", "expected"), [
    (Q_("1 ms/img"), Q_("400 img/s")),
    (Q_("500 KB") * Q_("400 img/s"), Q_("0.2 GB/s")),
    (Q_("0.2 GB/s"), Q_("400 img/s")),
    (Q_("3 img/s"), 0.5),
    (Q_("23 img"), 22),
], ids=repr)  # fmt: skip
def test_a_batch_size_is_not_blamed_for_other_units(answer, expected):
    assert "batch_size" not in refusal(answer, expected)


NO_NUMBER = {
    "True (bool)": True,
    "np.True_ (bool)": np.bool_(True),
    "'5' (str)": "5",
    "[5] (list)": [5],
    "(5+0j) (complex)": 5 + 0j,
    "array([5, 6]) (ndarray)": np.array([5, 6]),
    "Ellipsis (ellipsis)": ...,
}


@pytest.mark.parametrize(("answers", "expected", "said"), [
    *(([answer], 5, f"must be a number, got {shown}.") for shown, answer in NO_NUMBER.items()),
    ([1, "True", 0.0, Q_("1 ms")], True, "must be True or False, got {!r}."),
    ([1, ["CPU"], True], "CPU", "must be a text in quotes, got {!r}."),
    ([float("nan"), float("inf"), -np.inf], 0.5, "is {}. Did something get divided by zero?"),
    ([np.float32("nan")], 0.5, "is nan. Did something get divided by zero?"),
    ([Q_(float("inf"), "ms")], EXPECTED, "is inf. Did something get divided by zero?"),
], ids=repr)  # fmt: skip
def test_an_answer_of_another_kind_is_named(answers, expected, said):
    for answer in answers:
        assert refusal(answer, expected) == f"the answer {said.format(answer)}"


@pytest.mark.parametrize("expected", [5, 5.0, "five", True, EXPECTED], ids=repr)
def test_a_huge_answer_does_not_fill_the_screen(expected):
    assert len(refusal(list(range(10**5)), expected)) < 250


numbers = st.floats(min_value=-1e6, max_value=1e6).filter(lambda x: abs(x) > 1e-3)


@given(numbers, numbers, st.sampled_from([None, "ms", "GB/s"]))
def test_no_message_about_a_wrong_value_contains_the_right_one(answer, expected, unit):
    assume(abs(answer - expected) > 1e-3 * abs(expected))
    right = format_number(expected)
    assume(right not in format_number(answer) and right not in format_number(answer, 8))
    if unit is not None:
        answer, expected = Q_(answer, unit), Q_(expected, unit)
    assert right not in re.findall(r"-?\d[\d.]*\d|-?\d", refusal(answer, expected))


@pytest.mark.parametrize("answer", [None, 0.5, "ab", {0: 1, 1: 2}, [1], (1, 2, 3)])
def test_who_returns_other_than_the_values_that_are_asked_for_is_told_what_to_return(answer):
    with pytest.raises(WrongAnswer, match=re.escape("Return 2 values: `return share, verdict`. Got ")):
        one_of(answer, 0, "share, verdict")
    assert one_of([0.5, "high"], 1, "share, verdict") == "high"


def test_what_a_check_cannot_compare_is_the_authors_mistake():
    assert message(InputError, check, [1], [1]) == (
        "check compares quantities, numbers, truth and text, got expected=[1]. Pass one of these."
    )


def test_in_a_notebook_a_refusal_is_one_line_without_a_traceback():
    shown = WrongAnswer("it is 1.")._render_traceback_()
    assert shown == ["Not yet: it is 1."]


def test_what_is_right_is_told_so(capsys):
    check(4, 4, what="two times two", mistakes={"You multiplied.": 4})
    check(None, None, what="no worker", means="So nobody waits.")
    assert capsys.readouterr().out.splitlines() == [
        "Right: two times two.",
        "Right: no worker. So nobody waits.",
    ]
