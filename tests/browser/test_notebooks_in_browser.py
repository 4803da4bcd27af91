"""Every notebook of solutions/ in JupyterLab: one as a learner goes through it, the others as they then look.

Those of an assignment stand one below the other: to open a notebook, and to start its kernel, takes longest.
An author adds nothing here.
"""

import nbformat
import pytest
from nbformat import NotebookNode
from playwright.sync_api import expect

from starvelab.lesson.widgets.keyboard import BOX_CLASS
from tests.assignments import ASSIGNMENTS, REPOSITORY, Notebook, notebooks_of
from tests.browser.lab_in_browser import BROKEN_WIDGET, OpenNotebook, lock_every_prediction, serious

pytestmark = pytest.mark.timeout(600)
# It asks for numbers and for choices.
PLAYED = Notebook("starving-the-gpu", "06_your_turn")
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"


def one_below_the_other(executed: list[NotebookNode]) -> NotebookNode:
    """One notebook with the cells of all, and with the state of their widgets."""
    together = nbformat.v4.new_notebook(metadata=executed[0].metadata)
    state = together.metadata["widgets"][WIDGET_STATE]["state"]
    for number, notebook in enumerate(executed):
        for cell in notebook.cells:
            cell.id = f"{number}-{cell.id}"
            together.cells.append(cell)
        state |= notebook.metadata["widgets"][WIDGET_STATE]["state"]
    return together


def can_be_read(notebook: OpenNotebook, explorers: int) -> None:
    """Nothing failed, each explorer has its picture, each picture its words, and each text its contrast."""
    assert notebook.errors() == []
    assert notebook.cells_not_run() == []
    expect(notebook.page.get_by_text(BROKEN_WIDGET)).to_have_count(0)
    assert notebook.page.locator(f".{BOX_CLASS} svg[role=img]").count() >= explorers
    expect(notebook.page.get_by_text("Lock your prediction above first")).to_have_count(0)
    assert notebook.pictures_without_words() == []
    assert serious(notebook.page, within=".jp-OutputArea-output", contrast=False) == []
    for theme in ("light", "dark"):
        notebook.set_theme(theme)
        assert notebook.faint_texts() == [], f"in the {theme} theme"


def test_a_notebook_can_be_played(server, opened):
    notebook = opened(path=server.folder / PLAYED.solution.relative_to(REPOSITORY))
    notebook.run_all()
    assert notebook.errors() == []
    assert notebook.cells_not_run() == []
    lock_every_prediction(notebook.page)
    notebook.run_all()
    can_be_read(notebook, len(PLAYED.calls("explore")))


@pytest.mark.needs("starvelab_doctor")  # one of its pages is the doctor's notebook
@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_its_notebooks_can_be_read(server, opened, run_notebook, assignment):
    sources = [one for one in notebooks_of(assignment) if one != PLAYED]
    # Most of a notebook is shown only to somebody who has predicted.
    executed = [run_notebook(one, predictions=True).notebook for one in sources]
    path = server.folder / f"{assignment}.ipynb"
    nbformat.write(one_below_the_other(executed), path)
    server.trust(path)
    notebook = opened(path=path)
    if notebook.page.get_by_text(BROKEN_WIDGET).count():
        # On a busy machine widgets may be drawn before all that the notebook has saved is there.
        notebook.draw_outputs_again()
    can_be_read(notebook, sum(len(one.calls("explore")) for one in sources))
