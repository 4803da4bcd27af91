"""The lab report of a student, from what was submitted and how it was graded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path

from ...prediction_file import read_file
from .contents import Entry, LabReport
from .measurements import read_measurements
from .page import NotAReportError, read_report


def lab_report(assignment: str, owner: str, folder: Path, exercises: Sequence[Entry]) -> LabReport:
    """The report, to be signed.

    Parameters
    ----------
    assignment, owner : str
    folder : Path
        The graded submission. What the student learned from misses is taken from a report in it.
    exercises : sequence of Entry
        With the points that were given.
    """
    try:
        learned = read_report((folder / "report.html").read_text(encoding="utf-8"))[0].learned
    except (OSError, UnicodeDecodeError, NotAReportError):
        learned = {}
    predictions = read_file(folder).predictions.values()
    return LabReport(
        assignment=assignment,
        owner=owner,
        date=date.today().isoformat(),
        starvelab=version("starvelab"),
        predictions=tuple(sorted(predictions, key=lambda one: one.locked_at)),
        exercises=tuple(exercises),
        measurements=read_measurements(folder),
        learned=learned,
        is_graded=True,
    )
