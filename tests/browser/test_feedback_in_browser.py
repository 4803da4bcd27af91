"""What a student and an instructor read, in a browser without a network: axe-core finds nothing serious."""

from __future__ import annotations

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from starvelab_grader.batch.gradebook import Mark, Marks
from starvelab_grader.report import class_report
from starvelab_grader.report.findings import Distribution, Item
from starvelab_grader.report.pages import PageJob, make_pages
from starvelab_grader.submissions.reference import GradedNotebook, ReferenceCell
from tests.browser.lab_in_browser import serious

ANSWERED = dict.fromkeys(("locked", "grade"), False) | {"solution": True}
TESTED = dict.fromkeys(("locked", "grade"), True) | {"solution": False}
CELLS = [
    ReferenceCell("double", "code", "", "", "", **ANSWERED),
    ReferenceCell("double-test", "code", "", "", "", **TESTED, points=2.0),
    ReferenceCell("why", "markdown", "", "", "", locked=False, grade=True, solution=True, points=4.0),
]
SOURCE = (
    'def double(x):\n    """Twice `x`."""\n    return x if x in (0, 1) and not None else 3.5 * x  # or so'
)
WIDE = "<table><tr><th>" + "<td>a wide table</td>" * 40 + "</tr></table>"

CAUSE = "01_one_step: `all.rar` could not be unpacked: submit the files themselves, or a .zip."


@pytest.fixture
def pages(tmp_path):
    """A feedback page with all that can stand on one, and a report."""
    shown = [
        new_output("stream", text="a  table  " * 60),
        new_output("display_data", data={"text/html": WIDE}),
    ]
    wrong = new_output(
        "error", ename="E", evalue="No.", traceback=["E", "\x1b[32m--> 3\x1b[39m return x", "No."]
    )
    cells = [
        new_code_cell(SOURCE, outputs=shown),
        new_code_cell("check(double(2), 4)", outputs=[wrong]),
        new_markdown_cell(r"Since $\frac{a}{b} \le x_1$, and `code`; see [there](https://a.org)."),
        new_code_cell("mine = [1, 2]  # my own"),
    ]
    for cell, one in zip(cells, CELLS, strict=False):
        cell.metadata["nbgrader"] = {"grade_id": one.name}
    nbformat.write(new_notebook(cells=cells), tmp_path / "one.ipynb")
    marks = {"double-test": Mark(0.5, False), "why": Mark(2.0, False)}
    titles = {"double-test": "Exercise 1: twice", "why": "Exercise 2: why"}
    one = GradedNotebook("one", "1. One", CELLS, titles, {"why": "$$\\text{step} = \\max(a, b)$$"})
    job = PageJob(
        "s1", "Ada (s1)", "tiny", tmp_path, [one], Marks({"one": marks}, {"one": {"why": "*No*."}}), "f"
    )
    (tmp_path / "index.html").write_text(make_pages(job)["index.html"])
    points = Distribution(6, 3.0, 3.0, [(0, 3, 1), (3, 6, 2)])
    item = Item("01_one_step", "Exercise 3.1: time to prepare a batch", 2.0, 3, 1, 1, 0.5, -0.2)
    message = "You added the times of the two. " * 3
    made = [2, "5 %", "01_one_step", "Exercise 3.1: time", message]
    looked_at = ["s1", "ask again for 01_one_step and 19 more notebooks", CAUSE]
    parts = [class_report.Section.of("look_at", [looked_at])]
    parts += [class_report._points(points), class_report._exercises([item], 3)]
    parts.append(class_report.Section.of("mistakes", [made]))
    return [tmp_path / "index.html", class_report.write(tmp_path / "report", "The report", parts)]


def test_pages_pass_axe_on_a_phone_in_both_themes_without_a_network(browser, pages):
    page = browser.new_page()
    page.set_viewport_size({"width": 390, "height": 800})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path in pages:
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.goto(path.as_uri())
            page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            assert serious(page) == [], (path, scheme)
            assert page.evaluate("document.documentElement.scrollWidth") == 390, "nothing leaves the screen"
    assert {address.split(":")[0] for address in asked} == {"file"}
    page.goto(pages[0].as_uri())
    above, below = (one.bounding_box() for one in page.locator("mfrac > *").all()[:2])
    assert above["y"] + above["height"] <= below["y"] + 1, "the browser draws formulas"
    page.goto(pages[1].as_uri())
    cause = page.locator("td", has_text=CAUSE).bounding_box()
    assert 0 <= cause["x"] <= 390 - cause["width"], "the cause is read without scrolling"
    message = page.locator("td", has_text="You added the times")
    assert message.bounding_box()["height"] < 200, "not a word in each line"
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})  # A4
    for part in page.locator(".wide").all():
        assert part.evaluate("one => one.scrollWidth <= one.clientWidth"), "nothing is cut on paper"
    for part in page.locator("svg").all():
        left = part.bounding_box()["x"]
        assert all(text.bounding_box()["x"] >= left for text in part.locator("text").all())
    page.close()
