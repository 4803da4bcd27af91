"""The page that a student reads, and which pages are written when."""

import base64
import io
import itertools
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from grader.tests.a_course import TINY
from grader.tests.in_process import run_here
from starvelab_grader.autograde.execution import RESULT
from starvelab_grader.autograde.feedback import AFTER_HIDDEN, ReadableOutputs
from starvelab_grader.autograde.notebook_run import ENDED_PYTHON
from starvelab_grader.batch.gradebook import Mark, Marks
from starvelab_grader.commands.grade import FeedbackApp
from starvelab_grader.errors import NotFoundError
from starvelab_grader.files import write_whole
from starvelab_grader.report import pages, rendering
from starvelab_grader.report.pages import FeedbackPages, PageJob, fingerprint_in, make_pages
from starvelab_grader.submissions.reference import GradedNotebook, ReferenceCell, title_of, titles_of

pytestmark = pytest.mark.long

HIDDEN = "check(double(2), 4)\n### BEGIN HIDDEN TESTS\ncheck(double(7), 14)\n### END HIDDEN TESTS"
REFERENCE = [
    ReferenceCell("double", "code", "", "", "", locked=False, grade=False, solution=True),
    ReferenceCell("double-test", "code", HIDDEN, "check(double(2), 4)", "", True, True, False, points=2.0),
    ReferenceCell("why", "markdown", "", "", "", locked=False, grade=True, solution=True, points=4.0),
]
TITLES = {"double-test": "Exercise 1.1: twice", "why": "Exercise 1.2: why"}
MARKS = Marks(
    {"one": {"double-test": Mark(1.5, False), "why": Mark(None, True)}}, {"one": {"why": "See *me*."}}
)

MODEL = {"why": "The *slower* one. <script>alert(9)</script>"}


def named(cell, name):
    cell.metadata["nbgrader"] = cell.metadata.get("nbgrader", {}) | {"grade_id": name}
    return cell


@pytest.fixture
def make(tmp_path):
    """The page of a notebook with the given outputs, essay and marks."""

    def made(outputs=(), marks=MARKS, essay="Because.", attached=None, tested=(), more=(), **run):
        double = new_code_cell("def double(x): pass", outputs=list(outputs))
        test = new_code_cell(HIDDEN, outputs=list(tested))
        cells = {
            "double": double,
            "double-test": test,
            "why": new_markdown_cell(essay, attachments=attached or {}),
        }
        cells["why"].attachments = attached or {}
        test.metadata |= {"nbgrader": {"grade": True}}
        cells = [*(named(one, name) for name, one in cells.items()), *more]
        nb = new_notebook(cells=cells, metadata={RESULT: run})
        nbformat.write(nb, tmp_path / "one.ipynb")
        one = GradedNotebook("one", "1. One", REFERENCE, TITLES, MODEL, {"Read this."})
        written = make_pages(PageJob("s1", "Ada (s1)", "tiny", tmp_path, [one], marks, "f" * 64))
        assert sorted(written) == ["index.html", "one.html"]
        return BeautifulSoup(written["index.html"], "html.parser")

    return made


def test_the_total_is_on_top_and_exercises_have_titles(make):
    page = make()
    body = page.body.get_text(" ", strip=True)
    assert body.startswith("tiny Feedback for Ada (s1) Total: 1.5 of 6 points Not marked yet: Exercise 1.2:")
    assert [[cell.text for cell in row.find_all("td")] for row in page.table.find_all("tr")[1:]] == [
        ["Exercise 1.1: twice", "1.5 of 2"],
        ["Exercise 1.2: why", "not marked yet (of 4)"],
    ]
    assert "double-test" not in body
    for link in page.find_all("a", href=lambda to: to and to.startswith("#")):
        assert page.find(id=link["href"][1:]), link
    assert page.find("meta", attrs={"name": "viewport"})["content"].startswith("width=device-width")
    assert "See me." in page.find(class_="comment").get_text()
    said = "If you think that points are wrong, write to your instructor, with the exercise and your reason."
    assert page.main.find_all("p", recursive=False)[-1].text == said


@pytest.mark.parametrize(
    ("late", "total", "penalty"), [(1.0, "4.5", "1 point is taken off"), (9.0, "0", "9 points are taken off")]
)
def test_what_a_person_has_marked_and_what_being_late_costs_is_in_the_total(make, late, total, penalty):
    marked = {"double-test": Mark(2.0, False), "why": Mark(3.5, True)}
    text = make(marks=Marks({"one": marked}, {}, {"one": late})).body.get_text(" ", strip=True)
    for part in (f"Total: {total} of 6 points", f"Submitted late: {penalty}", "3.5 of 4, to be marked again"):
        assert part in text
    assert "not marked yet" not in text.lower()


def test_an_essay_that_is_marked_has_the_model_answer_below_it(make):
    marked = {"double-test": Mark(2.0, False), "why": Mark(0.0, False)}
    (model,) = make(marks=Marks({"one": marked}, {"one": {"why": "See me."}})).find_all(class_="model")
    assert model.summary.text == "A model answer"
    assert model.em.text == "slower"
    assert not model.find("script")
    assert model.find_previous(class_="comment").get_text().endswith("See me.\n")
    assert model.find_previous("h3").get_text().startswith("Exercise 1.2: why")
    assert not make().find(class_="model"), "nobody has marked it yet"


RIGHT = Marks({"one": {"double-test": Mark(2.0, False), "why": Mark(None, True)}})
WRONG = {"ename": "WrongAnswer", "evalue": "3 is too small.", "traceback": ["Not yet: 3 is too small."]}


def test_what_is_wrong_comes_first_and_what_is_right_is_folded(make):
    page = make(tested=[new_output("stream", text="Right: 2.\n"), new_output("error", **WRONG)])
    wrong, right = page.find_all("h3")
    assert wrong.text == "Exercise 1.1: twice 1.5 of 2"
    assert not wrong.find_parent("details")
    message = wrong.find_next(class_="message")
    assert message.text == "3 is too small."
    assert not message.find_next_sibling("details"), "what there is to read is read"
    assert right.find_parent("details").summary.text == "1 exercise with nothing to correct"
    assert page.find("table").find_previous("h2").text == "All points", "the points of all come last"
    page = make(marks=RIGHT)
    folded = [one.find_parent("details").summary.text[:11] for one in page.find_all("h3")]
    assert folded == ["2 exercises"] * 2
    page = make(marks=Marks(RIGHT.notebooks, {"one": {"double": "No response."}}))
    assert page.h3.find_parent("details"), "who answered in another cell has answered"
    assert "No response" not in page.text
    page = make(marks=Marks(RIGHT.notebooks, {"one": {"double": "Well done."}}))
    assert not page.find("h3").find_parent("details"), "a comment is to be read"
    assert page.h3.find_next(class_="comment").text.endswith("Well done.\n")


def test_what_students_have_is_not_repeated(make):
    """Neither the texts that were given out, nor the check with its table of values."""
    line = "----> 1 check(double(2), 4)"
    tested = [new_output("error", ename="E", evalue="No.", traceback=["E", line, "No."])]
    tested += [new_output("execute_result", data={"text/plain": "1.5"})]
    more = [new_markdown_cell("Read this."), new_code_cell("mine = 1"), new_code_cell()]
    page = make(tested=tested, more=more)
    assert "check(double(2), 4)" not in page.text
    assert "Read this." not in page.text
    assert not page.find(class_="output_execute_result")
    (own,) = [one for one in page.find_all("details") if one.summary.text == "Your other cells"]
    assert own.find(class_="input").text.strip() == "mine = 1"
    # A bare assertion says nothing but by its line.
    page = make(tested=[new_output("error", ename="AssertionError", evalue="", traceback=[line])])
    details = page.find(class_="output_error").details
    assert (details.has_attr("open"), details.pre.text.strip()) == (True, line)


def test_a_page_needs_no_network_and_formulas_are_drawn_all_the_same(make):
    latex = new_output("display_data", data={"text/latex": "$$y_2$$"})
    essay = "![a plot](attachment:image.png) "
    essay += r"So $\frac{a}{b}$, and $\href{javascript:x}{\text{<b>1</b>}}$, not $\frac{$."
    page = make(essay=essay, outputs=[latex])
    assert not page.find_all(["script", "link", "img", "iframe"])
    assert "://" not in str(page)
    assert page.find("meta", attrs={"http-equiv": True})["content"].startswith("default-src 'none'; style")
    assert "Figure: a plot (not shown: " in page.text
    (drawn,), fraction, text = (
        [one.find("msub")] if one.find("msub") else one for one in page.find_all("math")
    )
    assert (drawn.text, fraction.find("mfrac").text) == ("y2", "ab")
    assert (text.find("mtext").text, text.find("b"), text.find(href=True)) == ("<b>1</b>", None, None)
    assert page.find("code", class_="inline-formula").text == r"\frac{", "what is no formula stays as it is"


def picture(size, more=b"", **options):
    """A picture as a notebook holds it."""
    content = io.BytesIO()
    Image.new("1", size).save(content, **options)
    return base64.b64encode(content.getvalue() + more).decode()


def test_pixels_that_were_pasted_are_shown_once_and_what_else_is_attached_is_named(make):
    png, jpeg = picture((3, 2), format="PNG"), picture((3, 2), format="JPEG")
    svg = base64.b64encode(b"<svg onload='alert(1)'/>").decode()
    attached = {
        "a b.png": {"image/svg+xml": svg, "image/png": png}, "c.jpg": {"image/jpeg": jpeg},
        "scalable": {"image/svg+xml": svg}, "disguised": {"image/png": svg}, "other": {"image/png": jpeg},
        "vast": {"image/png": picture((6000, 6000), format="PNG")},
        "long": {"image/png": picture((3, 2), bytes(3_000_000), format="PNG")},
    }  # fmt: skip
    shown = "![one](attachment:a%20b.png) ![two](attachment:c.jpg)"
    shown += f" {'x' * 19_000} ![three](data:image/png;base64,{png})"
    named = ["one", "absent", *list(attached)[2:]]
    essay = shown + "".join(f" ![{it}](attachment:{it.replace('one', 'c.jpg')})" for it in named)
    page = make(essay=essay, attached=attached)
    addresses = {"one": f"png;base64,{png}", "two": f"jpeg;base64,{jpeg}", "three": f"png;base64,{png}"}
    assert {it["alt"]: it["src"].removeprefix("data:image/") for it in page.find_all("img")} == addresses
    assert [it.text.split(" (not shown")[0] for it in page.find_all(class_="figure")] == [
        f"Figure: {it}" for it in named
    ]
    assert svg not in str(page)


def test_no_hidden_test_no_script_and_no_path_of_this_machine_is_on_the_page(make):
    frames = [
        "\x1b[36mFile \x1b[39m\x1b[32m/home/teacher/.venv/python3.11/json/decoder.py:353\x1b[39m, in decode",
        "----> 3 check(double(7), 14)",
    ]
    page = make(
        tested=[new_output("error", ename="ValueError", evalue="in /home/teacher/x.py", traceback=frames)],
        outputs=[
            new_output("stream", text="Loading (/home/teacher/data/a.csv) at 5 img/s\n"),
            new_output("display_data", data={"text/html": "<b onclick='x()'>/home/teacher/y.py</b>"}),
        ],
        essay="<script>alert(1)</script>",
    )
    text = str(page)
    for never in ("/home", "teacher", "double(7)", "alert(1)</script>", "onclick"):
        assert never not in text, never
    for kept in ("decoder.py:353", "a.csv) at 5 img/s", "y.py"):
        assert kept in page.get_text(), kept


@pytest.mark.parametrize("hide", [False, True])
def test_what_a_cell_shows_after_hidden_checks_is_left_out_if_the_course_says_so(make, hide):
    put_out = [new_output("stream", text="I saw 7.\n"), new_output("error", **WRONG)]
    more = [new_code_cell("print(seen)", outputs=put_out), new_code_cell("quiet = 1")]
    page = make(outputs=[new_output("stream", text="before")], more=more, hide_prints=hide)
    assert ("I saw 7" in page.text, page.text.count(AFTER_HIDDEN)) == (not hide, int(hide))
    for kept in ("before", "3 is too small.", "print(seen)"):
        assert kept in page.text


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [("SystemExit", "3", ENDED_PYTHON), ("SubmissionEnded", "It took longer than 3 s.", "longer than 3 s.")],
)
def test_what_ended_a_cell_is_said_without_a_traceback(make, kind, value, shown):
    text = make([new_output("error", ename=kind, evalue=value, traceback=["use %tb"])]).get_text()
    assert (shown in text, "%tb" in text) == (True, False)


def test_printed_sentences_are_wrapped_and_printed_tables_are_not(make):
    outputs = [new_output("stream", text="one  two\n<b>3</b>  4\n")]
    page = make(outputs=outputs, tested=[new_output("stream", text="Not yet.")])
    table, sentence = page.find_all(class_="output_stream")
    assert ("table_text" in table["class"], table.pre.text) == (True, "one  two\n<b>3</b>  4\n")
    assert ("table_text" in sentence["class"], sentence.pre.text) == (False, "Not yet.")


def test_a_text_without_end_is_cut_before_it_is_rendered(make, monkeypatch):
    monkeypatch.setattr(ReadableOutputs, "max_characters", 2000)
    page = make(essay="\\\\(" * 7000, outputs=[new_output("stream", text="x" * 5000)])
    assert "[19000 more characters are not shown]" in page.get_text()
    assert "[3000 more characters are not shown]" in page.get_text()
    assert len(str(page)) < 20 * ReadableOutputs.max_characters


def test_a_notebook_that_takes_too_long_is_shown_as_text(make, monkeypatch):
    def forever(*_):
        while True:
            pass

    monkeypatch.setattr(pages, "_cells", forever)
    monkeypatch.setattr(rendering, "NOTEBOOK_TIMEOUT", 0.05)
    page = make(essay="<b>mine</b>")
    assert "This notebook took too long to show. This is its text." in page.get_text()
    assert "<b>mine</b>" in page.find("section").pre.text


def test_all_notebooks_of_a_student_share_the_time_that_is_left(tmp_path, monkeypatch):
    """A clock that shows ten seconds more at each look: the third of four notebooks begins too late."""
    monkeypatch.setattr(rendering, "time", SimpleNamespace(thread_time=itertools.count(0, 10).__next__))
    limits, time_limit = [], rendering.time_limit
    monkeypatch.setattr(rendering, "time_limit", lambda seconds: limits.append(seconds) or time_limit(60))
    notebooks = [GradedNotebook(name, name, REFERENCE, TITLES) for name in "abcd"]
    for one in notebooks:
        nbformat.write(new_notebook(cells=[]), tmp_path / f"{one.name}.ipynb")
    make_pages(PageJob("s1", "Ada", "tiny", tmp_path, notebooks, MARKS, "f", seconds=25.0))
    assert limits == [25.0, 15.0, 5.0, rendering.MIN_TIMEOUT]


def test_a_page_has_what_grading_has_left_of_the_students_time(course, monkeypatch):
    course.config.IsolatedExecute.deadline = 100.0
    records = type(course.classroom().records)
    for seconds, left in ((30.0, 70.0), (95.0, pages.MIN_SECONDS)):
        monkeypatch.setattr(records, "load", lambda *_, s=seconds: SimpleNamespace(seconds=s))
        assert FeedbackPages(course.classroom())._seconds_left("ada") == left


def test_titles_are_the_headings_without_their_points():
    cells = [
        new_markdown_cell("# 1. One"),
        named(new_code_cell(), "lonely-test"),
        new_markdown_cell("text\n\n## Exercise 1.1: twice (2 points)\n\nmore"),
        named(new_code_cell(), "double"),
        named(new_code_cell(), "double-test"),
        new_markdown_cell("## Both (4 points, read by a person)"),
        named(new_code_cell(), "a-test"),
        named(new_markdown_cell("# Mine\n\n### BEGIN MARK SCHEME\n- 2 points\n### END MARK SCHEME"), "b_2"),
        new_markdown_cell("## Task\n\n### BEGIN MARK SCHEME\n- 1 point\n### END MARK SCHEME"),
        named(new_code_cell(), "c-test"),
    ]
    cells[-3].metadata["nbgrader"]["solution"] = True
    content = nbformat.writes(new_notebook(cells=cells)).encode()
    names = ["lonely-test", "double-test", "a-test", "b_2", "c-test", "gone-test"]
    assert title_of(content, "one") == "1. One"
    assert title_of(nbformat.writes(new_notebook()).encode(), "one") == "one"
    assert titles_of(content, [replace(REFERENCE[1], name=name) for name in names]) == {
        "lonely-test": "1. One", "double-test": "Exercise 1.1: twice", "a-test": "Both: a",
        "b_2": "Both: b 2", "c-test": "Task", "gone-test": "gone",
    }  # fmt: skip


@pytest.fixture
def graded(course):
    """Three students whose notebooks were graded, without their having been run."""
    with course.gradebook() as book:
        for student in ("ada", "bob", "cem"):
            called = {"first_name": "Ada", "last_name": "L"} if student == "ada" else {}
            book.add_student(student, **called)
            for notebook in book.add_submission(TINY, student).notebooks:
                for grade in notebook.grades:
                    by_hand = grade.name == "why"
                    grade.auto_score, grade.needs_manual_grade = (None, True) if by_hand else (1.0, False)
        book.db.commit()
    for student in ("ada", "bob", "cem"):
        for name, nb in course.solved(why="Because.").items():
            path = course.folder / "course" / "autograded" / student / TINY / f"{name}.ipynb"
            path.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(nb, path)
    return course


def write(course, only="", again=False):
    it = FeedbackPages(course.classroom())
    list(it.write(it.out_of_date(only, again), 1))
    return it


def test_what_is_out_of_date_is_written_and_nothing_else(graded, monkeypatch):
    monkeypatch.setattr(pages, "_pool", ThreadPoolExecutor)  # a process takes seconds to start
    first = write(graded)
    assert (first.written, first.unchanged) == (["ada", "bob", "cem"], [])
    assert (first.failed, first.unmarked) == ({}, 3)
    again = write(graded)
    assert (again.written, again.unchanged) == ([], ["ada", "bob", "cem"])
    folder = graded.folder / "course" / "feedback"
    names = sorted(path.name for path in (folder / "ada" / TINY).iterdir())
    assert names == ["index.html", "one.html", "two.html"]
    page = (folder / "ada" / TINY / "index.html").read_text()
    assert "Feedback for Ada L (ada)" in page
    assert "not marked yet (of 4)" in page
    # An essay is marked, a comment is written, a notebook is graded anew, a page is lost.
    with graded.gradebook() as book:
        mark = book.find_grade("why", "one", TINY, "ada")
        mark.manual_score, mark.needs_manual_grade = 3.5, False
        book.db.commit()
    assert write(graded).written == ["ada"]
    page = (folder / "ada" / TINY / "index.html").read_text()
    assert "3.5 of 4" in page
    assert page.count("A model answer") == 1
    with graded.gradebook() as book:
        book.find_comment("why", "one", TINY, "bob").manual_comment = "See me."
        book.db.commit()
    assert write(graded, "b*, c*").written == ["bob"]
    path = graded.folder / "course" / "autograded" / "cem" / TINY / "two.ipynb"
    nbformat.write(new_notebook(), path)
    (folder / "ada" / TINY / "index.html").unlink()
    assert write(graded).written == ["ada", "cem"]
    # One who has no graded notebooks, and one whose notebook is none, stop nobody.
    path.unlink()
    (graded.folder / "course" / "autograded" / "bob" / TINY / "one.ipynb").write_text("{")
    it = write(graded, again=True)
    assert it.written == ["ada"]
    assert it.failed["cem"].startswith("The graded notebooks cannot be read: FileNotFoundError")
    assert it.failed["bob"].startswith("The page cannot be written: ")
    with pytest.raises(NotFoundError, match=r"There is nobody who is called 'z' with grades in tiny"):
        it.out_of_date("z")


def test_the_command_says_how_many_pages_it_wrote_and_what_is_not_marked(graded):
    first = run_here(graded, FeedbackApp(), TINY)
    assert first.stdout.startswith("tiny: 3 pages written, 0 up to date before, 0 could not be written.")
    assert "Pages with an answer that is not marked yet: 3." in first.stdout
    assert "feedback: 100%" in first.stderr
    assert "0 pages written, 3 up to date" in run_here(graded, FeedbackApp(), TINY).stdout


def test_a_page_is_whole_or_not_there(tmp_path, monkeypatch):
    write_whole(tmp_path / "index.html", "old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("starvelab_grader.files.os.replace", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "index.html", "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("index.html", "old")]
    assert fingerprint_in(tmp_path / "index.html") == fingerprint_in(tmp_path / "none") == ""


@pytest.mark.parametrize(("workers", "one"), [(2, "dies-once"), (1, "dies")])
def test_a_worker_that_ends_costs_nobody_else_a_page(workers, one, monkeypatch, tmp_path):
    """Pages of students, where those called `dies` end the worker: once, or each time."""

    def pages_or_death(student):
        once = tmp_path / f"{student}-was-here"
        if student.startswith("dies") and not (student.endswith("once") and once.exists()):
            once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"index.html": student}

    # Workers import nothing of this package: that takes seconds.
    monkeypatch.setattr(pages, "make_pages", lambda job: pages_or_death(job.student))
    it = object.__new__(FeedbackPages)
    it.folder, it.classroom, it.written, it.failed = tmp_path, SimpleNamespace(assignment=TINY), [], {}
    students = ["ada", one, "bob", "cem"]
    tried = list(it.write([SimpleNamespace(student=student) for student in students], workers))
    assert sorted(tried) == sorted(students)
    ended = "The page cannot be written: the process that made it was ended, and again when nothing else was"
    assert list(it.failed) == (["dies"] if one == "dies" else [])
    assert all(why.startswith(ended) for why in it.failed.values())
    assert sorted([*it.written, *it.failed]) == sorted(students)
