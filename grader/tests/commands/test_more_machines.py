"""The page on several machines: its commands, and what a worker lacks."""

import os
import re
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from grader.tests.a_course import TINY
from tests.assignments import REPOSITORY
from tests.file_server import free_port

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(900)]
PAGE = (REPOSITORY / "docs" / "more-machines.md").read_text(encoding="utf-8")


def block(name: str, port: int) -> str:
    """Return the commands of a block of the page, for this machine and one core of it."""
    text = re.search(rf"<!-- {name} -->\n```bash\n(.*?)```", PAGE, re.DOTALL)[1]
    text = text.replace("course.example.edu:8786", f"127.0.0.1:{port}").replace(
        "--port=8786", f"--port={port}"
    )
    return text.replace("--nworkers=8", "--nworkers=1").replace("starving-the-gpu", TINY)


def test_a_worker_grades_by_the_commands_of_the_page_and_goes_on(course):
    port = free_port()
    course.hand_in("ada", course.solved())
    home = course.folder / "home"
    home.mkdir()
    programs = Path(course.command("dask")[0]).parent
    environment = os.environ | {"HOME": str(home), "PATH": f"{programs}:{os.environ['PATH']}"}
    with ExitStack() as stack:

        def start(name: str, until: str) -> subprocess.Popen:
            command = ["bash", "-c", f"exec env {block(name, port)}"]
            process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
            stack.enter_context(process)
            stack.callback(process.terminate)
            assert next((line for line in process.stderr if until in line), None)
            return process

        def run(name: str) -> str:
            command = ["bash", "-c", block(name, port)]
            done = subprocess.run(command, cwd=course.folder, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        for name in ("certificate", "configuration"):
            run(name)
        started = [start("scheduler", "Scheduler at:"), start("worker", "Starting established connection")]
        printed = run("grade")
        assert f"{TINY}: 1 graded" in printed
        assert [process.poll() for process in started] == [None, None]
