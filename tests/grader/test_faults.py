"""The grader and its workers are killed at random moments; the grades are those of an undisturbed run.

STARVELAB_TEST_KILLS says how often; the moments are the same each time.
"""

import os
import random
import signal
import subprocess
import time

import psutil
import pytest

from tests.grader.a_course import MOST, TINY, Course

pytestmark = pytest.mark.timeout(1500)
TIMES = int(os.environ.get("STARVELAB_TEST_KILLS", "1"))
STUDENTS = 6
LEFT = 3  # submissions that each turn has to grade


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
        if number == 1:
            answers["halve"] = "def halve(x):\n    while True: pass"
            earned["halve-test"] = 0
        course.hand_in(student, course.solved(**answers))
        deserved[student] = earned
    course.hand_in("broken", {"one.ipynb": "{"})
    return deserved | {"broken": dict.fromkeys(earned, 0)}


def workers_of(grader: psutil.Process) -> list[psutil.Process]:
    return [one for one in grader.children(recursive=True) if "spawn_main" in " ".join(_cmdline(one))]


def _cmdline(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_killed_again_and_again_it_ends_with_the_grades_of_an_undisturbed_run(course):
    with (course.folder / "nbgrader_config.py").open("a") as file:
        file.write("c.IsolatedExecute.timeout = 1\nc.IsolatedExecute.deadline = 3\n")
    deserved = hand_in(course)
    luck = random.Random(20261121)
    killed = {"grader": 0, "worker": 0}
    folder = course.folder / "course" / "graded" / TINY
    for turn in range(TIMES):
        # Something is always left to do.
        records = sorted(folder.glob("*.json"))
        for record in luck.sample(records, max(0, len(records) - STUDENTS + LEFT)):
            record.unlink()
        enough = len(list(folder.glob("*.json"))) + luck.randint(0, LEFT // 2)
        running = subprocess.Popen(
            course.command("starvelab-grader", "grade", TINY, "--workers=2"),
            **course.surroundings(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        grader = psutil.Process(running.pid)
        while len(list(folder.glob("*.json"))) < enough and running.poll() is None:
            time.sleep(0.02)
        time.sleep(luck.uniform(0, 1))
        workers = workers_of(grader) if running.poll() is None else []
        if turn % 2 and workers:
            luck.choice(workers).kill()
            killed["worker"] += 1
            time.sleep(luck.uniform(0, 2))
        if running.poll() is None:
            below = grader.children(recursive=True)
            os.kill(running.pid, signal.SIGKILL)
            killed["grader"] += 1
            running.wait()
            # Whoever loses the grader ends; nothing of it may write any more.
            _, alive = psutil.wait_procs(below, timeout=30)
            assert not [one for one in alive if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    assert killed["grader"] >= (TIMES + 1) // 2, killed
    assert killed["worker"] >= TIMES // 4, killed
    assert ", 0 could not be graded" in finish_without_a_worker(course, luck)
    assert course.scores() == deserved
    assert not list((course.folder / "course").rglob(".part*")), "no half of anything is left"


def finish_without_a_worker(course: Course, luck: random.Random) -> str:
    """Kill the only worker once it has graded somebody; what the grader, which goes on, prints at its end."""
    folder = course.folder / "course" / "graded" / TINY
    records = sorted(folder.glob("*.json"))
    for record in luck.sample(records, max(0, len(records) - STUDENTS + LEFT)):
        record.unlink()
    before = set(folder.glob("*.json"))
    running = subprocess.Popen(
        course.command("starvelab-grader", "grade", TINY, "--workers=1"),
        **course.surroundings(),
        stdout=subprocess.PIPE,
        text=True,
    )
    while set(folder.glob("*.json")) == before:
        assert running.poll() is None
        time.sleep(0.05)
    for worker in workers_of(psutil.Process(running.pid)):
        worker.kill()
    return running.communicate(timeout=200)[0]
