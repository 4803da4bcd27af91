"""Marks that a person gives: read from the gradebook, written into it, and nobody else's way to them."""

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from copy import copy
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from unittest import mock
from urllib.parse import urlsplit
from urllib.request import url2pathname

import nbformat
import pytest
from tornado.httpclient import AsyncHTTPClient
from tornado.testing import bind_unused_port
from traitlets.config import Config

from grader.tests.essays import GIVEN_OUT, LAB, EssayClass
from grader.tests.in_process import in_a_thread
from starvelab import host
from starvelab_grader.batch.one_student import CannotWriteError
from starvelab_grader.commands import mark as mark_command
from starvelab_grader.commands.mark import TOKEN_HEADER, MarkApp, MarkingServer
from starvelab_grader.errors import InputError, NotFoundError
from starvelab_grader.marking import MAX_COMMENT, ChangedError, Marking, points_from

LONG = "The workers need 64 ms for a batch, and the accelerator needs 11.74 ms. They overlap, so that the "
LONG += "slower one of the two sets the time of a step, so a faster accelerator would only wait longer."
HOSTILE = "<script>alert(1)</script> **bold** [x](javascript:alert(2)) <img src=x onerror=alert(3) alt=cat>"
ANSWERS = {"ada": HOSTILE, "bob": LONG, "cem": GIVEN_OUT, "dan": LONG.upper(), "eve": "Since."}


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """The class, not to be changed: a gradebook takes long to be made."""
    return EssayClass(tmp_path_factory.mktemp("class"), ANSWERS)


@pytest.fixture
def essays(untouched, tmp_path):
    return untouched.copy(tmp_path / "class")


@pytest.fixture(scope="module")
def marking_of_untouched(untouched):
    return untouched.marking()


@pytest.fixture
def marking(marking_of_untouched, essays):
    """The marking of the test's own class; the assignment is read once."""
    made = copy(marking_of_untouched)
    made.classroom = essays
    return made


@pytest.fixture
def why(marking):
    """The first essay, in the hands of a person: its state, and what that person does."""
    essay = marking.essays[0]

    def version(student="bob"):
        return marking.read(essay, student)[1]

    def save(student="bob", seen=None, **mark):
        return marking.save(essay, student, version(student) if seen is None else seen, **mark)

    def states():
        return {one.student: (one.points, one.waits, one.is_blank) for one in marking.answers(essay)}

    return SimpleNamespace(essay=essay, version=version, save=save, states=states)


def test_an_essay_comes_with_its_question_its_scheme_and_the_instructors_answer(marking):
    assert [(one.cell, one.title, one.points) for one in marking.essays] == [
        ("why", "Exercise 1.2: why", 4.0),
        ("sketch", "Exercise 1.3: a sketch: sketch", 2.0),
        ("task", "Exercise 1.3: a sketch: task", 3.0),
    ]
    why, sketch, task = marking.essays
    assert "Why is <em>that</em> so?" in why.question
    assert "exercise before" not in why.question
    assert "names the <em>CPU</em>" in why.scheme
    assert [one.rubric for one in marking.essays] == [["- 2 points: names the *CPU*."], [], []]
    assert "The slower one sets the step." in why.solution
    assert "MARK SCHEME" not in why.scheme + why.solution
    assert (sketch.in_code, sketch.scheme) == (True, "")
    assert "BEGIN" not in sketch.solution
    assert "print" in sketch.solution
    assert "Add cells." in task.question


def test_who_waits_comes_first_and_who_left_it_as_it_was_comes_last(marking, why):
    assert list(why.states())[-1] == "cem"
    assert why.states()["cem"] == (None, False, True)
    why.save(points="3")
    assert list(why.states())[-2:] == ["bob", "cem"]
    numbers, others = (
        {one.student: one.number for one in marking.answers(marking.essays[n])} for n in (0, 1)
    )
    assert sorted(numbers.values()) == [1, 2, 3, 4, 5]
    assert numbers != others
    assert {one.name for one in marking.answers(why.essay)} >= {"Ada Smith", "Bob Smith"}


def test_an_answer_is_shown_with_nothing_alive_and_with_what_belongs_to_it(marking):
    hostile, code, task = (
        marking.read(essay, student)[0]
        for essay, student in zip(marking.essays, ("ada", "bob", "bob"), strict=True)
    )
    assert "<strong>bold</strong>" in hostile
    assert "Figure: cat" in hostile
    assert not [alive for alive in ("<script", "javascript:", "onerror", "<img") if alive in hostile]
    assert "drawn" in code.split("print", 1)[1].split("output", 1)[1], "code comes with its output"
    assert "plot" in task, "and a task with the answer behind it"
    assert "My own cell, bob." in task, "and with the cells that were added"
    assert "Add cells." not in task


def test_an_answer_that_cannot_be_read_says_so_and_the_others_go_on(essays, marking, why):
    (essays.notebooks("bob") / "one.ipynb").unlink()
    assert "The graded notebook cannot be read: FileNotFoundError" in marking.read(why.essay, "bob")[0]
    why.save(points="0")
    nbformat.write(nbformat.v4.new_notebook(), essays.notebooks("dan") / "one.ipynb")
    assert "There is no answer." in marking.read(why.essay, "dan")[0]


def test_there_must_be_something_to_mark(essays):
    definition = essays.definition
    only_tests = {"one": [cell for cell in definition.cells["one"] if cell.name == "sum-test"]}
    nothing = SimpleNamespace(assignment=LAB, cells=only_tests, source=definition.source)
    room = SimpleNamespace(assignment=LAB, definition=nothing)
    said = r"tests give all its points\. Change the points of one student in nbgrader's formgrader"
    with pytest.raises(NotFoundError, match=said):
        Marking(room)
    with closing(essays.gradebook()) as book:
        for student in ANSWERS:
            book.remove_student(student)
    with pytest.raises(NotFoundError, match=r"been graded\. Grade first: starvelab-grader grade lab"):
        essays.marking()


def test_a_mark_and_a_comment_are_in_the_gradebook_and_can_be_taken_back(essays, marking, why):
    seen = why.save(points="2,5", comment=" See *me*. \n")
    assert essays.grade("bob") == (None, 2.5, False, "See *me*.")
    seen = why.save(seen=seen, comment="")
    assert essays.grade("bob") == (None, 2.5, False, None)
    seen = why.save(seen=seen, points="")
    assert essays.grade("bob") == (None, None, True, None)
    assert seen == why.version()
    # An answer that was left as it was given out does not begin to wait.
    seen = why.save("cem", points="1")
    assert essays.grade("cem") == (0, 1, False, None)
    why.save("cem", seen, points=" ")
    assert essays.grade("cem") == (0, None, False, None)
    task = marking.essays[2]
    marking.save(task, "bob", marking.read(task, "bob")[1], points="3", comment="Yes.")
    assert essays.grade("bob", "task") == (None, 3, False, "Yes.")


@pytest.mark.parametrize("typed", ["4.5", "-1", "nan", "inf", "two", "1.2.3"])
def test_points_that_the_essay_does_not_have_are_refused(typed):
    with pytest.raises(InputError, match=rf"are a number from 0 to 4, such as 2; you typed '{typed}'\."):
        points_from(typed, 4)
    assert points_from("0", 4) == 0


def test_of_a_mark_that_cannot_be_given_nothing_is_written(essays, why):
    with pytest.raises(InputError, match="Points are"):
        why.save(points="9", comment="x")
    with pytest.raises(InputError, match=r"at most 20000 characters, and this one has 20001\. Shorten it"):
        why.save(points="1", comment="x" * (MAX_COMMENT + 1))
    with closing(essays.gradebook()) as book:
        book.update_or_create_grade_cell("why", "one", LAB, max_score=3, cell_type="markdown")
    with pytest.raises(InputError, match="from 0 to 3"):  # the most is what the gradebook says now
        why.save(points="4")
    assert essays.grade("bob") == (None, None, True, None)


def test_what_changed_since_it_was_shown_is_not_overwritten(essays, why):
    for change in (
        lambda: essays.write("bob", "Another answer."),
        lambda: why.save(points="1"),
        lambda: why.save(comment="x"),
    ):
        seen = why.version()
        change()
        before = essays.grade("bob")
        with pytest.raises(ChangedError, match=r"has changed since it was shown.*you typed is still here"):
            why.save(seen=seen, points="4")
        assert essays.grade("bob") == before
    why.save(points="4")
    assert essays.grade("bob")[1] == 4
    with closing(essays.gradebook()) as book:
        book.remove_student("bob")
    with pytest.raises(NotFoundError, match=r"no answer of bob to Exercise 1\.2: why any more\. Load"):
        why.version()


def test_a_gradebook_that_another_program_holds_takes_the_mark_later(essays, why, monkeypatch):
    monkeypatch.setattr("starvelab_grader.marking.SAVE_TIMEOUT", 0)
    seen = why.version()
    with closing(sqlite3.connect(essays.folder / "gradebook.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            CannotWriteError, match=r"cannot be written: database is locked\. Nothing is lost"
        ):
            why.save(seen=seen, points="4")
    why.save(seen=seen, points="4")
    assert essays.grade("bob")[1] == 4


def test_being_late_costs_points_that_a_person_gives_as_well(essays):
    essays.config = Config({"LateSubmissionPlugin": {"penalty_method": "zero"}})
    with closing(essays.gradebook()) as book:
        book.find_assignment(LAB).duedate = datetime(2026, 11, 1)
        book.find_submission(LAB, "bob").timestamp = datetime(2026, 11, 2)
        book.db.commit()
    marking = essays.marking()
    marking.save(marking.essays[0], "bob", marking.read(marking.essays[0], "bob")[1], points="3")
    with closing(essays.gradebook()) as book:
        assert book.find_submission_notebook("one", LAB, "bob").late_submission_penalty == 3


def exchange(marking, *requests, token=None, **options):
    """Status and content of the answers to requests: a path to read, or the body of a mark."""

    async def responses():
        server = MarkingServer(marking, **options)
        client = AsyncHTTPClient(force_instance=True)
        found = []
        try:
            for request in requests:
                path, mark = ("mark", *request)[-2:] if isinstance(request, tuple) else (request, None)
                response = await client.fetch(
                    f"http://127.0.0.1:{server.port}/{path if mark is None else f'api/{path}'}",
                    method="GET" if mark is None else "PUT",
                    body=json.dumps(mark) if isinstance(mark, dict) else mark,
                    headers={TOKEN_HEADER: server.token if token is None else token},
                    raise_error=False,
                )
                kind = response.headers["Content-Type"]
                content = response.body.decode()
                found.append((response.code, json.loads(content) if "json" in kind else content))
                assert "script-src 'self'" in response.headers["Content-Security-Policy"]
        finally:
            client.close()
            await server.stop()
        return found

    return in_a_thread(responses())


READS = ("api/essays", "api/answers?essay=0", "api/answer?essay=0&student=bob")


def test_the_page_itself_tells_nothing_of_the_course(marking):
    for status, content in exchange(marking, "", "mark.js", "mark.css", token=""):
        assert (status, len(content) > 1000) == (200, True)
        assert not any(word in content for word in ("Exercise 1.2", "Smith", "bob", "Why is"))


@pytest.mark.parametrize("token", ["", "x", "tökén"])
def test_nobody_reads_or_marks_without_the_token(essays, marking, why, token):
    mark = {"essay": 0, "student": "bob", "version": why.version(), "points": "0"}
    rejected = {
        "message": "This page needs the address that `starvelab-grader mark` printed last. Open that."
    }
    assert exchange(marking, *READS, (mark,), token=token) == [(403, rejected)] * 4
    assert essays.grade("bob")[1] is None


def test_a_person_marks(essays, marking, why):
    body = {"essay": 0, "student": "bob", "version": why.version(), "points": "3", "comment": "Yes."}
    found = exchange(marking, *READS, (body,), (body,), show_names=True)
    assert [status for status, _ in found] == [200, 200, 200, 200, 409]
    about, answers, answer, mark, again = (content for _, content in found)
    assert (about["assignment"], about["show_names"]) == (LAB, True)
    assert [(one["marked"], one["answers"]) for one in about["essays"]] == [(0, 4), (0, 5), (0, 5)]
    assert len(answers["answers"]) == 5
    assert LONG.split(",")[0] in answer["html"]
    expected = {"student": "bob", "points": 3.0, "waits": False, "comment": "Yes."}
    assert mark["answer"].items() >= expected.items()
    assert mark["version"] == why.version()
    assert again["message"].startswith("This answer or its mark has changed")
    assert essays.grade("bob") == (None, 3, False, "Yes.")


def test_requests_that_no_page_sends_are_refused_in_words(marking, why):
    fine = {"essay": 0, "student": "bob", "version": "v"}
    gone = "The gradebook has no answer of ../.. to Exercise 1.2: why any more. Load this page again."
    expected = [
        (("{",), 400, "A mark is sent as a JSON object."),
        (("[]",), 400, "A mark is sent as a JSON object."),
        ((fine | {"points": 4},), 400, "The field 'points' of a mark is a text, and 4 is none."),
        ((fine | {"student": None},), 400, "The field 'student' of a mark is a text, and None is none."),
        ((fine | {"points": "9", "version": why.version()},), 400,
         "Points are a number from 0 to 4, such as 2; you typed '9'."),
        ((fine | {"essay": 3},), 404, "There are 3 essays, counted from 0, and no 3."),
        ("api/answers?essay=-1", 404, "There are 3 essays, counted from 0, and no '-1'."),
        ("api/answer?essay=0&student=..%2F..", 404, gone),
        ("api/answers", 400, "Bad Request"),
        ("../marking.py", 404, "Not Found"),
    ]  # fmt: skip
    found = exchange(marking, *(request for request, *_ in expected))
    assert found == [(status, {"message": message}) for _, status, message in expected]


def test_a_gradebook_that_cannot_be_read_and_a_port_that_is_not_free_are_named(essays, marking):
    with closing(sqlite3.connect(essays.folder / "gradebook.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        found = exchange(marking, "api/answers?essay=0")
    assert found == [(503, {"message": "The gradebook cannot be read: database is locked"})]
    taken, port = bind_unused_port()
    message = rf"a port that is free, and {port} is not: .*leave --port out"
    with closing(taken), pytest.raises(InputError, match=message):
        exchange(marking, port=port)


def test_the_command_opens_the_page_and_says_in_the_end_what_still_waits(essays, monkeypatch, capsys):
    opened = []

    def open_and_interrupt(address):
        path = Path(url2pathname(urlsplit(address).path))
        opened.append((address, path.read_text(), path.stat().st_mode & 0o777))
        raise KeyboardInterrupt

    monkeypatch.setattr(mark_command, "Classroom", lambda *_: essays)
    monkeypatch.setattr(mark_command, "asyncio", SimpleNamespace(run=in_a_thread, Event=asyncio.Event))
    monkeypatch.setattr(mark_command.webbrowser, "open", open_and_interrupt)
    monkeypatch.setenv("DISPLAY", ":0")
    MarkApp().run(LAB)
    printed = capsys.readouterr().out
    ((address, redirect, mode),) = opened
    found = re.search(r"\n    (http://127\.0\.0\.1:\d+/#[\w-]{43})\n", printed)[1]
    assert f'content="0; url={found}"' in redirect
    assert mode == 0o600, "nobody else can read it"
    assert found.split("#")[1] not in address
    assert not Path(url2pathname(urlsplit(address).path)).exists()
    assert printed.endswith(
        "Exercise 1.2: why: 4 still to be marked.\n"
        "Exercise 1.3: a sketch: sketch: 5 still to be marked.\n"
        "Exercise 1.3: a sketch: task: 5 still to be marked.\n"
        "Marks are in the gradebook. Students read them after: starvelab-grader feedback lab\n"
    )
    with closing(essays.gradebook()) as book:
        for submission in book.assignment_submissions(LAB):
            for grade in submission.notebooks[0].grades:
                grade.needs_manual_grade = False
        book.db.commit()
    MarkApp().run(LAB)
    assert "\nAll essays of lab are marked.\nMarks are in" in capsys.readouterr().out


@pytest.mark.parametrize("shown", [False, True])
def test_where_there_is_no_screen_no_browser_is_opened(essays, monkeypatch, shown):
    monkeypatch.setattr(host.sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    if shown:
        monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    browser = mock.Mock()
    ended = SimpleNamespace(wait=mock.Mock(side_effect=KeyboardInterrupt))
    monkeypatch.setattr(mark_command, "Classroom", lambda *_: essays)
    monkeypatch.setattr(mark_command, "asyncio", SimpleNamespace(run=in_a_thread, Event=lambda: ended))
    monkeypatch.setattr(mark_command.webbrowser, "open", browser)
    MarkApp().run(LAB)
    assert host.has_display() == browser.called == shown


def test_every_answer_is_in_one_share(essays):
    def names(**options):
        app = MarkApp(**options)
        marking = essays.marking(app._share_of_the_class())
        return {one.student for one in marking.answers(marking.essays[0])}

    shares = [names(share=f"{part}/2") for part in (1, 2)]
    assert shares[0] | shares[1] == set(ANSWERS)
    assert not shares[0] & shares[1]
    assert names(only="a*,bob") == {"ada", "bob"}
    with pytest.raises(InputError, match=r"A share is such as 1/3, the first of three; '3/2' is none\."):
        names(share="3/2")
    with pytest.raises(NotFoundError, match="Nobody who is graded is in this share of the class"):
        names(only="nobody")
