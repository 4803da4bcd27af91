"""What every test may rely on: the repository's folder, and that nothing reaches the user's own files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# No test asserts a time, and on a busy machine one example may take long.
settings.register_profile("lab", deadline=None)
settings.load_profile("lab")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The folder that holds pyproject.toml."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session", autouse=True)
def _no_test_touches_the_course_of_an_instructor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Processes that tests start inherit this: folders of their own, and figures without a window."""
    run = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        run = run.parent  # the run's own: its workers share what one of them has generated
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STARVELAB_COURSE", str(tmp_path_factory.mktemp("course")))
        patch.setenv("STARVELAB_CACHE", str(run / "cache"))
        patch.setenv("MPLBACKEND", "agg")
        yield
