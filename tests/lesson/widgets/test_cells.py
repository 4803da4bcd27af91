"""In a learner's kernel: what each cell earned, and errors that are shown in one line."""

import sys

import pytest
from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult

from starvelab import runtime
from starvelab.lesson.checks import Points
from starvelab.lesson.exercises import NOT_ANSWERED, Exercise
from starvelab.lesson.widgets.cells import CellLog, install
from tests.lesson.test_exercises import cell, write

OPEN = f'def double(x):\n    # YOUR CODE HERE\n    raise NotImplementedError("{NOT_ANSWERED}")'
CHECK = "check(double(1), 2)"
HOW = (
    "Replace the two lines in the cell of your answer, run that cell until it ends without an error, and "
    "then this one."
)


KINDS = "Values that are added, subtracted, compared or converted need units of one kind, got ms and "


@pytest.fixture(scope="module")
def shell():
    of_grader = pytest.importorskip("starvelab_grader.sandbox.shell")
    # IPython makes its own module the main one, and processes that other tests start look for theirs there.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "__main__", sys.modules["__main__"])
        yield of_grader.Shell()


@pytest.fixture
def log(shell, folder):
    """Of a learner who has run the first cells of a notebook."""
    heading = cell("## Exercise 1.1: double it (2 points)", "markdown")
    write(
        folder / "01.ipynb",
        heading,
        cell("from starvelab.checks import *"),
        cell(CHECK, grade=True, points=2),
    )
    shell.reset()
    shell.events.callbacks["post_run_cell"].clear()
    log = CellLog()
    install(log, shell)
    shell.run("from starvelab import Q_\nfrom starvelab.checks import Credit, check")
    return log


def shown(shell, source):
    """What a cell shows, each output in one text, and the error that the front end hears of."""
    outputs, error = shell.run(source)
    texts = [
        "\n".join(one["traceback"])
        if one["output_type"] == "error"
        else one.get("text") or one["data"]["text/plain"]
        for one in outputs.entries
    ]
    return texts, error


def test_an_open_answer_is_said_in_one_line_by_title_and_run_all_goes_on(shell, log):
    shell.run(OPEN)
    assert shown(shell, CHECK) == ([f"Not answered yet. Exercise 1.1: double it. {HOW}"], None)
    assert log.earned[CHECK] is None
    assert not log.is_wrong(log.exercises()[0])
    # Elsewhere nobody knows which exercise it is.
    assert shown(shell, "double(3)") == ([f"Not answered yet. {HOW}"], None)


def test_a_wrong_answer_is_said_in_a_notice_and_is_wrong_until_its_check_finds_it_right(shell, log):
    shell.run("def double(x):\n    return x")
    said = "Not yet. The answer is 1, and that is not right: it is too small."
    assert shown(shell, CHECK) == ([said], None)
    exercise = log.exercises()[0]
    assert log.is_wrong(exercise)
    shell.run("def double(x):\n    return 2 * x")
    shell.run(CHECK)
    assert not log.is_wrong(exercise)


def test_another_error_keeps_its_traceback_and_stops(shell, log):
    texts, error = shown(shell, "def f():\n    raise NotImplementedError('on macOS')\nf()")
    assert isinstance(error, NotImplementedError)
    assert len(texts[0].splitlines()) > 5
    texts, error = shown(shell, "1 / 0")
    assert isinstance(error, ZeroDivisionError)
    assert log.earned["1 / 0"] is None


def test_units_that_do_not_fit_are_said_in_one_line_with_the_line_of_the_learner(shell, log):
    shell.run("def whole(part):\n    more = 0.015\n    return part + more")
    texts, error = shown(shell, 'whole(Q_("5 ms"))')
    assert type(error).__name__ == "DimensionalityError"
    assert texts == [
        f'{KINDS}a bare number. A bare number needs a unit, such as Q_(15, "ms"). '
        "For ceil, floor and round units have to cancel. Follow the units through your formula. "
        "It happened in line 3 of whole: return part + more"
    ]
    texts, _ = shown(shell, '15 + Q_("4.1 GFLOP/img") * Q_("2 img")')
    assert 'A bare number needs a unit, such as Q_(15, "GFLOP"). ' in texts[0]
    # A time is called one, however it was computed.
    texts, _ = shown(shell, 'Q_("4.1 GFLOP") / Q_("156 TFLOP/s") + 5.015')
    assert "of one kind, got s and a bare number. A bare number needs a unit, such as Q_(" in texts[0]
    texts, _ = shown(shell, 'Q_("5 ms") - Q_("3 MB")')
    assert texts == [
        f'{KINDS}MB. Follow the units through your formula. It happened in line 1: Q_("5 ms") - Q_("3 MB")'
    ]
    texts, error = shown(shell, 'Q_("5")')
    assert type(error).__name__ == "InputError"
    assert texts == [
        "InputError: A quantity needs a unit, got '5'. Write for example Q_(\"500 KB\"). "
        'It happened in line 1: Q_("5")'
    ]


FOUND_IN_CHECK = "31.297"
OF_AN_ERROR = f'check(double(1), {FOUND_IN_CHECK}, what="double(1)")'


@pytest.mark.parametrize(("answer", "said"), [
    ("return x * factor", "NameError: name 'factor' is not defined. It happened in line 2 of double: "),
    ("return [x][2]", "IndexError: list index out of range. It happened in line 2 of double: "),
    ("return x / (x - 1)", "ZeroDivisionError: division by zero. It happened in line 2 of double: "),
    ("raise ValueError", "ValueError. It happened in line 2 of double: "),
])  # fmt: skip
def test_an_error_in_an_answer_that_a_check_calls_is_said_in_one_line_with_the_line_of_the_answer(
    shell, log, answer, said
):
    shell.run(f"def double(x):\n    {answer}")
    texts, error = shown(shell, OF_AN_ERROR)
    assert texts == [f"{said}{answer}"]
    assert type(error).__name__ in said
    assert log.earned[OF_AN_ERROR] is None
    shell.run("def double(x):\n    raise ValueError('x' * 1000)")
    texts, _ = shown(shell, OF_AN_ERROR)
    assert len(texts[0]) < 600
    assert "xxx... It happened in line 2 of double" in texts[0]


def test_a_check_that_cannot_call_the_answer_says_what_to_run_and_not_what_it_expects(shell, log):
    shell.run("def double():\n    return 2")
    texts, error = shown(shell, OF_AN_ERROR)
    assert texts == [
        "TypeError: double() takes 0 positional arguments but 1 was given. It happened when the check called "
        "your answer, or used what that returned. Run the cell of your answer, and then this one; after a "
        "restart of the kernel, choose Run > Run All Cells."
    ]
    assert FOUND_IN_CHECK not in texts[0]
    assert error is not None


@pytest.mark.parametrize("cell", [OF_AN_ERROR, "credit = Credit(2)\ncredit.part(1, 'a', lambda: double(1))"])
def test_a_cell_that_ran_before_its_answer_or_setup_says_what_to_run_and_run_all_goes_on(shell, log, cell):
    said = (
        "Not run yet. double has no value: the cell that gives it one has not run since the kernel started. "
        "Choose Run > Run All Above Selected Cell, and then run this cell."
    )
    assert shown(shell, cell) == ([said], None)
    assert (log.earned[cell], log.failed) == (None, set())


@pytest.mark.parametrize(
    ("value", "points"),
    [(2.5, 2.5), (Points(2.5, 3), 2.5), (7.0, 6), (0.0, 0), (None, 6), (True, 6)],
    ids=str,
)
def test_what_a_check_returned_counts_up_to_its_visible_points(value, points):
    log = CellLog()
    log.remember(None)  # of a cell that was interrupted before it ran
    result = ExecutionResult(ExecutionInfo("the check", True, False, True, None))
    result.result = value
    log.remember(result)
    assert log.points(Exercise("", 6, "the check")) == points
    assert log.points(Exercise("", 6, "another one")) == 0


def test_a_check_in_parts_of_which_none_is_written_is_open_in_one_line(shell, log):
    shell.run(OPEN)
    parts = 'credit = Credit(3)\ncredit.part(1.5, "easy", lambda: check(double(1), 2))\ncredit.total()'
    assert shown(shell, parts) == ([f"Not answered yet. {HOW}"], None)
    assert log.earned[parts] is None
    shell.run("def double(x):\n    return 2 * x")
    outputs, error = shell.run(parts)
    assert error is None
    (points,) = [one["data"] for one in outputs.entries if one["output_type"] == "execute_result"]
    assert points["text/html"] == Points(1.5, 1.5, 1.5)._repr_html_()


@pytest.mark.parametrize(
    "graded", [runtime.GRADING, runtime.Runtime(is_validating=True)], ids=["graded", "validated"]
)
def test_nbgrader_sees_the_error_of_an_open_answer(shell, log, graded):
    shell.events.callbacks["post_run_cell"].clear()
    shell.set_custom_exc((), None)
    with runtime.use(graded):
        install(log, shell)
    shell.run(OPEN)
    texts, error = shown(shell, CHECK)
    assert isinstance(error, NotImplementedError)
    assert NOT_ANSWERED in texts[0]
    assert len(texts[0].splitlines()) > 5


RIGHT_HERE = ["Done. 2 of 2 points. Other values are checked when it is graded."]


def test_a_check_that_has_passed_says_that_others_follow(shell, log):
    shell.run("def double(x):\n    return 2 * x")
    assert shown(shell, CHECK)[0] == RIGHT_HERE
    assert shown(shell, "print('Right')")[0] == ["Right\n"], "a cell that is no check"
    shell.run("def double(x):\n    print(x)\n    return 2 * x")
    kept = ["1\nRight: the answer.\n"]
    assert shown(shell, CHECK)[0] == kept + RIGHT_HERE, "what the learner's own code prints"


def test_what_a_right_answer_means_is_said_with_its_points(shell, folder, log):
    source = 'check(2 * 2, 4, what="twice two",\n      means="So 44 workers, " "and a host has 16 cores.")'
    write(folder / "02.ipynb", cell(source, grade=True, points=2))
    (said,) = shown(shell, source)[0]
    assert said == RIGHT_HERE[0].replace("Done. ", "Done. So 44 workers, and a host has 16 cores. ")


def test_a_function_of_the_model_is_kept_when_its_check_has_passed(log, shell, folder):
    check = "check(step_time(1), Q_('1 ms'))"
    heading = cell("## Exercise 1.1: the step (2 points)", "markdown")
    imports = cell("from starvelab.checks import *")
    write(folder / "01.ipynb", heading, imports, cell(check, grade=True, points=2))
    shell.run("def step_time(batch_size):\n    return Q_(2, 'ms')")
    shown(shell, check)
    assert not (folder / "my_model.py").exists()
    answer = "one = Q_(1, 'ms')\n\n\ndef step_time(batch_size):\n    return one * batch_size\n"
    shell.run(f"{answer}\n\nstep_time(3)")
    texts, _ = shown(shell, check)
    assert "Done. step_time is kept in my_model.py: it is a part of your model." in texts
    kept = (folder / "my_model.py").read_text().partition("# --- step_time ---\n")[2]
    assert kept == answer
    texts, _ = shown(shell, check)
    assert "kept" not in "".join(texts), "the same text is no news"
    shell.run("%time x = 1\ndef step_time(batch_size):\n    return Q_(batch_size, 'ms')")
    shown(shell, check)
    assert "%time" not in (folder / "my_model.py").read_text()
    assert "Q_(batch_size, 'ms')" in (folder / "my_model.py").read_text()
