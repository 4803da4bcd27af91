"""Feedback: nothing hidden, nothing alive, and what a figure shows in words."""

import json
import re
from types import SimpleNamespace

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter
from nbgrader.server_extensions.formgrader.formgrader import FormgradeExtension
from traitlets.config import Config, PyFileConfigLoader

from starvelab_grader.autograde.feedback import ClearHiddenTracebacks, HarmlessHTML, harmless_html

SOURCE = "check(double(2), 4)\n### BEGIN HIDDEN TESTS\ncheck(double(7), 14)\n### END HIDDEN TESTS"


def traceback_after(frames):
    error = nbformat.v4.new_output("error", ename="E", evalue="", traceback=frames)
    cell = nbformat.v4.new_code_cell(SOURCE, outputs=[error])
    shown, _ = ClearHiddenTracebacks().preprocess_cell(cell, {}, 0)
    return shown.outputs[0].traceback


def test_a_frame_that_shows_a_hidden_test_goes_and_the_students_stays():
    frames = ["Traceback", "\x1b[32m----> 3\x1b[39m check(double(7), 14)", "----> 1 return 3 * x", "Not yet"]
    assert traceback_after(frames) == ["Traceback", "----> 1 return 3 * x", "Not yet"]


def test_a_frame_of_a_visible_check_loses_the_mark_of_what_is_hidden():
    frame = "----> 1 check(double(2), 4)\n      2 ### BEGIN HIDDEN TESTS\n"
    assert traceback_after([frame]) == ["----> 1 check(double(2), 4)\n"]


@pytest.mark.parametrize(("html", "shown"), [
    ("<p onclick=alert(1)>hi<script>alert(2)</script></p>", "<p>hialert(2)</p>"),
    ('<a href="javascript:alert(1)">here</a>', "<a>here</a>"),
    ('<iframe src="//a.org"></iframe>', ""),
    ('<img src="//a.org/seen.png" alt="a &amp; b">', '<span class="figure">Figure: a &amp; b</span>'),
    (
        '<figure><img alt="Four boxes. Each waits."><figcaption>Each waits.</figcaption><p>See.</p>',
        '<span class="figure">Figure: Four boxes. Each waits.</span><p>See.</p>',
    ),
    ('<img src="x" onerror="alert(1)">', '<span class="figure">Figure: </span>'),
    ('<p style="background: url(//a.org)">1</p>', "<p>1</p>"),
])  # fmt: skip
def test_nothing_alive_is_left(html, shown):
    assert HarmlessHTML().sanitize_html_tags(html) == shown


@pytest.mark.parametrize("address", ["attachment:image.png", "attachment:attachment:", "x.png 'title'"])
def test_a_picture_is_its_text_also_where_it_is_attached_to_no_cell(address):
    """nbconvert raises an error for one that is missing, and a copied cell has none."""
    html = harmless_html(Config())(f"See ![a plot]({address}).")
    assert html == '<p>See <span class="figure">Figure: a plot</span>.</p>\n'


def test_formgraders_pages_are_cleaned_as_well(repository, tmp_path, monkeypatch):
    """Its exporter takes the same configuration."""
    monkeypatch.setenv("STARVELAB_COURSE", str(tmp_path))
    config = PyFileConfigLoader("nbgrader_config.py", path=str(repository)).load_config()
    alive = "<script>alert(1)</script><b onclick=alert(2)>bold</b>"
    shown = nbformat.v4.new_output(
        "display_data", data={"text/html": alive, "application/javascript": "alert(3)"}
    )
    cells = [nbformat.v4.new_markdown_cell(alive), nbformat.v4.new_code_cell("1", outputs=[shown])]
    page, _ = HTMLExporter(config=config).from_notebook_node(nbformat.v4.new_notebook(cells=cells))
    assert page.count("<b>bold</b>") == 2
    for alive in ("<script>alert", "onclick", "alert(3)"):
        assert alive not in page


MARKUP = '"><img src=x onerror="alert(1)">\\'


@pytest.fixture
def formgrader(course):
    """What formgrader has made for its pages when JupyterLab has loaded it in the folder of a course."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STARVELAB_COURSE", "")
        patch.setattr("starvelab_grader.configuration.Runners", object)
        patch.chdir(course.folder)
        extension = FormgradeExtension()
        extension.root_dir = str(course.folder)
        extension.initialize([])
        web = SimpleNamespace(settings={})
        extension.init_tornado_settings(web)
        yield web.settings


@pytest.mark.parametrize("page", ["manage_students_assignments", "manage_students_notebook_submissions"])
def test_what_an_address_or_a_folder_is_called_is_no_markup_on_formgraders_pages(formgrader, page):
    template = formgrader["nbgrader_jinja2_env"].get_template(f"{page}.tpl")
    text = template.render(student_id=MARKUP, assignment_id=MARKUP, base_url="/a")
    assert "<img" not in text
    script = re.search(r"var student_id = (.*);", text)
    assert json.loads(script[1]) == MARKUP
    usual = "O'Brien, Pat & Co"
    assert f'<li class="active">{usual}' in template.render(student_id=usual, assignment_id=usual)


def test_a_name_is_no_markup_where_a_person_marks_in_formgrader(formgrader):
    nb = nbformat.v4.new_notebook()
    names = dict.fromkeys(("student", "notebook_path", "first_name", "last_name"), MARKUP)
    names |= {"index": 0, "total": 1}
    for resources in (names, names | {"first_name": None}):
        page, _ = formgrader["nbgrader_exporter"].from_notebook_node(nb, resources=resources)
        assert "<img" not in page
        assert "&gt;&lt;img" in page
