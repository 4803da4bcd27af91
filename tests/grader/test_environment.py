"""Environment variables are put back after an error, also those that nbgrader sets."""

import os

import nbgrader.utils
import pytest

from starvelab_grader.autograde.nbgrader_private import environment_with


@pytest.mark.parametrize("setting", [environment_with, lambda **more: nbgrader.utils.setenv(**more)])
@pytest.mark.parametrize("before", [None, "", "validate", "autograde"])
@pytest.mark.parametrize("meanwhile", [{}, {"NBGRADER_EXECUTION": "other"}])
def test_a_variable_is_what_it_was_also_after_an_error(monkeypatch, setting, before, meanwhile):
    name = "NBGRADER_EXECUTION"
    monkeypatch.delenv(name, raising=False) if before is None else monkeypatch.setenv(name, before)

    def fail():
        with setting(NBGRADER_EXECUTION="autograde"):
            assert os.environ.pop(name) == "autograde"
            os.environ.update(meanwhile)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert os.environ.get(name) == before


def test_a_variable_is_what_it_was_when_all_went_well(monkeypatch):
    monkeypatch.setenv("KNOWN", "before")
    with environment_with(KNOWN="now", UNKNOWN="now"):
        assert (os.environ["KNOWN"], os.environ["UNKNOWN"]) == ("now", "now")
    assert os.environ["KNOWN"] == "before"
    assert "UNKNOWN" not in os.environ
