"""Feedback by Canvas's API: each student has each thing once, whenever the command is ended."""

import io
import logging
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from grader.tests.a_course import TINY
from grader.tests.in_process import run_here
from grader.tests.lms.a_canvas import TOKEN, canvas
from starvelab_grader.batch.one_student import CannotWriteError
from starvelab_grader.commands.platforms import ReturnApp
from starvelab_grader.errors import InputError
from starvelab_grader.lms import canvas_api
from starvelab_grader.lms.canvas_api import CanvasAssignment
from starvelab_grader.lms.collecting import CANVAS, Origin
from starvelab_grader.lms.returning import Result, deliveries, returned, write_record

STUDENTS = ("101", "102", "103")
WORK = SimpleNamespace(
    score=7.5, late_submission_penalty=0.0, max_score=10.0, notebooks=[], needs_manual_grade=False
)
RESULT = Result(WORK)


@pytest.fixture(autouse=True)
def token(monkeypatch):
    monkeypatch.setenv(canvas_api.TOKEN, TOKEN)


@pytest.fixture
def pauses(monkeypatch):
    """The seconds that were waited, which pass at once."""
    waited = []
    monkeypatch.setattr(canvas_api, "time", SimpleNamespace(sleep=waited.append))
    return waited


@pytest.fixture
def pages(tmp_path):
    """A page for each student."""
    places = {one: tmp_path / "feedback" / one / "tiny" / "index.html" for one in STUDENTS}
    for student, page in places.items():
        page.parent.mkdir(parents=True)
        page.write_text(f"<body>Page of {student}</body>")
    return places


def send(server, pages, folder, result=RESULT, **options) -> int:
    """As the command does it: a record in a new folder, written after each student."""
    origins = {one: Origin(CANVAS) for one in pages}
    every = deliveries(pages, origins, {one: one for one in pages}, returned(folder))
    assignment, sent, made = CanvasAssignment(server.page), [], folder / f"{len(list(folder.glob('*'))):03}"
    for one in (replace(each, points=result.points) for each in every):
        assignment.deliver(one, result, **options)
        if one.is_new:
            sent.append(one)
            write_record(made, sent)
    return len(sent)


def everybody(pages):
    return {one: ("7.5", 1, [page.read_bytes()]) for one, page in pages.items()}


def counted(server):
    return {one: (points, len(texts), files) for one, (points, texts, files) in server.received().items()}


class Killed(BaseException):
    """As the end of the process: nothing catches it."""


@pytest.mark.programs
def test_a_command_that_is_killed_at_any_point_gives_each_student_each_thing_once(
    pages, tmp_path, monkeypatch
):
    def killed_at(point, server, folder) -> bool:
        """True if it was killed. A point is behind a request, or behind the writing of a record."""
        count = 0

        def ends(inner):
            def step(*arguments, **options):
                nonlocal count
                count += 1
                made = inner(*arguments, **options)
                if count == point:
                    raise Killed
                return made

            return step

        with monkeypatch.context() as patch:
            patch.setattr(canvas_api._Adapter, "send", ends(canvas_api._Adapter.send))
            patch.setattr(sys.modules[__name__], "write_record", ends(write_record))
            try:
                send(server, pages, folder)
            except Killed:
                return True
        return False

    for point in range(1, 20):
        with canvas() as server:
            folder = tmp_path / f"returned-{point}"
            if not killed_at(point, server, folder):
                break
            send(server, pages, folder)
            assert counted(server) == everybody(pages), f"killed at {point}"
            assert send(server, pages, folder) == 0
    assert point == 16, (
        "an assignment, a list on two pages, and for each of three: an upload in two, a grade, a record"
    )


def test_one_request_has_the_points_what_they_are_for_and_the_page(pages, tmp_path):
    with canvas() as server:
        send(server, pages, tmp_path / "returned")
    points, (text,), (page,) = server.received()["102"]
    assert (points, page) == ("7.5", b"<body>Page of 102</body>")
    assert text.startswith("7.5 of 10 points. The attached page says more. [")
    assert server.files[901][0] == "tiny-feedback.html"
    assert sum(request.startswith("PUT") for request in server.requests) == 3


def scored(score, **more):
    return Result(SimpleNamespace(**{**vars(WORK), "score": score}), **more)


HIGHER, SCALED = scored(9.0), scored(7.5, possible=20.0)


@pytest.mark.parametrize("changed", ["page", "points", "scale"])
@pytest.mark.parametrize("recorded", [True, False])
def test_what_was_sent_first_and_counts_again_is_sent_again(pages, tmp_path, changed, recorded):
    """A, B, A: what Canvas has now is compared, and not what it ever had."""
    before, other = pages["101"].read_text(), {"points": HIGHER, "scale": SCALED}.get(changed, RESULT)
    with canvas() as server:
        for number, (text, result) in enumerate(
            [(before, RESULT), ("<body>B</body>", other), (before, RESULT)]
        ):
            if changed == "page":
                pages["101"].write_text(text)
            folder = tmp_path / ("returned" if recorded else f"lost-{number}")
            send(server, pages, folder, result)
            points, texts, files = server.received()["101"]
            assert (float(points), files[-1]) == (result.filed, pages["101"].read_bytes())
            assert texts[-1].startswith(f"{result.counted:g} of 10 points.")
        assert len(texts) == 3
        assert send(server, pages, folder, RESULT) == 0
        assert len(server.received()["101"][1]) == 3, "and nothing twice"


def test_points_that_somebody_has_given_in_canvas_stay_unless_ours_are_asked_for(pages, tmp_path):
    with canvas() as server:
        send(server, pages, tmp_path / "returned")
        server.grades["102"] = "4"
        with pytest.raises(
            InputError, match=r"Somebody has changed 7\.5 points to 4\.0 in Canvas\. .*--again"
        ):
            send(server, pages, tmp_path / "returned")
        assert server.grades["102"] == "4"
        send(server, pages, tmp_path / "returned", again=True)
        points, texts, _ = server.received()["102"]
        assert (points, len(texts)) == ("7.5", 1), "no page comes twice"


def test_a_mark_that_a_student_has_copied_into_a_comment_is_none_of_ours(pages, tmp_path):
    with canvas() as server:
        send(server, pages, tmp_path / "returned")
        copied = server.comments["101"][0]["comment"]
        send(server, pages, tmp_path / "returned", HIGHER)
        server.comments["101"].append({"author_id": 101, "comment": copied, "files": []})
        send(server, pages, tmp_path / "returned", RESULT)
        assert server.grades["101"] == "7.5"
        assert len(server.comments["101"]) == 4


def test_who_is_excused_in_canvas_stays_so(pages, tmp_path):
    with canvas() as server:
        server.excused.add("101")
        with pytest.raises(InputError, match=r"Canvas excuses this student"):
            send(server, pages, tmp_path / "returned")
        assert server.grades["101"] == ""


@pytest.mark.parametrize(("individually", "comments"), [(False, [1, 1, 1]), (True, [1, 0, 1])])
def test_what_a_group_gets_by_one_of_them_each_member_gets(pages, tmp_path, individually, comments):
    del pages["102"]  # of a group that is graded together, the download has one
    with canvas(group_category_id=8, grade_group_students_individually=individually) as server:
        server.groups = [{"101", "102"}]
        send(server, pages, tmp_path / "returned")
        assert [len(each[1]) for each in server.received().values()] == comments
        assert server.grades["102"] == ("" if individually else "7.5")


@pytest.mark.parametrize(("status", "headers", "body", "waited"), [
    (429, {"Retry_After": "7"}, b"", 7),
    (429, {"Retry_After": "Wed, 21 Oct 2026 07:28:00 GMT"}, b"", 1),
    (403, {"X_Rate_Limit_Remaining": "0.0"}, b"403 Forbidden (Rate Limit Exceeded)\n", 1),
])  # fmt: skip
def test_a_limit_on_requests_is_obeyed(pages, tmp_path, pauses, status, headers, body, waited):
    with canvas() as server:
        server.limits = [(status, headers, body), (status, headers, body)]
        send(server, pages, tmp_path / "returned")
        assert counted(server) == everybody(pages)
    assert pauses == [waited, 2 if waited == 1 else waited]


def test_a_limit_that_stays_ends_the_command(pauses):
    rule = r"does not do what was asked: RateLimitExceeded\. Check the"
    with canvas() as server:
        server.limits = [(429, {}, b"")] * 20
        with pytest.raises(CannotWriteError, match=rule):
            CanvasAssignment(server.page)
    assert pauses == [*canvas_api.PAUSES]


@pytest.mark.parametrize("address", [
    "http://canvas.example.edu/courses/12/assignments/34", "https://canvas.example.edu/courses/12", "x",
])  # fmt: skip
def test_only_the_address_of_an_assignment_is_taken_and_no_token_goes_unencrypted(address):
    rule = r"`canvas-api` takes the assignment's address, as https://canvas\.ex"
    with pytest.raises(InputError, match=rule):
        CanvasAssignment(address)


def test_without_a_token_it_is_said_where_it_comes_from(monkeypatch):
    monkeypatch.delenv(canvas_api.TOKEN)
    monkeypatch.setitem(sys.modules, "keyring", None)
    rule = r"Put it into the environment as CANVAS_API_TOKEN, or into your keyring"
    with pytest.raises(InputError, match=rule):
        CanvasAssignment("https://canvas.example.edu/courses/12/assignments/34")


def test_a_token_may_stand_in_the_keyring(monkeypatch, pages, tmp_path):
    monkeypatch.delenv(canvas_api.TOKEN)
    kept = {}
    ring = SimpleNamespace(get_password=lambda service, name: kept.get((service, name)))
    monkeypatch.setitem(sys.modules, "keyring", ring)
    with canvas() as server:
        kept["starvelab-grader", server.address] = TOKEN
        assert send(server, pages, tmp_path / "returned") == 3


def test_points_are_not_sent_where_canvas_takes_no_number():
    with (
        canvas(grading_type="pass_fail") as server,
        pytest.raises(InputError, match=r"an assignment with 'pass_f"),
    ):
        CanvasAssignment(server.page)


def test_the_command_sends_what_is_new_and_its_token_is_nowhere(class_of_three, monkeypatch):
    course, log = class_of_three, io.StringIO()
    logger, handler = logging.getLogger("canvasapi"), logging.StreamHandler(log)
    monkeypatch.setattr(logger, "handlers", [handler])
    monkeypatch.setattr(logger, "level", logging.DEBUG)
    with canvas(students=("101", "103")) as server:
        option = f"--canvas-api={server.page}"
        run_here(course, ReturnApp(), TINY, option, "--dry-run")
        assert server.requests == []
        done = run_here(course, ReturnApp(), TINY, option, "--scale", "--log-level=DEBUG")
        assert "2 students have their points and pages in Canvas." in done.stdout
        assert (
            "  102: Canvas does not take it: InputError: Canvas has no student of this number" in done.stdout
        )
        assert server.grades == {"101": "5.0", "103": "5.0"}, "a quarter of 20"
        done = run_here(course, ReturnApp(), TINY, option, "--scale")
        assert "tiny: 1 pages to return, 2 were returned before." in done.stdout
        monkeypatch.setenv(canvas_api.TOKEN, "wrong")
        done = run_here(course, ReturnApp(), TINY, option, "--again", fine=False)
    assert "does not do what was asked: InvalidAccessToken. Check the address, your rights" in done.stderr
    done = run_here(course, ReturnApp(), TINY, option, "--again", fine=False)
    assert "does not do what was asked: ConnectionError." in done.stderr
    assert "/api/v1/courses/12" in log.getvalue()
    text = log.getvalue() + "".join(
        path.read_text(errors="replace") for path in course.folder.rglob("*") if path.is_file()
    )
    assert TOKEN not in text


def test_without_its_package_the_command_says_how_to_install_it(class_of_three, monkeypatch):
    monkeypatch.delitem(sys.modules, "starvelab_grader.lms.canvas_api", raising=False)
    monkeypatch.setitem(sys.modules, "canvasapi", None)
    monkeypatch.setitem(sys.modules, "canvasapi.course", None)
    address = "--canvas-api=https://x.edu/courses/1/assignments/2"
    said = run_here(class_of_three, ReturnApp(), TINY, address, fine=False).stderr
    assert "pip install 'starvelab-grader[canvas]', or in a checkout: pip install './grader[canvas]'" in said
