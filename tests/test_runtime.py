"""Whether a process grades is asked in one place, and can be set without the environment."""

import os
import threading

import pytest

from starvelab.errors import InputError
from starvelab.runtime import GRADING, Runtime, current, use
from tests.rejected import message


@pytest.mark.parametrize(("environment", "expected"), [
    ({}, Runtime()),
    ({"NBGRADER_EXECUTION": "autograde"}, Runtime(is_grading=True)),
    ({"NBGRADER_EXECUTION": "validate"}, Runtime(is_validating=True)),
    ({"NBGRADER_EXECUTION": ""}, Runtime()),
    ({"STARVELAB_CLOCK": "simulated"}, Runtime(clock="simulated")),
    ({"STARVELAB_CLOCK": "live"}, Runtime()),
    ({"STARVELAB_CLOCK": ""}, Runtime()),
    ({"COLAB_RELEASE_TAG": "release-colab"}, Runtime(has_widgets=False)),
    ({"COLAB_RELEASE_TAG": "release-colab", "STARVELAB_WIDGETS": "on"}, Runtime()),
    ({"STARVELAB_WIDGETS": "off"}, Runtime(has_widgets=False)),
])  # fmt: skip
def test_the_environment_says_what_a_process_runs_for(environment, expected):
    assert Runtime.from_environment(environment) == expected


@pytest.mark.parametrize(
    ("name", "values", "got"),
    [("STARVELAB_CLOCK", "live or simulated", "sundial"), ("STARVELAB_WIDGETS", "on or off", "maybe")],
)
def test_a_setting_that_there_is_not_is_refused_with_what_to_do(name, values, got):
    said = message(InputError, Runtime.from_environment, {name: got})
    assert said == f"{name} must be {values}, got {got!r}. Set one of these, or unset it."


@pytest.mark.parametrize(
    "runtime",
    [GRADING, Runtime(), Runtime(is_grading=True), Runtime(is_validating=True), Runtime(has_widgets=False)],
)
def test_what_is_said_to_another_process_is_understood_there(runtime):
    assert Runtime.from_environment(runtime.environment()) == runtime


def test_what_is_used_comes_before_the_environment_and_ends(monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert current().is_grading
    seen = []

    def fail():
        with use(Runtime()):
            seen.append(current())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert seen == [Runtime()]
    assert current().is_grading
    monkeypatch.delenv("NBGRADER_EXECUTION")
    assert current() == Runtime()


def test_what_is_used_changes_neither_the_environment_nor_other_threads():
    before, elsewhere = dict(os.environ), []
    with use(GRADING):
        thread = threading.Thread(target=lambda: elsewhere.append(current()))
        thread.start()
        thread.join()
        assert dict(os.environ) == before
    assert elsewhere == [Runtime()]
