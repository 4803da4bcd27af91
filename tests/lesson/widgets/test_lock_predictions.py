"""Predictions in code: each entry alone, held to what its notebook asks, and named by its question."""

import pytest

from starvelab import Q_, InputError
from starvelab.lesson.widgets import _predict
from starvelab.runtime import GRADING, use
from starvelab.widgets import lock_predictions, predict, scorecard
from tests.lesson.test_exercises import cell, write
from tests.lesson.widgets.locked import predictions

NOTEBOOKS = {"rate": "1", "batch": "4", "drive": "4"}


@pytest.fixture(autouse=True)
def notebooks(folder):
    """Two notebooks that ask, and that did not run in this kernel."""
    write(folder / "01.ipynb", cell('predict("rate", unit="img/s", question="How `fast`?\\n\\nThink.")'))
    write(
        folder / "04.ipynb",
        cell('predict("batch", between=(1, None), whole=True, question="Which batch?")'),
        cell('predict("drive", choices=["enough", "too slow"], question="Is it enough?")'),
    )


@pytest.fixture
def told(monkeypatch):
    """The sentences and the rows of tables that are shown, call by call."""
    told = []
    monkeypatch.setattr(_predict, "say", lambda text: told.append((text, [])))
    monkeypatch.setattr(_predict, "table", lambda _headers, rows: told[-1][1].extend(rows))
    return told


def test_each_entry_counts_alone_and_a_table_says_why_one_was_rejected_and_which_is_missing(told, capsys):
    answers = {"foo": 3, "batch": 2.5, "drive": "Enough"}
    assert lock_predictions(answers, NOTEBOOKS) == pytest.approx(1 / 3)
    ((said, rows),) = told
    assert said == "1 prediction locked here, 2 rejected. 1 of 3 predictions are locked."
    assert rows == [
        ["1", "How fast?", "rate", "not locked yet"],
        [
            "4", "Which batch?", "batch",
            "The prediction counts something and must be a whole number, got 2.5. "
            "Nothing is locked: correct it.",
        ],
        [
            "", "", "foo",
            "No question has the key 'foo'. The keys are 'rate', 'batch', 'drive'. Correct the key.",
        ],
    ]  # fmt: skip
    assert capsys.readouterr().out == "", "nothing is printed, which a notebook shows as code"
    assert predictions()["drive"]["answer"] == "enough"


def test_a_choice_that_is_not_offered_is_rejected(told):
    for answer in ("banana", 3, None):
        assert lock_predictions({"drive": answer}, NOTEBOOKS) == 0
        (row,) = (row for row in told[-1][1] if row[2] == "drive")
        assert row[3].startswith("The prediction must be one of enough, too slow, got ")


def test_the_choices_of_a_question_are_known_where_its_notebook_is_elsewhere(told):
    assert lock_predictions({"storage-check": "blah"}, {"storage-check": "2"}) == 0
    ((_, ((*_, said),)),) = told
    assert "one of The drive keeps up easily, It is just enough, The drive is too slow, got 'blah'" in said


def test_what_was_locked_before_counts_and_stays(told):
    predict("batch", 22)
    answers = {"batch": 23, "rate": Q_("2 img/ms"), "drive": "too slow"}
    assert lock_predictions(answers, NOTEBOOKS) == 1
    assert lock_predictions({"batch": 22}, NOTEBOOKS) == 1
    assert lock_predictions({}, NOTEBOOKS) == 1, "and says nothing where all are locked"
    assert told == [
        (
            "2 predictions locked here, 1 rejected. 3 of 3 predictions are locked.",
            [["4", "Which batch?", "batch", "It was locked before, as 22. That stays."]],
        ),
        ("0 predictions locked here, 0 rejected. 3 of 3 predictions are locked.", []),
    ]


def test_without_answers_it_says_only_what_is_missing(told):
    assert lock_predictions({}, NOTEBOOKS) == 0
    assert lock_predictions(["CPU"], NOTEBOOKS) == 0
    assert [row[0] for row in told[0][1]] == ["1", "4", "4"]
    assert [said for said, _ in told] == [
        "0 of 3 predictions are locked.",
        "Answers are given by their keys, got ['CPU']. Return a dict. 0 of 3 predictions are locked.",
    ]


def test_a_grader_who_has_no_notebooks_takes_what_is_an_answer(folder):
    for path in folder.glob("*.ipynb"):
        path.unlink()
    with use(GRADING):
        assert lock_predictions({"rate": Q_("3 img/s"), "batch": -3}, NOTEBOOKS) == pytest.approx(1 / 3)


def test_predict_in_code_knows_the_questions_of_other_notebooks():
    with pytest.raises(InputError, match=r"must be a whole number, got 2\.5"):
        predict("batch", 2.5)
    with pytest.raises(InputError) as refused:
        predict("bach", 2)
    assert str(refused.value) == (
        "No question has the key 'bach'. The keys are 'rate', 'batch', 'drive'. Correct the key. "
        "To predict something of your own, pass its question=."
    )
    predict("mine", 2, question="How many cats?")
    predict("batch", 22)
    assert [row[0] for row in scorecard().rows()] == ["How many cats?", "Which batch?"]


def test_the_score_card_shows_the_question_of_a_prediction_that_was_stored_without_it(folder):
    (folder / "predictions.json").write_text(
        '{"other": {"answer": 3, "locked_at": "2026-01-02"},'
        ' "rate": {"answer": 3, "locked_at": "2026-01-01"}}'
    )
    assert [row[0] for row in scorecard().rows()] == ["How fast?", "other"]
