"""One submission graded without a gradebook: its exit status, its file, and the archive for a platform."""

import json
import shutil
import zipfile
from pathlib import Path

import cloudpickle
import pytest

from grader.tests.a_course import TINY, Course
from grader.tests.in_process import run_here
from grader.tests.shared_runners import RUNNERS
from starvelab_grader.commands import autograder
from starvelab_grader.commands import run as run_command
from starvelab_grader.commands.autograder.gradescope import gradescope
from starvelab_grader.commands.run import PLATFORM_DEADLINE, AutograderApp, RunApp
from starvelab_grader.report.results import NO_SANDBOX, PROTECTION
from starvelab_grader.sandbox import bubblewrap
from starvelab_grader.sandbox.process import Runners

pytestmark = [pytest.mark.sandbox, pytest.mark.usefixtures("one_sandbox")]
HIDDEN_ONLY = {"double": "def double(x):\n    return 6 if x == 3 else 0"}


@pytest.fixture(autouse=True)
def _one_runner(monkeypatch):
    monkeypatch.setattr(run_command, "Runners", lambda: RUNNERS)


def run(course: Course, place: Path, *options: str):
    """Run the command; what it did, and the file that it wrote."""
    done = run_here(course, RunApp(), str(place), "--results=results.json", *options, fine=False)
    return done, json.loads((course.folder / "results.json").read_text())


def submitted(course: Course, **answers: str) -> Path:
    return course.hand_in("ada", course.solved(**answers))


def test_right_answers_end_with_0_and_an_essay_waits(course):
    done, results = run(course, submitted(course, why="The step."), f"--assignment={TINY}")
    assert done.returncode == 0, done.stderr
    assert "| one: One: why | not marked yet (of 4) |" in done.stdout
    assert "6 of 10 points, 4 of them not marked yet." in done.stdout
    assert (results["points"], results["maximum"], results["not_marked"]) == (6.0, 10.0, 4.0)
    assert [each["title"] for each in results["exercises"]][:2] == ["One: double", "One: halve"]
    assert results["protection"] == PROTECTION["sandboxed"]


def test_a_wrong_answer_ends_with_1_and_says_why(course):
    done, results = run(course, submitted(course, value="answer = 41"), f"--assignment={TINY}")
    assert done.returncode == 1
    (wrong,) = (each for each in results["exercises"] if each["name"] == "value-test")
    assert (wrong["points"], wrong["maximum"]) == (0.0, 1.0)
    assert "41" in wrong["messages"][0]


def test_what_only_hidden_checks_find_costs_points_and_is_said_only_where_the_course_allows_it(course):
    place = submitted(course, **HIDDEN_ONLY)
    done, results = run(course, place, f"--assignment={TINY}")
    assert (done.returncode, results["exercises"][0]["points"]) == (0, 0.0)
    assert "twice 7" not in json.dumps(results)
    done, results = run(course, place, f"--assignment={TINY}", "--hidden-messages")
    assert done.returncode == 0
    assert "twice 7" in results["exercises"][0]["messages"][-1]


def test_it_earns_what_it_earns_in_a_class(course):
    place = submitted(course, halve="def halve(x):\n    return 1.5")
    _, results = run(course, place, f"--assignment={TINY}")
    grades = course.graded("ada").grades
    for each in results["exercises"]:
        assert grades[each["notebook"]][each["name"]][0] == each["points"]


@pytest.mark.parametrize(("options", "place", "message"), [
    ([f"--assignment={TINY}"], "nowhere", "There is no submission nowhere. Name a folder, an archive or"),
    ([], "source", "A submission is graded as an assignment of a course, or by a file. Name one of the two"),
    (["--assignment=other"], "source", "This course has no assignment 'other'"),
    (["--definition=release/tiny/one.ipynb"], "source", "cannot be read here (UnpicklingError"),
    (["--definition=gone.bin"], "source", "gone.bin cannot be used: No such file"),
])  # fmt: skip
def test_what_is_not_graded_ends_with_2_and_says_why(course, options, place, message):
    done = run_here(course, RunApp(), place, "--results=results.json", *options, fine=False)
    assert done.returncode == 2
    assert message in done.stderr
    if (course.folder / "results.json").exists():
        assert json.loads((course.folder / "results.json").read_text())["failed"]


@pytest.mark.parametrize("files", [{"note.txt": b"hi"}, {"one.ipynb": b"{not json"}])
def test_a_submission_without_a_notebook_that_can_be_read_ends_with_2_and_says_why(course, files):
    done, results = run(course, course.hand_in("ada", files), f"--assignment={TINY}")
    assert done.returncode == 2
    assert "was not submitted" in results["to_look_at"][-1]
    assert results["points"] == 0


def test_a_submission_that_fails_ends_with_2(course, monkeypatch):
    monkeypatch.setattr(bubblewrap, "why_not", lambda: "There is no sandbox here.")
    done, results = run(course, submitted(course), f"--assignment={TINY}")
    assert done.returncode == 2
    assert "There is no sandbox here." in done.stderr
    assert results["failed"] == "The submission could not be graded. Ask your instructor."


@pytest.mark.parametrize("unsafe", [False, True])
def test_the_archive_grades_elsewhere_and_calls_nothing_a_sandbox_that_is_none(
    course, tmp_path, monkeypatch, unsafe
):
    monkeypatch.setattr(autograder, "_build_wheels", lambda names, folder: {})  # takes seconds, with an index
    run_here(course, AutograderApp(), TINY, "--to=autograder.zip")
    elsewhere = Course(tmp_path / "elsewhere")
    with zipfile.ZipFile(course.folder / "autograder.zip") as archive:
        archive.extractall(elsewhere.folder)
        assert archive.getinfo("run_autograder").external_attr >> 16 == 0o755
    assert "starvelab-grader\n" in (elsewhere.folder / "requirements.txt").read_text()
    assert "nbgrader==" in (elsewhere.folder / "constraints.txt").read_text()
    archive_file = shutil.make_archive(str(tmp_path / "ada"), "zip", submitted(course, why="The step."))
    own = Runners()  # the student's of the other tests is in a sandbox
    if unsafe:
        monkeypatch.setattr(run_command, "Runners", lambda: own)
        monkeypatch.setattr(bubblewrap, "why_not", lambda: "There is no sandbox here.")
    done, results = run(elsewhere, Path(archive_file), "--definition=assignment.bin", "--unsafe")
    own._finalizer()
    assert done.returncode == 0, done.stderr
    assert results["protection"] == (NO_SANDBOX if unsafe else PROTECTION["sandboxed"])
    read = gradescope(results)
    assert [test.get("score") for test in read["tests"]] == [2.0, 3.0, None, 1.0]
    assert read["tests"][2]["output"] == "not marked yet (of 4)"
    assert {test["visibility"] for test in read["tests"]} == {"visible"}
    assert read["score"] == 6.0


@pytest.mark.parametrize(
    ("own", "deadline"), [("", PLATFORM_DEADLINE), ("c.IsolatedExecute.deadline = 7", 7.0)]
)
def test_code_without_end_ends_before_the_platform_ends_all(course, monkeypatch, own, deadline):
    monkeypatch.setattr(autograder, "_build_wheels", lambda names, folder: {})
    with (course.folder / "nbgrader_config.py").open("a") as file:
        file.write(own)
    run_here(course, AutograderApp(), TINY, "--to=autograder.zip")
    with zipfile.ZipFile(course.folder / "autograder.zip") as archive:
        definition = cloudpickle.loads(archive.read("assignment.bin"))
    assert definition.settings.IsolatedExecute.deadline == deadline


def test_what_a_person_should_look_at_only_instructors_see():
    results = {"exercises": [], "to_look_at": ["one: look"], "messages": ["one: look"], "protection": "None."}
    assert gradescope(results)["tests"][0]["visibility"] == "hidden"
    assert gradescope({"failed": "Not graded.", "exercises": []})["output"] == "Not graded."
