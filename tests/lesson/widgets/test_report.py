"""The report that a learner writes beside the notebooks."""

import zipfile

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from starvelab.errors import InputError
from starvelab.lesson.widgets._report import SAVED, UNPACKED, save_lesson
from starvelab.lesson.widgets.cells import LOG
from starvelab.runtime import GRADING, use
from starvelab.widgets import pack, predict, report, reveal


def graded(cell, **flags):
    cell.metadata["nbgrader"] = {"grade": True, "solution": False, "points": 2} | flags
    return cell


def ran(source, *outputs):
    return graded(new_code_cell(source, execution_count=1, outputs=list(outputs)))


@pytest.fixture
def worked(tmp_path):
    """A folder with a notebook that was worked on, and two misses and a hit."""
    error = new_output("error", ename="WrongAnswer", evalue="no", traceback=[])
    still_open = new_output("display_data", data={"text/plain": "Not answered yet. Replace the two lines"})
    credit = 'credit.part(1, "a", f)\ncredit.part(1, "b", f)\n# '
    cells = [
        new_markdown_cell("# 1. One"),
        new_markdown_cell("## Exercise 1.1: right (2 points)"),
        ran("check(a)", new_output("stream", text="Right.")),
        new_markdown_cell("## Exercise 1.2: wrong (2 points)"),
        ran("check(b)", error),
        new_markdown_cell("## Exercise 1.3: open (2 points)"),
        ran("check(c)", still_open),
        new_markdown_cell("## Exercise 1.4: half (2 points)"),
        ran(f"{credit}4", new_output("execute_result", data={"text/plain": "1.0"})),
        new_markdown_cell("## Exercise 1.5: not run (2 points)"),
        graded(new_code_cell("check(e)")),
        new_markdown_cell("## Exercise 1.6: why (2 points)"),
        graded(new_markdown_cell("Because."), solution=True),
    ]
    nbformat.write(new_notebook(cells=cells), tmp_path / "01_one.ipynb")
    for key, answer, truth in (("wall", 45, 18.3), ("rate", 100, 104), ("drive", 7, 40)):
        predict(key, answer, unit="%", question=f"What of {key}?")
        reveal(key, truth)
    return tmp_path


def test_it_is_written_with_the_exercises_of_all_notebooks(worked):
    made = report(name="Ada")
    assert [(one.title, one.points, one.is_done) for one in made.exercises] == [
        ("Exercise 1.1: right", 2.0, True), ("Exercise 1.2: wrong", 0.0, False),
        ("Exercise 1.3: open", 0.0, False), ("Exercise 1.4: half", 1.0, False),
        ("Exercise 1.5: not run", 0.0, False), ("Exercise 1.6: why", None, True),
    ]  # fmt: skip
    assert "Ada" in (worked / "report.html").read_text(encoding="utf-8")


def test_what_ran_in_this_kernel_counts_before_what_was_saved(worked):
    LOG.earned |= {"check(b)": float("inf"), "check(a)": None}
    made = report()
    assert [one.points for one in made.exercises[:2]] == [0.0, 2.0]


def test_misses_are_listed_and_what_was_learned_of_them_is_kept(worked):
    first = report()
    assert repr(first).splitlines() == [
        "The report is written: report.html. To print it, download it and open it in your browser.",
        "What did you learn from these misses?",
        "1. What of wall?",
        "2. What of drive?",
        "Write it in the box below the answer.",
    ]
    save_lesson("drive", "Bits are no bytes.")
    half = repr(report()).splitlines()
    assert half[1] == '2. What of drive? You learned: "Bits are no bytes."'
    assert half[2:4] == ["What did you learn from these misses?", "1. What of wall?"]
    save_lesson("wall", "They overlap.")
    again = report()
    assert again.learned == {"drive": "Bits are no bytes.", "wall": "They overlap."}
    assert "What did you learn" not in repr(again)
    assert "<p>1. What of wall?" in again._repr_html_()


def test_the_report_is_opened_and_downloaded_by_links_for_who_has_no_mouse(worked):
    page = BeautifulSoup(report()._repr_html_(), "html.parser")
    links = [(link["href"], link.has_attr("download"), link.text) for link in page.find_all("a")]
    assert links == [("report.html", False, "report.html"), ("report.html", True, "download it")]


# --- what is submitted -----------------------------------------------------------------------------------


def test_the_link_downloads_the_file_and_names_what_is_in_it(folder):
    (folder / "01_one.ipynb").write_text("{}", encoding="utf-8")
    (folder / "predictions.json").write_text("{}", encoding="utf-8")
    packed = pack()
    assert zipfile.ZipFile(packed.path).namelist() == ["01_one.ipynb", "predictions.json"]
    name = f"{folder.name}.zip"
    assert repr(packed) == f"{name} is written, with 01_one.ipynb, predictions.json. {SAVED}"
    assert f'<a href="{name}" download="{name}">Download {name}</a>' in packed._repr_html_()
    assert pack().files == packed.files
    assert not list(folder.glob("*.part"))


def test_nothing_is_written_or_packed_while_grading_or_without_a_notebook(folder):
    with pytest.raises(InputError, match=r"A submission holds at least one notebook, and .* has none"):
        pack()
    with use(GRADING):
        assert "no report is written" in repr(report())
        assert list(folder.iterdir()) == []
        (folder / "01_one.ipynb").write_text("{}", encoding="utf-8")
        packed = pack()
    assert not packed.path.exists()
    assert repr(packed) == UNPACKED
    assert UNPACKED in packed._repr_html_()
