"""Every notebook of solutions/ in JupyterLab: one as a learner goes through it, the others as they then look.

An author adds nothing here, and looks at the pictures: STARVELAB_SCREENSHOTS names the folder for them.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from lab_in_browser import BROKEN_WIDGET
from playwright.sync_api import expect

from starvelab.lesson.widgets.keyboard import BOX_CLASS
from tests.assignments import NOTEBOOKS, REPOSITORY

pytestmark = pytest.mark.timeout(600)
# It asks for numbers and for choices.
PLAYED = "starving-the-gpu/06_your_turn"


def lock_every_prediction(notebook) -> None:
    """Answer whatever is still open with the first choice or a number, and lock it."""
    for box in notebook.page.locator(".starvelab-box").all():
        lock = box.get_by_role("button", name="Lock my prediction")
        if not lock.count():
            continue
        if box.get_by_role("radio").count():
            box.get_by_role("radio").first.click()
        else:
            box.get_by_role("textbox").first.fill("10")
        lock.click()
        expect(box).to_contain_text("You predicted")


@pytest.mark.parametrize("source", [pytest.param(one, id=str(one)) for one in NOTEBOOKS])
def test_a_notebook_can_be_read(server, opened, screenshots, run_notebook, source):
    folder = server.folder / source.solution.parent.relative_to(REPOSITORY)
    if str(source) == PLAYED:
        notebook = opened(path=folder / source.solution.name)
        notebook.run_all()
        assert notebook.errors() == []
        assert notebook.cells_not_run() == []
        lock_every_prediction(notebook)
        notebook.run_all()
    else:
        # Most of a notebook is shown only to somebody who has predicted.
        executed = run_notebook(source, predictions=True)
        server.trust(executed.path)
        notebook = opened(path=Path(shutil.copy(executed.path, folder / f"executed-{source.name}.ipynb")))
    assert notebook.errors() == []
    assert notebook.cells_not_run() == []
    broken = notebook.page.get_by_text(BROKEN_WIDGET)
    if broken.count():
        # On a busy machine widgets may be drawn before all that the notebook has saved is there.
        source.lock_predictions(folder)
        notebook.run_all()
    expect(broken).to_have_count(0)
    assert notebook.page.locator(f".{BOX_CLASS} svg[role=img]").count() >= len(source.calls("explore"))
    expect(notebook.page.get_by_text("Lock your prediction above first")).to_have_count(0)
    assert notebook.pictures_without_words() == []
    for theme in ("light", "dark"):
        notebook.set_theme(theme)
        # To paint a whole notebook takes seconds: only for somebody who looks at it.
        if "STARVELAB_SCREENSHOTS" in os.environ:
            notebook.photograph(screenshots, f"{source.assignment}-{source.name}-{theme}")
        assert notebook.faint_texts() == [], f"in the {theme} theme"
