"""A final answer is checked with figures drawn anew; that it was, and that it changed later, stays."""

import re

import pytest

from starvelab.errors import UnknownNameError
from starvelab.lesson.exercises import FINAL, NOT_ANSWERED
from starvelab.lesson.widgets.cells import LOG
from starvelab.lesson.widgets.endings import ASK, CHANGED, GRADED, OPEN
from starvelab.runtime import GRADING, use
from starvelab.units import Q_
from starvelab.widgets import finish, predict, progress, report, scorecard
from tests.lesson.test_exercises import cell, defined, write
from tests.lesson.widgets.locked import predictions

RIGHT = """def repair_gain(parts, repaired, factor, workers, cores, step):
    def period(times):
        return max(sum(times.values()) / min(workers, cores), step)
    return period(parts) / period(parts | {repaired: parts[repaired] / factor})"""
CHECK = "check(repair_gain(), 1)"


def answer(source):
    return defined(source, re.findall(r"def (\w+)", source)[0])


def notebook(folder, source):
    return write(
        folder / "01.ipynb",
        cell("## Exercise 3.2: predict a repair (9 points)", "markdown"),
        cell(source, solution=True, grade_id="repair-gain"),
        cell(CHECK, grade=True, points=9),
        cell('finish("repair-gain", repair_gain, final=False)'),
    )


def test_nothing_is_checked_before_the_answer_is_written_and_final(folder, capsys):
    assert finish("repair-gain", answer(RIGHT)).sentences() == [ASK]
    stub = f'def repair_gain():\n    raise NotImplementedError("{NOT_ANSWERED}")'
    assert finish("repair-gain", answer(stub), final=True).sentences() == [OPEN]
    assert finish("repair-gain", answer(stub)) is None
    with use(GRADING):
        assert finish("repair-gain", answer(RIGHT), final=True).sentences() == [GRADED]
        assert finish("repair-gain", answer(RIGHT)) is None, "each exercise would say it again"
    assert capsys.readouterr().out == ""
    assert predictions() == {}


def test_a_notebook_asks_once_whether_an_answer_is_final(folder):
    names = {"Q_": Q_}
    exec(f"{RIGHT}\ndef idle_share(asked, received, step_start, step_end): return 0.5", names)
    first, second = (names[one] for one in ("repair_gain", "idle_share"))
    assert finish("repair-gain", first).sentences() == [ASK]
    assert finish("idle-share", second) is None
    assert finish("repair-gain", first).sentences() == [ASK], "whoever runs the cell again reads it again"


def test_a_final_answer_is_checked_with_other_figures_each_time_and_may_be_heard_again(folder, capsys):
    wrong = answer(RIGHT.replace("parts[repaired] / factor", "parts[repaired]"))
    assert finish("repair-gain", answer(RIGHT), final=True).sentences() == [
        "2 of the 2 points that hidden checks give."
    ]
    assert capsys.readouterr().out == ""
    assert finish("repair-gain", wrong).sentences()[-1] == CHANGED
    first = capsys.readouterr().out
    assert first.startswith("Not yet. The answer to random values is 1, and that is not"), (
        "the points stand below"
    )
    with pytest.raises(UnknownNameError, match=r"finish has no exercise 'repair-gian'\. .*repair-gain"):
        finish("repair-gian", wrong)
    with pytest.raises(UnknownNameError, match=r'finish\("repair-gain"\) has no answer .repair_gian.\.'):
        finish("repair-gain", answer("def repair_gian():\n    return 1"))


def test_whoever_misses_hears_with_which_figures_and_a_rounded_answer_is_a_miss(folder, capsys):
    share = "def utilization(cpu_time, gpu_time):\n    return {} * min(1, (gpu_time / cpu_time).m_as(''))"
    finish("utilization", answer(share.format(1.0005)), final=True)
    assert re.search(
        r"^Not yet\. The answer .* is 0?[01][.\d]*: close, but not right\. "
        r"Was something rounded on the way, or is a small part of it wrong\? "
        r"It was given [\d.]+ m?s, [\d.]+ m?s\.$",
        " ".join(capsys.readouterr().out.split()),
    )


def test_the_report_says_that_the_end_was_heard_and_if_the_answer_changed_afterwards(folder):
    notebook(folder, RIGHT)
    LOG.earned[CHECK] = 9.0
    (entry,) = report().exercises
    assert entry.score == "9 of 9"
    finish("repair-gain", answer(RIGHT), final=True)
    (entry,) = report().exercises
    day = predictions()[f"{FINAL}repair-gain"]["locked_at"][:10]
    assert entry.score == f"9 of 9; finished on {day}, when its owner heard what hidden checks look at"
    notebook(folder, RIGHT.replace("min(workers, cores)", "workers"))
    (entry,) = report().exercises
    assert entry.score.endswith("hidden checks look at, and changed after that")
    assert entry.score in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("final", "points", "state"), [
    ("parts[repaired] / factor", "9 of 9", "done"),
    ("parts[repaired]", "7 of 9", "final, and a hidden check rejects it"),
])  # fmt: skip
def test_progress_and_report_say_of_a_final_answer_what_its_end_said(folder, final, points, state):
    source = RIGHT.replace("parts[repaired] / factor", final)
    notebook(folder, source)
    LOG.earned[CHECK] = 9.0
    finish("repair-gain", answer(source), final=True)
    assert progress().rows() == [["Exercise 3.2: predict a repair", points, state]]
    assert (progress().sentences()[-1] == "Nothing is left to do in this notebook.") == (state == "done")
    (entry,) = report().exercises
    assert (entry.is_done, entry.score.partition(";")[0]) == (state == "done", points)


def test_a_text_file_that_an_answer_names_belongs_to_it(folder):
    source = RIGHT.replace("    def period", '    own = "train.txt"\n    def period', 1)
    (folder / "train.txt").write_text("one")
    finish("repair-gain", answer(source), final=True)
    assert CHANGED not in finish("repair-gain", answer(source)).sentences()
    (folder / "train.txt").write_text("two")
    assert CHANGED in finish("repair-gain", answer(source)).sentences()


def test_a_final_answer_is_no_prediction_and_progress_names_what_is_silent(folder):
    predict("wall", 18, unit="%", question="How busy?")
    notebook(folder, RIGHT)
    LOG.earned[CHECK] = 9.0
    assert progress().sentences()[-1] == (
        "Every exercise is done. If you learn alone, write final=True in the call of finish below "
        "Exercise 3.2: predict a repair."
    )
    finish("repair-gain", answer(RIGHT), final=True)
    assert progress().sentences()[-1] == "Nothing is left to do in this notebook."
    assert [one.key for one in scorecard().predictions] == ["wall"]
