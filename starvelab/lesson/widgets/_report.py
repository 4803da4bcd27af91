"""The lab report of whoever works on the notebooks of a folder, and their submission in one file.

The report is one HTML file that needs nothing else, and keeps what its owner wrote.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from ... import runtime, tables
from ...errors import InputError
from ...host import whole_file
from ...prediction_file import Prediction
from .. import notices
from ..calibration import by_confidence, draw_calibration
from ..exercises import FINAL, Exercise, digest, read_exercises, title_in
from ..outcomes import HEADERS, Outcomes
from ..wording import one_line, quoted, truth, value
from ._progress import draw_numbers, scorecard
from .cells import LOG
from .store import PredictionStore

if TYPE_CHECKING:
    from jinja2 import Template

TEMPLATE = Path(__file__).parents[1] / "lab_report.html.j2"
REPORT = "report.html"
NOTES = re.compile(r'<script type="application/json" id="starvelab-notes">(.*?)</script>', re.DOTALL)
# What somebody who made the report says of their misses; longer texts are for an essay.
MAX_LESSON = 600
WRITTEN = "The report is written: {}. To print it, {} and open it in your browser."
UNWRITTEN = "This notebook is being graded, and no report is written: it is for whoever works on it."
UNPACKED = "A submission is packed by whoever works on the notebooks. This one is being graded."
SAVED = "A notebook is packed as it was last saved. If it has changed since then, save it and pack again."


# --- what it says -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """One exercise: its points so far (None for an explanation that nobody has marked), and the most."""

    notebook: str
    title: str
    points: float | None
    most: float
    is_done: bool
    ending: str = ""  # when its answer was final, in words

    @property
    def score(self) -> str:
        """Its points in words."""
        if self.points is None:
            return f"{'written' if self.is_done else 'open'} (of {self.most:g})"
        score = f"{tables.points(self.points)} of {self.most:g}"
        return f"{score}; {self.ending}" if self.ending else score


@dataclass(frozen=True, kw_only=True, repr=False)
class LabReport(notices.Sentences):
    """The contents of a report; empty while grading. `learned` says by key what a prediction taught."""

    assignment: str
    owner: str = ""
    date: str = ""
    starvelab: str = ""
    predictions: tuple[Prediction, ...] = ()
    exercises: tuple[Entry, ...] = ()
    learned: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kept = {key: lesson[:MAX_LESSON] for key, lesson in self.learned.items()}
        object.__setattr__(self, "learned", kept)

    @property
    def misses(self) -> tuple[Prediction, ...]:
        """The predictions that did not come true."""
        return tuple(one for one in self.predictions if one.revealed and not one.hit)

    def sentence_of(self, miss: Prediction) -> str:
        """A miss in words: what was asked, predicted, and true."""
        mine = quoted(value(miss.answer, miss.unit), miss.answer)
        right = "" if miss.truth is None else quoted(truth(miss), miss.truth)
        return f"{one_line(miss.question or miss.key)} Predicted: {mine}. The answer: {right}."

    def sentences(self) -> list[str]:
        """Say what was done."""
        if not self.date:
            return [UNWRITTEN]
        said = [WRITTEN.format(REPORT, "download it")]
        left: list[str] = []
        for number, miss in enumerate(self.misses, start=1):
            # What was predicted, and the answer, stand on the score card and in the report.
            named, lesson = f"{number}. {one_line(miss.question or miss.key)}", self.learned.get(miss.key)
            (said if lesson else left).append(f'{named} You learned: "{lesson}"' if lesson else named)
        if left:
            said += ["What did you learn from these misses?", *left, "Write it in the box below the answer."]
        return said

    def _repr_html_(self) -> str:
        link = f'<a href="{REPORT}"'  # is reached by keyboard: a menu of the list of files is not
        links = WRITTEN.format(f"{link}>{REPORT}</a>", f"{link} download>download it</a>")
        return super()._repr_html_().replace(WRITTEN.format(REPORT, "download it"), links)


@cache
def _template() -> Template:
    # Loaded here: nothing else of the package needs it.
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8"))


def render(report: LabReport) -> str:
    """The page."""
    outcomes = Outcomes(report.predictions)
    counted = [one for one in report.exercises if one.points is not None]
    earned, most = sum(one.points or 0.0 for one in counted), sum(one.most for one in counted)
    page = _template().render(
        report=report,
        outcomes=outcomes,
        headers=HEADERS,
        numbers=draw_numbers(report.predictions),
        calibration=draw_calibration(by_confidence(outcomes.rated)),
        explained=sum(miss.key in report.learned for miss in report.misses),
        done=sum(one.is_done for one in report.exercises),
        earned=f"{tables.points(earned)} of {most:g}",
        share=tables.percent(earned / most) if most else "",
        # In a script nothing ends the page, whatever somebody wrote.
        notes=json.dumps({"owner": report.owner, "learned": report.learned}).replace("<", "\\u003c"),
    )
    # Half a character, which JSON can hold, is shown by its number.
    return page.encode("utf-8", "backslashreplace").decode() + "\n"


# --- what its owner wrote ---------------------------------------------------------------------------------


def read_notes() -> tuple[str, Mapping[str, str]]:
    """The owner of an earlier report, and by key what a miss taught; nothing if it cannot be read."""
    try:
        match = NOTES.search(Path(REPORT).read_text(encoding="utf-8"))
        notes = {} if match is None else json.loads(match[1])
        owner, learned = notes["owner"], notes["learned"]
        texts = [owner, *learned.values()]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return "", {}
    # A file can hold anything.
    return (owner, learned) if all(isinstance(one, str) for one in texts) else ("", {})


def save_lesson(key: str, lesson: str) -> None:
    """Write the report anew, with what its owner learned from one miss; no text removes it."""
    report = _contents()
    learned = {other: said for other, said in report.learned.items() if other != key}
    _write(replace(report, learned=learned | ({key: lesson} if lesson else {})))


def report(*, name: str = "") -> LabReport:
    """Write the lab report of a folder: one HTML file, ``report.html``, that needs nothing else.

    Parameters
    ----------
    name : str
        Whose report it is; by default the name in an earlier report of this folder.

    Returns
    -------
    LabReport
        Shows itself when it ends a cell.
    """
    if runtime.current().is_grading:
        return LabReport(assignment=Path.cwd().name)
    made = _contents(name)
    _write(made)
    return made


def _write(report: LabReport) -> None:
    with whole_file(Path(REPORT)) as part:
        part.write_text(render(report), encoding="utf-8")


def _contents(name: str = "") -> LabReport:
    """Return what a report says now; its owner and lessons are those of an earlier one."""
    folder, (owner, learned) = Path.cwd(), read_notes()
    exercises, store = [], PredictionStore()
    locked, finished = store.read().predictions, store.memory.finished
    for path in sorted(folder.glob("*.ipynb")):
        for one in read_exercises(path):
            earned = LOG.earned.get(one.source, one.earned)  # this kernel counts before what was saved
            hidden = finished.get(one.answer_id)
            points = None
            if not one.is_essay:
                points = one.points_when_final(min(earned or 0.0, one.visible_points), hidden)
            is_done = one.is_done(earned) and (hidden is None or hidden[0] == hidden[1])
            ending = _ending(one, locked.get(FINAL + one.answer_id), folder)
            exercises.append(Entry(title_in(path), one.title, points, one.points, is_done, ending))
    return LabReport(
        assignment=folder.name,
        owner=name or owner,
        date=date.today().isoformat(),
        starvelab=version("starvelab"),
        predictions=scorecard().predictions,
        exercises=tuple(exercises),
        learned=learned,
    )


def _ending(exercise: Exercise, final: Prediction | None, folder: Path) -> str:
    """Say when an answer was final, and if it was changed after that; empty where it never was."""
    if final is None:
        return ""
    changed = "" if final.answer == digest(exercise.answer, folder) else ", and changed after that"
    return f"finished on {final.locked_at[:10]}, when its owner heard what hidden checks look at{changed}"


# --- the submission ---------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class PackedSubmission(notices.Sentences):
    """A submission in one .zip file, and what is in it (nothing while grading); shows a link to it."""

    path: Path
    files: tuple[str, ...]

    def sentences(self) -> list[str]:
        """Say what was done."""
        if not self.files:
            return [UNPACKED]
        return [f"{self.path.name} is written, with {', '.join(self.files)}. {SAVED}"]

    def _repr_html_(self) -> str:
        if not self.files:
            return super()._repr_html_()
        name = notices.escape(self.path.name)
        return (
            f'<p><a href="{quote(self.path.name)}" download="{name}">Download {name}</a> (or in the list of '
            f"files: right-click it, then Download), and submit it.</p><p>It holds "
            f"{notices.escape(', '.join(self.files))}. {SAVED}</p>"
        )


def pack(folder: str | os.PathLike[str] | None = None) -> PackedSubmission:
    """Pack the notebooks of a folder, the predictions and all other files beside them into one .zip file.

    Parameters
    ----------
    folder : path, optional
        Where they are; by default the folder in which the notebook runs.

    Returns
    -------
    PackedSubmission
        Shows itself when it ends a cell.

    Raises
    ------
    InputError
        If there is no notebook in the folder.
    """
    where = (Path.cwd() if folder is None else Path(folder)).resolve()
    target = where / f"{where.name}.zip"
    if runtime.current().is_grading:
        return PackedSubmission(target, ())
    # No hidden file, none that is only half written, and no earlier .zip.
    visible = (path for path in where.iterdir() if path.is_file() and not path.name.startswith("."))
    files = sorted(path for path in visible if path.suffix not in (".zip", ".part", ".lock"))
    if not any(path.suffix == ".ipynb" for path in files):
        raise InputError(
            f"A submission holds at least one notebook, and {where} has none. "
            "Pass the folder of an assignment."
        )
    with whole_file(target) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            archive.write(path, path.name)
    return PackedSubmission(target, tuple(path.name for path in files))
