"""Tables of other programs: cells are filled in, the rest is unchanged, and no text becomes a formula."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..text import escape_csv_formulas

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
