"""The case of a student's own number, graded in a course that gives each student one."""

import json
import runpy

import nbformat
import pytest

from grader.tests.a_course import TINY, Course
from grader.tests.in_process import run_here
from starvelab.lesson.course.practice import clinic
from starvelab_grader.commands.grade import GradeApp, ReleaseApp
from tests.assignments import REPOSITORY

pytestmark = [pytest.mark.usefixtures("one_sandbox"), pytest.mark.timeout(600)]
SCRIPT = REPOSITORY / "solutions" / "master-the-loader" / "own_case.py"
NUMBERS = {"ada": 4, "bob": 6, "eve": 8, "kim": 11}


@pytest.fixture(scope="module")
def graded(released_course, tmp_path_factory) -> Course:
    """A course with the notebook of own cases, in which two of five who have submitted are right."""
    course = released_course.copy(tmp_path_factory.mktemp("own"))
    build = runpy.run_path(str(REPOSITORY / "solutions" / "build.py"))
    text = build["instructor_notebook"](SCRIPT.read_text(encoding="utf-8"), SCRIPT.name)
    (course.folder / "source" / TINY / "one.ipynb").write_text(text, encoding="utf-8")
    run_here(course, ReleaseApp(), TINY)
    with (course.folder / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write(f"c.GradeApp.own_numbers = {NUMBERS}\n")
    best = {student: clinic(number).best for student, number in NUMBERS.items()}
    answer(course, "ada", 4, best["ada"])
    answer(course, "bob", 6, best["bob"])
    answer(course, "eve", 8, ["num_worker", "mem"])
    # Right for the number of another student, also where a file of the student's says that it is the own one.
    answer(course, "kim", 4, best["ada"], b"4\n")
    answer(course, "new", 4, best["ada"])
    course.first = run_here(course, GradeApp(), TINY, fine=False)
    return course


def answer(course: Course, student: str, number: int, names, own_number: bytes = b"") -> None:
    notebooks = {"one": course.released()["one"], "two": course.solved()["two"]}
    (cell,) = (cell for cell in notebooks["one"].cells if cell.id == "my-cure")
    cell.source = f"def my_cure():\n    return {number}, {[*names]}"
    course.hand_in(student, notebooks | ({"own_number.txt": own_number} if own_number else {}))


def feedback(course: Course, student: str) -> str:
    path = course.folder / "course" / "autograded" / student / TINY / "one.ipynb"
    return json.dumps(nbformat.read(path, as_version=4))


def test_a_cure_earns_nothing_and_the_reason_waits_for_a_person(graded):
    scores = graded.scores()
    for student in NUMBERS:
        assert scores[student]["my-cure-test"] == 0
    released = graded.released()["one"]
    assert {cell.id: cell.metadata.nbgrader.points for cell in released.cells if cell.id.startswith("my-")
            and "points" in cell.metadata.nbgrader} == {"my-cure-test": 0, "my-reason": 10}  # fmt: skip


def test_whoever_marks_has_the_key_of_the_students_own_case(graded):
    for student in ("ada", "bob"):
        assert "Your guess wins back 100 % of the lost throughput" in feedback(graded, student)
    assert "of the lost throughput" not in feedback(graded, "eve")
    assert "Did you mean num_workers?" in feedback(graded, "eve")


def test_who_answers_for_another_number_is_told_which_is_theirs(graded):
    said = "Your course has given you the number 11, and this answer is for case 4."
    assert said in feedback(graded, "kim")
    assert "of the lost throughput" not in feedback(graded, "kim")


def test_who_has_no_number_waits_for_one_and_the_class_is_graded(graded):
    assert "4 graded, 0 unchanged since they were graded, 1 could not be graded." in graded.first.stdout
    assert (
        "new: The submission could not be read: InputError: This course gives each student a number, and new "
        "has none. Add one to c.GradeApp.own_numbers in nbgrader_config.py."
    ) in " ".join(graded.first.stdout.split())


def test_another_number_grades_that_student_again_and_nobody_else(graded, tmp_path):
    course = graded.copy(tmp_path / "again")
    with (course.folder / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write("c.GradeApp.own_numbers = {**c.GradeApp.own_numbers, 'kim': 4}\n")
    printed = run_here(course, GradeApp(), TINY, fine=False).stdout
    assert "1 graded, 3 unchanged since they were graded, 1 could not be graded." in printed
    assert "of the lost throughput" in feedback(course, "kim")


def test_a_course_without_numbers_gives_the_checks_no_such_file(released_course, tmp_path):
    course = released_course.copy(tmp_path / "none")
    course.hand_in("ada", course.solved() | {"own_number.txt": b"7\n"})
    assert course.classroom().submission_of("ada").files == {}
