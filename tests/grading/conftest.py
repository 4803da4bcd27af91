"""One round of grading for each assignment; it takes a few minutes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.grading.a_round import Round, hand_everything_in, mark_essays


def _round(assignment: str) -> Callable[..., Round]:
    @pytest.fixture(scope="session", name=assignment)
    def from_release_to_export(tmp_path_factory: pytest.TempPathFactory) -> Round:
        it = Round.start(assignment, tmp_path_factory.mktemp("round"))
        it.nbgrader("generate_assignment", it.assignment, "--force")
        hand_everything_in(it)
        it.nbgrader("autograde", it.assignment)
        mark_essays(it)
        it.nbgrader("generate_feedback", it.assignment)
        it.nbgrader("export")
        return it

    return from_release_to_export


walkthrough = _round("starving-the-gpu")
bottleneck = _round("find-the-bottleneck")


@pytest.fixture
def finished(request: pytest.FixtureRequest) -> Round:
    """The round of the assignment that a test names."""
    # Not a fixture of the session with parameters: pytest would keep one round, and grade again whenever
    # tests of the two assignments take turns.
    return request.getfixturevalue(request.param)
