"""A gradebook on a PostgreSQL server: a real one, started for the test, on loopback."""

import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile

import pytest
from nbgrader.api import Gradebook
from nbgrader.apps.nbgraderapp import NbGraderApp

from starvelab_grader.commands.grade import FeedbackApp, ReleaseApp
from tests.grader.a_course import MOST, TINY
from tests.grader.commands.test_grade import grade
from tests.grader.in_process import run_here

pytestmark = [pytest.mark.usefixtures("one_sandbox"), pytest.mark.timeout(600)]


def program(name: str) -> str:
    """Debian keeps a server's programs off the PATH."""
    found = shutil.which(name) or next(
        iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))[::-1]), None
    )
    assert found, (
        f"{name} is missing: install PostgreSQL (Debian and Ubuntu: sudo apt-get install postgresql)"
    )
    return found


@pytest.fixture(scope="module")
def server():
    """The address of a server."""
    other = {}
    # Not in pytest's folder, which is root's alone: PostgreSQL does not run as root.
    with tempfile.TemporaryDirectory(prefix="starvelab-postgres-", ignore_cleanup_errors=True) as folder:
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(folder, user.pw_uid, user.pw_gid)
            other = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]

        def run(name: str, *options: str, output: int = subprocess.PIPE) -> None:
            command = [program(name), "-D", f"{folder}/data", *options]
            done = subprocess.run(
                command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, text=True, **other
            )
            assert done.returncode == 0, done.stdout

        run("initdb", "-U", "teacher", "-A", "trust", "--no-sync", "-E", "UTF8")
        address = f"-h 127.0.0.1 -p {port} -k {folder} -F"
        # What pg_ctl leaves running must not hold the pipes of this process.
        run("pg_ctl", "-o", address, "-w", "-l", f"{folder}/log", "start", output=subprocess.DEVNULL)
        yield f"postgresql+psycopg://teacher@127.0.0.1:{port}/postgres"
        run("pg_ctl", "-m", "immediate", "stop")


def test_a_class_is_graded_into_postgresql(course, server):
    with (course.folder / "nbgrader_config.py").open("a") as file:
        file.write(f"c.CourseDirectory.db_url = {server!r}\n")
    run_here(course, ReleaseApp(), TINY)
    course.hand_in("ada", course.solved())
    course.hand_in("bob", course.solved(value="answer = 1"))
    assert "tiny: 2 graded" in grade(course).stdout

    def scores(student: str) -> dict[str, float | None]:
        with Gradebook(server) as book:
            notebooks = book.find_submission(TINY, student).notebooks
            return {grade.name: grade.auto_score for nb in notebooks for grade in nb.grades}

    assert scores("ada") == MOST | {"why": 0}
    assert scores("bob") == MOST | {"why": 0, "value-test": 0}
    assert "tiny: 0 graded, 2 unchanged" in grade(course).stdout
    run_here(course, FeedbackApp(), TINY, "--workers=1")
    assert (course.folder / "course" / "feedback" / "ada" / TINY / "index.html").is_file()
    run_here(course, NbGraderApp(), "export", f"--to={course.folder / 'grades.csv'}")
    assert "ada" in (course.folder / "grades.csv").read_text()
