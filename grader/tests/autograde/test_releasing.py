"""Releasing: nothing that is there is replaced before the release is sure to succeed."""

import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.apps import NbGraderApp
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import InstantiateTests
from traitlets.config import Config

from grader.tests.a_course import MOST, TINY, Course, earned
from grader.tests.in_process import run_here
from starvelab_grader import configure
from starvelab_grader.autograde.definition import Definition
from starvelab_grader.autograde.releasing import ReleaseError, is_remembered, release, warning_since_release
from starvelab_grader.sandbox import bubblewrap
from starvelab_grader.submissions.reference import names_in_order, read_reference, released_source
from tests.rejected import message

pytestmark = pytest.mark.usefixtures("one_sandbox")


def parts(course: Course) -> tuple:
    """What `release` takes."""
    classroom = course.classroom()
    return classroom.course, classroom.config, TINY


def change(course: Course, notebook: str, before: str, after: str) -> None:
    path = course.folder / "source" / TINY / f"{notebook}.ipynb"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def drop_an_exercise(course: Course) -> None:
    path = course.folder / "source" / TINY / "one.ipynb"
    nb = nbformat.read(path, as_version=4)
    nb.cells = [cell for cell in nb.cells if not cell.id.startswith("halve")]
    nbformat.write(nb, path)


def given_out(course: Course) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((course.folder / "release" / TINY).iterdir())}


def test_a_release_that_fails_leaves_what_was_given_out_and_the_gradebook(course, monkeypatch):
    before = given_out(course)
    path = course.folder / "source" / TINY / "two.ipynb"
    source = path.read_bytes()
    change(course, "two", '"grade_id": "value-test"', '"grade_id": "value"')
    with pytest.raises(ReleaseError, match=r"nbgrader cannot make tiny: .* Nothing was released\."):
        release(*parts(course))
    assert given_out(course) == before
    path.write_bytes(source)
    change(course, "one", "# One", "# First")
    monkeypatch.setattr(bubblewrap, "why_not", lambda: "none")  # so that nothing is graded here
    monkeypatch.setattr("starvelab_grader.autograde.releasing.replace_assignment", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        release(*parts(course))
    assert given_out(course) == before
    assert sorted(path.name for path in (course.folder / "release").iterdir()) == [TINY]
    assert course.definition.cells.keys() == {"one", "two"}


def test_an_exercise_is_dropped_from_a_course_that_has_marks(course, monkeypatch):
    with course.gradebook() as book:
        book.add_student("ada")
        book.add_submission(TINY, "ada")
    drop_an_exercise(course)
    monkeypatch.setattr(bubblewrap, "why_not", lambda: "none")
    assert release(*parts(course)).dropped == ["one/halve-test"]
    assert b"halve" not in given_out(course)["one.ipynb"]
    assert set(course.scores()["ada"]) == {"double-test", "why", "value-test"}


def test_a_class_is_graded_by_what_was_released(course):
    """Whatever becomes of the notebooks since, such as the work on the next year's."""
    room = course.classroom()
    before = course.definition.fingerprint
    assert is_remembered(room.course, course.definition), "the release has graded the reference solution"
    assert warning_since_release(room.course, TINY) == ""
    change(course, "two", "answer = 42", "answer = 43")
    assert warning_since_release(room.course, TINY) == (
        "The notebooks of tiny have changed since it was released, and it is graded as it was. "
        "To let the change count: starvelab-grader release tiny"
    )
    assert Definition.of(*parts(course)).fingerprint == before
    shutil.rmtree(released_source(room.course, TINY))
    assert Definition.of(*parts(course)).fingerprint != before


def test_the_next_years_course_leaves_this_years_alone(course, monkeypatch, tmp_path):
    """Both have the folder of the instructor's notebooks in common, and that of what is given out."""
    monkeypatch.setattr(bubblewrap, "why_not", lambda: "none")
    room = course.classroom()
    (tmp_path / "next").mkdir()
    before, files = course.definition.fingerprint, everything_in(course.folder / "course")
    drop_an_exercise(course)
    config = Config(room.config)
    this, next_year = str(course.folder / "course"), str(tmp_path / "next")
    settings = config.CourseDirectory.items()
    moved = {name: each.replace(this, next_year) for name, each in settings if isinstance(each, str)}
    config.CourseDirectory = Config({**config.CourseDirectory, **moved})
    release(CourseDirectory(config=config), config, TINY)
    assert b"halve" not in given_out(course)["one.ipynb"]
    assert everything_in(course.folder / "course") == files
    assert Definition.of(*parts(course)).fingerprint == before
    locked = {cell.name for cell in course.definition.cells["one"] if cell.is_check_side}
    for folder in (None, released_source(room.course, TINY)):
        written = names_in_order(read_reference(room.course, TINY, "one", folder, locked))
        assert "halve-test" in written, "also for nbgrader's own command"


def everything_in(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_where_nbgrader_itself_has_released_since_that_counts(course):
    change(course, "two", "check(answer, 42)", "check(answer, 42.0)")
    run_here(course, NbGraderApp(), "generate_assignment", TINY, "--force")
    assert b"check(answer, 42.0)" in Definition.of(*parts(course)).source["two.ipynb"]


def test_a_class_is_graded_by_what_was_released_also_where_nbgrader_writes_the_tests(course, monkeypatch):
    def write(_, nb, resources):  # as nbgrader does, which starts a kernel to find the value
        for cell in nb.cells:
            cell.source = cell.source.replace("### AUTOTEST answer", "assert str(answer) == '42'")
        return nb, resources

    monkeypatch.setattr(bubblewrap, "why_not", lambda: "none")
    monkeypatch.setattr(InstantiateTests, "preprocess", write)
    change(course, "two", "check(answer, 42)", "### AUTOTEST answer")
    release(*parts(course))
    before = Definition.of(*parts(course)).fingerprint
    change(course, "two", "answer = 42", "answer = 43")
    assert Definition.of(*parts(course)).fingerprint == before


def test_the_order_of_cells_is_that_of_the_release_unless_nbgrader_has_given_out_others_since(tmp_path):
    course = CourseDirectory(config=Config({"CourseDirectory": {"root": str(tmp_path)}}))

    def write(folder: str, *names: str) -> None:
        cells = [new_code_cell(metadata={"nbgrader": {"grade_id": name, "locked": True}}) for name in names]
        (tmp_path / folder / TINY).mkdir(parents=True, exist_ok=True)
        nbformat.write(new_notebook(cells=cells), tmp_path / folder / TINY / "one.ipynb")

    def order(*known: str) -> list[str]:
        return names_in_order(read_reference(course, TINY, "one", locked=set(known)))

    write("source", "new")
    write("released", "b", "a")
    write("release", "new")  # the folder of labs, into which the next year's course releases too
    assert order("a", "b") == ["b", "a"]
    assert order("new") == ["new"], "what the gradebook knows is what was given out last"


@pytest.mark.parametrize(
    "metadata",
    [{"kernelspec": {"name": "ir", "language": "R", "display_name": "R"}}, {"language_info": {"name": "R"}}],
)
def test_a_notebook_in_another_language_is_not_released(course, metadata):
    before = given_out(course)
    path = course.folder / "source" / TINY / "two.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata = nbformat.from_dict(metadata)
    nbformat.write(notebook, path)
    assert message(ReleaseError, release, *parts(course)) == (
        "two.ipynb is written in R, and this grader runs Python only. Nothing was released. nbgrader itself "
        "runs other languages, in a course that does not call configure(c), and without a sandbox."
    )
    assert given_out(course) == before


def test_notebooks_that_are_not_nbgraders_are_not_given_out_with_their_answers(course):
    before = given_out(course)
    (course.folder / "source" / TINY / "one.ipynb").unlink()
    nb = new_notebook(cells=[new_code_cell("import otter\ngrader = otter.Notebook()")])
    nbformat.write(nb, course.folder / "source" / TINY / "two.ipynb")
    assert message(ReleaseError, release, *parts(course)) == (
        "No cell of tiny is marked for nbgrader: nothing would be graded, and answers would be given out. "
        "Nothing was released. Mark answers and tests with nbgrader's Create Assignment in JupyterLab."
    )
    assert given_out(course) == before


def test_cells_with_a_tag_that_the_course_leaves_out_are_given_to_no_student_and_grading_misses_nothing(
    course, monkeypatch
):
    monkeypatch.setattr(bubblewrap, "why_not", lambda: "none")
    for name in ("one", "two"):
        path = course.folder / "source" / TINY / f"{name}.ipynb"
        nb = nbformat.read(path, as_version=4)
        nb.cells.insert(2, new_code_cell("print('alone')", id=f"alone-{name}", metadata={"tags": ["alone"]}))
        nbformat.write(nb, path)
    folder, config, name = parts(course)
    configure(config, leave_out=["alone"])
    release(folder, config, name)
    monkeypatch.undo()
    assert not any(b"alone" in content for content in given_out(course).values())
    course.hand_in("ada", course.solved())
    assert earned(course.graded("ada")) == sum(MOST.values())
