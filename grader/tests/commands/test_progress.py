"""A bar that goes on to say what is worked on, and never names who has finished."""

import signal
import threading
import time
import weakref

import pytest

from starvelab_grader.commands import command as module
from starvelab_grader.commands.command import progress


def test_who_is_still_worked_on_is_said_and_for_how_long(monkeypatch, capsys):
    monkeypatch.setattr(module, "STILL_AFTER", 0.5)
    busy = dict.fromkeys(["ada", "41133", "b\x1b"])
    with progress("grading", 3, "submission", busy) as count:
        del busy["ada"]
        count()
        for _ in range(50):
            time.sleep(0.1)
            if "still" in (said := capsys.readouterr().err):
                break
        assert "still grading 41133 and 1 more, 1 s" in said
        assert "ada" not in said
        busy.clear()
        count()
        count()
    said = capsys.readouterr().err
    assert "3/3" in said
    assert "still" not in said.split("3/3")[-1]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_that_python_ignores_is_said_again(monkeypatch):
    # Python ignores what is raised while it removes an object, and a class was graded on after it.
    monkeypatch.setattr(module, "AGAIN_AFTER", 0.0, raising=False)
    before = signal.getsignal(signal.SIGINT)

    def grade():
        with progress("grading", 2, "submission"):
            thing = set()
            there = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
            del thing
            assert there() is None, "and the program goes on"
            threading.Event().wait(8)

    with pytest.raises(KeyboardInterrupt):
        grade()
    assert signal.getsignal(signal.SIGINT) is before
