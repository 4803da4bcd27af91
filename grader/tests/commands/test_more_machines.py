"""The page on several machines: its commands, and what a worker lacks."""

import os
import re
import runpy
import socket
import subprocess
from contextlib import ExitStack
from importlib.metadata import packages_distributions
from pathlib import Path
from unittest import mock

import pytest

from grader.tests.a_course import TINY
from grader.tests.shared_runners import RUNNERS
from starvelab_grader.autograde.releasing import as_submission
from starvelab_grader.autograde.task import grade
from starvelab_grader.batch import worker_pool
from starvelab_grader.sandbox import bubblewrap
from tests.assignments import REPOSITORY

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(900)]
PAGE = (REPOSITORY / "docs" / "more-machines.md").read_text(encoding="utf-8")


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def block(name: str, port: int) -> str:
    """Return the commands of a block of the page, for this machine and one core of it."""
    text = re.search(rf"<!-- {name} -->\n```bash\n(.*?)```", PAGE, re.DOTALL)[1]
    text = text.replace("course.example.edu:8786", f"127.0.0.1:{port}").replace(
        "--port=8786", f"--port={port}"
    )
    return text.replace("--nworkers=8", "--nworkers=1").replace("starving-the-gpu", TINY)


def test_a_worker_grades_by_the_commands_of_the_page_and_goes_on(course, port):
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
        assert printed.count(f" can grade {TINY}.\n") == 1
        assert f"{TINY}: 1 graded" in printed
        assert [process.poll() for process in started] == [None, None]


def test_a_worker_says_which_packages_and_folders_it_lacks():
    version, *lacks = worker_pool._missing(["numpy", "no_such_package"], ["/no/such/folder", "/usr"], False)
    assert version == worker_pool.code()
    assert lacks == [
        f"The sandbox has no no_such_package. {bubblewrap.PACKAGES_MISSING}",
        "There is no /no/such/folder, which IsolatedExecute.readable names. Copy it there.",
    ]


def test_the_sandbox_has_each_package_that_counts_by_what_the_notebooks_say():
    """In the environment of the grader, which `make grader` installs."""
    sentence = runpy.run_path(str(REPOSITORY / "solutions" / "build.py"))["packages"]()
    named = set(re.findall(r"[\w-]+", sentence))
    modules = [name for name, packages in packages_distributions().items() if not named.isdisjoint(packages)]
    assert {"numpy", "PIL"} <= set(modules)
    assert worker_pool._missing([*modules, "starvelab"], [], unsafe=False) == [worker_pool.code()]


def test_a_worker_that_lacks_nothing_grades_the_solution_and_others_say_why_not(course):
    course.hand_in("ada", course.solved(double="def double(x):\n    return data"))
    wrong, right = course.graded("ada"), grade(as_submission(course.definition), course.definition, RUNNERS)
    mine = worker_pool.code()
    answers = {
        "tls://1": [mine],
        "tls://2": ["1.0 (abcd)", "No bwrap."],
        "tls://3": ModuleNotFoundError("No module named 'starvelab_grader'"),
        "tls://4": [mine],
    }
    client = mock.Mock()
    client.run.return_value = answers
    client.submit.side_effect = lambda *_, workers, **__: mock.Mock(
        **{"result.return_value": {"tls://1": right, "tls://4": wrong}[workers[0]]}
    )
    missing = dict(worker_pool.missing_on(client, course.definition, unsafe=False))
    _, modules, *_ = client.run.call_args.args
    assert {"numpy", "starvelab"} <= set(modules)
    assert missing["tls://1"] == ""
    assert missing["tls://3"].startswith("A worker cannot run starvelab: ModuleNotFoundError: No module")
    assert "one.ipynb, cell double-test (0 of 2): NameError: name 'data' is not defined" in missing["tls://4"]
