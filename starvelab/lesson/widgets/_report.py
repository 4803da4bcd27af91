"""The lab report of whoever works on the notebooks of a folder, written beside them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from importlib.metadata import version
from pathlib import Path

from ... import runtime
from ...errors import InputError
from ..exercises import Exercise, read_exercises, title_in
from ..lab_report.contents import Entry, LabReport
from ..lab_report.measurements import read_measurements
from ..lab_report.page import read_notes, render
from . import words
from ._scorecard import scorecard
from .cells import LOG, CellLog

REPORT = "report.html"
GRADED = "A report is for whoever works on the notebooks. This one is being graded, and nothing is written."


@dataclass(frozen=True)
class WrittenReport:
    """A report that was written; says where it is, and which misses nobody has explained yet.

    Attributes
    ----------
    contents : LabReport or None
        What it says; None while grading.
    path : Path
        Its file.
    """

    contents: LabReport | None
    path: Path

    def sentences(self) -> list[str]:
        """What is said of it."""
        if self.contents is None:
            return [GRADED]
        said = [
            f"The report is written: {self.path.name}. To print it, click it with the right button in the "
            "list of files, and choose Open in New Browser Tab."
        ]
        misses = self.contents.misses
        if misses:
            said += ["Your misses, in the order in which you locked them:"]
            said += [
                f"{n}. {self.contents.sentence_of(miss)} {self._explained(miss.key)}"
                for n, miss in enumerate(misses, start=1)
            ]
        learned = self.contents.learned
        left = [number for number, miss in enumerate(misses, start=1) if miss.key not in learned]
        if left:
            box = "Write it in the box below the answer, or say" if runtime.current().has_widgets else "Say"
            said.append(
                f"What did you learn from those that are not explained yet? {box} it by number: "
                f'report(learned={{{left[0]}: "I had forgotten that ..."}}).'
            )
        return said

    def _explained(self, key: str) -> str:
        text = "" if self.contents is None else self.contents.learned.get(key, "")
        return f'You learned: "{text}"' if text else "Not explained yet."

    def _repr_html_(self) -> str:
        return "".join(f"<p>{words.escape(sentence)}</p>" for sentence in self.sentences())

    def __repr__(self) -> str:
        return "\n".join(self.sentences())


def report(
    learned: Mapping[int, str] | None = None,
    *,
    name: str = "",
    folder: str | os.PathLike[str] | None = None,
    log: CellLog = LOG,
) -> WrittenReport:
    """Write the lab report of a folder: one HTML file, ``report.html``, that needs nothing else.

    Parameters
    ----------
    learned : mapping of int to str, optional
        What you learned from a miss, by its number in the list that this function shows. What an earlier
        report of this folder says of other misses is kept.
    name : str
        Whose report it is; what an earlier report of this folder says unless given.
    folder : path, optional
        Where the notebooks, ``predictions.json`` and ``measurements.json`` stand; the folder that the
        notebook runs in unless given.
    log : CellLog
        What ran in this kernel: it counts before what the notebooks say that were saved.

    Returns
    -------
    WrittenReport
        Shows itself when it ends a cell.

    Raises
    ------
    InputError
        If there is no miss with such a number.
    """
    where = Path.cwd() if folder is None else Path(folder)
    path = where / REPORT
    if runtime.current().is_grading:
        return WrittenReport(None, path)
    contents = _with_lessons(_contents(where, log, name), learned or {})
    path.write_text(render(contents), encoding="utf-8")
    return WrittenReport(contents, path)


def lessons(folder: Path) -> Mapping[str, str]:
    """What the report of a folder says of misses, by key; nothing where there is no report."""
    return read_notes(folder / REPORT).learned


def keep_lesson(key: str, text: str, folder: Path, log: CellLog = LOG) -> None:
    """Write the report of a folder anew, with what its owner learned from one miss; no text removes it."""
    contents = _contents(folder, log)
    learned = {other: said for other, said in contents.learned.items() if other != key}
    contents = replace(contents, learned=learned | ({key: text} if text else {}))
    (folder / REPORT).write_text(render(contents), encoding="utf-8")


def _contents(folder: Path, log: CellLog, name: str = "") -> LabReport:
    """What a report of this folder says now; its owner and lessons are those of an earlier one."""
    before = read_notes(folder / REPORT)
    return LabReport(
        assignment=folder.resolve().name,
        owner=name or before.owner,
        date=date.today().isoformat(),
        starvelab=version("starvelab"),
        predictions=scorecard(folder).predictions,
        exercises=tuple(_entries(folder, log)),
        measurements=read_measurements(folder),
        learned=before.learned,
    )


def _with_lessons(contents: LabReport, learned: Mapping[int, str]) -> LabReport:
    misses, found = contents.misses, dict(contents.learned)
    for number, text in learned.items():
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(misses):
            raise InputError(
                f"A miss is named by its number, 1 to {len(misses)}, got {number!r:.80}. "
                "Run report() without it to see which there are."
            )
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"What you learned is a text, got {text!r:.80} for miss {number}. Write one.")
        found[misses[number - 1].key] = words.one_line(text)
    return replace(contents, learned=found)


def _entries(folder: Path, log: CellLog) -> Iterator[Entry]:
    """The exercises of the notebooks of a folder."""
    for path in sorted(folder.glob("*.ipynb")):
        for one in read_exercises(path):
            earned = _earned(one, log)
            points = None if one.is_essay else min(earned or 0.0, one.visible_points)
            yield Entry(title_in(path), one.title, points, one.points, one.is_done(earned))


def _earned(exercise: Exercise, log: CellLog) -> float | None:
    return log.earned.get(exercise.source, exercise.earned)
