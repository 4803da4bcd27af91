"""Every test here runs in an empty folder of its own, as a notebook in its folder does."""

from pathlib import Path

import pytest

from starvelab.lesson.widgets import _evidence
from starvelab.lesson.widgets.cells import LOG, CellLog
from starvelab.lesson.widgets.store import KERNEL


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    vars(LOG).update(vars(CellLog()))
    KERNEL.questions.clear()
    KERNEL.asked.clear()
    KERNEL.waiting.clear()
    KERNEL.finished.clear()
    return tmp_path


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What `reveal` displays, as plain text, in order."""
    texts: list[str] = []

    def record(data, **_options):
        texts.append(data["text/plain"] if isinstance(data, dict) else str(data))

    monkeypatch.setattr(_evidence, "display", record)
    return texts
