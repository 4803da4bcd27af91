"""Submissions that others kept from getting on are graded again when all others are done, one by one."""

import signal
import subprocess
import sys
from functools import partial

import pytest

from starvelab_grader.autograde.task import GradingResult
from starvelab_grader.batch import worker_pool
from starvelab_grader.submissions.submission import Submission

pytestmark = pytest.mark.programs

SLOW = ("slow", "slower", "broken")


class Task:
    """A submission on its way; one of `endless` ends when somebody is told that it runs longest."""

    def __init__(self, cluster: "Cluster", student: str) -> None:
        self.cluster, self.student = cluster, student

    def add_done_callback(self, call) -> None:
        self.end = partial(call, self)
        if self.student != "endless":
            self.end()

    def result(self) -> GradingResult:
        alone = self.cluster.waiting == [self]
        self.cluster.waiting.remove(self)
        if self.student == "broken" and alone:
            raise RuntimeError("no more")
        return GradingResult(self.student, out_of_time=self.student in SLOW and not alone)


class Cluster:
    """Two workers on which some submissions run out of time unless they are alone."""

    def __init__(self) -> None:
        self.waiting: list[Task] = []
        self.sent: list[tuple[str, int]] = []  # each student, and how many submissions ran beside

    def nthreads(self) -> dict[str, int]:
        return {"one": 1, "two": 1}

    def submit(self, function, submission, packed, *, pure):
        assert (function, pure) == (worker_pool._grade, False), "it is no look at the first time"
        task = Task(self, submission.student)
        self.sent.append((submission.student, len(self.waiting)))
        self.waiting.append(task)
        return task


def test_whoever_ran_out_of_time_beside_others_is_graded_again_alone():
    cluster = Cluster()
    names = ["slow", "ada", "slower", "broken", "bob", "cem", "dee", "eve"]
    found = list(worker_pool.graded_by(cluster, None, (Submission(name, "tiny") for name in names)))
    assert [one.student for one in found] == ["ada", "bob", "cem", "dee", "eve", *SLOW]
    assert not any(one.out_of_time for one in found)
    assert [one for one, beside in cluster.sent[len(names) :] if beside == 0] == list(SLOW)
    assert len(cluster.sent) == len(names) + len(SLOW)
    assert found[-1].failed == "Its worker gave no answer: RuntimeError: no more"


def test_the_submission_that_has_run_longest_is_named_while_others_end_and_when_it_is_alone(monkeypatch):
    monkeypatch.setattr(worker_pool, "REPORT_INTERVAL", 0.0)
    cluster, told = Cluster(), []

    def report(text: str) -> None:
        told.append(text)
        if told.count("endless runs longest") == 6:
            next(task for task in cluster.waiting if task.student == "endless").end()

    work = (Submission(name, "tiny") for name in ("ada", "endless", "bob", "cem", "dee"))
    found = [one.student for one in worker_pool.graded_by(cluster, None, work, report)]
    assert found == ["ada", "bob", "cem", "dee", "endless"]
    assert told == ["", *["endless runs longest"] * 6, ""]


def test_workers_never_hear_of_an_interrupt_and_the_main_thread_still_does():
    asks = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    with worker_pool._interrupts_for_the_main_thread_only():
        started = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, check=True)
    assert started.stdout == "True\n"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
