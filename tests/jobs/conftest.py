"""What the tests of `watch` share."""

from __future__ import annotations

import pytest

from starvelab.jobs import loop
from tests.jobs.loops import Clock


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(loop, "time", clock)
    return clock
