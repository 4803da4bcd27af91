"""Tables of learning platforms, and who is in a class by them, in any language.

Cells are filled in, the rest is unchanged, and no text becomes a formula.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry

from ..autograde.nbgrader_private import one_transaction
from ..batch.classroom import MAX_NAME
from ..errors import InputError
from ..text import escape_csv_formulas, one_line, storable

DELIMITERS = ",;\t"
MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"  # what Excel puts before UTF-8
DECIMAL_COMMA = re.compile(r"\s*\d+,\d{1,2}\s*")  # and no comma between thousands


class Sheet:
    """A table with a line of headers, as CSV. Other cells keep their characters and quotes."""

    def __init__(self, text: str, encoding: str = "utf-8") -> None:
        self.encoding = encoding
        self.mark = MARK if text.startswith(MARK) else ""
        text = text.removeprefix(MARK)
        # The delimiter stands between the headers, outside of quotes.
        first = re.sub(r'"[^"]*"', "", text.lstrip("\r\n")).splitlines()[:1]
        self.delimiter = max(DELIMITERS, key="".join(first).count)
        self._lines = _lines(text, self.delimiter)
        self._full = [line for line, _ in self._lines if line != [""]]

    @classmethod
    def read(cls, path: Path) -> Sheet:
        """A file in UTF-8, in UTF-16 if it says so, or in the encoding of western Windows."""
        content = path.read_bytes()
        if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return cls(content.decode("utf-16"), "utf-16")
        try:
            return cls(content.decode())
        except UnicodeDecodeError:
            return cls(content.decode("latin-1"), "latin-1")

    @classmethod
    def new(cls, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> Sheet:
        """A table that no program gave out. None is an empty cell."""
        texts = (["" if value is None else str(escape_csv_formulas(value)) for value in row] for row in rows)
        return cls(
            "".join(",".join(_quoted(text, ",") for text in row) + "\r\n" for row in (headers, *texts))
        )

    @property
    def headers(self) -> list[str]:
        """The first line; empty if there is nothing."""
        return [_value(raw).strip() for raw in self._full[0]] if self._full else []

    @property
    def rows(self) -> list[list[str]]:
        """The values of all other lines, each as long as the headers."""
        wide = len(self.headers)
        return [[_value(raw) for raw in line] + [""] * (wide - len(line)) for line in self._full[1:]]

    def put(self, row: int, column: int, value: str) -> None:
        """Write a cell."""
        line = self._full[1 + row]
        line += [""] * (column + 1 - len(line))
        line[column] = _quoted(escape_csv_formulas(value), self.delimiter)

    def put_number(self, row: int, column: int, value: float) -> None:
        """Write a number, with a comma where the numbers in this column or beside it have one."""
        near = (cell for line in self.rows for cell in line[column : column + 2])
        text = f"{round(value, 5):.10g}"
        self.put(row, column, text.replace(".", ",") if any(map(DECIMAL_COMMA.fullmatch, near)) else text)

    def add_column(self, header: str) -> int:
        """Add an empty column behind the others; its number."""
        column = len(self.headers)
        for line in self._full:
            line += [""] * (column + 1 - len(line))
        self._full[0][column] = _quoted(header, self.delimiter)
        return column

    def insert_row(self, values: Sequence[str]) -> None:
        """Insert a line behind the headers."""
        line = [_quoted(value, self.delimiter) for value in values]
        at = next(i for i, (each, _) in enumerate(self._lines) if each is self._full[0])
        end = self._lines[at][1] or "\r\n"
        self._lines[at : at + 1] = [(self._lines[at][0], end), (line, end)]
        self._full.insert(1, line)

    @property
    def content(self) -> bytes:
        """The table as a file holds it."""
        text = self.mark + "".join(self.delimiter.join(line) + end for line, end in self._lines)
        return text.encode(self.encoding, "replace")


def number_in(text: str) -> float | None:
    """The number in a cell, with a point or a comma; None if there is none."""
    return float(text.replace(",", ".")) if re.fullmatch(r"\s*\d+([.,]\d+)?\s*", text) else None


def _lines(text: str, delimiter: str) -> list[tuple[list[str], str]]:
    """The cells of each line as they are written, and how the line ends."""
    lines: list[tuple[list[str], str]] = []
    cells: list[str] = []
    cell = rf'((?:"(?:[^"]|"")*+(?:"|\Z))?+[^{delimiter}\r\n]*)({delimiter}|\r\n|\r|\n|\Z)'
    for raw, end in re.findall(cell, text):
        if raw or end or cells:  # and not the empty match behind the last line
            cells.append(raw)
            if end != delimiter:
                lines.append((cells, end))
                cells = []
    return lines


def _value(raw: str) -> str:
    quoted = re.fullmatch(r'"((?:[^"]|"")*)(?:"|\Z)(.*)', raw, re.DOTALL)
    return quoted[1].replace('""', '"') + quoted[2] if quoted else raw


def _quoted(value: str, delimiter: str) -> str:
    special = re.search(rf'[{delimiter}"\r\n]', value)
    return '"' + value.replace('"', '""') + '"' if special else value


# --- who is in a class ------------------------------------------------------------------------------------


CANVAS_ID = "ID"
TEST_STUDENT = "Student, Test"  # Canvas' own
FULL_NAMES = {
    "student", "full name", "name", "vollständiger name", "nom complet", "nombre completo", "nome completo",
    "volledige naam", "fullständigt namn", "全名", "姓名",
}  # fmt: skip
FIRST_NAMES = {"first name", "firstname", "vorname", "prénom", "nombre", "nome", "voornaam", "förnamn"}
LAST_NAMES = {
    "last name", "lastname", "surname", "nachname", "nom", "nom de famille", "apellido(s)", "apellidos",
    "cognome", "sobrenome", "apelido", "achternaam", "efternamn", "nazwisko",
}  # fmt: skip
PARTICIPANT = re.compile(r"(?P<word>\D*[^\W\d_]\D*?)\s*(?P<number>\d+)", re.DOTALL)
MAX_COLUMNS = 1000  # characters of their names in a message


@dataclass(frozen=True)
class Person:
    """A student, as a roster names one."""

    first_name: str = ""
    last_name: str = ""
    email: str = ""

    @classmethod
    def called(cls, name: str, email: str = "") -> Person:
        """From a name such as "Lovelace, Ada" or "Ada Lovelace"."""
        last, comma, first = (part.strip() for part in name.partition(","))
        if not comma:
            first, _, last = name.strip().rpartition(" ")
        return cls(first.strip(), last, email)


def open_sheet(roster: str | Path) -> Sheet:
    """The table that a platform exported. Raises InputError where there is none."""
    path = Path(roster).expanduser()
    if not path.is_file():
        raise InputError(f"The roster '{roster}' is not there. Pass the table that the platform exported.")
    sheet = Sheet.read(path)
    if not sheet.headers:
        raise InputError(f"The roster '{roster}' is empty. Pass the table that the platform exported.")
    return sheet


def named(sheet: Sheet) -> str:
    """The columns of a table, in a message: one that is none may hold anything."""
    return one_line(", ".join(sheet.headers), MAX_COLUMNS)


def key(text: str) -> str:
    """How a student's folder is called, by a cell: Moodle writes "Participant 123", in its own language."""
    match = PARTICIPANT.fullmatch(text.strip())
    return match["number"] if match else text.strip()


def who(text: str, known: Mapping[str, str]) -> str | None:
    """The student whom a cell names; None where it names nobody who is known."""
    return known.get(text.strip()) or known.get(key(text))


def identity_column(
    sheet: Sheet, known: Mapping[str, str], columns: Iterable[int] | None = None
) -> int | None:
    """The column that names the most of the known students, each once; None where none does."""
    best, count = None, 0
    for column in range(len(sheet.headers)) if columns is None else columns:
        students = [student for row in sheet.rows if (student := who(row[column], known))]
        if len(students) > count and len(students) == len(set(students)):
            best, count = column, len(students)
    return best


def read_roster(roster: str | Path, submitted: Iterable[str]) -> dict[str, Person]:
    """The students of a platform's table, by their folders, which tell the column; or InputError."""
    sheet = open_sheet(roster)
    submitted = set(submitted)
    column = identity_column(sheet, {name: name for name in submitted})
    if column is None:
        column = _usual_identity(sheet)
    if column is None:
        raise InputError(
            f"No column of the roster '{roster}' names a student who submitted. It needs the numbers that "
            "stand in the download: for Canvas the gradebook (Grades, Export), for Moodle the grading "
            f"worksheet of this assignment. It has: {named(sheet)}."
        )
    rows = [row for row in sheet.rows if row[column].strip() and TEST_STUDENT not in row]
    as_written = not submitted.isdisjoint(row[column].strip() for row in rows)
    return {
        row[column].strip() if as_written else key(row[column]): _person(sheet, row, column) for row in rows
    }


def _usual_identity(sheet: Sheet) -> int | None:
    """The column of the numbers, in a table of which nobody has submitted yet."""
    if CANVAS_ID in sheet.headers:
        return sheet.headers.index(CANVAS_ID)
    matches = [PARTICIPANT.fullmatch(row[0].strip()) for row in sheet.rows]
    words = {match and match["word"] for match in matches}
    return 0 if len(words) == 1 and None not in words else None


def _person(sheet: Sheet, row: Sequence[str], identity: int) -> Person:
    headers = [header.casefold() for header in sheet.headers]

    def column(usual: set[str]) -> int | None:
        return next((at for at, header in enumerate(headers) if header in usual), None)

    email = next((value for value in row if re.fullmatch(r"[^@\s]+@[^@\s]+", value.strip())), "").strip()
    first, last, full = map(column, (FIRST_NAMES, LAST_NAMES, FULL_NAMES))
    if first is not None and last is not None and row[first].strip() and row[last].strip():
        return Person(row[first].strip(), row[last].strip(), email)
    if full is None and PARTICIPANT.fullmatch(row[identity].strip()) and identity + 1 < len(row):
        # Moodle puts the full name there, or, where graders are not to know it, a status that many share.
        values = [each[identity + 1] for each in sheet.rows]
        full = identity + 1 if 1 < len(values) < 2 * len(set(values)) else None
    name = "" if full is None else row[full].strip()
    return Person.called(name, email) if name and "@" not in name else Person(email=email)


def register(book: Gradebook, people: Mapping[str, Person]) -> None:
    """Write the students into the gradebook. A field that the roster leaves empty stays as it is."""
    with one_transaction(book):
        for student, person in people.items():
            fields = {name: one_line(value, MAX_NAME) for name, value in vars(person).items()}
            book.update_or_create_student(student, **{name: text for name, text in fields.items() if text})


def named_by_download(book: Gradebook, names: Mapping[str, str]) -> dict[str, Person]:
    """The students for whom the gradebook has no name, with their names from the download."""
    people = {}
    for student, name in names.items():
        if storable(student) != student:  # which the gradebook cannot hold: grading says so
            continue
        try:
            entry = book.find_student(student)
        except MissingEntry:
            entry = None
        if entry is None or not (entry.first_name or entry.last_name):
            people[student] = Person.called(name)
    return people
