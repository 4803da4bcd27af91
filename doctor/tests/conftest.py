"""What the tests of `watch` share."""

import pytest

from doctor.tests.loops import Clock
from starvelab_doctor.watching import hooks, loop, recorder, usage


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch):
    """What other programs do on this machine is asked only by the tests that are about it."""
    monkeypatch.setattr(usage, "busy_cores", lambda: None)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for module in (hooks, loop, recorder):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(recorder, "queued_seconds", lambda: None)  # by the clock of the machine
    return clock
