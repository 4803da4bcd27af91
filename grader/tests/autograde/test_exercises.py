"""What a grade says of each exercise: title, maximum, and the messages of its check, hidden ones apart."""

import pytest

from grader.tests.a_course import TINY
from starvelab_grader.autograde.exercises import said_by_check
from starvelab_grader.sandbox.check_messages import FAILED, CheckMessages

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("one_sandbox")]


@pytest.fixture
def exercises(course):
    """The exercises of a notebook of the small course, with these answers."""

    def graded(**answers: str):
        course.hand_in("ada", course.solved(**answers))
        return course.graded("ada").exercises["one"]

    return graded


def test_a_right_answer_has_a_title_a_maximum_and_what_its_check_says(exercises):
    double = exercises()["double-test"]
    assert (double.title, double.maximum) == ("One: double", 2.0)
    assert (double.messages, double.hidden_messages) == (["Right: twice 3."], ["Right: twice 7."])
    assert double.is_visibly_right


def test_a_message_of_the_visible_part_is_the_students(exercises):
    double = exercises(double="def double(x):\n    print('secret')\n    return x * x")["double-test"]
    assert len(double.messages) == 1
    assert "That is the square." in double.messages[0]
    assert "secret" not in double.messages[0]
    assert not double.is_visibly_right


def test_a_message_of_the_hidden_part_stands_apart(exercises):
    double = exercises(double="def double(x):\n    return 6 if x == 3 else 0")["double-test"]
    assert double.messages == ["Right: twice 3."]
    assert len(double.hidden_messages) == 1
    assert "twice 7" in double.hidden_messages[0]
    assert double.is_visibly_right


def test_each_part_says_what_it_earned(exercises):
    halve = exercises(halve="def halve(x):\n    return 1.5")["halve-test"]
    assert halve.messages[0].startswith("1 of 1: a number\n0 of 2: a time. ")
    assert not halve.is_visibly_right


def test_an_essay_is_not_wrong_before_somebody_has_read_it(exercises):
    why = exercises()["why"]
    assert (why.maximum, why.messages, why.is_visibly_right) == (4.0, [], True)


def test_what_ended_the_student_is_what_the_check_says(exercises):
    double = exercises(double="def double(x):\n    return 2 * x\nimport os\nos._exit(1)")["double-test"]
    assert "ended Python" in double.messages[0]
    assert not double.is_visibly_right


def test_a_record_holds_what_is_shown(course):
    course.hand_in("ada", course.solved(double="def double(x):\n    return x * x"))
    classroom = course.classroom()
    submission = course.handed_in("ada")
    saved = classroom.records.save(course.graded("ada"), submission, classroom._inputs(submission))
    loaded = classroom.records.load("ada")
    assert loaded.exercises == saved.exercises
    assert loaded.exercises["two"]["value-test"].maximum == 1.0
    assert "That is the square." in loaded.exercises["one"]["double-test"].messages[0]
    assert loaded.assignment == TINY


# --- which line of a check it was ------------------------------------------------------------------------
CELL = """assert f(1) == 2
parts = []
### BEGIN HIDDEN TESTS
print("a hidden line")
parts.append("wrong")
def late(): print("of a hidden function")
assert f(2) == 4, "two is wrong"
### END HIDDEN TESTS
print("a visible line")
late()
raise KeyError(parts)
"""


def outcome(source: str, f=lambda x: 2 * x):
    """Run a cell as a notebook does; its messages, and whether its visible part is right."""
    names: dict[str, object] = {"f": f}
    messages = CheckMessages(source, names)
    names["print"] = lambda text: messages.print(f"{text}\n")
    error = None
    try:
        exec(compile(source.lstrip("\n"), "<cell>", "exec"), names)
    except Exception as raised:
        error = raised
    is_right = messages.end(error, "" if error is None else str(error))
    return messages.texts, is_right


def test_what_a_hidden_line_prints_or_calls_is_hidden_and_what_follows_is_not():
    assert outcome(CELL) == (
        [
            ("a hidden line", True), ("a visible line", False), ("of a hidden function", True),
            ("KeyError: ['wrong']", False),
        ], False,
    )  # fmt: skip


def test_a_hidden_line_that_fails_leaves_the_visible_part_right():
    assert outcome(CELL, lambda x: 2) == ([("a hidden line", True), ("two is wrong", True)], True)
    assert outcome(CELL, lambda x: 0) == ([("assert f(1) == 2", False)], False)
    assert outcome("\n\n" + CELL, lambda x: 2)[1] is True, "IPython leaves out empty lines at the top"


def test_all_is_hidden_that_a_magic_runs_elsewhere():
    messages = CheckMessages("%%time\n" + CELL, {})
    messages.print("a text")
    assert messages.texts == [("a text", True)]
    assert CheckMessages("1", {}).end(ValueError(), "") is False


def test_an_error_without_a_place_is_said_all_the_same():
    messages = CheckMessages("1", {})
    messages.end(AssertionError(), "")
    assert messages.texts == [(FAILED, False)]


@pytest.mark.parametrize(("reply", "messages"), [
    ({"messages": [["a", 1], "b", [1, 2, 3], None]}, [("a", True)]),
    ({"messages": "forged", "visibly_right": "yes"}, []),
    ({}, []),
    ({"messages": [["\ud800" + "x" * 9000, False]] * 60}, [("?" + "x" * 3999, False)] * 50),
])  # fmt: skip
def test_a_forged_reply_says_no_more_than_a_check_may(reply, messages):
    assert said_by_check(reply, []) == {"messages": messages, "visibly_right": False}
