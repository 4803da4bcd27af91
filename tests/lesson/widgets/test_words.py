"""What is said: the same in HTML and in plain text, and never by color alone."""

from __future__ import annotations

import pytest

from starvelab.lesson.widgets import words
from starvelab.prediction_file import Prediction


@pytest.mark.parametrize("word", ["Please note", "Problem", "Hit", "Miss"])
def test_a_notice_says_in_a_word_what_its_color_says(word):
    assert f"<strong>{word}.</strong> the text" in words.notice("the text", word)


def test_a_prediction_is_one_sentence():
    record = Prediction(
        key="k", answer=18.25, unit="%", confidence=0.7, locked_at="2026-11-21T10:05:09+00:00"
    )
    assert words.prediction(record) == (
        "You predicted 18.25 %, 70 % sure to be within a quarter of the answer."
    )


@pytest.mark.parametrize(
    ("number", "shown"),
    [(1e9, "1,000,000,000"), (-1234.5, "-1,234.5"), (999, "999"), (0.25, "0.25"), (-0.5, "-0.5"), (0, "0")],
)
def test_thousands_stand_apart(number, shown):
    assert words.value(number, None) == shown
    assert words.value(number, "img/s") == f"{shown} img/s"


def test_a_choice_stands_in_quotation_marks():
    record = Prediction(key="k", answer="The CPU", locked_at="2026-11-21T10:05:09+00:00")
    assert words.prediction(record) == 'You predicted "The CPU".'


def test_a_time_that_cannot_be_read_is_shown_as_it_stands():
    assert words.timestamp("some day") == "some day"
