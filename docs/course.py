"""The parts of the documents that are made from the notebooks: subjects, minutes, points, model answers."""

import re
import runpy
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import nbformat
from addresses import IN_A_TAB, SITE

from starvelab.lesson.exercises import Exercise, read_exercises
from starvelab_grader.submissions.reference import ModelAnswer

REPOSITORY = Path(__file__).resolve().parents[1]
IN_COLAB = "https://colab.research.google.com/github/starvelab/starvelab/blob/main/labs/"
LEARN = {
    "starving-the-gpu": "how fast a GPU could be, what starves it, and how many workers feed it",
    "find-the-bottleneck": "to measure a pipeline on your machine, and find its bottleneck by caching",
    "master-the-loader": "to write a loader, design a host, repair a script, and model more than images",
}
# A course meets once a week. Each entry is a notebook's folder and the numbers of its notebooks.
WEEKS = [
    ("starving-the-gpu", 1, 3),
    ("starving-the-gpu", 4, 6),
    ("starving-the-gpu", 7, 8),
    ("find-the-bottleneck", 1, 3),
    ("find-the-bottleneck", 4, 6),
    ("find-the-bottleneck", 7, 9),
    ("master-the-loader", 1, 3),
]
# One afternoon: notebooks of the first assignment up to a heading, cases of the clinic, and a page to write.
AFTERNOON = {
    "01_compute_baseline": "In your own words",
    "02_storage_check": "Exercise 2.2",
    "03_cpu_wall": "Who starves it?",
    "04_batch_sweep": "What does a sweep show?",
    "05_worker_fix": "Workers do not scale in a straight line",
}
CASES, MINUTES_A_CASE, MINUTES_A_PAGE = 3, 8, 10
Rows = tuple[tuple[str, ...], list[tuple[str, ...]]]


@dataclass(frozen=True)
class Page:
    """One notebook of the menu, as a student gets it."""

    assignment: str
    name: str

    @property
    def title(self) -> str:
        """Its heading, without the number."""
        heading = self._cells[0].source.splitlines()[0]
        return re.sub(r"^# \d+\. ", "", heading)

    @property
    def minutes(self) -> int:
        """How long it takes, as its first cell says."""
        return int(re.findall(r"(\d+) minutes", self._cells[0].source)[0])

    def minutes_until(self, heading: str) -> int:
        """Return how long it takes up to a heading. Raises ValueError without that heading."""
        places = [n for n, cell in enumerate(self._cells) if f"## {heading}" in cell.source]
        if not places:
            raise ValueError(f"{self.name} has no heading that begins with {heading!r}.")
        part = _build()["counts"](self._cells[: places[0]])
        return int(part.minutes(f"{self.assignment}/{self.name}"))

    @cached_property
    def exercises(self) -> list[Exercise]:
        """What a student answers in it, with the instructor's answers."""
        return read_exercises(REPOSITORY / "solutions" / self.assignment / f"{self.name}.ipynb")

    @cached_property
    def _cells(self) -> list[nbformat.NotebookNode]:
        return nbformat.read(REPOSITORY / "labs" / self.assignment / f"{self.name}.ipynb", as_version=4).cells


@cache
def pages() -> tuple[Page, ...]:
    """Every notebook, in the order of the menu."""
    menu = (REPOSITORY / "docs/index.md").read_text(encoding="utf-8")
    return tuple(
        Page(*place) for place in re.findall(r"^learners/([\w-]+)/([\w-]+)$", menu, flags=re.MULTILINE)
    )


@cache
def _build() -> dict[str, Any]:  # Any: of a script
    """What the script that derives the notebooks defines."""
    return runpy.run_path(str(REPOSITORY / "solutions/build.py"))


def packages() -> str:
    """The sentence of the notebooks on the packages that count in grading."""
    return str(_build()["packages"]())


@cache
def _by_assignment() -> dict[str, list[Page]]:
    names = dict.fromkeys(page.assignment for page in pages())
    return {name: [page for page in pages() if page.assignment == name] for name in names}


def _hours(some: list[Page]) -> str:
    return f"{sum(page.minutes for page in some) / 60:.1f}"


def assignments() -> Rows:
    """The assignments, with their hours, for the first page."""
    rows = [
        (f"`{name}`", LEARN[name], str(len(some)), _hours(some)) for name, some in _by_assignment().items()
    ]
    return ("assignment", "you learn", "notebooks", "hours"), rows


def notebooks() -> Rows:
    """Each notebook with its question and minutes, and a link to it in a browser tab and in Google Colab."""
    rows = []
    for page in pages():
        place = f"{page.assignment}/{page.name}"
        links = (f"[tab]({IN_A_TAB}{place}.ipynb)", f"[Colab]({IN_COLAB}{place}.ipynb)")
        rows.append((f"[{page.name}]({SITE}learners/{place}.html)", page.title, str(page.minutes), *links))
    return ("notebook", "subject", "minutes", "in a browser", "in Google Colab"), rows


def syllabus() -> Rows:
    """A course by week: which notebooks, how long they take, and how many exercises they have."""
    rows = []
    for week, (name, first, last) in enumerate(WEEKS, start=1):
        some = _by_assignment()[name][first - 1 : last]
        titles = "; ".join(page.title.partition(":")[0] for page in some)
        tasks = list(chain.from_iterable(page.exercises for page in some))
        essays = sum(task.is_essay for task in tasks)
        numbers = f"{first:02} to {last:02}"
        rows.append((str(week), f"`{name}` {numbers}", titles, _hours(some), str(len(tasks)), str(essays)))
    return ("week", "notebooks", "subjects", "hours", "exercises", "explanations among them"), rows


def afternoon() -> Rows:
    """The path of one afternoon, with its minutes."""
    rows, whole = [], CASES * MINUTES_A_CASE + MINUTES_A_PAGE
    for page in _by_assignment()["starving-the-gpu"]:
        if page.name in AFTERNOON:
            heading, minutes = AFTERNOON[page.name], page.minutes_until(AFTERNOON[page.name])
            whole += minutes
            link = f"[{page.name}]({IN_A_TAB}{page.assignment}/{page.name}.ipynb)"
            rows.append((link, f"*{heading}*", str(minutes)))
    rows.append((f"{CASES} cases of the clinic", "the key of the last one", str(CASES * MINUTES_A_CASE)))
    rows.append(("one page", "you hand it in", str(MINUTES_A_PAGE)))
    rows.append(("all of it", "", str(whole)))
    return ("open", "stop at", "minutes"), rows


def points() -> Rows:
    """What each assignment gives: points by tests, for predictions, and by a person."""
    rows = []
    for name, some in _by_assignment().items():
        tasks = list(chain.from_iterable(page.exercises for page in some))
        essays = [task for task in tasks if task.is_essay]
        tests = [task for task in tasks if not task.is_essay]
        locked = [task for task in tests if "lock_predictions(" in task.source]
        counts = [f"{sum(task.points for task in group):g}" for group in (tasks, tests, locked, essays)]
        rows.append((f"`{name}`", *counts[:3], f"{counts[3]} ({len(essays)})"))
    headers = ("assignment", "points", "by tests", "predictions among them", "by a person (explanations)")
    return headers, rows


def model_answers() -> str:
    """The instructor's own answers to the essays, and what earns points."""
    parts = []
    for page in pages():
        for essay in (task for task in page.exercises if task.is_essay):
            answer = ModelAnswer.of(essay.source)
            quoted = "\n".join(f"> {line}".rstrip() for line in answer.markdown.splitlines())
            where = f"In `{page.assignment}/{page.name}`, {essay.points:g} points."
            parts += [f"## {essay.title}", where, quoted, "What earns points:", answer.scheme]
    return "\n\n".join(parts)
