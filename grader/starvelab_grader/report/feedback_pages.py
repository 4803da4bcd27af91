"""The feedback pages of a class: which are out of date, and who makes them.

A page is out of date when the graded notebooks, the marks or the comments are not those that it was made of.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

from loky.process_executor import BrokenProcessPool, ProcessPoolExecutor

from ..batch.classroom import Classroom, matches
from ..batch.one_student import READ_TIMEOUT, one_student
from ..errors import GraderError
from ..files import write_whole
from ..fingerprints import VERSION
from ..submissions.exercises import model_answers, title_of, titles_of
from .marks import Marks, marks_of, names_of
from .pages import INDEX, GradedNotebook, PageJob, fingerprint_in, make_pages

IDLE_TIMEOUT = 30  # seconds after which a worker ends by itself, should this process be gone


class NothingGradedError(GraderError, LookupError):
    """Nothing has been graded on which feedback could be written."""


class WorkerEndedError(GraderError, RuntimeError):
    """The process that made a page was ended from outside, or had too little memory."""


class FeedbackPages:
    """The feedback pages of an assignment, in the folder where nbgrader looks for them."""

    def __init__(self, classroom: Classroom) -> None:
        self.classroom = classroom
        self.folder: Path = Path(classroom.course.root) / classroom.course.feedback_directory
        # Students, and of those whose pages could not be written the reason.
        self.written: list[str] = []
        self.unchanged: list[str] = []
        self.failed: dict[str, str] = {}
        self.unmarked = 0  # students for whom something is not marked yet
        self._notebooks = []
        for name, cells in classroom.definition.cells.items():
            content = classroom.definition.source[f"{name}.ipynb"]
            answers = {cell: answer.markdown for cell, answer in model_answers(content).items()}
            titles = title_of(content, name), cells, titles_of(content, cells)
            self._notebooks.append(GradedNotebook(name, *titles, answers))

    def out_of_date(self, only: str = "", again: bool = False) -> list[PageJob]:
        """The pages to make. The other students are in `unchanged` afterwards, or in `failed`.

        `only` has names with commas between them, in which `*` and `?` stand for any characters; `again`
        makes also pages that are up to date. Raises NothingGradedError.
        """
        with closing(self.classroom.gradebook()) as book:
            marks, names = marks_of(book, self.classroom.assignment), names_of(book)
        wanted = [name.strip() for name in only.split(",") if name.strip()]
        chosen = [one for one in sorted(marks) if not wanted or any(matches(one, name) for name in wanted)]
        if not chosen:
            who = f"who is called {only!r} " if wanted and marks else ""
            raise NothingGradedError(
                f"There is nobody {who}with grades in {self.classroom.assignment}. "
                f"Grade first: starvelab-grader grade {self.classroom.assignment}"
            )
        jobs = []
        for student in chosen:
            with one_student(student, self.failed, "The graded notebooks cannot be read", READ_TIMEOUT):
                job = self._job(student, names.get(student, ""), marks[student])
                self.unmarked += job.marks.waits
                if again or fingerprint_in(self._page_folder(student) / INDEX) != job.fingerprint:
                    jobs.append(job)
                else:
                    self.unchanged.append(student)
        return jobs

    def write(self, jobs: Sequence[PageJob], workers: int) -> Iterator[str]:
        """Make the pages and write them, and give the student of each as it is done."""
        for job, future in _results(jobs, max(1, min(workers, len(jobs)))):
            with one_student(job.student, self.failed, "The page cannot be written"):
                if isinstance(future.exception(), BrokenProcessPool):
                    raise WorkerEndedError(
                        "the process that made it was ended, and again when nothing else was made beside it. "
                        "It may need more memory than there is: close other programs, and start again."
                    )
                _write(self._page_folder(job.student), future.result())
                self.written.append(job.student)
            yield job.student

    def _page_folder(self, student: str) -> Path:
        return self.folder / student / self.classroom.assignment

    def _job(self, student: str, name: str, marks: Marks) -> PageJob:
        folder = self.classroom.records.notebooks(student)
        files = {one.name: (folder / f"{one.name}.ipynb").read_bytes() for one in self._notebooks}
        called = f"{name} ({student})" if name else student
        shown = [(one.title, one.titles, one.model_answers) for one in self._notebooks]
        inputs = (called, shown, self.classroom.definition.fingerprint, VERSION)
        return PageJob(
            student=student,
            called=called,
            assignment=self.classroom.assignment,
            folder=folder,
            notebooks=self._notebooks,
            marks=marks,
            fingerprint=marks.fingerprint(files, *inputs),
        )


# --- workers ----------------------------------------------------------------------------------------------


def _results(jobs: Sequence[PageJob], workers: int) -> Iterator[tuple[PageJob, Future[dict[str, str]]]]:
    """Each job and what came of it, as soon as it is there.

    A worker that ends, for example because memory is short, breaks its whole pool. Each job that was in the
    pool is tried again by itself, so that one student's notebook costs no other student a page.
    """
    coming, broken = iter(jobs), True
    suspects: list[PageJob] = []
    while broken:
        broken = False
        with _pool(workers) as pool:
            running = {pool.submit(make_pages, job): job for job in islice(coming, 2 * workers)}
            while running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    job = running.pop(future)
                    if isinstance(future.exception(), BrokenProcessPool):
                        broken = True
                        suspects.append(job)
                    else:
                        yield job, future
                if not broken:
                    running |= {pool.submit(make_pages, job): job for job in islice(coming, len(done))}
    for job in suspects:
        with _pool(1) as pool:
            future = pool.submit(make_pages, job)
            wait([future])
            yield job, future


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(max_workers=workers, timeout=IDLE_TIMEOUT, initializer=_ignore_interruptions)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, kill_workers=True)
        raise
    pool.shutdown(wait=True)


def _ignore_interruptions() -> None:
    """Ctrl+C reaches every process of a terminal; only the one that a person started reacts to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _write(folder: Path, pages: dict[str, str]) -> None:
    """Write the pages, each whole or not; the one that says that all are up to date comes last."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in pages.items():
        write_whole(folder / name, content, mode=0o644)
