"""`starvelab-grader grade` as an instructor uses it."""

import json
import os
import re
import subprocess
from importlib.metadata import version
from unittest import mock

import nbformat
import pytest
from distributed import LocalCluster
from nbgrader.api import InvalidEntry
from nbgrader.apps.nbgraderapp import NbGraderApp
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.exc import OperationalError

from grader.tests.a_course import MOST, TINY, Course
from grader.tests.in_process import run_here
from starvelab_grader.autograde.definition import Definition
from starvelab_grader.autograde.execution import IsolatedExecute
from starvelab_grader.autograde.task import GradingResult
from starvelab_grader.batch import worker_pool
from starvelab_grader.batch.classroom import Outcome
from starvelab_grader.batch.gradebook import merge
from starvelab_grader.batch.one_student import CannotWriteError
from starvelab_grader.commands import grade as grade_command
from starvelab_grader.commands.command import end, print_list
from starvelab_grader.commands.grade import FeedbackApp, GradeApp
from starvelab_grader.commands.platforms import CollectApp, ReturnApp
from starvelab_grader.configuration import restrict_new_files
from starvelab_grader.errors import NotFoundError, UnavailableError
from tests.archives import zipped
from tests.rejected import message

pytestmark = [
    pytest.mark.long,
    pytest.mark.sandbox,
    pytest.mark.usefixtures("one_sandbox"),
    pytest.mark.timeout(600),
]
PERFECT = MOST | {"why": 0}


@pytest.fixture(scope="module")
def graded_course(released_course, tmp_path_factory):
    """A course with two who handed in, graded once."""
    course = released_course.copy(tmp_path_factory.mktemp("graded"))
    course.hand_in("ada", course.solved())
    course.hand_in("bob", course.solved(double="def double(x):\n    return x ** 2", value="answer = 1"))
    course.printed = grade(course)
    return course


@pytest.fixture
def done(graded_course, tmp_path) -> Course:
    """A copy of it."""
    return graded_course.copy(tmp_path / "done")


def grade(course: Course, *more: str, fine: bool = True) -> subprocess.CompletedProcess:
    """Run the command in this process, which also grades: workers take seconds to start."""
    return run_here(course, GradeApp(), TINY, *more, fine=fine)


def test_a_class_is_graded_and_it_is_said_and_recorded_by_what_when_and_how(graded_course):
    wrong = {"double-test": 0, "value-test": 0}
    assert graded_course.scores() == {"ada": PERFECT, "bob": PERFECT | wrong}
    printed = graded_course.printed
    assert "tiny: 2 graded, 0 unchanged since they were graded, 0 could not be graded." in printed.stdout
    assert "grading: 100%" in printed.stderr
    folder = graded_course.folder / "course" / "graded" / TINY
    assert sorted(path.name for path in folder.glob("*.json")) == ["ada.json", "bob.json"]
    told = json.loads((folder / "bob.json").read_text())
    assert told["mode"] == "sandboxed"
    assert (told["grader"], told["nbgrader"]) != ("", "")
    assert told["at"].startswith("20")
    assert told["at"].endswith("Z")
    assert told["grades"]["one"]["double-test"] == [0.0, False]
    assert told["notes"]["one"]["double-test"] == {"mistake": ["That is the square."]}
    assert told["notes"]["one"]["halve-test"] == {"part": [[1.0, 1.0], [2.0, 2.0]]}


def test_what_grading_writes_is_closed_to_other_users(graded_course):
    course = graded_course.folder / "course"
    notebooks = sorted((course / "autograded" / "ada" / TINY).iterdir())
    assert [path.name for path in notebooks] == ["one.ipynb", "two.ipynb"], "where nbgrader looks for them"
    assert not notebooks[0].stat().st_mode & 0o222
    assert course.stat().st_mode & 0o777 == 0o700, "nbgrader_config.py makes the folder of a course"
    assert (course / "gradebook.db").stat().st_mode & 0o777 == 0o600
    made = [
        path for part in ("graded", "autograded") for path in (course / part, *(course / part).rglob("*"))
    ]
    assert len(made) > 8
    assert [path for path in made if path.stat().st_mode & 0o077] == []


def test_a_group_that_shares_the_course_can_use_what_grading_writes(done):
    """Where `CourseDirectory.groupshared` says so, a second person goes on from the records of the first."""
    room, handed = done.classroom(), done.handed_in("ada")
    graded = GradingResult("ada", grades={"one": {}, "two": {}}, files={"one.ipynb": b""}, mode="sandboxed")
    room.course.groupshared = True
    before = os.umask(0)
    try:
        restrict_new_files(room.course)
        with room.exclusive_lock():
            room.records.save(graded, handed, room._inputs(handed))
    finally:
        os.umask(before)
    record, notebooks = room.records.folder / "ada.json", room.records.notebooks("ada")
    modes = [path.stat().st_mode & 0o777 for path in (record, notebooks, notebooks / "one.ipynb")]
    assert modes == [0o660, 0o770, 0o440]


@pytest.fixture
def ran(monkeypatch) -> list[str]:
    """The notebooks that are run from now on; that the reference solution is run is another test's."""
    ran = []
    preprocess = IsolatedExecute.preprocess

    def noted(self, nb, resources):
        ran.append(resources["nbgrader"]["notebook"])
        return preprocess(self, nb, resources)

    monkeypatch.setattr(IsolatedExecute, "preprocess", noted)
    monkeypatch.setattr(grade_command.releasing, "require_full_points", lambda *_: None)
    return ran


def results(course: Course, student: str) -> dict:
    """What the record of a student says, without what is another thing each time."""
    told = json.loads(record(course, student))
    return {name: told[name] for name in told.keys() - {"at", "seconds", "written"}}


def test_a_check_that_changed_grades_only_its_notebook_again(done, ran):
    """With the same result as if everything was graded again."""
    page = done.folder / "course" / "autograded" / "bob" / TINY / "one.ipynb"
    before = page.read_bytes()
    with done.gradebook() as book:
        cell = book.find_source_cell("value-test", "two", TINY)
        cell.source = "check(answer in (1, 42), True)"
        book.db.commit()
    changed = (
        "Graded before tiny changed: 2 of 2 students. Their grades are of then. Grade again: "
        "starvelab-grader grade tiny\n"
    )
    assert changed in run_here(done, FeedbackApp(), TINY, "--workers=1").stdout
    assert changed in run_here(done, ReturnApp(), TINY, "--dry-run", fine=False).stdout
    printed = grade(done).stdout
    assert "tiny: 2 graded, 0 unchanged" in printed
    assert "Graded before" not in run_here(done, FeedbackApp(), TINY, "--workers=1").stdout
    assert "Graded again because the assignment has changed: 2 notebooks of 2 submissions.\n" in printed
    assert ran == ["two", "two"]
    assert page.read_bytes() == before
    assert done.scores()["bob"] == PERFECT | {"double-test": 0}
    partly = results(done, "bob")
    assert "2 unchanged" in grade(done).stdout
    grade(done, "--again", "--only=bob")
    assert ran == ["two", "two", "one", "two"]
    assert results(done, "bob") == partly


def test_of_another_submission_only_what_is_other_is_graded(done, ran):
    done.hand_in("bob", {"two": done.solved()["two"], "large.bin": b"0" * 5_000_001})
    assert "the submission has changed: 2 notebooks of 1 submission.\n" in grade(done).stdout
    assert ran == ["one", "two"], "a file beside the notebooks is beside each of them"
    assert done.scores()["bob"] == PERFECT | {"double-test": 0}
    done.hand_in("bob", {"two": done.solved(value="answer = 2")["two"]})
    assert "the submission has changed: 1 notebook of 1 submission.\n" in grade(done).stdout
    assert ran[2:] == ["two"]
    assert done.scores()["bob"] == PERFECT | {"double-test": 0, "value-test": 0}
    partly = results(done, "bob")
    assert [len(warnings) for warnings in partly["warnings"].values()] == [1, 0], "it is said once"
    assert partly["resubmitted"] == ["two"]


def test_a_fact_that_changed_grades_all_again(done, monkeypatch, capsys):
    """In a checkout of starvelab, whose version stays the same meanwhile."""
    monkeypatch.setattr("starvelab_grader.autograde.definition.package_fingerprint", lambda: "another fact")
    room, outcome = done.classroom(), Outcome(graded=["ada"])
    assert sorted(room.pending(room.students(), outcome)) == ["ada", "bob"]
    assert [one.to_grade for one in room.submissions(["ada"], outcome)] == [{"one", "two"}]
    GradeApp()._print_outcome(room, outcome)
    why = "the grader, or a package that extends it, has changed"
    assert f"\nGraded again because {why}: 2 notebooks of 1 submission.\n" in capsys.readouterr().out


def test_who_takes_longest_comes_first(done, tmp_path):
    course = done.copy(tmp_path / "copy")
    endless = "def double(x):\n    while True: pass"
    course.hand_in("zoe", course.solved(double=endless))
    course.hand_in("yan", course.solved())
    os.mkfifo(course.submitted("yan") / "three.ipynb")  # it blocks nobody
    room, records = course.classroom(), course.classroom().records
    for student, seconds in (("ada", 2.0), ("bob", 30.0)):
        path = records.folder / f"{student}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"seconds": seconds}))
    assert room.pending(room.students(), Outcome(), again=True) == ["zoe", "bob", "ada", "yan"]


def test_a_notebook_that_took_time_from_another_is_graded_together_with_it(done):
    room = done.classroom()
    told, handed = room.records.load("ada"), done.handed_in("ada")
    assert room._to_grade(told, handed) == {}
    handed.notebooks["two"] = b"{}"
    assert room._to_grade(told, handed) == {"two": "submission"}
    told.limited = True
    assert room._to_grade(told, handed) == {"one": "submission", "two": "submission"}


def test_the_time_of_a_submission_changes_without_a_notebook_being_graded(done, ran):
    done.hand_in("ada", {"timestamp.txt": "2026-11-01 02:00:00 UTC"})
    source = done.folder / "source" / TINY / "two.ipynb"
    source.write_text(source.read_text().replace("answer = 42", "answer = 43"))
    printed = grade(done)
    assert "tiny: 0 graded, 2 unchanged" in printed.stdout
    assert "The notebooks of tiny have changed since it was released" in printed.stderr
    assert ran == []
    stamp = done.folder / "course" / "autograded" / "ada" / TINY / "timestamp.txt"
    assert stamp.read_text() == "2026-11-01T02:00:00 UTC"
    with done.gradebook() as book:
        submission = book.find_submission(TINY, "ada")
        assert str(submission.timestamp) == "2026-11-01 02:00:00"
        # As after a run that was killed between the record and the gradebook.
        submission.timestamp = None
        book.db.commit()
    grade(done)
    with done.gradebook() as book:
        assert str(book.find_submission(TINY, "ada").timestamp) == "2026-11-01 02:00:00"


def test_a_notebook_that_is_asked_for_no_longer_leaves_the_record(done):
    room = done.classroom()
    handed = done.handed_in("ada")
    inputs = {name: each for name, each in room._inputs(handed).items() if name == "one"}
    kept = room.records.save(GradingResult("ada"), handed, inputs)
    assert (list(kept.grades), list(kept.inputs), kept.mode) == (["one"], ["one"], "sandboxed")
    assert kept == room.records.load("ada")
    assert [path.name for path in room.records.notebooks("ada").iterdir()] == ["one.ipynb"]


def test_being_late_costs_what_the_instructors_rule_says(done):
    """From the name of a file of Canvas, which says that it was late, and not how late."""
    (done.folder / "late.py").write_text(
        "from nbgrader.plugins import LateSubmissionPlugin\n"
        "class Rule(LateSubmissionPlugin):\n"
        "    def late_submission_penalty(self, student_id, score, total_seconds_late):\n"
        "        assert (student_id, total_seconds_late) == ('77', 1)\n"
        "        return 1.5\n"
    )
    with (done.folder / "nbgrader_config.py").open("a") as file:
        file.write("import sys\nsys.path.insert(0, str(here))\n")
        file.write("c.AssignLatePenalties.plugin_class = 'late.Rule'\n")
    with done.gradebook() as book:
        book.update_or_create_assignment(TINY, duedate="2026-11-01 00:00:00 UTC")
    download = done.folder / "submissions.zip"
    solved = {name: nbformat.writes(nb) for name, nb in done.solved().items()}
    uploads = {f"cemadams_LATE_77_1_{name}.ipynb": one for name, one in solved.items()}
    download.write_bytes(zipped(uploads | {"deeadams_78_1_two.ipynb": solved["two"]}))
    run_here(done, CollectApp(), TINY, str(download))
    assert "2 graded" in grade(done, "--only=77,78").stdout

    def penalties(student: str) -> list[float | None]:
        with done.gradebook() as book:
            return [nb.late_submission_penalty for nb in book.find_submission(TINY, student).notebooks]

    assert penalties("77") == [1.5, 1], "at most its score"
    assert penalties("78") == [None, None]
    with done.gradebook() as book:
        book.grant_extension(TINY, "77", days=1)
    grade(done, "--only=77", "--again")
    assert penalties("77") == [None, None], "a student has an extension"


def test_one_who_cannot_be_graded_stops_nobody(done, monkeypatch):
    """A grader that is broken is no reason for a zero, and tried again the next time."""
    with (done.folder / "nbgrader_config.py").open("a") as file:
        file.write(
            "c.Autograde.sanitize_preprocessors = ['broken.Step', *c.Autograde.sanitize_preprocessors]\n"
        )
    (done.folder / "broken.py").write_text(
        "from nbgrader.preprocessors import NbGraderPreprocessor\n"
        "class Step(NbGraderPreprocessor):\n"
        "    def preprocess(self, nb, resources):\n"
        "        if any('x ** 2' in cell.source for cell in nb.cells):\n"
        "            raise RuntimeError('no squares')\n"
        "        return nb, resources\n"
    )
    monkeypatch.syspath_prepend(done.folder)
    printed = grade(done, fine=False)
    assert printed.returncode == 1
    assert "tiny: 1 graded, 0 unchanged since they were graded, 1 could not be graded." in printed.stdout
    assert "  bob: " in printed.stdout


def test_a_scheduler_without_workers_is_said():
    with LocalCluster(n_workers=0, protocol="tcp://", dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        with (
            pytest.raises(UnavailableError, match=rf"{address} has no workers\. Start .*worker {address}"),
            worker_pool.open_pool(scheduler=address, without_tls=True),
        ):
            pass


def test_an_assignment_that_the_gradebook_does_not_know_is_refused_with_the_remedy(course):
    def released() -> str:
        directory = CourseDirectory(config=course.config)
        return message(NotFoundError, Definition.of, directory, course.config, "draft")

    assert released() == (
        "The gradebook has no assignment 'draft'; it has: tiny. "
        "Release it first: starvelab-grader release draft"
    )
    course.config.CourseDirectory.db_url = f"sqlite:///{course.folder / 'new.db'}"
    assert "it has: none. Release" in released()


def test_a_folder_that_is_no_course_is_said_and_nothing_is_made_in_it(tmp_path):
    printed = run_here(Course(tmp_path), CollectApp(), TINY, "x.zip", fine=False)
    assert printed.returncode == 1
    told = f"This folder, {tmp_path}, is no course: it has no nbgrader_config.py. "
    assert printed.stderr.endswith(f"{told}Go to the folder that has one.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("broken", "reason"), [
    ("x = 1\nc.nothing(1", r"read: SyntaxError: '\(' was never closed \(nbgrader_config\.py, line 2\)"),
    ("import json\njson.loads('')", r"The configuration cannot be read: JSONDecodeError: Exp"),
    ("c = get_config()\nc.CourseDirectory.db_url = 3", r"The 'db_url' trait of .* not the int 3"),
])  # fmt: skip
def test_a_configuration_that_cannot_be_read_is_said(tmp_path, broken, reason):
    """nbgrader goes on without it: the folder would be no course, and the gradebook an empty one."""
    (tmp_path / "nbgrader_config.py").write_text(broken)
    printed = run_here(Course(tmp_path), GradeApp(), TINY, fine=False)
    assert printed.returncode == 1
    assert re.search(reason, printed.stderr), printed.stderr
    assert "is no course" not in printed.stderr
    assert "Traceback" not in printed.stderr
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".pyc"] == ["nbgrader_config.py"]


@pytest.mark.parametrize("command", [GradeApp, NbGraderApp])
def test_a_course_folder_that_cannot_be_written_is_said_and_no_other_place_is_written(
    course, tmp_path, command
):
    place = tmp_path / "taken"
    place.touch()
    config = course.folder / "nbgrader_config.py"
    config.write_text(config.read_text().replace('str(here / "course")', repr(str(place))))
    before = sorted(course.folder.rglob("*"))
    printed = run_here(course, command(), TINY if command is GradeApp else "export", fine=False)
    assert (printed.returncode, printed.stdout, printed.stderr) == (
        f"A course needs a folder in which you may write, and {place} cannot be written (File exists). "
        "Get the right to write there, or let STARVELAB_COURSE name another folder.", "", "",
    )  # fmt: skip
    assert sorted(course.folder.rglob("*")) == before


def test_what_a_student_wrote_is_text_on_the_terminal(capsys):
    print_list("Left out:", [f"a\x1b[2Jb\u202e\ud800{number}" for number in range(30)])
    with pytest.raises(SystemExit):
        end("Nobody is called 'a\x07'.\nName one.")
    printed = capsys.readouterr()
    assert printed.out.startswith("Left out:\n  a?[2Jb??0\n  a?[2Jb??1\n")
    assert printed.out.endswith("\n  a?[2Jb??29\n"), "what is cut stands nowhere else"
    assert printed.err == "Nobody is called 'a?'.\nName one.\n"


def test_nobody_and_an_unknown_student_are_said(course):
    students = course.classroom().students
    assert message(NotFoundError, students).startswith(
        f"Nobody has submitted tiny: there is no folder {course.folder}"
    )
    for name in "abcdefghijk":
        course.hand_in(name, {})
    told = message(NotFoundError, students, "a, z*")
    assert told == "No student who has submitted is called 'z*'. There are: a, b, c, d, e, f, g, h, i, j, …"
    course.hand_in("[x]", {})
    assert students("a, [bc], [x]") == ["[x]", "a", "b", "c"]


def test_a_folder_that_cannot_be_a_students_stops_nobody(course):
    for name in (b"\xff\xfe", b"x" * 200, "\N{HIRAGANA LETTER A}".encode() * 84, b"ada"):
        (course.folder / "course" / "submitted" / os.fsdecode(name) / TINY).mkdir(parents=True)
    room, outcome = course.classroom(), Outcome()
    assert room.pending(room.students(), outcome) == ["ada"]
    assert sorted(outcome.failed.values()) == [
        "The name of the folder has 200 characters, and 128 are allowed. Rename it.",
        "The name of the folder has 252 bytes, and 200 are allowed. Rename it.",
        "The name of the folder is not in UTF-8. Rename it.",
    ]


def test_a_gradebook_that_refuses_one_takes_the_others_and_one_that_is_locked_is_waited_for(
    done, monkeypatch
):
    locked = [OperationalError("", {}, Exception("database is locked"))]

    def refuse(book, record, *_):
        if record.student == "bob":
            raise InvalidEntry("no such thing")
        if locked:
            raise locked.pop()

    monkeypatch.setattr("starvelab_grader.batch.classroom.merge", refuse)
    outcome = Outcome(in_progress={name: done.handed_in(name) for name in ("ada", "bob")})
    results = [done.graded("bob"), done.graded("ada")]
    assert list(done.classroom().save(results, outcome)) == ["bob", "ada"]
    assert outcome.graded == ["ada"]
    assert outcome.failed == {"bob": "The gradebook does not take it: InvalidEntry: no such thing"}


def test_two_at_once_are_refused(course):
    course.hand_in("ada", {})
    room = course.classroom()
    with (
        room.exclusive_lock(),
        pytest.raises(UnavailableError, match=r"Another process is grading tiny in this course"),
        room.exclusive_lock(),
    ):
        pass


@pytest.mark.parametrize(("address", "without_tls", "message"), [
    ("tcp://127.0.0.1:9", True, r"No Dask scheduler answers at tcp://127.0.0.1:9"),
    ("127.0.0.1:9", False, r"must use TLS, and 127.0.0.1:9 does not.*--without-tls\."),
    ("tls://127.0.0.1:9", False, r"names none\. Name the files there, .*client\.cert and client"),
])  # fmt: skip
def test_a_scheduler_that_cannot_be_used_is_refused_with_what_to_do(
    monkeypatch, address, without_tls, message
):
    monkeypatch.setattr(worker_pool, "START_TIMEOUT", "100ms")
    with (
        pytest.raises(UnavailableError, match=message),
        worker_pool.open_pool(scheduler=address, without_tls=without_tls),
    ):
        pass


MINE = {"tcp://1": (worker_pool.code(), ""), "tcp://2": (worker_pool.code(), "bubblewrap is missing")}
OTHER = {"tcp://1": (f"{version('starvelab')} (another fact)", "")}


@pytest.mark.parametrize(("answers", "unsafe", "message"), [
    (MINE, False, r"^bubblewrap is missing$"),
    (OTHER, True, r"and tcp://1 has .* \(another fact\)\. Install the same"),
    (ModuleNotFoundError("starvelab"), True, r"A worker cannot run starvelab: ModuleNotFoundError"),
])  # fmt: skip
def test_workers_that_cannot_grade_are_refused(answers, unsafe, message):
    workers = mock.Mock(**{"run.side_effect": [answers]})
    with pytest.raises(UnavailableError, match=message):
        worker_pool._require_ready(workers, unsafe=unsafe)
    worker_pool._require_ready(mock.Mock(**{"run.side_effect": [MINE]}), unsafe=True)


def test_a_gradebook_that_was_lost_gets_its_points_back_and_nothing_is_run(done):
    expected = done.scores()
    (done.folder / "course" / "gradebook.db").unlink()
    run_here(done, NbGraderApp(), "generate_assignment", TINY, "--force")
    assert done.scores() == {}
    assert "tiny: 0 graded, 2 unchanged" in grade(done).stdout
    assert done.scores() == expected


def test_graded_notebooks_or_a_record_that_were_lost_are_made_again(done):
    notebook, record = (
        done.folder / "course" / name for name in ("autograded/ada/tiny/one.ipynb", "graded/tiny/bob.json")
    )
    notebook.chmod(0o600)
    notebook.write_text("{")
    record.unlink()
    assert "tiny: 2 graded, 0 unchanged" in grade(done).stdout
    assert notebook.stat().st_size > 1
    notebook.unlink()
    record.write_text("{")
    room = done.classroom()
    assert sorted(room.pending(room.students(), Outcome())) == ["ada", "bob"]


def test_what_a_killed_run_had_begun_to_write_is_removed(done):
    room = done.classroom()
    half = done.folder / "course" / "autograded" / "ada" / ".part-x" / "new"
    half.mkdir(parents=True)
    (room.records.folder / "ada.json.part").write_text("{")
    before = done.scores()
    with room.exclusive_lock():
        assert not half.parent.exists()
        assert not list(room.records.folder.glob("*.part"))
        assert room.records.students == ["ada", "bob"]
    assert done.scores() == before


def record(course: Course, student: str) -> str:
    return (course.folder / "course" / "graded" / TINY / f"{student}.json").read_text()


def test_a_disk_that_is_full_ends_the_run_and_keeps_what_was_there(done, monkeypatch):
    """The second notebook does not fit any more."""
    room = done.classroom()
    before = {path: path.read_bytes() for path in (done.folder / "course").rglob("*") if path.is_file()}
    graded = done.graded("bob")
    write = type(done.folder).write_bytes

    def full(self, content):
        if self.name == "two.ipynb":
            raise OSError(28, "No space left on device")
        return write(self, content)

    monkeypatch.setattr(type(done.folder), "write_bytes", full)
    with pytest.raises(
        CannotWriteError, match=r"The grades cannot be written \(bob\): .*No space left.*start again"
    ):
        list(room.save([graded], Outcome(in_progress={"bob": done.handed_in("bob")})))
    monkeypatch.undo()
    after = {path: path.read_bytes() for path in (done.folder / "course").rglob("*") if path.is_file()}
    assert after == before


def test_a_merge_that_fails_half_way_leaves_the_gradebook_as_it_was(done, monkeypatch):
    room = done.classroom()
    changed = room.records.load("bob")
    changed.grades["one"]["double-test"] = (2.0, False)
    monkeypatch.setattr("starvelab_grader.batch.gradebook.apply_late_penalty", lambda *_: 1 / 0)
    with done.gradebook() as book, pytest.raises(ZeroDivisionError):
        merge(book, changed, done.config)
    assert done.scores()["bob"]["double-test"] == 0
