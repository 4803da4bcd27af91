"""What a student submitted: the expected notebooks, whatever their names, and other files."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from itertools import islice
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from nbgrader.utils import parse_utc

from ..files import fingerprint
from ..plugins import declared
from ..text import enumerated, printable, shown, slug
from . import SubmissionWarning, Warnings
from .archives import FoundFile, SubmissionReader
from .reading import MAX_CELLS, MAX_NOTEBOOK, UnreadableNotebookError, text_of, without_outputs

Expected: TypeAlias = Mapping[str, set[str]]  # by notebook, the names of its cells
MAX_NAME, MAX_PATH = 200, 1000  # bytes of a part of a path, and of all; file systems take 255 and 4096
MIN_SHARE = 0.5  # of its cells, that a file must name to be a notebook by its content
MAX_LISTED = 10  # warnings about several files in one place
TIMESTAMP = "timestamp.txt"
SECRET = "submission_secret.txt"  # of nbgrader's exchange: the name of each page there is made from it
MAX_SECRET = 1000  # characters; nbgrader writes 128
OWN_NUMBER = "own_number.txt"  # where a check finds the number that the course has given its student


@dataclass
class Submission:
    """A submission, read.

    `rejected` are notebooks that are missing or cannot be read. Of the warnings, those about the submission
    as a whole stand under its first notebook. Whoever collected it wrote the timestamp beside it, and
    nbgrader's exchange the secret.
    """

    student: str
    assignment: str
    notebooks: dict[str, bytes] = field(default_factory=dict)  # by the name of the expected one
    rejected: dict[str, SubmissionWarning] = field(default_factory=dict)
    warnings: dict[str, list[SubmissionWarning]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)  # beside the notebooks
    timestamp: str | None = None
    secret: str = ""
    file_names: dict[str, str] = field(default_factory=dict)  # of renamed notebooks, without the ending
    to_grade: frozenset[str] | None = None  # None for all; those that were graded before stay as they are,
    shown_warnings: frozenset[str] = frozenset()  # with these warnings

    def fingerprints(self) -> dict[str, str]:
        """Return one by expected notebook, also of the files beside: each notebook may read them."""
        beside, fingerprints = fingerprint(self.files, self.student, self.assignment), {}
        for name in sorted({*self.notebooks, *self.rejected}):
            notebook = {"": self.notebooks[name]} if name in self.notebooks else {}
            warnings = [*self.warnings.get(name, []), *filter(None, [self.rejected.get(name)])]
            fingerprints[name] = fingerprint(notebook, name, beside, list(map(astuple, warnings)))
        return fingerprints


def read_submission(folder: Path, student: str, assignment: str, expected: Expected) -> Submission:
    """Read what is in a submission's folder; the expected notebooks come with the names of their cells."""
    reader = SubmissionReader()
    files, submission = list(reader.files(folder)), Submission(student, assignment)
    by_notebook = files_by_notebook(files, expected)
    for name, cells in expected.items():
        if not by_notebook[name]:
            text = _why_missing(name, reader, files, set().union(*expected.values()))
            submission.rejected[name] = SubmissionWarning(text, person=True)
            continue
        chosen, *others = by_notebook[name]
        warnings, file_name = Warnings(), shown(chosen.path.name)
        submission.warnings[name] = warnings
        if chosen.path.name != f"{name}.ipynb":
            warnings.add(f"The file of this notebook is called `{file_name}`.")
            if chosen.path.suffix == ".ipynb" and len(chosen.path.parts) == 1:
                submission.file_names[name] = chosen.path.stem
        warnings += _several_files("this notebook", chosen, others)
        named = cells_named_in(chosen.content)
        if named and not named & cells:
            text = f"`{file_name}` holds no cell of this notebook: it may be of another assignment."
            warnings.add(text, person=True)
        submission.notebooks[name] = _fitting(chosen, warnings)
    general = reader.warnings
    submission.files = files_beside(files, by_notebook.values(), general)
    if reader.tools:
        names = enumerated(list(reader.tools))
        general.add(f"Hidden files and folders, and those that tools make, were left out: {names}.")
    for name, (_, problem_of) in declared("student_files").items():
        if name in submission.files and (problem := problem_of(submission.files[name])):
            general.add(f"`{name}` cannot be read, or not all of it: {shown(problem)}", person=True)
    submission.timestamp = _parse_timestamp(submission.files.pop(TIMESTAMP, b""), general)
    submission.secret = submission.files.pop(SECRET, b"")[:MAX_SECRET].decode("ascii", "ignore")
    if general:
        first = next(iter(expected))
        submission.warnings[first] = [*general, *submission.warnings.get(first, [])]
    return submission


def _fitting(file: FoundFile, warnings: Warnings) -> bytes:
    """Return a notebook, one that is too large without its outputs, and not much more than may be read."""
    content = file.content
    if len(content) > MAX_NOTEBOOK:
        with suppress(UnreadableNotebookError):
            content = without_outputs(text_of(content, warnings)).encode()
        if len(content) <= MAX_NOTEBOOK:
            size = f"`{shown(file.path.name)}` has {len(file.content) / 1e6:.0f} MB"
            warnings.add(f"{size}: its outputs were left out, and are made anew.")
    return content[: MAX_NOTEBOOK + 1]


def _parse_timestamp(content: bytes, warnings: Warnings) -> str | None:
    text = content[:100].decode("utf-8", "replace").strip()
    try:
        return str(parse_utc(text).isoformat()) if text else None
    # A year that no calendar has, or a time zone of a thousand hours: each fails in its own way.
    except Exception:
        warnings.add(f"`{TIMESTAMP}` holds no time: `{shown(text)}`.", person=True)
        return None


def _why_missing(name: str, reader: SubmissionReader, files: Sequence[FoundFile], known: set[str]) -> str:
    if name in reader.links:
        return f"`{name}.ipynb` was submitted as a link, and not as a file. Submit the file itself."
    text = f"`{name}.ipynb` was not submitted, so its exercises earn no points."
    stem = slug(name)
    if alike := [file.path.name for file in files if stem in slug(file.path.name)]:
        text += f" `{shown(alike[0])}` is not the notebook itself. Submit the notebook, as .ipynb."
    elif other := [file.path.name for file in files if cells_named_in(file.content) - known]:
        text += f" `{shown(other[0])}` is of another assignment."
    return text


def files_by_notebook(files: Sequence[FoundFile], expected: Expected) -> dict[str, list[FoundFile]]:
    """Return for each expected notebook the files that may be it, the likeliest first."""
    claims: dict[str, list[tuple[tuple[object, ...], FoundFile]]] = {name: [] for name in expected}
    for file in files:
        lower = file.path.name.lower()
        is_own = any(PurePosixPath(one).stem in lower for one in declared("student_files"))
        if ".ipynb" not in lower and (is_own or not lower.endswith(".json")):
            continue
        stem = re.split(r"\.ipynb", file.path.name, flags=re.IGNORECASE)[0]
        # The notebook's name is a part of the file's: `x (1)`, `x-Copy1`, `ada_123_x`, `X`.
        names = [name for name in expected if slug(name) in slug(stem)]
        if name := max(names, key=len, default=None) or _by_content(file.content, expected):
            is_exact = file.path.name == f"{name}.ipynb"
            # Of several copies browsers and learning platforms give the newest the highest number.
            number = int((re.findall(r"\d+", stem.replace(name, "")) or ["0"])[-1][:9])
            is_whole = file.content.rstrip(b" \t\r\n\0").endswith(b"}")  # or an upload was cut off
            rank = (not is_whole, not is_exact, file.depth, len(file.path.parts), -number, str(file.path))
            claims[name].append((rank, file))
    return {name: [file for _, file in sorted(each, key=itemgetter(0))] for name, each in claims.items()}


def _by_content(content: bytes, expected: Expected) -> str | None:
    """Return the notebook most of whose cells a file names."""
    named = cells_named_in(content)
    shares = {name: len(named & cells) / len(cells) for name, cells in expected.items() if cells}
    best = max(shares, key=shares.__getitem__, default=None)
    return best if best is not None and shares[best] > MIN_SHARE else None


def cells_named_in(content: bytes) -> set[str]:
    """The names of nbgrader's cells that a file holds."""
    encoding = json.detect_encoding(content[:4])
    if not encoding.startswith("utf-8"):
        content = content[:MAX_NOTEBOOK].decode(encoding, "replace").encode("utf-8", "replace")
    if b"nbgrader" not in content:
        return set()
    named = re.finditer(rb'"grade_id"\s*:\s*"([^"\\]{1,200})"', content)
    return {match[1].decode("utf-8", "replace") for match in islice(named, MAX_CELLS)}


def files_beside(
    files: Sequence[FoundFile], notebooks: Iterable[Sequence[FoundFile]], warnings: Warnings
) -> dict[str, bytes]:
    """Return the files that are no notebooks, by their paths from the folder of the notebooks."""
    # Of two files in one place, that in the folder of the notebooks counts: these ran beside it.
    notebooks = [each for each in notebooks if each]
    parents = [first.path.parent for first, *_ in notebooks]
    claimed = [file for each in notebooks for file in each]
    base = max(parents, key=parents.count, default=PurePosixPath())
    places: dict[str, list[FoundFile]] = {}
    not_expected, stamps, too_long = list[str](), list[str](), list[str]()
    for file in sorted(files, key=lambda one: (not one.path.is_relative_to(base), one.depth, str(one.path))):
        path = file.path.relative_to(base) if file.path.is_relative_to(base) else file.path
        if file in claimed:
            continue
        if ".ipynb" in file.path.name.lower():
            not_expected.append(str(file.path))
        elif file.path.name in (TIMESTAMP, SECRET) and (file.depth or len(file.path.parts) > 1):
            stamps.append(str(file.path))
        elif _is_too_long(name := printable(str(path)).replace("?", "_")):
            too_long.append(name)
        else:
            places.setdefault(name, []).append(file)
    beside, several = dict[str, bytes](), list[SubmissionWarning]()
    for name, (first, *others) in places.items():
        beside[name] = first.content
        several += _several_files(f"`{shown(name)}`", first, others)
    _rename_copies(beside, warnings)
    warnings += several[:MAX_LISTED]
    if several[MAX_LISTED:]:
        warnings.add(f"There are several files in {len(several) - MAX_LISTED} more places.", person=True)
    if not_expected:
        warnings.add(f"Notebooks that are not asked for were left out: {enumerated(not_expected)}.")
    if too_long:
        warnings.add(
            f"Files with names that are too long were left out: {enumerated(too_long)}.", person=True
        )
    if stamps:
        text = f"Only the platform writes files of this name, so yours were left out: {enumerated(stamps)}."
        warnings.add(text)
    return beside


def _rename_copies(beside: dict[str, bytes], warnings: Warnings) -> None:
    """Give the likeliest copy of each file that the lab wrote its name, in place, and warn of others."""
    for right in declared("student_files"):
        stem, dot, ending = right.rpartition(".")
        pattern = re.compile(rf"{re.escape(stem)}\b.*{re.escape(dot + ending)}")
        alike = sorted(filter(pattern.search, beside), key=len)
        chosen = right if right in beside else next(iter(alike), "")
        others = [name for name in alike if beside[name] != beside[chosen]]
        if chosen and chosen != right:
            beside[right] = beside.pop(chosen)
        if others:
            counts = "counts" if chosen == right else f"counts as `{right}`"
            text = f"`{shown(chosen)}` {counts}, and {enumerated(others)} does not."
            warnings.add(text, person=True)


def _several_files(what: str, chosen: FoundFile, others: Sequence[FoundFile]) -> list[SubmissionWarning]:
    """Return a warning that files of other contents belong in the same place; none where there are none."""
    left_out = enumerated([str(other.path) for other in others if other.content != chosen.content])
    counts = f"`{shown(str(chosen.path))}` counts, and {left_out} does not"
    text = f"There are several files of {what}: {counts}."
    return [SubmissionWarning(text, person=True)] if left_out else []


def _is_too_long(path: str) -> bool:
    """True if a path cannot be written on any file system."""
    return len(path.encode()) > MAX_PATH or any(len(part.encode()) > MAX_NAME for part in path.split("/"))
