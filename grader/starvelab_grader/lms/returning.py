"""Feedback on its way back: who gets which page, in files that Canvas and Moodle take, and each page once.

Of a file's name Canvas reads two numbers: that of the student, and that of a file in this student's current
submission, under whose name the student gets it. So a page is packed as what that file is. Moodle reads the
number of a participant of the assignment, and shows the name that stands behind it.
"""

import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import floor
from pathlib import Path
from typing import TypeAlias
from zipfile import ZIP_DEFLATED, ZipFile

import nbformat
from nbgrader.api import SubmittedAssignment

from ..errors import InputError
from ..files import fingerprint, write_whole
from ..text import slug
from .collecting import CANVAS, Origin
from .rosters import Sheet, key

RECORD = "returned.json"
Returned: TypeAlias = Mapping[str, str]  # the digest of a `page`, and the `points` as they were written
CARRIERS = (".zip", ".html", ".htm", ".ipynb")  # what a page can be packed as, the best first
ESCAPED = str.maketrans({"\n": "&#10;", "$": "&#36;", "\\": "&#92;"})
PICTURE = re.compile(rb'src="data:(image/[\w.+-]+);base64,([\w+/=]+)"')


@dataclass(frozen=True)
class Result:
    """A student's submission; `possible` is what the platform has, where points are scaled to that."""

    submission: SubmittedAssignment
    possible: float | None = None

    @property
    def counted(self) -> float:
        """The points that count: less what being late costs."""
        points: float = self.submission.score - self.submission.late_submission_penalty
        return max(0.0, points)

    @property
    def filed(self) -> float:
        """The points that are written. Platforms show two decimals, and so many a scaled number has."""
        most = float(self.submission.max_score)
        if self.possible is None or not most:
            return self.counted
        return floor(100 * self.counted * self.possible / most + 0.5 + 1e-9) / 100

    @property
    def points(self) -> str:
        """The points that are written, with a decimal point."""
        return f"{round(self.filed, 5):.10g}"

    @property
    def summary(self) -> str:
        """The points in words, for the student."""
        work = self.submission
        parts = [f"{self.counted:g} of {work.max_score:g} points"]
        if late := work.late_submission_penalty:
            parts[0] += f" ({work.score:g}, less {late:g} for being late)"
        notebooks = sorted(work.notebooks, key=lambda one: one.name)
        parts += [f"{one.name}: {one.score:g} of {one.max_score:g}" for one in notebooks]
        if work.needs_manual_grade:
            parts.append("an explanation is not marked yet, and counts as 0 until then")
        share = "" if self.possible is None else f" As a share of {self.possible:g} that is {self.filed:g}."
        return f"{'; '.join(parts)}.{share}"


@dataclass(frozen=True)
class Delivery:
    """The page of one student, who may have submitted it with others."""

    recipient: str  # by the number that the platform gives a student
    student: str  # the folder of who submitted
    page: Path
    origin: Origin
    digest: str  # of what the page says: how it looks does not count
    before: Returned | None = None
    points: str = ""  # that are written with it; empty where none are

    @property
    def has_new_page(self) -> bool:
        """True if the page says something else than the one that was returned last."""
        return self.before is None or self.before["page"] != self.digest

    @property
    def has_new_points(self) -> bool:
        """True if other points are written than those that were returned last."""
        return bool(self.points) and (self.before is None or self.before["points"] != self.points)

    @property
    def is_new(self) -> bool:
        """True if something of it was not returned yet."""
        return self.has_new_page or self.has_new_points

    @property
    def mark(self) -> str:
        """A part of the digest of page and points, by which a comment says what came with it."""
        return fingerprint({}, self.digest, self.points)[:12]

    @property
    def record(self) -> Returned:
        """What is written down of it. Without points those that came before stay."""
        return {"page": self.digest, "points": self.points or (self.before or {}).get("points", "")}

    @property
    def called(self) -> str:
        """What the student gets the page as, where a file can have a name of its own."""
        return f"{self.page.parent.name}-feedback.html"

    @property
    def path(self) -> str:
        """The page's place in the archive; empty where the student submitted no file that can be a page."""
        if self.origin.platform != CANVAS:
            return f"Participant_{self.recipient}_assignfeedback_file_/{self.called}"
        prefix = "" if self.recipient.startswith("anon_") else "feedback_"
        by_ending = {ending: number for number, ending in reversed(self.origin.files.items())}
        ending = next((one for one in CARRIERS if one in by_ending), None)
        return f"{prefix}{self.recipient}_{by_ending[ending]}_page{ending}" if ending else ""

    @property
    def packed(self) -> bytes:
        """The page as a file of the kind that its name in the archive says."""
        page, packed = self.page.read_bytes(), io.BytesIO()
        if not self.path.endswith(".zip"):
            return as_notebook(page) if self.path.endswith(".ipynb") else page
        with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
            archive.writestr(self.called, page)
        return packed.getvalue()


def as_notebook(page: bytes) -> bytes:
    """Return a notebook that shows a page, also in a JupyterLab that does not trust it."""
    attachments: dict[str, dict[str, str]] = {}

    def attached(match: re.Match[bytes]) -> bytes:
        name = f"figure-{len(attachments) + 1}"
        attachments[name] = {match[1].decode(): match[2].decode()}
        return f'src="attachment:{name}"'.encode()

    body = re.sub(rb"\A.*?<body[^>]*>|</body>.*\Z", b"", page, flags=re.DOTALL)
    # A blank line would end what Markdown leaves as it is, and JupyterLab looks for formulas first.
    text = PICTURE.sub(attached, body).decode("utf-8").strip().translate(ESCAPED)
    cell = nbformat.v4.new_markdown_cell(f"<div>{text}</div>", id="feedback", attachments=attachments)
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}  # so that nobody is asked
    return bytes(nbformat.writes(nbformat.v4.new_notebook(cells=[cell], metadata=metadata)), "utf-8")


def deliveries(
    pages: Mapping[str, Path], origins: Mapping[str, Origin], members: Mapping[str, str],
    before: Mapping[str, Returned],
) -> Iterator[Delivery]:  # fmt: skip
    """Yield a page for each of `members`, who say who submitted; `before` is what came last."""
    for one, student in sorted(members.items()):
        if student in pages:
            content = pages[student].read_bytes()
            digest = fingerprint({"": content.partition(b"<body")[2] or content})
            yield Delivery(one, student, pages[student], origins[student], digest, before.get(one))


def returned(folder: Path) -> dict[str, Returned]:
    """Return by recipient what was returned last, by the records of all returns."""
    last: dict[str, Returned] = {}
    for path in sorted(folder.glob(f"*/{RECORD}")):
        try:
            for recipient, record in json.loads(path.read_text(encoding="utf-8")).items():
                last[recipient] = {"page": str(record["page"]), "points": str(record["points"])}
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InputError(f"{path} cannot be read. Delete its folder: it is returned again.") from None
    return last


def write_record(folder: Path, sent: Iterable[Delivery]) -> None:
    """Write who got which page."""
    write_whole(folder / RECORD, json.dumps({one.recipient: one.record for one in sent}, indent=1))


def members_of(sheet: Sheet, origins: Mapping[str, Origin]) -> dict[str, str]:
    """Return who submitted for each participant of a worksheet of Moodle; InputError if it names nobody.

    A download names students, or groups with numbers of their own, as one column of the worksheet does.
    """
    rows = {number: row for row in sheet.rows if (number := key(row[0])).isdecimal()}
    # Without all that Moodle may take out of the name of a file.
    letters = {student: slug(origin.name, "") for student, origin in origins.items()}
    names = {student: name for student, name in letters.items() if name}
    named: dict[str, set[str]] = {}  # by who submitted, the numbers in the column that names the most
    for column in range(1, len(sheet.headers)):
        numbers = defaultdict[str, set[str]](set)
        for number, row in rows.items():
            numbers[slug(row[column], "")].add(number)
        named = max(named, {one: numbers[name] for one, name in names.items() if name in numbers}, key=len)
    if not rows or (names and not named):
        raise InputError(
            "The roster does not name those who submitted as the download does. Pass the grading worksheet "
            f"of this assignment, with its identifiers (Participant 123). It has: {sheet.columns}."
        )
    if all(student in numbers for student, numbers in named.items()):  # no groups
        named = {student: {student} & rows.keys() for student in origins}
    return {number: student for student, numbers in named.items() for number in numbers}
