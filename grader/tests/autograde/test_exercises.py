"""What a grade says of each exercise: title, maximum, and the messages of its check, hidden ones apart."""

import pytest

from starvelab_grader.autograde.exercises import said_by_check
from starvelab_grader.sandbox.check_messages import FAILED, CheckMessages

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("one_sandbox")]


CASES = {
    "a right answer": ("def double(x): return 2 * x", ["Right: twice 3."], ["Right: twice 7."], True),
    "a message of the visible part": (
        "def double(x):\n    print('secret')\n    return x * x", ["That is the square."], [], False
    ),
    "a message of the hidden part": (
        "def double(x): return 6 if x == 3 else 0", ["Right: twice 3."], ["twice 7"], True
    ),
    "what ended the student": (
        "def double(x): return 2 * x\nimport os\nos._exit(1)", ["ended Python"], [], False
    ),
}  # fmt: skip


@pytest.mark.parametrize(("double", "messages", "hidden", "is_right"), CASES.values(), ids=CASES)
def test_an_exercise_and_its_record_say_what_the_check_says(course, double, messages, hidden, is_right):
    course.hand_in("ada", course.solved(double=double, halve="def halve(x): return 1.5"))
    room, submission = course.classroom(), course.handed_in("ada")
    saved = room.records.save(course.graded("ada"), submission, room._inputs(submission))
    assert room.records.load("ada").exercises == saved.exercises
    exercise, halve, why = (saved.exercises["one"][name] for name in ("double-test", "halve-test", "why"))
    assert (exercise.title, exercise.maximum, exercise.is_visibly_right) == ("One: double", 2.0, is_right)
    for texts, parts in ((exercise.messages, messages), (exercise.hidden_messages, hidden)):
        assert len(texts) == len(parts)
        assert all(part in text for part, text in zip(parts, texts, strict=True))
        assert not any("secret" in text for text in texts)
    assert halve.messages[0].startswith("1 of 1: a number\n0 of 2: a time. ")
    assert not halve.is_visibly_right
    assert (why.maximum, why.messages, why.is_visibly_right) == (4.0, [], True), "nobody has read it yet"


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
