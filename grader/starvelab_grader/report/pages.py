"""The feedback pages of a class: the total on top, then what is wrong, and what is right folded.

A page is made from plain data, so that any process can make it. It is out of date when the graded notebooks,
the marks or the comments are not those that it was made of.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from html import escape
from itertools import islice
from math import floor, isclose
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias, cast

import nbformat
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from loky.process_executor import BrokenProcessPool, ProcessPoolExecutor
from nbconvert.exporters import HTMLExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbconvert.filters import strip_ansi
from nbformat import NotebookNode
from nbformat.v4 import new_notebook
from pygments.formatters import HtmlFormatter
from traitlets.config import Config

from ..autograde.definition import Definition
from ..autograde.execution import NOTE_ID
from ..autograde.feedback import ClearHiddenTracebacks, HarmlessHTML, ReadableOutputs, harmless_html
from ..batch.classroom import Classroom, chosen
from ..batch.gradebook import Mark, Marks, marks_of, names_of
from ..batch.one_student import READ_TIMEOUT, one_student, time_limit
from ..batch.requests import subject
from ..errors import GraderError
from ..files import write_whole
from ..fingerprints import VERSION
from ..submissions.reference import (
    ReferenceCell,
    graded_by,
    model_answers,
    name_of,
    parse_cells,
    title_of,
    titles_of,
)
from .formulas import draw_formulas, mark_formula, markdown_to_html

INDEX = "index.html"
NOTEBOOK_TIMEOUT = 60.0  # seconds; an honest notebook is shown in less than one
TEMPLATES = Path(__file__).parent / "templates"
ARROW = re.compile(r"^-+> *\d+ (.*)$", re.MULTILINE)  # in a traceback, before the line that failed


@dataclass(frozen=True)
class GradedNotebook:
    """A notebook as all students have it: its titles and model answers, in Markdown, by graded cell."""

    name: str
    title: str
    reference: list[ReferenceCell]
    titles: Mapping[str, str]
    model_answers: Mapping[str, str] = field(default_factory=dict)
    given_out: Collection[str] = ()  # the texts of all cells, and the solution

    @classmethod
    def of(cls, name: str, cells: list[ReferenceCell], content: bytes) -> GradedNotebook:
        """Read it from an instructor's notebook."""
        answers = {cell: answer.markdown for cell, answer in model_answers(content).items()}
        given_out = {cell.source.strip() for cell in parse_cells(content)}
        given_out |= {text.strip() for cell in cells for text in (cell.released, cell.source)}
        return cls(name, title_of(content, name), cells, titles_of(content, cells), answers, given_out)

    @classmethod
    def all_of(cls, definition: Definition) -> list[GradedNotebook]:
        """Read all notebooks of an assignment."""
        source = definition.source
        return [cls.of(name, cells, source[f"{name}.ipynb"]) for name, cells in definition.cells.items()]


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
    contact: str = ""  # the address to which a request is mailed


@dataclass
class _Exercise:
    """An exercise on a page, with what a template writes around its cells."""

    anchor: str
    title: str
    points: str
    is_right: bool  # or waits for a person
    model_answer: str = ""
    request: str = ""  # the line with which to ask for another look at it
    contact: str = ""
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
    """Return the pages of a student by file: one with everything, and for nbgrader one for each notebook."""
    parts = [_part(one, job) for one in job.notebooks]
    return {
        INDEX: _page(job, parts),
        **{f"{part.notebook.name}.html": _page(job, [part]) for part in parts},
    }


def fingerprint_in(path: Path) -> str:
    """Read what a page that was written is up to date with; empty where there is none."""
    try:
        with path.open(encoding="utf-8") as file:
            match = re.search(r'<meta name="starvelab-fingerprint" content="(\w+)">', file.read(2000))
    except (OSError, UnicodeDecodeError):
        return ""
    return match[1] if match else ""


def _page(job: PageJob, parts: Sequence[_Part]) -> str:
    notebooks = [part.notebook for part in parts]
    marks = [(one, cell, mark) for one in notebooks for cell, mark in job.marks.of(one.name).items()]
    total = sum(mark.points or 0.0 for _, _, mark in marks)
    penalty = sum(job.marks.penalties.get(one.name, 0.0) for one in notebooks)
    possible = sum(each.points for one, cell, _ in marks for each in one.reference if each.name == cell)
    values = {
        "style": page_style(),
        "total": f"{shown_points(max(0.0, total - penalty))} of {possible:g} points",
        "waiting": [one.titles.get(cell, cell) for one, cell, mark in marks if mark.points is None],
        "penalty": "" if not penalty else "1 point is" if penalty == 1 else f"{penalty:g} points are",
    }
    page, wrong_first = templates().get_template("page.html.j2"), sorted(parts, key=attrgetter("is_right"))
    return page.render(job=job, parts=parts, wrong_first=wrong_first, **values)


def _part(one: GradedNotebook, job: PageJob) -> _Part:
    marks, comments = job.marks.of(one.name), job.marks.comments.get(one.name, {})
    commented = {graded_by(one.reference).get(name, name) for name in comments}
    exercises = {
        cell.name: _Exercise(
            anchor=f"{one.name}-{cell.name}",
            title=one.titles[cell.name],
            points=_points(mark, cell.points),
            is_right=mark.points is None or (mark.points >= cell.points and cell.name not in commented),
            # Whose essay nobody has marked may still be asked for another one.
            model_answer="" if mark.points is None else one.model_answers.get(cell.name, ""),
            request=subject(job.assignment, one.name, one.titles[cell.name], job.student),
            contact=job.contact,
        )
        for cell in one.reference
        if (mark := marks.get(cell.name)) and cell.name in one.titles
    }
    nb = nbformat.read(job.folder / f"{one.name}.ipynb", as_version=4)
    return _Part(one, list(exercises.values()), _in_time(nb, lambda: _cells(nb, one, exercises, comments)))


def _in_time(nb: NotebookNode, show: Callable[[], str]) -> str:
    """Return what `show` makes of a notebook, or its text where that takes too long."""
    try:
        with time_limit(NOTEBOOK_TIMEOUT):
            return show()
    except TimeoutError:
        message = f"This notebook took longer than {NOTEBOOK_TIMEOUT:g} s to show. This is its text."
        text = "\n\n".join(cell.source for cell in nb.cells)[: ReadableOutputs.max_characters]
        return f"<p>{message}</p><pre>{escape(text)}</pre>"


def cells_as_html(cells: Sequence[NotebookNode]) -> str:
    """Return cells as HTML in which nothing is alive, whoever wrote them."""
    nb = new_notebook(cells=[deepcopy(cell) for cell in cells])
    for cell in nb.cells:
        cell.metadata.pop("starvelab_page", None)
    return _in_time(nb, lambda: _drawn(nb))


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
    for at, cell in enumerate(nb.cells):
        name = name_of(cell) or ""
        if name in known:
            task = name if known[name].task else ""
        is_check = name in known and known[name].is_check_side and cell.cell_type == "code"
        if is_check:
            ClearHiddenTracebacks().preprocess_cell(cell, ResourcesDict(), at)
            cell.outputs = list(_said_by_check(cell.outputs, known[name].released))
        if name in known and not known[name].answered:
            cell.source = known[name].released
        # Students have the check, with its table of values: what it says of the answer is new.
        page = {"comment": comments.get(name, "")}
        cell.metadata = NotebookNode(transient={"remove_source": is_check}, starvelab_page=page)
        if exercise := exercises.get(graded.get(name, name or task)):
            exercise.cells.append(cell)
        elif cell.id == NOTE_ID:
            note.append(cell)
        elif name not in known and (text := cell.source.strip()) and text not in one.given_out:
            rest.append(cell)
    there = [exercise for exercise in exercises.values() if exercise.cells]
    for exercise in there:
        _page_of(exercise.cells[0])["begins"] = _page_of(exercise.cells[-1])["ends"] = exercise
    wrong, right = ([one for one in there if one.is_right == so] for so in (False, True))
    summary = f"{len(right)} exercise{'s' * (len(right) > 1)} with nothing to correct"
    nb.cells = [*note, *_cells_of(wrong), *_folded(_cells_of(right), summary)]
    nb.cells += _folded(rest, "What else you wrote or changed")
    return _drawn(nb)


def _said_by_check(outputs: Iterable[NotebookNode], source: str) -> Iterator[NotebookNode]:
    """Yield what a check put out, without its points, and without its code if it says what is wrong."""
    for output in outputs:
        if output.output_type == "error" and output.evalue:
            arrows = ((frame, ARROW.search(strip_ansi(frame))) for frame in output.traceback)
            output.traceback = [frame for frame, at in arrows if not (at and at[1].strip() in source)]
        if output.output_type != "execute_result":
            yield output


def _frames(error: NotebookNode) -> list[str]:
    """Return what a traceback says besides its heading and the message."""
    texts = ((frame, strip_ansi(frame)) for frame in error.traceback)
    heading = ("-----", f"{error.ename} ")
    return [
        frame for frame, text in texts
        if not error.evalue or not (text.startswith(heading) or error.evalue in text)
    ]  # fmt: skip


def _page_of(cell: NotebookNode) -> dict[str, object]:
    """Return what a template writes around a cell."""
    return cast("dict[str, object]", cell.metadata["starvelab_page"])


def _cells_of(exercises: Iterable[_Exercise]) -> list[NotebookNode]:
    return [cell for one in exercises for cell in one.cells]


def _folded(cells: list[NotebookNode], summary: str) -> list[NotebookNode]:
    if cells:
        _page_of(cells[0])["opens"], _page_of(cells[-1])["closes"] = summary, True
    return cells


def _drawn(nb: NotebookNode) -> str:
    return draw_formulas(str(_exporter().from_notebook_node(nb)[0]))


@cache
def _exporter() -> HTMLExporter:
    config = Config()
    config.HTMLExporter.preprocessors = [ReadableOutputs, HarmlessHTML]
    config.HTMLExporter.filters = {
        "markdown2html": harmless_html(config, markdown_to_html),
        "formula": mark_formula,
        "frames": _frames,
    }
    config.HTMLExporter.extra_template_basedirs = [str(TEMPLATES)]
    config.HTMLExporter.template_name = "cells"
    return HTMLExporter(config=config)


@cache
def templates() -> Environment:
    """Return the templates of this room's pages."""
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)
    environment.filters["cell"] = _table_cell
    return environment


def _table_cell(value: object) -> str:
    """Return a value in a table: a number to four digits, and None as nothing."""
    if isinstance(value, float):
        return f"{float(f'{value:.4g}'):.15g}"
    return "" if value is None else str(value)


@cache
def page_style() -> str:
    """Return the styles of a page: ours, and the colors of code in light and in dark."""
    light, dark = (HtmlFormatter(style=name).get_style_defs(".highlight") for name in ("default", "monokai"))
    return (
        f"{(TEMPLATES / 'page.css').read_text(encoding='utf-8')}{light}\n"
        f"@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
        ".highlight, .highlight .err { background: none; border: none; }"
    )


# --- the pages of a class ---------------------------------------------------------------------------------


IDLE_TIMEOUT = 30  # seconds after which a worker ends by itself, should this process be gone


PageFuture: TypeAlias = Future[dict[str, str]]


class NothingGradedError(GraderError, LookupError):
    """Nothing has been graded on which feedback could be written."""


class WorkerEndedError(GraderError, RuntimeError):
    """The process that made a page was ended from outside, or had too little memory."""


class FeedbackPages:
    """The feedback pages of an assignment, in the folder where nbgrader looks for them."""

    def __init__(self, classroom: Classroom, contact: str = "") -> None:
        self.classroom, self.contact = classroom, contact
        self.folder: Path = Path(classroom.course.root) / classroom.course.feedback_directory
        # Students, and of those whose pages could not be written the reason.
        self.written: list[str] = []
        self.unchanged: list[str] = []
        self.failed: dict[str, str] = {}
        self.unmarked = 0  # students for whom something is not marked yet
        self._notebooks = GradedNotebook.all_of(classroom.definition)

    def out_of_date(self, only: str = "", again: bool = False) -> list[PageJob]:
        """Return the pages to make, of the students in `only` if it names some; `unchanged` gets others."""
        with closing(self.classroom.gradebook()) as book:
            marks, names = marks_of(book, self.classroom.assignment), names_of(book)
        students = chosen(sorted(marks), only)
        if not students:
            who = f"who is called {only!r} " if marks else ""
            raise NothingGradedError(
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
        folder, definition = self.classroom.records.notebooks(student), self.classroom.definition
        files = {one.name: (folder / f"{one.name}.ipynb").read_bytes() for one in self._notebooks}
        called = f"{name} ({student})" if name else student
        shown = [(one.title, one.titles, one.model_answers) for one in self._notebooks]
        now = marks.fingerprint(files, called, shown, definition.fingerprint, VERSION, self.contact)
        assignment = self.classroom.assignment
        return PageJob(student, called, assignment, folder, self._notebooks, marks, now, self.contact)


# --- workers ----------------------------------------------------------------------------------------------


def _results(jobs: Sequence[PageJob], workers: int) -> Iterator[tuple[PageJob, PageFuture]]:
    """Yield each job and what came of it, as soon as it is there."""
    # A worker that ends, for example because memory is short, breaks its whole pool. Each job that was in the
    # pool is tried again by itself, so that one student's notebook costs no other student a page.
    coming, suspects, broken = iter(jobs), list[PageJob](), True
    while broken:
        broken = False
        for job, future in _in_pool(coming, workers):
            if isinstance(future.exception(), BrokenProcessPool):
                suspects.append(job)
                broken = True
            else:
                yield job, future
    for job in suspects:
        yield from _in_pool(iter([job]), 1)


def _in_pool(coming: Iterator[PageJob], workers: int) -> Iterator[tuple[PageJob, PageFuture]]:
    """Yield jobs of which each was done or was in the pool when it broke; the others are still to come."""
    broken = False
    with _pool(workers) as pool:
        running = {pool.submit(make_pages, job): job for job in islice(coming, 2 * workers)}
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                broken |= isinstance(future.exception(), BrokenProcessPool)
                yield running.pop(future), future
            if not broken:
                running |= {pool.submit(make_pages, job): job for job in islice(coming, len(done))}


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
