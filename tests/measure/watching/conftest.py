"""What the tests of `watch` share."""

from __future__ import annotations

import pytest

from starvelab.measure.watching import loop
from tests.measure.watching.loops import Clock


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(loop, "time", clock)
    return clock
