"""Commands run in the process of the tests, with the runners that all tests share."""

import asyncio
import io
import os
import subprocess
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext, redirect_stderr, redirect_stdout
from types import SimpleNamespace
from unittest import mock

import pytest
from traitlets.config import Application

from grader.tests.a_course import Course
from grader.tests.shared_runners import RUNNERS
from starvelab_grader.autograde import task
from starvelab_grader.autograde.definition import Definition
from starvelab_grader.autograde.task import GradingResult
from starvelab_grader.batch import worker_pool
from starvelab_grader.commands import mark as mark_command
from starvelab_grader.report import pages
from starvelab_grader.submissions.submission import Submission


def in_a_thread(coroutine):
    """Run it, also where the browser of other tests keeps an event loop in this thread."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def run_here(
    course: Course, command: Application, *arguments: str, fine: bool = True, **variables: str
) -> subprocess.CompletedProcess:
    """Run a command in the course's folder, with these variables, in this process, which also grades.

    A program takes seconds to start, and so do the workers of `grade` and `feedback`. What only these show is
    in grader/tests/test_alone.py, test_faults.py and commands/test_more_machines.py.
    """
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        # The course's configuration changes the variables, and a command the mode of new files.
        stack.enter_context(mock.patch.dict(os.environ, variables))
        stack.callback(os.umask, os.umask(0o022))
        patch.chdir(course.folder)
        # An application of nbgrader's is one for the process, and so is each of its commands.
        stack.callback(lambda: type(getattr(command, "subapp", None) or command).clear_instance())
        patch.setattr("starvelab_grader.configuration.Runners", lambda: RUNNERS)
        patch.setattr(mark_command, "asyncio", SimpleNamespace(run=in_a_thread, Event=asyncio.Event))
        patch.setattr(pages, "_pool", ThreadPoolExecutor)
        patch.setattr(worker_pool, "open_pool", lambda *options, **named: nullcontext())
        patch.setattr(worker_pool, "graded_by", lambda client, *what: grade_here(*what[:2]))
        output, errors = (stack.enter_context(to(io.StringIO())) for to in (redirect_stdout, redirect_stderr))
        status = 0
        try:
            command.initialize([*arguments])
            (getattr(command, "subapp", None) or command).start()
        except SystemExit as end:
            status = end.code or 0
    done = subprocess.CompletedProcess(arguments, status, output.getvalue(), errors.getvalue())
    assert not fine or done.returncode == 0, done.stdout + done.stderr
    return done


def grade_here(definition: Definition, submissions: Iterable[Submission]) -> Iterator[GradingResult]:
    for submission in submissions:
        yield task.grade(submission, definition, RUNNERS)
