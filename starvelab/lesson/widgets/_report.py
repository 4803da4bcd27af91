"""The lab report of whoever works on the notebooks of a folder, and their submission in one file."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote

from ... import runtime
from ...errors import InputError
from ...host import whole_file
from ..exercises import read_exercises, title_in
from ..lab_report import Entry, LabReport, read_measurements, read_notes, render
from ..outcomes import one_line
from . import words
from ._progress import scorecard
from .cells import LOG, CellLog

REPORT = "report.html"
UNWRITTEN = (
    "A report is for whoever works on the notebooks. This one is being graded, and nothing is written."
)
UNPACKED = "A submission is packed by whoever works on the notebooks. This one is being graded."
SAVED = "A notebook is packed as it was last saved. If it has changed since then, save it and pack again."


# --- the report -------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class WrittenReport(words.Sentences):
    """A report that was written, with what it says (None while grading), and its file.

    It says where that is, and which misses nobody has explained yet.
    """

    contents: LabReport | None
    path: Path

    def sentences(self) -> list[str]:
        """Say what was done."""
        if self.contents is None:
            return [UNWRITTEN]
        said = [
            f"The report is written: {self.path.name}. To print it, click it with the right button in the "
            "list of files, and choose Open in New Browser Tab."
        ]
        misses, learned = self.contents.misses, self.contents.learned
        if misses:
            said.append("Your misses, in the order in which you locked them:")
        for n, miss in enumerate(misses, start=1):
            lesson = learned.get(miss.key)
            explained = f'You learned: "{lesson}"' if lesson else "Not explained yet."
            said.append(f"{n}. {self.contents.sentence_of(miss)} {explained}")
        left = [number for number, miss in enumerate(misses, start=1) if miss.key not in learned]
        if left:
            box = "Write it in the box below the answer, or say" if runtime.current().has_widgets else "Say"
            said.append(
                f"What did you learn from those that are not explained yet? {box} it by number: "
                f'report(learned={{{left[0]}: "I had forgotten that ..."}}).'
            )
        return said


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
    _write(contents, where)
    return WrittenReport(contents, path)


def saved_lessons(folder: Path) -> Mapping[str, str]:
    """Read what the report of a folder says of misses, by key; nothing where there is no report."""
    return read_notes(folder / REPORT).learned


def save_lesson(key: str, text: str, folder: Path, log: CellLog = LOG) -> None:
    """Write the report of a folder anew, with what its owner learned from one miss; no text removes it."""
    contents = _contents(folder, log)
    learned = {other: said for other, said in contents.learned.items() if other != key}
    _write(replace(contents, learned=learned | ({key: text} if text else {})), folder)


def _write(contents: LabReport, folder: Path) -> None:
    with whole_file(folder / REPORT) as part:
        part.write_text(render(contents), encoding="utf-8")


def _contents(folder: Path, log: CellLog, name: str = "") -> LabReport:
    """Return what a report of this folder says now; its owner and lessons are those of an earlier one."""
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
        found[misses[number - 1].key] = one_line(text)
    return replace(contents, learned=found)


def _entries(folder: Path, log: CellLog) -> Iterator[Entry]:
    """The exercises of the notebooks of a folder."""
    for path in sorted(folder.glob("*.ipynb")):
        for one in read_exercises(path):
            earned = log.earned.get(one.source, one.earned)
            points = None if one.is_essay else min(earned or 0.0, one.visible_points)
            yield Entry(title_in(path), one.title, points, one.points, one.is_done(earned))


# --- the submission ---------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class PackedSubmission(words.Sentences):
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
            return words.paragraphs(UNPACKED)
        name = words.escape(self.path.name)
        return (
            f'<p><a href="{quote(self.path.name)}" download="{name}">Download {name}</a> (or in the list of '
            f"files: right-click it, then Download), and submit it.</p><p>It holds "
            f"{words.escape(', '.join(self.files))}. {SAVED}</p>"
        )


def pack(folder: str | os.PathLike[str] | None = None) -> PackedSubmission:
    """Pack the notebooks of a folder, the predictions and all other files beside them into one .zip file.

    Parameters
    ----------
    folder : path, optional
        Where they stand; the folder that the notebook runs in unless given.

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
    files = sorted(path for path in where.iterdir() if _belongs(path))
    if not any(path.suffix == ".ipynb" for path in files):
        raise InputError(
            f"A submission holds at least one notebook, and {where} has none. "
            "Pass the folder of an assignment."
        )
    with whole_file(target) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            archive.write(path, path.name)
    return PackedSubmission(target, tuple(path.name for path in files))


def _belongs(path: Path) -> bool:
    """True if a file is the learner's: no hidden one, none that is only half written, and no earlier .zip."""
    return path.is_file() and not path.name.startswith(".") and path.suffix not in (".zip", ".part", ".lock")
