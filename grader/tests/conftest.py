"""One round of grading for each assignment; it takes a few minutes."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from nbgrader import api
from sqlalchemy import Engine, create_engine

from grader.tests.a_course import TINY, Course
from grader.tests.a_round import WALKTHROUGH, Round
from grader.tests.in_process import run_here
from grader.tests.shared_runners import RUNNERS, one_for_all
from starvelab.measure import photos
from starvelab_grader.commands.grade import ReleaseApp
from tests.assignments import ASSIGNMENTS

HERE = Path(__file__).parent
PHOTOS = {"find-the-bottleneck": ("100 KB", "500 KB")}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore what nbgrader's own queries warn of."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning"))


def _round(assignment: str) -> Callable[..., Round]:
    @pytest.fixture(scope="session", name=assignment)
    def from_release_to_export(tmp_path_factory: pytest.TempPathFactory) -> Round:
        # As where somebody has tried the notebooks: a sandbox would draw them anew for each student.
        for size in PHOTOS.get(assignment, ()):
            photos(size)
        it = Round.start(assignment, tmp_path_factory.mktemp("round"))
        # No virtual environment on the PATH: nbgrader must need no program of it.
        it.nbgrader("generate_assignment", it.assignment, "--force", PATH=os.defpath)
        it.hand_in()
        it.nbgrader("autograde", it.assignment)
        if assignment == WALKTHROUGH:  # of one notebook pages are made as of another
            it.nbgrader("generate_feedback", it.assignment)
        it.nbgrader("export")
        return it

    return from_release_to_export


# pytest looks for fixtures among the names of this module.
globals().update({f"round_of_{assignment}": _round(assignment) for assignment in ASSIGNMENTS})


@pytest.fixture(scope="session", autouse=True)
def _what_sqlalchemy_has_compiled_is_kept() -> Iterator[None]:
    """nbgrader opens a gradebook a dozen times for a submission, and each would compile every query anew."""
    first: dict[str, Engine] = {}

    def engine(address: str, **options: Any) -> Engine:
        made = create_engine(address, **options)
        known = first.setdefault(made.dialect.name, made)
        made.dialect, made._compiled_cache = known.dialect, known._compiled_cache
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "create_engine", engine)
        yield


@pytest.fixture
def finished(request: pytest.FixtureRequest) -> Round:
    """The round of the assignment that a test names."""
    # Not a fixture of the session with parameters: pytest would keep one round, and grade again whenever
    # tests of the two assignments take turns.
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session", autouse=True)
def _programs_beside_python_are_found() -> Iterator[None]:
    """As the configuration of a course has it, which `nbgrader db upgrade` needs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
        yield


@pytest.fixture(scope="module")
def one_sandbox() -> Iterator[None]:
    """All students share one, which takes longest to start: that each has an own one is another test's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RUNNERS, "end_student", one_for_all)
        yield
    RUNNERS.end_student()


@pytest.fixture(scope="session")
def released_course(shared_folder: Path) -> Course:
    """The small course, released once for all processes of the run; not to be changed."""
    folder, done = shared_folder / "tiny", shared_folder / "tiny.released"
    with FileLock(shared_folder / "tiny.lock"):
        if not done.exists():
            run_here(Course.write(folder), ReleaseApp(), TINY)
            done.touch()
    return Course(folder)


@pytest.fixture
def course(released_course: Course, tmp_path: Path) -> Course:
    """A small course of the test's own."""
    return released_course.copy(tmp_path / "course")
