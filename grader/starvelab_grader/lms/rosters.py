"""Tables of learning platforms, and who is in a class by them, in any language.

Cells are filled in, the rest is unchanged, and no text becomes a formula.
"""

import codecs
import csv
import io
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from nbgrader.api import Gradebook

from ..autograde.nbgrader_private import one_transaction
from ..batch.classroom import MAX_NAME
from ..errors import InputError
from ..text import escape_csv_formulas, one_line, storable

ENCODINGS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
DECIMAL_COMMA = re.compile(r"\s*\d+,\d{1,2}\s*")  # and no comma between thousands
MAX_COLUMNS = 1000  # characters of their names in a message


class Sheet:
    """A table with a line of headers, as CSV. Other cells keep their values."""

    def __init__(self, text: str, encoding: str = "utf-8") -> None:
        self.encoding = encoding
        # The delimiter stands between the headers, outside of quotes.
        first = re.sub(r'"[^"]*"', "", text.lstrip("\r\n")).splitlines()[:1]
        self.delimiter = max(",;\t", key="".join(first).count)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter)
        self.lines = [line for line in reader if line]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file in UTF-8, in UTF-16 if it says so, or in the encoding of western Windows."""
        content = path.read_bytes()
        encoding = next((name for mark, name in ENCODINGS.items() if content.startswith(mark)), "utf-8")
        try:
            return cls(content.decode(encoding), encoding)
        except UnicodeDecodeError:
            return cls(content.decode("latin-1"), "latin-1")

    @classmethod
    def new(cls, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> Self:
        """Make a table that no program gave out. None is an empty cell."""
        sheet = cls("")
        cells = ([str(escape_csv_formulas("" if one is None else one)) for one in row] for row in rows)
        sheet.lines = [list(headers), *cells]
        return sheet

    @property
    def headers(self) -> list[str]:
        """The first line; empty if there is nothing."""
        return [header.strip() for header in self.lines[0]] if self.lines else []

    @property
    def columns(self) -> str:
        """The headers in a message: a file that is no table may hold anything."""
        return one_line(", ".join(self.headers), MAX_COLUMNS)

    @property
    def rows(self) -> list[list[str]]:
        """The values of all other lines, each as long as the headers."""
        return [[*line, *[""] * (len(self.lines[0]) - len(line))] for line in self.lines[1:]]

    def put(self, row: int, column: int, value: str) -> None:
        """Write a cell."""
        line = self.lines[1 + row]
        line += [""] * (column + 1 - len(line))
        line[column] = escape_csv_formulas(value)

    def add_column(self, header: str) -> int:
        """Add an empty column behind the others, and return its number."""
        self.lines[0].append(header)
        return len(self.lines[0]) - 1

    @property
    def content(self) -> bytes:
        """The table as a file holds it."""
        text, width = io.StringIO(newline=""), len(self.headers)
        lines = ([*line, *[""] * (width - len(line))] for line in self.lines)
        csv.writer(text, delimiter=self.delimiter).writerows(lines)
        return text.getvalue().encode(self.encoding, "replace")


def number_in(text: str) -> float | None:
    """Read the number in a cell, with a point or a comma; None if there is none."""
    return float(text.replace(",", ".")) if re.fullmatch(r"\s*\d+([.,]\d+)?\s*", text) else None


def open_sheet(roster: str | Path) -> Sheet:
    """Read the table that a platform exported. Raises InputError where there is none."""
    path = Path(roster).expanduser()
    try:
        sheet = Sheet.read(path) if path.is_file() else None
    except csv.Error as error:
        raise InputError(
            f"The roster '{roster}' is no table: {error}. Pass what the platform exported."
        ) from None
    if sheet is None or not sheet.headers:
        problem = "not there" if sheet is None else "empty"
        raise InputError(f"The roster '{roster}' is {problem}. Pass the table that the platform exported.")
    return sheet


# --- who is in a class ------------------------------------------------------------------------------------
CANVAS_ID = "ID"
TEST_STUDENT = "Student, Test"  # Canvas' own
# By what a column holds, the words for it in many languages.
WORDS = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))
PARTICIPANT = re.compile(r"(?P<word>\D*[^\W\d_]\D*?)\s*(?P<number>\d+)", re.DOTALL)


@dataclass(frozen=True)
class Person:
    """A student, as a roster names one."""

    first_name: str = ""
    last_name: str = ""
    email: str = ""

    @classmethod
    def of(cls, name: str, email: str = "") -> Self:
        """Read a name such as "Lovelace, Ada" or "Ada Lovelace"."""
        last, comma, first = name.partition(",")
        if not comma:
            first, _, last = name.strip().rpartition(" ")
        return cls(first.strip(), last.strip(), email)


def key(text: str) -> str:
    """Return the name of a student's folder, by a cell: Moodle writes "Participant 123", in any language."""
    match = PARTICIPANT.fullmatch(text.strip())
    return match["number"] if match else text.strip()


def student_in(text: str, known: Mapping[str, str]) -> str | None:
    """Return the student whom a cell names; None where it names nobody who is known."""
    return known.get(text.strip()) or known.get(key(text))


def identity_column(sheet: Sheet, known: Mapping[str, str], among: Iterable[int] | None = None) -> int | None:
    """Return the column that names the most of the known students, each once; None where none does."""
    counts, rows = {}, sheet.rows
    for column in range(len(sheet.headers)) if among is None else among:
        students = [student for row in rows if (student := student_in(row[column], known))]
        if students and len(students) == len(set(students)):
            counts[column] = len(students)
    return max(counts, key=counts.__getitem__, default=None)


def read_roster(roster: str | Path, submitted: Iterable[str]) -> dict[str, Person]:
    """Read the students of a platform's table, by their folders, which tell the column; or InputError."""
    sheet, submitted = open_sheet(roster), set(submitted)
    column = identity_column(sheet, {name: name for name in submitted})
    if column is None and CANVAS_ID in sheet.headers:  # then nobody in it has submitted yet
        column = sheet.headers.index(CANVAS_ID)
    elif column is None:
        matches = [PARTICIPANT.fullmatch(row[0].strip()) for row in sheet.rows]
        words = {match and match["word"] for match in matches}
        column = 0 if len(words) == 1 and None not in words else None
    if column is None:
        raise InputError(
            f"No column of the roster '{roster}' names a student who submitted. It needs the numbers that "
            "stand in the download: for Canvas the gradebook (Grades, Export), for Moodle the grading "
            f"worksheet of this assignment. It has: {sheet.columns}."
        )
    rows = [row for row in sheet.rows if row[column].strip() and TEST_STUDENT not in row]
    as_written = not submitted.isdisjoint(row[column].strip() for row in rows)
    named = str.strip if as_written else key
    return {named(row[column]): _person(sheet, row, column) for row in rows}


def _person(sheet: Sheet, row: Sequence[str], identity: int) -> Person:
    email = next((value for value in row if re.fullmatch(r"[^@\s]+@[^@\s]+", value.strip())), "").strip()
    first, last, full = (
        next((at for at, header in enumerate(sheet.headers) if header.casefold() in usual), None)
        for usual in map(WORDS.__getitem__, ("first_names", "last_names", "full_names"))
    )
    if first is not None and last is not None and row[first].strip() and row[last].strip():
        return Person(row[first].strip(), row[last].strip(), email)
    if full is None and PARTICIPANT.fullmatch(row[identity].strip()) and identity + 1 < len(row):
        # Moodle puts the full name there, or, where graders are not to know it, a status that many share.
        values = [each[identity + 1] for each in sheet.rows]
        full = identity + 1 if 1 < len(values) < 2 * len(set(values)) else None
    name = "" if full is None else row[full].strip()
    return Person.of(name, email) if name and "@" not in name else Person(email=email)


def register(book: Gradebook, people: Mapping[str, Person], numbers: Iterable[str] = ()) -> None:
    """Write the students into the gradebook; of some the name is their number on the platform.

    A field that the roster leaves empty stays as it is.
    """
    with one_transaction(book):
        for student, person in people.items():
            fields = {name: one_line(value, MAX_NAME) for name, value in vars(person).items()}
            book.update_or_create_student(student, **{name: text for name, text in fields.items() if text})
        for student in numbers:
            book.update_or_create_student(student, lms_user_id=student)


def named_by_download(book: Gradebook, names: Mapping[str, str]) -> dict[str, Person]:
    """Return the students for whom the gradebook has no name, with their names from the download."""
    known = {str(one.id) for one in book.students if one.first_name or one.last_name}
    # Whom the gradebook cannot hold is left to grading, which says so.
    new = (one for one in names if one not in known and storable(one) == one)
    return {student: Person.of(names[student]) for student in new}
