"""Progress: by title, from visible checks, what is written, and what is locked; and how to go on."""

import math

import pytest

from starvelab import runtime
from starvelab.lesson.widgets._progress import GRADED, NO_NOTEBOOK
from starvelab.lesson.widgets.cells import LOG, CellLog
from starvelab.widgets import predict, progress
from tests.lesson.test_exercises import CREDIT, cell, write

HIDDEN = (
    "Hidden checks look at each answer once more when it is graded, and decide 2.5 more. A person decides 4."
)


@pytest.fixture
def notebook(folder):
    def save(essay="Your answer here."):
        return write(
            folder / "01.ipynb",
            cell("import starvelab"),
            cell("## Exercise 1.1: double it (2 points)", "markdown"),
            cell("check(1)", grade=True, points=2),
            cell("## Exercise 1.2: in parts (6 points)", "markdown"),
            cell(CREDIT, grade=True, points=6),
            cell("## Exercise 1.3: why (4 points, read by a person)", "markdown"),
            cell(essay, "markdown", grade=True, solution=True, points=4),
        )

    save()
    return save


def progress_of(log):
    vars(LOG).update(vars(log))
    return progress()


def ran(**earned):
    return CellLog({"import starvelab": math.inf, "check(1)": earned.get("one"), CREDIT: earned.get("two")})


def test_at_the_start_everything_is_open_and_it_says_with_what_to_begin(notebook):
    found = progress_of(CellLog({"import starvelab": math.inf}))
    assert found.rows() == [
        ["Exercise 1.1: double it", "0 of 2", "open"],
        ["Exercise 1.2: in parts", "0 of 6", "open"],
        ["Exercise 1.3: why", "of 4", "open"],
    ]
    assert found.sentences() == [
        f"0 of 2 exercises done, with 0 of the 5.5 points of the checks that you can see. {HIDDEN}",
        "1 explanation to be written, as the notebook was last saved.",
        "Begin with Exercise 1.1: double it.",
    ]
    assert repr(found).startswith("exercise")
    assert repr(found).endswith("\nBegin with Exercise 1.1: double it.")
    assert found._repr_html_().endswith("<p><strong>Begin with Exercise 1.1: double it.</strong></p>")
    assert found._repr_html_().count("<tr>") == 4


def test_on_the_way_it_names_what_comes_next_and_which_predictions_are_open(notebook):
    predict("one", question="Is it **one**?", choices=["yes", "no"])
    predict("two", question="How many?\n\nCount them.")
    predict("one", "yes", choices=["yes", "no"])
    found = progress_of(ran(one=math.inf, two=1.5))
    assert [row[1:] for row in found.rows()] == [
        ["2 of 2", "done"],
        ["1.5 of 6", "begun: a part is right"],
        ["of 4", "open"],
    ]
    assert found.sentences() == [
        f"1 of 2 exercises done, with 3.5 of the 5.5 points of the checks that you can see. {HIDDEN}",
        "1 explanation to be written, as the notebook was last saved.",
        "Locked when this cell ran: 1 of 2 predictions. Still open: How many?",
        "Go on with Exercise 1.2: in parts.",
    ]


def test_what_comes_first_in_the_notebook_is_named_a_prediction_or_an_exercise(folder):
    write(
        folder / "02.ipynb",
        cell('predict("one",\n        question="Is it one?")'),
        cell("## Exercise 2.1: double it (2 points)", "markdown"),
        cell("check(1)", grade=True, points=2),
        cell("predict('two', question='How many?')"),
        cell("## Exercise 2.2: in parts (6 points)", "markdown"),
        cell(CREDIT, grade=True, points=6),
    )
    predict("two", question="How many?")
    predict("one", question="Is it **one**?\n\nThink.", choices=["yes", "no"])
    assert progress_of(ran()).sentences()[-2:] == [
        # What is named below is not said twice.
        "Locked when this cell ran: 0 of 2 predictions. Still open: How many?",
        'Begin with the prediction that asks: "Is it one?"',
    ]
    predict("one", "yes")
    assert progress_of(ran()).sentences()[-1] == "Go on with Exercise 2.1: double it."
    assert (
        progress_of(ran(one=math.inf)).sentences()[-1] == 'Go on with the prediction that asks: "How many?"'
    )
    predict("two", 3)
    assert progress_of(ran(one=math.inf)).sentences()[-1] == "Go on with Exercise 2.2: in parts."


def test_with_everything_done_nothing_is_left(notebook):
    notebook(essay="Since it is so.")
    found = progress_of(ran(one=math.inf, two=3.5))
    assert [row[1:] for row in found.rows()] == [
        ["2 of 2", "done"],
        ["3.5 of 6", "done; hidden checks decide 2.5 more"],
        ["of 4", "written, for a person to read"],
    ]
    assert found.sentences() == [
        f"2 of 2 exercises done, with 5.5 of the 5.5 points of the checks that you can see. {HIDDEN}",
        "Nothing is left to do in this notebook.",
    ]
    predict("two", question="How many?")
    assert progress_of(ran(one=math.inf, two=3.5)).sentences()[-2:] == [
        "Locked when this cell ran: 0 of 1 prediction. Still open: How many?",
        "Every exercise is done. Go on with what is open: lock it in its box above.",
    ]


def test_a_check_that_found_nothing_right_is_not_called_open(notebook):
    failed, still_open = CellLog({"check(1)": None, CREDIT: 0.0}, {"check(1)"}), CellLog({"check(1)": None})
    for log, state in ((failed, "tried, not right yet"), (still_open, "open")):
        assert [row[1:] for row in progress_of(log).rows()[:2]] == [["0 of 2", state], ["0 of 6", state]]


def test_without_its_file_it_says_what_to_do_and_a_grader_is_shown_nothing(folder):
    found = progress_of(ran())
    assert (found.sentences(), repr(found)) == ([NO_NOTEBOOK], NO_NOTEBOOK)
    assert found._repr_html_() == f"<p><strong>{NO_NOTEBOOK.replace(chr(39), '&#x27;')}</strong></p>"
    with runtime.use(runtime.GRADING):
        assert repr(progress_of(ran())) == GRADED
