"""Every notebook of solutions/ as a learner goes through it: Run All, lock each prediction, Run All again.

An author adds nothing here, and looks at the pictures: STARVELAB_SCREENSHOTS names the folder for them.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.assignments import NOTEBOOKS, REPOSITORY

# Each is run twice and may measure for a minute.
pytestmark = pytest.mark.timeout(600)


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


@pytest.mark.parametrize("source", NOTEBOOKS, ids=str)
def test_a_notebook_runs_to_its_end_and_can_be_read(server, opened, screenshots, source):
    notebook = opened(path=server.folder / source.solution.relative_to(REPOSITORY))
    notebook.run_all()
    assert notebook.errors() == []
    assert notebook.cells_not_run() == []

    # Most of a notebook is shown only to somebody who has predicted.
    lock_every_prediction(notebook)
    notebook.run_all()
    assert notebook.errors() == []
    assert notebook.cells_not_run() == []
    assert notebook.broken_widgets() == 0
    expect(notebook.page.get_by_text("Lock your prediction above first")).to_have_count(0)
    assert notebook.pictures_without_words() == []
    for theme in ("light", "dark"):
        notebook.set_theme(theme)
        notebook.photograph(screenshots, f"{source.assignment}-{source.name}-{theme}")
        assert notebook.faint_texts() == [], f"in the {theme} theme"
