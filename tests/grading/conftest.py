"""One round of grading for all tests here; it takes a few minutes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from a_round import ASSIGNMENT, Round, hand_everything_in, mark_essays


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Round:
    """A round from release to export."""
    it = Round.start(tmp_path_factory.mktemp("round"))
    it.nbgrader("generate_assignment", ASSIGNMENT, "--force")
    hand_everything_in(it)
    it.nbgrader("autograde", ASSIGNMENT)
    mark_essays(it)
    it.nbgrader("generate_feedback", ASSIGNMENT)
    it.nbgrader("export")
    return it
