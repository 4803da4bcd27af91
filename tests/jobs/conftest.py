"""What the tests of `watch` share."""

from __future__ import annotations

import pytest

from starvelab.jobs import loop, recorder
from tests.jobs.loops import Clock


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for module in (loop, recorder):
        monkeypatch.setattr(module, "time", clock)
    return clock
