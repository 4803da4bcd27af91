"""The exercises of the notebook that runs, read from its file: titles, points, and what is written."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any

# What stands where nothing was answered yet; the class has it from `starvelab_grader.configure`.
NOT_ANSWERED = "not answered yet: replace these two lines"
ESSAY_STUB = "Your answer here."
# How the line begins that is shown in place of the error of an open exercise.
OPEN_WORD = "Not answered yet"
UNFINISHED = (OPEN_WORD, "Not yet.", "Not run yet.")
# Before the id of an answer: the key under which it is kept, among predictions, that it was final.
FINAL = "final "

HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
POINTS = re.compile(r"\s*\([^()]*\bpoints?\b[^()]*\)$")
_FINISH, _FILE = re.compile(r'\bfinish\(\s*"([\w-]+)"'), re.compile(r"""["'](\w+\.txt)["']""")
_PARTS = re.compile(r"\bcredit\.(?:part|share)\(\s*(\d+(?:\.\d+)?)")

# The arguments of `predict` that make a question.
ARGUMENTS = frozenset(("question", "choices", "unit", "between", "whole", "unchanged"))


@dataclass(frozen=True)
class Exercise:
    """One exercise of a notebook, as the file has it."""

    title: str  # its heading, without the points
    points: float  # the most that it can earn
    source: str  # of the cell that is graded: the check, or the explanation
    is_essay: bool = False  # a person reads it
    is_written: bool = False  # an explanation that is no longer open
    earned: float | None = None
    asked_before: tuple[str, ...] = ()  # the keys of the predictions that stand before it
    answer_id: str = ""  # of the cell with the answer that is checked
    answer: str = ""  # the source of that cell
    can_finish: bool = False  # the notebook calls `finish` for it

    @property
    def name(self) -> str:
        """Its title as the end of a sentence."""
        return self.title if self.title.endswith((".", "?", "!")) else f"{self.title}."

    def is_done(self, earned: float | None) -> bool:
        """True if nothing is left to do that the learner could see, where the check `earned` so much."""
        if self.is_essay:
            return self.is_written
        return (earned or 0.0) >= self.visible_points > 0

    def points_when_final(self, visible: float, finished: tuple[float, float] | None) -> float:
        """Return the points with those that hidden checks gave, of so many; None where it is not final."""
        if finished is None:
            return visible
        earned, most = finished
        return min(visible, self.points - most) + earned

    @property
    def visible_points(self) -> float:
        """The most that the check earns without its hidden part: all points where it has no parts."""
        parts = [float(points) for points in _PARTS.findall(self.source)]
        return min(sum(parts), self.points) if parts else self.points


def read_exercises(path: Path) -> tuple[Exercise, ...]:
    """The exercises of a notebook, in its order; none if the file cannot be read."""
    found, heading = [], ""
    asked: list[str] = []
    answer = "", ""
    endings = {key for cell in _cells(path) for key in _FINISH.findall(_source(cell))}
    for cell in _cells(path):
        source, told = _source(cell), cell.get("metadata", {}).get("nbgrader", {})
        is_essay = bool(told.get("solution"))
        if cell.get("cell_type") == "markdown" and not is_essay:
            headings = HEADING.findall(source)
            heading = POINTS.sub("", headings[-1]) if headings else heading
        if cell.get("cell_type") == "code" and not told.get("grade"):
            asked += questions_in(source)
            answer = (str(told.get("grade_id", "")), source) if told.get("solution") else answer
        if told.get("grade"):
            written = is_essay and source.strip() not in ("", ESSAY_STUB)
            points = float(told.get("points", 0))
            before = tuple(dict.fromkeys(asked))
            own = ("", "", False) if is_essay else (*answer, answer[0] in endings)
            found.append(Exercise(heading, points, source, is_essay, written, _earned(cell), before, *own))
    return tuple(found)


def read_questions(*paths: Path) -> dict[str, dict[str, Any]]:
    """The questions of notebooks, by key and in their order, as `questions_in` gives them."""
    found: dict[str, dict[str, Any]] = {}
    for cell in (cell for path in paths for cell in _cells(path) if cell.get("cell_type") == "code"):
        found |= {key: asked for key, asked in questions_in(_source(cell)).items() if key not in found}
    return found


# Any: a literal that stands in a notebook.
def questions_in(source: str) -> dict[str, dict[str, Any]]:
    """The questions that a code cell asks by literals in its calls of `predict`: the arguments, by key."""
    found: dict[str, dict[str, Any]] = {}
    unreadable = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)
    with suppress(*unreadable):
        for node in ast.walk(ast.parse(source)) if "predict(" in source else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "predict":
                with suppress(*unreadable):
                    key = ast.literal_eval(node.args[0]) if node.args else None
                    given = (one for one in node.keywords if one.arg in ARGUMENTS)
                    asked = {str(one.arg): ast.literal_eval(one.value) for one in given}
                    if isinstance(key, str) and isinstance(asked.get("question"), str):
                        found.setdefault(key, asked)
    return found


def digest(source: str, folder: Path) -> str:
    """Return a digest of an answer: of its cell, and of the text files beside the notebook that it names."""
    found = sha256(source.strip().encode("utf-8", "backslashreplace"))
    for name in sorted(set(_FILE.findall(source))):
        if (folder / name).is_file():
            found.update((folder / name).read_bytes())
    return found.hexdigest()[:16]


def find_notebook(folder: Path, ran: Collection[str]) -> Path | None:
    """The notebook of a folder that has most of the cells that ran (their sources); of copies the newest."""
    shared = {
        path: len({_source(cell) for cell in _cells(path)} & set(ran)) for path in folder.glob("*.ipynb")
    }
    known = [path for path, count in shared.items() if count]
    return max(known, key=lambda path: (shared[path], path.stat().st_mtime), default=None)


# Any: JSON of a file that anybody may have written.
def _cells(path: Path) -> Iterator[dict[str, Any]]:
    try:
        cells = list(json.loads(path.read_text(encoding="utf-8"))["cells"])
    except (OSError, ValueError, TypeError, KeyError):
        return
    yield from (cell for cell in cells if isinstance(cell, dict))


def title_in(path: Path) -> str:
    """The first heading of a notebook; the name of its file where it has none."""
    for cell in _cells(path):
        if cell.get("cell_type") == "markdown" and (match := HEADING.search(_source(cell))):
            return match[1]
    return path.stem


def _earned(cell: dict[str, Any]) -> float | None:
    """Return the points of a code cell, by its saved outputs."""
    outputs = [one for one in cell.get("outputs") or [] if isinstance(one, dict)]
    shown = [one.get("data", {}).get("text/plain", "") for one in outputs]
    texts = ["".join(text) for text in shown if isinstance(text, str | list)]
    failed = any(one.get("output_type") == "error" for one in outputs)
    if not cell.get("execution_count") or failed or any(text.startswith(UNFINISHED) for text in texts):
        return None
    try:
        return float(texts[-1]) if texts else inf
    except ValueError:
        return inf


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)
