"""Submissions with an unusual structure get what they deserve, and nobody else's grading is disturbed."""

import os
import tempfile
import time
from pathlib import Path

import pytest

from grader.tests.a_course import MOST, earned, points, said
from grader.tests.hostile.structures import ESCAPED, HOSTILE, write_hostile
from starvelab import runtime
from starvelab_grader.sandbox import bubblewrap

# unusual here are the notebooks, not what they run
pytestmark = [pytest.mark.long, pytest.mark.sandbox, pytest.mark.usefixtures("one_sandbox")]
MAX_SECONDS = 60.0


@pytest.fixture(scope="module")
def one_class(released_course, tmp_path_factory):
    """A class in which everybody but one is hostile, graded in one process."""
    return released_course.copy(tmp_path_factory.mktemp("class"))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_structure_earns_nothing(one_class, name):
    course, student = one_class, f"mallory-{HOSTILE.index(name)}"
    before = {path: path.read_bytes() for path in (course.folder / "release").rglob("*.ipynb")}
    told = write_hostile(name, course.hand_in(student, {}), course.released())
    begun = time.monotonic()
    graded = course.graded(student)
    assert earned(graded) == 0
    assert time.monotonic() - begun < MAX_SECONDS
    assert set(graded.files) >= {"one.ipynb", "two.ipynb"}, "there is a page for every notebook"
    assert all(by_hand is False for cells in graded.grades.values() for _, by_hand in cells.values())
    assert {path: path.read_bytes() for path in before} == before
    assert b"BEGIN SOLUTION" not in b"".join(graded.files.values())
    assert told in said(graded)
    assert "Full marks." not in said(graded)
    assert not any((Path(folder) / ESCAPED).exists() for folder in ("/", tempfile.gettempdir()))


def test_after_all_of_them_an_honest_student_gets_every_point(one_class):
    one_class.hand_in("ada", one_class.solved())
    assert points(one_class.graded("ada")) == MOST | {"why": 0}


def test_a_submission_that_cannot_be_graded_leaves_its_process_as_it_was(course, monkeypatch):
    before = dict(os.environ)
    monkeypatch.setattr(bubblewrap, "why_not", lambda: "There is no sandbox today.")
    course.hand_in("ada", course.solved())
    assert "There is no sandbox today." in course.graded("ada").failed
    assert dict(os.environ) == before
    assert not runtime.current().is_grading


def test_loops_in_every_cell_cost_the_deadline_once(course):
    course.config.IsolatedExecute.update(timeout=1.0, deadline=2.0)
    forever = "while True:\n    pass"
    course.hand_in("mallory", course.solved(double=forever, halve=forever, value=forever))
    begun = time.monotonic()
    graded = course.graded("mallory")
    assert earned(graded) == 0
    assert time.monotonic() - begun < MAX_SECONDS
    assert "took longer in all than the 2 s that it may" in graded.files["two.ipynb"].decode()
    assert graded.limited, "one notebook took the time of the other"
