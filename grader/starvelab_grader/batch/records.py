"""What was graded, by what, when and in which mode: a record for each submission, beside nbgrader's folders.

A record is written before the grades enter the gradebook. So grading that was interrupted continues where it
stopped, and a gradebook that was lost gets its points back without a notebook being run again.
"""

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar

from ..autograde.execution import MODES
from ..autograde.exercises import Exercise
from ..autograde.task import Graded, GradingResult
from ..files import VERSION, fingerprint, read_files, whole_folder, write_files, write_whole
from ..submissions import SubmissionWarning
from ..submissions.submission import SECRET, TIMESTAMP, Submission

T = TypeVar("T")
Inputs: TypeAlias = Mapping[str, dict[str, str]]  # what the grade of each notebook depends on
BY_NOTEBOOK = ("grades", "comments", "exercises", "warnings", "notes")  # of what a submission earns


@dataclass(kw_only=True)
class GradedSubmission(Graded):
    """The result of grading a submission, and what it depends on: without the files themselves."""

    assignment: str
    written: str  # the fingerprint of the graded notebooks
    at: str  # when it was graded last
    grader: str  # its version, and that of nbgrader
    nbgrader: str
    inputs: dict[str, dict[str, str]] = field(default_factory=dict)  # what each notebook's grade depends on
    resubmitted: list[str] = field(default_factory=list)  # notebooks that are others than before
    timestamp: str | None = None  # when it was submitted, if that is known
    submitted: dict[str, str] = field(default_factory=dict)  # fingerprints that are the same for two students
    file_names: dict[str, str] = field(default_factory=dict)  # of renamed notebooks, without the ending

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a record; that of another version, with other fields, raises a TypeError."""
        data = json.loads(text)
        for name, warnings in data["warnings"].items():
            data["warnings"][name] = [SubmissionWarning(**each) for each in warnings]
        for name, exercises in data["exercises"].items():
            data["exercises"][name] = {cell: Exercise(**each) for cell, each in exercises.items()}
        return cls(**data)


class GradedSubmissions:
    """The records of an assignment, and the folder of its graded notebooks."""

    def __init__(self, folder: Path, autograded: Path, assignment: str) -> None:
        self.folder, self.autograded, self.assignment = folder / assignment, autograded, assignment

    def save(self, result: GradingResult, submission: Submission, inputs: Inputs) -> GradedSubmission:
        """Write the graded notebooks, and then the record, each completely or not at all."""
        before = self.load(result.student)
        if before is not None:
            result = self._joined(result, before, inputs)
        if submission.timestamp:
            result.files[TIMESTAMP] = f"{submission.timestamp} UTC".encode()
        if submission.secret:
            result.files[SECRET] = submission.secret.encode()
        with whole_folder(self.notebooks(result.student)) as new:
            write_files(new, result.files)
            for path in map(new.joinpath, result.files):
                # Nobody may write it, as with nbgrader; the umask says who may read it.
                path.chmod(path.stat().st_mode & 0o444)
        submitted = {name: fingerprint({"": content}) for name, content in submission.notebooks.items()}
        then = before.submitted if before else None
        record = GradedSubmission(
            **{each.name: getattr(result, each.name) for each in fields(Graded)},
            assignment=self.assignment, timestamp=submission.timestamp, submitted=submitted,
            file_names=submission.file_names,
            inputs={name: each for name, each in inputs.items() if name in result.grades},
            resubmitted=[name for name in inputs if then is None or then.get(name) != submitted.get(name)],
            written=fingerprint(_notebooks_of(result.files)), grader=VERSION, nbgrader=version("nbgrader"),
            at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        )  # fmt: skip
        # A group that shares the course can read it, and nobody else: its mode follows the umask.
        write_whole(self._path(result.student), json.dumps(asdict(record), indent=1))
        return record

    def _joined(self, result: GradingResult, before: GradedSubmission, inputs: Inputs) -> GradingResult:
        """The result for a submission of which some notebooks were graded now, and the others before."""
        others = inputs.keys() - result.grades.keys()
        unchanged = {name for name in others if before.inputs.get(name) == inputs[name]}
        if not unchanged:
            return result
        files = read_files(self.notebooks(result.student))
        graded_anew = _notebooks_of(files).keys() - {f"{name}.ipynb" for name in unchanged}
        left_out = graded_anew | {TIMESTAMP, SECRET}
        kept = {name: content for name, content in files.items() if name not in left_out}
        parts: dict[str, Any] = {}
        for part in BY_NOTEBOOK:
            then = {name: each for name, each in getattr(before, part).items() if name in unchanged}
            both = getattr(result, part) | then
            parts[part] = {name: both[name] for name in inputs if name in both}
        return replace(
            result, **parts, files=kept | result.files, limited=before.limited or result.limited,
            rejected=[*(name for name in before.rejected if name in unchanged), *result.rejected],
            mode=max(filter(None, (before.mode, result.mode)), key=MODES.index),
        )  # fmt: skip

    def load(self, student: str) -> GradedSubmission | None:
        """Return the record of a student; None where there is none, or where its notebooks have changed."""
        try:
            record = GradedSubmission.from_json(self._path(student).read_text(encoding="utf-8"))
        # Where a record cannot be read, the submission is graded again.
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None
        written = fingerprint(read_files(self.notebooks(student), "*.ipynb"))
        return record if record.written == written else None

    def clean_up(self) -> None:
        """Remove files that an interrupted run did not finish."""
        for path in self.folder.glob("*.part"):
            path.unlink(missing_ok=True)
        for path in self.autograded.glob("*/.part-*"):
            shutil.rmtree(path, ignore_errors=True)

    @property
    def students(self) -> list[str]:
        """Those of whom there is a record, also one that `load` does not take."""
        return sorted(path.stem for path in self.folder.glob("*.json"))

    def _path(self, student: str) -> Path:
        return self.folder / f"{student}.json"

    def notebooks(self, student: str) -> Path:
        """The folder of a student's graded notebooks."""
        return self.autograded / student / self.assignment


def _notebooks_of(files: Mapping[str, T]) -> dict[str, T]:
    return {name: content for name, content in files.items() if name.endswith(".ipynb")}
