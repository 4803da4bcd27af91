"""Submissions that others kept from getting on are graded again when all others are done, one by one."""

import os
import signal
import subprocess
import sys
import urllib.request
from types import SimpleNamespace
from unittest.mock import patch
from urllib.error import HTTPError

import psutil
import pytest

from starvelab_grader.autograde.task import GradingResult
from starvelab_grader.batch import worker_pool
from starvelab_grader.submissions.submission import Submission

pytestmark = pytest.mark.programs

SLOW = ("slow", "slower", "broken")


class Cluster:
    """Two workers on which some submissions run out of time unless they are alone."""

    loop = None

    def __init__(self) -> None:
        self.waiting: list[SimpleNamespace] = []
        self.sent: list[tuple[str, int]] = []  # each student, and how many submissions ran beside

    def nthreads(self) -> dict[str, int]:
        return {"one": 1, "two": 1}

    def submit(self, function, submission, packed, *, pure):
        assert (function, pure) == (worker_pool._grade, False), "it is no look at the first time"
        task = SimpleNamespace(key=f"task-{len(self.sent)}", student=submission.student)
        task.result = lambda: self.result(task)
        self.sent.append((submission.student, len(self.waiting)))
        self.waiting.append(task)
        return task

    def result(self, task: SimpleNamespace) -> GradingResult:
        alone = self.waiting == [task]
        self.waiting.remove(task)
        if task.student == "broken" and alone:
            raise RuntimeError("no more")
        return GradingResult(task.student, out_of_time=task.student in SLOW and not alone)


class Completed(list):
    """Tasks as they are done; some are added meanwhile."""

    add = list.append

    def __iter__(self):
        while self:
            yield self.pop(0)


def test_whoever_ran_out_of_time_beside_others_is_graded_again_alone(monkeypatch):
    monkeypatch.setattr(worker_pool, "as_completed", lambda tasks, loop: Completed(tasks))
    cluster = Cluster()
    names = ["slow", "ada", "slower", "broken", "bob", "cem", "dee", "eve"]
    found = list(worker_pool.graded_by(cluster, None, (Submission(name, "tiny") for name in names)))
    assert [one.student for one in found] == ["ada", "bob", "cem", "dee", "eve", *SLOW]
    assert not any(one.out_of_time for one in found)
    assert [one for one, beside in cluster.sent[len(names) :] if beside == 0] == list(SLOW)
    assert len(cluster.sent) == len(names) + len(SLOW)
    assert found[-1].failed == "Its worker gave no answer: RuntimeError: no more"


def test_workers_never_hear_of_an_interrupt_and_the_main_thread_still_does():
    asks = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    with worker_pool._interrupts_for_the_main_thread_only():
        started = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True)
    assert started.stdout == "True\n"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


# Pages of Dask's scheduler and worker: who works on what, by the names of students.
PAGES = ("/", "/health", "/status", "/metrics", "/info/main/workers.html", "/sitemap.json")


def page(port: int, path: str) -> str:
    """What a browser gets there, in a word or with the text of the page."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.read().decode("utf-8", "replace")
    except HTTPError as error:
        return str(error.code)
    except OSError:  # TLS, or no HTTP at all
        return "nothing"


def listening() -> set[int]:
    """The ports at which this process and those below it listen."""
    here = psutil.Process()
    processes = (here, *here.children(recursive=True))
    connections = [connection for process in processes for connection in process.net_connections("inet")]
    return {each.laddr.port for each in connections if each.status == psutil.CONN_LISTEN}


@pytest.mark.long
def test_the_local_pool_serves_no_web_page():
    others = listening()  # such as the server of a browser's tests
    with patch.dict(os.environ), worker_pool.open_pool(1, unsafe=True) as client:
        client.wait_for_workers(1)
        ports = listening() - others
        answers = {page(port, path) for port in ports for path in PAGES}
    assert "404" in answers, "a server of pages is there, and has none"
    assert answers <= {"404", "nothing", '{"paths": ["/sitemap.json"]}'}
