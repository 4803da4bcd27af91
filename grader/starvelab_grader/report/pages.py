"""A student's feedback page: the total on top, exercises by title, and what was submitted below.

A page is made from plain data, so that any process can make it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path

import nbformat
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from nbconvert.exporters import HTMLExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbformat.v4 import new_notebook
from pygments.formatters import HtmlFormatter
from traitlets.config import Config

from starvelab import tables

from ..autograde.feedback import ClearHiddenTracebacks, HarmlessHTML, ReadableOutputs, harmless_html
from ..batch.one_student import time_limit
from ..submissions.reference import ReferenceCell
from .marks import Mark, Marks

INDEX = "index.html"
NOTEBOOK_TIMEOUT = 60.0  # seconds; an honest notebook is shown in less than one
TEMPLATES = Path(__file__).parent / "templates"
STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8881; --mark: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --mark: #7cc4f2; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 0 auto; padding: 1rem;
  overflow-wrap: break-word; }
a { color: var(--mark); }
.total { font-size: 1.5rem; margin: 0.5rem 0; }
table { border-collapse: collapse; margin: 0.5rem 0 1.2rem; }
body > table { width: 100%; }
caption { text-align: left; font-weight: 600; }
th, td { padding: 0.3rem 0.6rem 0.3rem 0; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
body > table :is(th, td):last-child { text-align: right; white-space: nowrap; padding-right: 0; }
h2 { margin-top: 3rem; border-bottom: 2px solid var(--line); }
.exercise { border-left: 0.3rem solid var(--mark); background: var(--soft); padding: 0.4rem 0.6rem;
  margin: 1.5rem 0 0.5rem; display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1rem; }
.comment, .model { border: 1px solid var(--line); border-radius: 4px; padding: 0.2rem 0.8rem;
  margin: 0.5rem 0; }
pre { font: 14px/1.4 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere;
  margin: 0.3rem 0; }
.input pre { background: var(--soft); padding: 0.5rem; }
.output_area, .rendered_html { overflow-x: auto; max-width: 100%; }
.table_text pre { white-space: pre; overflow-x: auto; }
.anchor-link { display: none; }
summary { cursor: pointer; }
.figure { display: inline-block; border-left: 3px solid; padding-left: 0.6em; font-style: italic; }
.ansi-bold { font-weight: bold; }
.ansi-red-fg, .ansi-red-intense-fg { color: light-dark(#b3261e, #ff8a80); }
.ansi-green-fg, .ansi-green-intense-fg { color: light-dark(#1b6e3a, #7fd99a); }
.ansi-blue-fg, .ansi-blue-intense-fg, .ansi-cyan-fg, .ansi-cyan-intense-fg { color: var(--mark); }
"""


@dataclass(frozen=True)
class GradedNotebook:
    """What a page needs of a notebook.

    Attributes
    ----------
    name, title : str
    path : Path
        Where it stands as it was graded: a class is never in memory as a whole.
    reference : list of ReferenceCell
    titles : dict of str to str
        By graded cell.
    model_answers : dict of str to str
        By essay, as Markdown.
    """

    name: str
    title: str
    path: Path
    reference: list[ReferenceCell]
    titles: Mapping[str, str]
    model_answers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PageJob:
    """What a page is made of.

    Attributes
    ----------
    student : str
        The name of the folder.
    called : str
        What the page calls the student.
    fingerprint : str
        What the page is up to date with.
    """

    student: str
    called: str
    assignment: str
    notebooks: list[GradedNotebook]
    marks: Marks
    fingerprint: str


@dataclass(frozen=True)
class _Exercise:
    anchor: str
    title: str
    points: str


@dataclass(frozen=True)
class _Part:
    anchor: str
    title: str
    exercises: list[_Exercise]
    cells: str


def make_pages(job: PageJob) -> dict[str, str]:
    """The pages of a student, by the name of the file: one with everything, and one for each notebook.

    nbgrader looks for the latter, and gives them back through its exchange.
    """
    parts = {one.name: _part(one, job.marks) for one in job.notebooks}
    pages = {f"{name}.html": _page(job, [part], [name]) for name, part in parts.items()}
    return pages | {INDEX: _page(job, list(parts.values()), list(parts))}


def fingerprint_in(path: Path) -> str:
    """What a page that was written is up to date with; empty where there is none."""
    try:
        with path.open(encoding="utf-8") as file:
            match = re.search(r'<meta name="starvelab-fingerprint" content="(\w+)">', file.read(2000))
    except (OSError, UnicodeDecodeError):
        return ""
    return match[1] if match else ""


def _page(job: PageJob, parts: Iterable[_Part], names: list[str]) -> str:
    reference = {one.name: {cell.name: cell.points for cell in one.reference} for one in job.notebooks}
    exercises = [(name, cell, mark) for name in names for cell, mark in _marks(job.marks, name).items()]
    penalty = sum(job.marks.penalties.get(name, 0.0) for name in names)
    points = max(0.0, sum(mark.points or 0.0 for _, _, mark in exercises) - penalty)
    possible = sum(reference[name].get(cell, 0.0) for name, cell, _ in exercises)
    titles = {one.name: one.titles for one in job.notebooks}
    waiting = [titles[name].get(cell, cell) for name, cell, mark in exercises if mark.points is None]
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            assignment=job.assignment,
            student=job.called,
            fingerprint=job.fingerprint,
            style=page_style(),
            mathjax=_exporter().mathjax_url,
            total=f"{tables.points(points)} of {possible:g} points",
            waiting=", ".join(waiting),
            waiting_one=len(waiting) == 1,
            penalty="" if not penalty else "1 point is" if penalty == 1 else f"{penalty:g} points are",
            parts=list(parts),
        )
    )


def _marks(marks: Marks, notebook: str) -> Mapping[str, Mark]:
    return marks.notebooks.get(notebook, {})


def _part(one: GradedNotebook, marks: Marks) -> _Part:
    given = _marks(marks, one.name)
    exercises = {
        cell.name: _Exercise(
            f"{one.name}-{cell.name}", one.titles[cell.name], _points(given[cell.name], cell.points)
        )
        for cell in one.reference
        if cell.name in given and cell.name in one.titles
    }
    nb = nbformat.read(one.path, as_version=4)
    below = {name: {"comment": text} for name, text in marks.comments.get(one.name, {}).items()}
    for name, text in one.model_answers.items():
        # Whose essay nobody has marked may still be asked for another one.
        if name in given and given[name].points is not None:
            below.setdefault(name, {})["model_answer"] = text
    cells = _in_time(nb, lambda: _cells(nb, one, exercises, below))
    return _Part(one.name, one.title, list(exercises.values()), cells)


def _in_time(nb: NotebookNode, show: Callable[[], str]) -> str:
    """What `show` makes of a notebook, or its text where that takes too long."""
    try:
        with time_limit(NOTEBOOK_TIMEOUT):
            return show()
    except TimeoutError:
        message = f"This notebook took longer than {NOTEBOOK_TIMEOUT:g} s to show. This is its text."
        text = "\n\n".join(cell.source for cell in nb.cells)[: ReadableOutputs.max_characters]
        return f"<p>{message}</p><pre>{escape(text)}</pre>"


def cells_as_html(cells: Sequence[NotebookNode]) -> str:
    """Cells as HTML in which nothing is alive, whoever wrote them."""
    nb = new_notebook(cells=[deepcopy(cell) for cell in cells])
    return _in_time(nb, lambda: _exporter().from_notebook_node(nb)[0])


def _points(mark: Mark, possible: float) -> str:
    if mark.points is None:
        return f"not marked yet (of {possible:g})"
    again = ", to be marked again" if mark.waits else ""
    return f"{tables.points(mark.points)} of {possible:g}{again}"


def _cells(
    nb: NotebookNode,
    one: GradedNotebook,
    exercises: Mapping[str, _Exercise],
    below: Mapping[str, Mapping[str, str]],
) -> str:
    """The cells of a notebook as HTML, with what stands below each."""
    locked = {cell.name: cell for cell in one.reference if not cell.answered}
    for at, cell in enumerate(nb.cells):
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in locked:
            ClearHiddenTracebacks().preprocess_cell(cell, ResourcesDict(), at)
            cell.source = locked[name].released
        shown = dict(below.get(name, {}))
        if name in exercises:
            each = exercises[name]
            shown |= {"anchor": each.anchor, "title": each.title, "points": each.points}
        cell.metadata["starvelab_page"] = shown
    html, _ = _exporter().from_notebook_node(nb)
    return html


@cache
def _exporter() -> HTMLExporter:
    config = Config()
    config.HTMLExporter.preprocessors = [ReadableOutputs, HarmlessHTML]
    config.HTMLExporter.filters = {"markdown2html": harmless_html(config)}
    config.HTMLExporter.extra_template_basedirs = [str(TEMPLATES)]
    config.HTMLExporter.template_name = "cells"
    return HTMLExporter(config=config)


@cache
def _environment() -> Environment:
    return Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)


@cache
def page_style() -> str:
    """The styles of a page: ours, and the colors of code in light and in dark."""
    light, dark = (HtmlFormatter(style=name).get_style_defs(".highlight") for name in ("default", "monokai"))
    return (
        f"{STYLE}{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
        ".highlight, .highlight .err { background: none; border: none; }"
    )
