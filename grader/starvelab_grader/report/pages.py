"""The feedback pages of a class: the total on top, then what is wrong, and what is right folded.

A page is made from plain data, so that any process can make it. It is out of date when the graded notebooks,
the marks or the comments are not those that it was made of.
"""

import re
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from math import floor, isclose
from operator import attrgetter
from pathlib import Path
from secrets import token_hex
from typing import TypeAlias

import nbformat
from loky.process_executor import BrokenProcessPool, ProcessPoolExecutor
from nbconvert.exporters.exporter import ResourcesDict
from nbconvert.filters import strip_ansi
from nbformat import NotebookNode

from ..autograde.execution import NOTE_ID, IsolatedExecute
from ..autograde.feedback import ClearHiddenTracebacks
from ..autograde.nbgrader_private import NO_RESPONSE
from ..batch.classroom import Classroom, chosen
from ..batch.gradebook import Mark, Marks, marks_of, names_of
from ..batch.one_student import READ_TIMEOUT, one_student
from ..errors import NotFoundError
from ..files import VERSION, fingerprint, write_whole
from ..submissions.reference import GradedNotebook, graded_by, name_of
from ..submissions.submission import SECRET, TIMESTAMP
from .rendering import NOTEBOOK_TIMEOUT, PageTime, in_time, page_style, rendered, templates

INDEX = "index.html"
ARROW = re.compile(r"^-+> *\d+ (.*)$", re.MULTILINE)  # in a traceback, before the line that failed


@dataclass(frozen=True)
class PageJob:
    """All that a page is made of."""

    student: str
    called: str  # on the page
    assignment: str
    folder: Path  # of the graded notebooks: a class is never in memory as a whole
    notebooks: list[GradedNotebook]
    marks: Marks
    fingerprint: str  # what the page is up to date with
    # Names of further pages, each with the notebook whose page it is.
    copies: Mapping[str, str] = field(default_factory=dict)
    # Files by which nbgrader's exchange knows whose pages these are.
    stamps: Mapping[str, str] = field(default_factory=dict)
    seconds: float = NOTEBOOK_TIMEOUT  # that showing it may take: what is left of the student's time


@dataclass
class _Exercise:
    """An exercise on a page, with what a template writes around its cells."""

    anchor: str
    title: str
    points: str
    is_right: bool  # or waits for a person
    model_answer: str = ""
    cells: list[NotebookNode] = field(default_factory=list)


@dataclass(frozen=True)
class _Part:
    """A notebook on a page: its exercises in order, and the cells as HTML."""

    notebook: GradedNotebook
    exercises: Sequence[_Exercise]
    cells: str

    @property
    def is_right(self) -> bool:
        """True if there is nothing to read that is not folded."""
        return all(one.is_right for one in self.exercises)


def make_pages(job: PageJob) -> dict[str, str]:
    """Return the files for a student: a page with everything, and for nbgrader one for each notebook."""
    page_time = PageTime(job.seconds)
    parts = [_part(one, job, page_time) for one in job.notebooks]
    pages = {one.notebook.name: _page(job, [one], whole=parts) for one in parts}
    pages |= {name: pages[notebook] for name, notebook in job.copies.items()}
    return {INDEX: _page(job, parts), **{f"{name}.html": page for name, page in pages.items()}, **job.stamps}


def fingerprint_in(path: Path) -> str:
    """Read what a page that was written is up to date with; empty where there is none."""
    try:
        with path.open(encoding="utf-8") as file:
            match = re.search(r'<meta name="starvelab-fingerprint" content="(\w+)">', file.read(2000))
    except (OSError, UnicodeDecodeError):
        return ""
    return match[1] if match else ""


def _page(job: PageJob, parts: Sequence[_Part], whole: Sequence[_Part] = ()) -> str:
    """Return the page of some notebooks; the `whole` has them all, where the page is that of one."""
    notebooks, by_notebook = [part.notebook for part in parts], job.marks.notebooks
    marks = [(one, cell, mark) for one in notebooks for cell, mark in by_notebook.get(one.name, {}).items()]
    penalty = sum(job.marks.penalties.get(one.name, 0.0) for one in notebooks)
    values = {
        "style": page_style(),
        "total": _total(job, notebooks),
        "in_all": _total(job, [part.notebook for part in whole]) if whole else "",
        "waiting": [one.titles.get(cell, cell) for one, cell, mark in marks if mark.points is None],
        "penalty": "" if not penalty else "1 point is" if penalty == 1 else f"{penalty:g} points are",
        "wrong_first": sorted(parts, key=attrgetter("is_right")),
    }
    return templates().get_template("page.html.j2").render(job=job, parts=parts, **values)


def _total(job: PageJob, notebooks: Sequence[GradedNotebook]) -> str:
    """Return the points of some notebooks, less those for being late."""
    points, possible = 0.0, 0.0
    for one in notebooks:
        marks = job.marks.notebooks.get(one.name, {})
        points += sum(mark.points or 0.0 for mark in marks.values())
        points -= job.marks.penalties.get(one.name, 0.0)
        possible += sum(cell.points for cell in one.reference if cell.name in marks)
    return f"{shown_points(max(0.0, points))} of {possible:g} points"


def _part(one: GradedNotebook, job: PageJob, page_time: PageTime) -> _Part:
    marks, comments = job.marks.notebooks.get(one.name, {}), job.marks.comments.get(one.name, {})
    graded = graded_by(one.reference)
    # Who has earned points has answered, in another cell.
    earned = {name for name, test in graded.items() if test in marks and marks[test].points}
    comments = {name: text for name, text in comments.items() if name not in earned or text != NO_RESPONSE}
    commented = {graded.get(name, name) for name in comments}
    exercises = {
        cell.name: _Exercise(
            anchor=f"{one.name}-{cell.name}",
            title=one.titles[cell.name],
            points=_points(mark, cell.points),
            is_right=mark.points is None or (mark.points >= cell.points and cell.name not in commented),
            # Whose essay nobody has marked may still be asked for another one.
            model_answer="" if mark.points is None else one.model_answers.get(cell.name, ""),
        )
        for cell in one.reference
        if (mark := marks.get(cell.name)) and cell.name in one.titles
    }
    nb = nbformat.read(job.folder / f"{one.name}.ipynb", as_version=4)
    cells = in_time(nb, lambda: _cells(nb, one, exercises, comments), page_time)
    return _Part(one, list(exercises.values()), cells)


def shown_points(number: float) -> str:
    """Return points exactly with two decimals, or cut to one, so that 2.999 of 3 is never 3."""
    exact = round(float(number), 2)
    return f"{exact if isclose(number, exact, abs_tol=1e-9) else floor(10 * number) / 10:.10g}"


def _points(mark: Mark, possible: float) -> str:
    if mark.points is None:
        return f"not marked yet (of {possible:g})"
    again = ", to be marked again" if mark.waits else ""
    return f"{shown_points(mark.points)} of {possible:g}{again}"


def _cells(
    nb: NotebookNode, one: GradedNotebook, exercises: Mapping[str, _Exercise], comments: Mapping[str, str]
) -> str:
    """Return what a student wrote as HTML: first what is wrong, then folded what is right, and the rest."""
    known, graded = {cell.name: cell for cell in one.reference}, graded_by(one.reference)
    note, rest, task = list[NotebookNode](), list[NotebookNode](), ""
    ClearHiddenTracebacks().preprocess(nb, ResourcesDict())
    for cell in nb.cells:
        name = name_of(cell) or ""
        if name in known:
            owner = name if known[name].task else graded.get(name, "")
            task = owner if owner and known[owner].task else ""
        is_check = name in known and known[name].is_check_side and cell.cell_type == "code"
        if is_check:
            cell.outputs = list(_said_by_check(cell.outputs, known[name].released))
        if name in known and not known[name].answered:
            cell.source = known[name].released
        # Students have the check, with its table of values: what it says of the answer is new.
        page = NotebookNode(comment=comments.get(name, ""))
        cell.metadata = NotebookNode(transient={"remove_source": is_check}, starvelab_page=page)
        if exercise := exercises.get(graded.get(name, name or task)):
            exercise.cells.append(cell)
        elif cell.id == NOTE_ID:
            note.append(cell)
        elif name not in known and (text := cell.source.strip()) and text not in one.given_out:
            rest.append(cell)
    there = [exercise for exercise in exercises.values() if exercise.cells]
    for exercise in there:
        exercise.cells[0].metadata.starvelab_page.begins = exercise
        exercise.cells[-1].metadata.starvelab_page.ends = exercise
    wrong, right = (
        [cell for one in there if one.is_right == so for cell in one.cells] for so in (False, True)
    )
    number = sum(one.is_right for one in there)
    summary = f"{number} exercise{'s' * (number > 1)} with nothing to correct"
    nb.cells = [*note, *wrong, *_folded(right, summary), *_folded(rest, "Your other cells")]
    return rendered(nb)


def _said_by_check(outputs: Iterable[NotebookNode], source: str) -> Iterator[NotebookNode]:
    """Yield what a check put out, without its points, and without its code if it says what is wrong."""
    for output in outputs:
        if output.output_type == "error" and output.evalue:
            arrows = ((frame, ARROW.search(strip_ansi(frame))) for frame in output.traceback)
            output.traceback = [frame for frame, at in arrows if not (at and at[1].strip() in source)]
        if output.output_type != "execute_result":
            yield output


def _folded(cells: list[NotebookNode], summary: str) -> list[NotebookNode]:
    if cells:
        cells[0].metadata.starvelab_page.opens = summary
        cells[-1].metadata.starvelab_page.closes = True
    return cells


_Pages: TypeAlias = Future[dict[str, str]]
# Ctrl+C reaches every process of a terminal; only the one that a person started reacts to it.
IGNORED = signal.SIGINT, signal.SIG_IGN
MIN_SECONDS = 20.0  # to show what a student submitted, whose code has used up the time
IDLE_TIMEOUT = 30  # seconds after which a worker ends by itself, should this process be gone
ENDED = (
    "The page cannot be written: the process that made it was ended, and again when nothing else was made "
    "beside it. It may need more memory than there is: close other programs, and start again."
)


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
        self._notebooks = classroom.definition.notebooks

    def out_of_date(self, only: str = "", again: bool = False) -> list[PageJob]:
        """Return the pages to make, of the students in `only` if it names some; `unchanged` gets others."""
        with self.classroom.gradebook() as book:
            marks, names = marks_of(book, self.classroom.assignment), names_of(book)
        students = chosen(sorted(marks), only)
        if not students:
            who = f"who is called {only!r} " if marks else ""
            raise NotFoundError(
                f"There is nobody {who}with grades in {self.classroom.assignment}. "
                f"Grade first: starvelab-grader grade {self.classroom.assignment}"
            )
        jobs = []
        for student in students:
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
                    self.failed[job.student] = ENDED
                else:
                    # Each is written whole or not; the one that says that all are up to date comes last.
                    for name, content in reversed(future.result().items()):
                        write_whole(self._page_folder(job.student) / name, content, mode=0o644)
                    self.written.append(job.student)
            yield job.student

    def _page_folder(self, student: str) -> Path:
        return self.folder / student / self.classroom.assignment

    def _job(self, student: str, name: str, marks: Marks) -> PageJob:
        folder, definition = self.classroom.records.notebooks(student), self.classroom.definition
        files = {one.name: (folder / f"{one.name}.ipynb").read_bytes() for one in self._notebooks}
        called = f"{name} ({student})" if name else student
        shown = [(one.title, one.titles, one.model_answers) for one in self._notebooks]
        copies, stamps = self._copies(student), self._stamps(student)
        beside = (called, shown, definition.fingerprint, VERSION, copies, stamps)
        now, name = fingerprint(files, asdict(marks), *beside), definition.assignment
        seconds = self._seconds_left(student)
        return PageJob(student, called, name, folder, self._notebooks, marks, now, copies, stamps, seconds)

    def _seconds_left(self, student: str) -> float:
        """Return what grading has left of a student's time, and no less than honest pages take."""
        record = self.classroom.records.load(student)
        deadline = IsolatedExecute(config=self.classroom.definition.settings).deadline
        return max(MIN_SECONDS, deadline - (record.seconds if record else 0.0))

    def _copies(self, student: str) -> dict[str, str]:
        """Return the names by which a student looks for pages of renamed notebooks in nbgrader's exchange."""
        record = self.classroom.records.load(student)
        taken = {Path(INDEX).stem, *(one.name for one in self._notebooks)}
        names = record.file_names.items() if record else ()
        return {name: notebook for notebook, name in names if name not in taken}

    def _stamps(self, student: str) -> dict[str, str]:
        """Return what nbgrader's exchange wants beside each page, if some of the class submitted there."""
        records, stamps = self.classroom.records, {TIMESTAMP: "", SECRET: ""}
        if not any(records.autograded.glob(f"*/{records.assignment}/{SECRET}")):
            return {}
        for name in stamps:
            with suppress(OSError):
                stamps[name] = (records.notebooks(student) / name).read_text(encoding="ascii")
        if not stamps[SECRET]:
            # Who submitted elsewhere gets no page there, under a name that nobody can guess.
            with suppress(OSError):
                stamps[SECRET] = (self._page_folder(student) / SECRET).read_text(encoding="ascii")
        return stamps | {SECRET: stamps[SECRET] or token_hex(64)}


def _results(jobs: Iterable[PageJob], workers: int, again: bool = True) -> Iterator[tuple[PageJob, _Pages]]:
    """Yield each job and what came of it, as soon as it is there."""
    # A worker that ends, for example because memory is short, breaks its whole pool. Each job that was in the
    # pool is tried again by itself, so that one student's notebook costs no other student a page.
    coming, suspects = deque(jobs), list[PageJob]()
    while coming:
        broken, running = False, dict[_Pages, PageJob]()
        with _pool(workers) as pool:
            while running or (coming and not broken):
                while coming and not broken and len(running) < 2 * workers:
                    job = coming.popleft()
                    running[pool.submit(make_pages, job)] = job
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    job = running.pop(future)
                    if again and isinstance(future.exception(), BrokenProcessPool):
                        suspects.append(job)
                        broken = True
                    else:
                        yield job, future
    for job in suspects:
        yield from _results([job], 1, again=False)


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(workers, timeout=IDLE_TIMEOUT, initializer=signal.signal, initargs=IGNORED)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, kill_workers=True)
        raise
    pool.shutdown(wait=True)
