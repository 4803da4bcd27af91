"""What was graded, by what, when and in which mode: a file for each submission, beside nbgrader's folders.

A record is written when a submission is done, before the gradebook hears of it. So a run that was killed goes
on where it stopped, and a gradebook that was lost gets its points back without a notebook being run again.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from ..autograde.execution import MODES
from ..autograde.task import Graded
from ..submissions.files import STAMP, HandIn
from ..submissions.fingerprint import fingerprint
from ..submissions.notebooks import Remark

T = TypeVar("T")


@dataclass
class Record:
    """What came of a submission, without its files.

    Attributes
    ----------
    student, assignment : str
    inputs : dict of dict of str to str
        By notebook, the fingerprints of what its grade depends on, as in `inputs`.
    written : str
        Fingerprint of the graded notebooks.
    at, starvelab, nbgrader, mode : str
        When last, by which versions, and the least safe mode in which one of its notebooks was run.
    seconds : float
        How long the last grading took.
    resubmitted : list of str
        Notebooks other than those that were graded for this student before.
    timestamp : str or None
        When it was handed in, if that is known.
    submitted : dict of str to str
        By notebook, the fingerprint of the file as it was submitted, which is the same for two students.
    grades, comments, remarks, refused, mistakes, limited
        As in `task.Graded`.
    """

    student: str
    assignment: str
    written: str
    at: str
    starvelab: str
    nbgrader: str
    mode: str
    seconds: float
    inputs: dict[str, dict[str, str]] = field(default_factory=dict)
    resubmitted: list[str] = field(default_factory=list)
    timestamp: str | None = None
    submitted: dict[str, str] = field(default_factory=dict)
    grades: dict[str, dict[str, tuple[float | None, bool]]] = field(default_factory=dict)
    comments: dict[str, dict[str, str | None]] = field(default_factory=dict)
    remarks: dict[str, list[Remark]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    mistakes: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    limited: bool = False


# Other versions may write more or less.
KNOWN = {each.name for each in fields(Record)}


class Records:
    """The records of an assignment, and the folder of graded notebooks that they speak of.

    Parameters
    ----------
    folder : Path
        Where records are kept.
    autograded : Path
        nbgrader's folder of graded submissions.
    assignment : str
    """

    def __init__(self, folder: Path, autograded: Path, assignment: str) -> None:
        self.folder, self.autograded, self.assignment = folder / assignment, autograded, assignment

    def keep(self, graded: Graded, handed: HandIn, inputs: Mapping[str, dict[str, str]]) -> Record:
        """Write the graded notebooks where nbgrader looks for them, and then the record; each whole or not.

        Notebooks that were not graded now stay as they are, if nothing has changed that they depend on.

        Parameters
        ----------
        graded : Graded
        handed : HandIn
        inputs : mapping of str to dict of str to str
            Of each notebook that is asked for.

        Raises
        ------
        OSError
            If the disk is full or not to be written on. What stood there before still does then.
        """
        before = self.find(graded.student)
        if before is not None:
            graded = self._with_what_stays(graded, before, inputs)
        if handed.timestamp:
            graded.files[STAMP] = f"{handed.timestamp} UTC".encode()
        self._write_notebooks(graded)
        submitted = {name: fingerprint({"": content}) for name, content in handed.notebooks.items()}
        told = {
            name: getattr(graded, name)
            for name in ("grades", "comments", "remarks", "refused", "mistakes", "limited")
        }
        record = Record(
            student=graded.student,
            assignment=self.assignment,
            inputs={name: each for name, each in inputs.items() if name in graded.grades},
            resubmitted=[
                name for name in inputs if before is None or before.submitted.get(name) != submitted.get(name)
            ],
            timestamp=handed.timestamp,
            submitted=submitted,
            written=fingerprint(_notebooks_of(graded.files)),
            at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            starvelab=version("starvelab"),
            nbgrader=version("nbgrader"),
            mode=graded.mode,
            seconds=round(graded.seconds, 3),
            **told,
        )
        path = self._path(graded.student)
        path.parent.mkdir(parents=True, exist_ok=True)
        # An ordinary file: a group that shares the course can read it, and nobody else, as umask says.
        part = path.with_name(f"{path.name}.part")
        try:
            with part.open("w", encoding="utf-8") as file:
                json.dump(asdict(record), file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return record

    def _with_what_stays(
        self, graded: Graded, before: Record, inputs: Mapping[str, dict[str, str]]
    ) -> Graded:
        """A submission of which some notebooks were graded now, and the others before."""
        stays = {
            name for name in inputs.keys() - graded.grades.keys() if before.inputs.get(name) == inputs[name]
        }
        if not stays:
            return graded

        def joined(then: Mapping[str, T], now: Mapping[str, T]) -> dict[str, T]:
            both = {**now, **{name: each for name, each in then.items() if name in stays}}
            return {name: both[name] for name in inputs if name in both}

        folder = self.notebooks(graded.student)
        files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
        left_out = (_notebooks_of(files).keys() - {f"{name}.ipynb" for name in stays}) | {STAMP}
        kept = {name: path.read_bytes() for name, path in files.items() if name not in left_out}
        return replace(
            graded,
            grades=joined(before.grades, graded.grades),
            comments=joined(before.comments, graded.comments),
            files=kept | graded.files,
            remarks=joined(before.remarks, graded.remarks),
            refused=[*(name for name in before.refused if name in stays), *graded.refused],
            mistakes=joined(before.mistakes, graded.mistakes),
            mode=max(filter(None, (before.mode, graded.mode)), key=MODES.index),
            limited=before.limited or graded.limited,
        )

    def find(self, student: str) -> Record | None:
        """The record of a student; None where there is none, or the notebooks it speaks of are gone."""
        try:
            told = json.loads(self._path(student).read_text(encoding="utf-8"))
            told["remarks"] = {
                name: [Remark(**one) for one in each] for name, each in told["remarks"].items()
            }
            record = Record(**{name: each for name, each in told.items() if name in KNOWN})
        # A record that cannot be read is as good as none: the submission is graded again.
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None
        return record if record.written == fingerprint(_notebooks_in(self.notebooks(student))) else None

    def tidy(self) -> None:
        """Remove what a run that was killed had begun to write."""
        for path in self.folder.glob("*.part"):
            path.unlink(missing_ok=True)
        for path in self.autograded.glob("*/.part-*"):
            shutil.rmtree(path, ignore_errors=True)

    def __iter__(self) -> Iterator[Record]:
        """All records, by student."""
        for path in sorted(self.folder.glob("*.json")):
            if record := self.find(path.stem):
                yield record

    def _path(self, student: str) -> Path:
        return self.folder / f"{student}.json"

    def notebooks(self, student: str) -> Path:
        """The folder of a student's graded notebooks."""
        return self.autograded / student / self.assignment

    def _write_notebooks(self, graded: Graded) -> None:
        place = self.notebooks(graded.student)
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=place.parent, prefix=".part-", ignore_cleanup_errors=True
        ) as made:
            new = Path(made) / "new"
            for name, content in graded.files.items():
                path = new / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                # Nobody may write it, as nbgrader leaves it; who may read it is what umask says.
                path.chmod(path.stat().st_mode & 0o444)
            with suppress(FileNotFoundError):
                os.rename(place, Path(made) / "old")
            os.rename(new, place)


def _notebooks_of(files: Mapping[str, T]) -> dict[str, T]:
    return {name: content for name, content in files.items() if name.endswith(".ipynb")}


def _notebooks_in(folder: Path) -> dict[str, bytes]:
    found = sorted(folder.rglob("*.ipynb"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found if path.is_file()}
