"""What tests of a live pipeline share; that none leaves a worker or a thread is said by tests/leaks.py."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def nothing_stays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for temporary files; afterwards no file of ours is left in it."""
    home = tmp_path_factory.mktemp("shared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(home))
        yield home
    assert [path.name for path in home.iterdir() if path.name.startswith("starvelab")] == []
