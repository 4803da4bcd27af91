"""One round of grading for each assignment; it takes a few minutes."""

from __future__ import annotations

import pytest

from tests.grading.a_round import Round, hand_everything_in, mark_essays


@pytest.fixture(scope="session")
def finished(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Round:
    """The round of an assignment, from release to export."""
    it = Round.start(request.param, tmp_path_factory.mktemp("round"))
    it.nbgrader("generate_assignment", it.assignment, "--force")
    hand_everything_in(it)
    it.nbgrader("autograde", it.assignment)
    mark_essays(it)
    it.nbgrader("generate_feedback", it.assignment)
    it.nbgrader("export")
    return it
