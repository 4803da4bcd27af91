"""What may be asked and answered: every refusal says the rule, what came, and what to do."""

import re

import numpy as np
import pytest

from starvelab import Q_, InputError
from starvelab.lesson.widgets.question import Question
from tests.rejected import message

CHOICE = Question("cpu-wall", choices=["CPU", "storage", "accelerator"])
NUMBER = Question("busy", unit="%")
RATE = Question("rate", unit="img/s")
BATCH = Question("batch", between=(1, None), whole=True)
GAIN = Question("gain", unit="%", between=(-100, None))


@pytest.mark.parametrize(("arguments", "said"), [
    ({"key": ""}, "A prediction is kept under a name, got ''. Pass a text such as \"cpu-wall\"."),
    ({"key": 3}, "A prediction is kept under a name, got 3."),
    ({"key": "k", "choices": ["a", "b"], "unit": "ms"}, "'k' has choices and a unit. Pass one of them."),
    ({"key": "k", "choices": ["a", "b"], "whole": True}, "'k' has choices and a range of numbers."),
    ({"key": "k", "between": (5, 1)}, "the least and the most that a number can be, got (5, 1). Pass"),
    ({"key": "k", "between": 5}, "between must be the least and the most that a number can be, got 5."),
    ({"key": "k", "choices": "CPU"}, "choices must be a list of texts, got 'CPU'."),
    ({"key": "k", "choices": [1, 2]}, "choices must be a list of texts, got [1, 2]."),
    ({"key": "k", "choices": ["CPU"]}, "choices must be two or more different texts, got ['CPU']."),
    ({"key": "k", "choices": ["CPU", " cpu"]}, "choices must be two or more different texts"),
])  # fmt: skip
def test_what_cannot_be_asked_is_refused(arguments, said):
    assert said in message(InputError, Question, **arguments)


@pytest.mark.parametrize(("question", "answer", "said"), [
    (CHOICE, "GPU", "must be one of CPU, storage, accelerator, got 'GPU'. Choose one of them."),
    (NUMBER, True, "The prediction must be a number in %, got True. Write a number."),
    (NUMBER, float("nan"), "must be a number in %, got nan"),
    (NUMBER, np.inf, "must be a number in %, got inf"),
    (NUMBER, [1], "must be a number in %, got [1]"),
    (NUMBER, Q_("3 GB"), "The prediction must be convertible to %, got 3 GB."),
    (NUMBER, "much", "must be a number, got 'much'. Type digits only. The unit, %, is there"),
    (Question("n"), Q_("3 GB"), "The prediction has no unit, got 3 GB. Write the number alone"),
    (Question("n"), "  ", "The prediction must say something, got an empty text."),
])  # fmt: skip
def test_what_is_no_answer_is_refused(question, answer, said):
    assert said in message(InputError, question.check_answer, answer)


@pytest.mark.parametrize(("question", "answer", "stored"), [
    *((CHOICE, spelt, "CPU") for spelt in ("CPU", "cpu", "  Cpu ")),
    (NUMBER, 18, 18.0),
    (NUMBER, np.float32(0.5), 0.5),
    (NUMBER, "18.3 %", 18.3),
    (NUMBER, Q_(0.25, ""), 25.0),
    (Question("t", unit="ms"), Q_("2 s"), 2000.0),
    (Question("n"), "22", 22.0),
    (Question("n"), "twenty", "twenty"),
    (Question("n"), "nan", "nan"),
    (Question("n"), Q_("5 img") / Q_("1 img"), 5.0),
])  # fmt: skip
def test_an_answer_becomes_a_text_or_a_number_in_the_unit(question, answer, stored):
    assert question.check_answer(answer) == stored


@pytest.mark.parametrize(
    ("typed", "number"), [("18.3", 18.3), (" 18.3 % ", 18.3), ("21 800", 21800), ("1e3", 1000), ("-2", -2)]
)
def test_a_typed_number_is_read_with_or_without_its_unit(typed, number):
    assert GAIN.read_number(typed) == number


@pytest.mark.parametrize(("question", "possible", "impossible", "said"), [
    (NUMBER, (0, 100), (140, "101 %", -0.5, Q_(1.4, "")), "must be 0 % or more and 100 % or less, got"),
    (RATE, (0, 1e9), (-1, Q_("-1 img/s")), "must be 0 img/s or more, got -1 img/s."),
    (Question("n"), (0, "2.6"), (-5, "-5"), "must be 0 or more, got -5. Nothing is locked: correct it."),
    (BATCH, (1, 22.0), (0, -5), "must be 1 or more, got"),
    (BATCH, (3,), (2.5,), "counts something and must be a whole number, got 2.5."),
    (GAIN, (-100, 250), (-101,), "must be -100 % or more, got -101 %."),
])  # fmt: skip
def test_a_value_that_the_quantity_cannot_have_is_refused(question, possible, impossible, said):
    for answer in possible:
        question.check_answer(answer)
    for answer in impossible:
        assert said in message(InputError, question.check_answer, answer)


@pytest.mark.parametrize(("typed", "said"), [
    ("", "Type a number first."),
    ("  ", "Type a number first."),
    ("a lot", "must be a number, got 'a lot'. Type digits only. The unit, %, is there already."),
    ("1,5", "must be a number without a comma, got '1,5'. Type a point before decimals"),
    ("21.800", "without a thousands separator, got '21.800'. Type thousands without a separator"),
    ("inf", "The prediction must be a number, got 'inf'. Type digits only."),
    ("nan %", "The prediction must be a number, got 'nan %'. Type digits only."),
    ("1e999", "The prediction must be a number, got '1e999'."),
])  # fmt: skip
def test_what_was_typed_and_is_no_number_is_refused(typed, said):
    assert said in message(InputError, NUMBER.read_number, typed)
    if "," in typed:
        whole = "The prediction must be a whole number without a comma, got '1,5'. Type digits only."
        assert message(InputError, BATCH.read_number, typed) == whole


NUMBERS = re.compile(r"\d+(?:\.\d+)?")
TYPED = ("", "nan", "-inf", "1e999", "a lot", "1,5", "21,800", "0.183", "-7", "7.5", "177", "7 bananas")


@pytest.mark.parametrize("question", [NUMBER, RATE, BATCH, GAIN, CHOICE], ids=lambda one: one.key)
def test_no_refusal_has_a_number_of_its_own(question):
    """A number in a refusal came from the learner, or ends the range: any other might be the answer."""
    ends = {abs(end) for end in question.between or (0,) if end is not None}
    guessing = {round(question.lowest_confidence, 2), 1, len(question.choices or ())}
    for answer in (*TYPED, float("nan"), True, None, [7], -7, 7.5, 177, Q_("7 GB")):
        came = {float(number) for number in NUMBERS.findall(f"{answer} {answer!r}")}
        allowed = came | {100 * number for number in came} | {number / 100 for number in came}
        said = ""
        for attempt, given in (
            (question.check_answer, answer),
            (question.read_number, str(answer)),
            (question.check_confidence, answer),
        ):
            try:
                attempt(given)
            except InputError as refused:
                said += f"{refused} "
        assert {float(number) for number in NUMBERS.findall(said)} <= allowed | ends | guessing, said


@pytest.mark.parametrize(("question", "confidence", "said"), [
    (CHOICE, 70, "confidence must be a number from 0.33 (a guess) to 1, got 70. Write it as a share."),
    (CHOICE, 0.2, "from 0.33 (a guess) to 1, got 0.2."),
    (NUMBER, -0.1, "from 0 (a guess) to 1, got -0.1."),
    (NUMBER, float("nan"), "got nan."),
    (NUMBER, "70 %", "got '70 %'."),
    (NUMBER, True, "got True."),
])  # fmt: skip
def test_a_confidence_out_of_range_is_refused(question, confidence, said):
    assert said in message(InputError, question.check_confidence, confidence)
