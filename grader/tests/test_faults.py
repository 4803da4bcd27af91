"""The grader and a worker are killed, and a person interrupts; the grades are those of an undisturbed run."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from urllib.error import HTTPError

import psutil
import pytest

from grader.tests.a_course import MOST, TINY, Course
from grader.tests.in_process import run_here
from starvelab_grader.commands.grade import GradeApp

pytestmark = [
    pytest.mark.long,
    pytest.mark.sandbox,
    pytest.mark.usefixtures("one_sandbox"),
    pytest.mark.timeout(600),
]
STUDENTS = 6
INTRUDER = """
import encodings.idna, os, socket, ssl, sys
from concurrent.futures import ThreadPoolExecutor
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
os.setgroups([]); os.setgid(54321); os.setuid(54321)
def attempt(port, encrypted):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as end:
            end = context.wrap_socket(end) if encrypted else end
            return "talks" if end.recv(8) else "refused"  # Dask says first who it is
    except OSError:
        return "refused"
with ThreadPoolExecutor(32) as pool:
    ports = [int(port) for port in sys.argv[1:]]
    print(*pool.map(attempt, 2 * ports, len(ports) * [False] + len(ports) * [True]))
"""


def hand_in(course: Course) -> dict[str, dict[str, float]]:
    """Right, wrong, open and broken answers; what each deserves, and so earns in an undisturbed run."""
    deserved = {}
    for number in range(STUDENTS):
        student, earned = f"s{number:02d}", MOST | {"why": 0}
        answers = {"value": f"answer = {40 + number % 4}"}
        if number % 4 != 2:
            earned["value-test"] = 0
        if number % 3 == 0:
            answers["double"] = "def double(x):\n    return x ** 2"
            earned["double-test"] = 0
        course.hand_in(student, course.solved(**answers))
        deserved[student] = earned
    course.hand_in("broken", {"one.ipynb": "{"})
    return deserved | {"broken": dict.fromkeys(earned, 0)}


def start(course: Course) -> subprocess.Popen:
    return subprocess.Popen(
        course.command("starvelab-grader", "grade", TINY, "--workers=1"),
        **course.surroundings(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def records(course: Course) -> set[Path]:
    return set((course.folder / "course" / "graded" / TINY).glob("*.json"))


def wait_for(condition: Callable[[], bool], running: subprocess.Popen) -> None:
    given_up = time.monotonic() + 120
    while not condition():
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < given_up, "it never happened"
        time.sleep(0.05)


def command_of(process: psutil.Process) -> str:
    with suppress(psutil.Error):  # it ends meanwhile, as sandboxes do
        return " ".join(process.cmdline())
    return ""


# Pages of Dask's scheduler and worker: who works on what, by the names of students.
PAGES = ("", "health", "status", "metrics", "info/main/workers.html", "sitemap.json")


def page(address: str) -> str:
    """What a browser gets there, in a word or with the text of the page."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{address}", timeout=5) as answer:
            return answer.read().decode("utf-8", "replace")
    except HTTPError as error:
        return str(error.code)
    except OSError:  # TLS, or no HTTP at all
        return "nothing"


@pytest.fixture(scope="module")
def disturbed(released_course, tmp_path_factory) -> SimpleNamespace:
    """A class of which some were graded until the grader was killed, and others until Ctrl+C."""
    course = released_course.copy(tmp_path_factory.mktemp("disturbed"))
    it = SimpleNamespace(course=course, deserved=hand_in(course))
    running = start(course)
    wait_for(lambda: records(course), running)
    below = psutil.Process(running.pid).children(recursive=True)
    os.kill(running.pid, signal.SIGKILL)
    running.communicate()
    # Whoever loses the grader ends; nothing of it may write any more.
    _, alive = psutil.wait_procs(below, timeout=30)
    it.left_over = [one for one in alive if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]

    before, running = records(course), start(course)
    wait_for(lambda: records(course) > before, running)
    grader = psutil.Process(running.pid)
    every = (each for one in (grader, *grader.children()) for each in one.net_connections("inet"))
    it.ports = [str(each.laddr.port) for each in every if each.status == psutil.CONN_LISTEN]
    with ThreadPoolExecutor() as pool:
        it.pages = set(pool.map(page, [f"{port}/{path}" for port in it.ports for path in PAGES]))
    intruder = [sys.executable, "-c", INTRUDER, *it.ports]
    tried = subprocess.run(intruder, capture_output=True, text=True, check=os.geteuid() == 0)
    it.answers = tried.stdout.split()
    worker = next(one for one in grader.children(recursive=True) if "spawn_main" in command_of(one))
    worker.kill()
    # Another worker takes its place, also for the submission that it was at.
    wait_for(lambda: len(records(course)) >= len(it.deserved) - 2, running)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does
    _, it.errors = running.communicate(timeout=60)
    it.status, it.kept = running.returncode, len(records(course))
    return it


def test_killed_and_interrupted_it_ends_with_the_grades_of_an_undisturbed_run(disturbed):
    assert disturbed.left_over == []
    assert disturbed.status == 130
    message = "Stopped. What was graded is kept: the same command goes on from there."
    assert disturbed.errors.splitlines()[-1] == message
    every, kept = len(disturbed.deserved), disturbed.kept
    assert kept < every
    printed = run_here(disturbed.course, GradeApp(), TINY).stdout
    assert f"{every - kept} graded, {kept} unchanged since they were graded, 0 could not be" in printed
    assert disturbed.course.scores() == disturbed.deserved
    assert not list((disturbed.course.folder / "course").rglob(".part*")), "no half of anything is left"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_of_the_machine_reaches_neither_scheduler_nor_worker(disturbed):
    assert len(disturbed.ports) >= 2
    assert disturbed.answers == ["refused"] * 2 * len(disturbed.ports)


def test_the_local_pool_serves_no_web_page(disturbed):
    assert "404" in disturbed.pages, "a server of pages is there, and has none"
    assert disturbed.pages <= {"404", "nothing", '{"paths": ["/sitemap.json"]}'}
