"""Tables of quantities, as aligned text and as HTML."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from html import escape
from math import floor, isclose
from typing import Any

import numpy as np

from .errors import requiring
from .units import Q_, Number, Quantity, format_number, format_quantity, unit_name

# So many characters beside each other have room on a phone; cells break between words only.
_PHONE = 42
HINT = (
    "<style>@media (min-width:600px){.sl-hint{display:none}}</style>"
    '<p class="sl-hint" aria-hidden="true" style="margin:0;font-size:smaller">Swipe for the rest \u2192</p>'
)


class Share(float):
    """A part of a whole, 0 to 1, which a table shows as a percentage."""


def cell(value: object) -> str:
    """One value as people write it: numbers to four digits, True as yes and False as no, None as nothing."""
    if value is None:
        return ""
    if isinstance(value, Share):
        return percent(value)
    if isinstance(value, Quantity):
        return format_quantity(value)
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return str(value)
    if isinstance(value, float | np.floating):
        return format_number(value)
    return str(value)


def percent(share: Number, digits: int = 1) -> str:
    """A share as a percentage: 0.18349 is 18.3 %; an array of them as its quantity."""
    return cell(Q_(100 * share, "percent")) if np.ndim(share) else f"{100 * float(share):.{digits}f} %"


def count_of(number: int, noun: str) -> str:
    """So many things, in words that agree with the number: 1 worker, 2 batches."""
    return f"{number} {noun}{'' if number == 1 else 'es' if noun.endswith('ch') else 's'}"


def points(number: float) -> str:
    """Points as they are shown: exact with two decimals, or cut to one, so that 2.999 of 3 is never 3."""
    exact = round(float(number), 2)
    shown = exact if isclose(number, exact, abs_tol=1e-9) else floor(10 * number) / 10
    return f"{shown:.10g}"


def as_sentence(message: str) -> str:
    """The message with a capital letter, unless it begins with a name from code, as ``n`` or ``gpu_busy``."""
    first = message.split(" ")[0].rstrip(".,:;")
    is_word = first.isalpha() and (len(first) > 1 or first == "a")
    return message[:1].upper() + message[1:] if is_word else message


def to_text(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """An aligned table in plain text."""
    from tabulate import tabulate  # loaded here: most sessions show HTML

    body = [[cell(value) for value in row] for row in rows]
    align = _alignment(headers, body) if body else None
    return str(
        tabulate(body, headers=list(headers), tablefmt="simple", disable_numparse=True, colalign=align)
    )


def to_html(headers: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """A table for the notebook, with header cells a screen reader can announce."""
    body = [[cell(value) for value in row] for row in rows]
    # JupyterLab aligns every cell to the right, which suits numbers only.
    style = [' style="text-align:left"' if side == "left" else "" for side in _alignment(headers, body)]
    head = "".join(f'<th scope="col"{s}>{escape(str(h))}</th>' for s, h in zip(style, headers, strict=True))
    lines = "".join(
        "<tr>" + "".join(f"<td{s}>{escape(text)}</td>" for s, text in zip(style, row, strict=True)) + "</tr>"
        for row in body
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    table = f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
    columns = zip(headers, *body, strict=True)
    wide = sum(3 + max(len(word) for word in " ".join(column).split(" ")) for column in columns) > _PHONE
    return f'<div style="overflow-x:auto">{HINT if wide else ""}{table}</div>'


def rows_to_frame(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> Any:
    """Return the rows of a table as a data frame of pandas, as `to_frame` does its columns."""
    rows = [*rows]
    return to_frame(headers, [[row[i] for row in rows] for i in range(len(headers))])


# Any: the frame is one of pandas, which nothing else needs.
def to_frame(headers: Sequence[str], columns: Iterable[Sequence[object]]) -> Any:
    """Return columns as a data frame of pandas: numbers, with the unit of a column after its name."""
    with requiring("to_pandas()", "Install it: pip install pandas."):
        import pandas as pd  # loaded here: nothing else needs it

    named = [_with_unit(header, column) for header, column in zip(headers, columns, strict=True)]
    frame = pd.DataFrame({i: values for i, (_, values) in enumerate(named)})
    frame.columns = pd.Index([name for name, _ in named])  # two columns may have one name
    return frame


def _with_unit(name: str, column: Sequence[object]) -> tuple[str, object]:
    """Return the numbers of a column, and its name with their unit; as shown where units differ."""
    quantities = [value for value in column if isinstance(value, Quantity)]
    if isinstance(column, Quantity):
        return f"{name} [{unit_name(column.units)}]", column.magnitude
    if not quantities:
        return name, column if isinstance(column, np.ndarray) else list(column)
    unit, gap = quantities[0].units, ("", None)
    comparable = all(value.is_compatible_with(unit) and not np.ndim(value) for value in quantities)
    if not comparable or any(not isinstance(value, Quantity) and value not in gap for value in column):
        return name, [cell(value) for value in column]
    numbers = [value.m_as(unit) if isinstance(value, Quantity) else np.nan for value in column]
    return f"{name} [{unit_name(unit)}]", numbers


def paragraph(text: str) -> str:
    """A line below a table in HTML; empty for no text."""
    return f"<p>{escape(text)}</p>" if text else ""


class TableRepr(ABC):
    """A result that is represented by a table, as text and in HTML."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """The result in one line, above the table."""

    @property
    @abstractmethod
    def headers(self) -> Sequence[str]:
        """One for each column."""

    @property
    @abstractmethod
    def rows(self) -> Sequence[Sequence[object]]:
        """The values, row by row; quantities and numbers are formatted by `cell`."""

    @property
    def note(self) -> str:
        """A line below the table; empty for none."""
        return ""

    def to_pandas(self) -> Any:
        """Return the table as a data frame of pandas: numbers, with the unit of a column after its name.

        A share is a number from 0 to 1. A column whose units differ is text, as the table shows it.

        Raises
        ------
        MissingPackageError
            If pandas is not installed.
        """
        return rows_to_frame(self.headers, self.rows)

    def __repr__(self) -> str:
        return "\n".join(filter(None, (self.summary, to_text(self.headers, self.rows), self.note)))

    def _repr_html_(self) -> str:
        return to_html(self.headers, self.rows, caption=self.summary) + paragraph(self.note)


def _alignment(headers: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """Right for a column of numbers, left for one of words; gaps and dots are neither."""
    columns = [[row[i] for row in body if row[i] not in ("", "...")] for i in range(len(headers))]
    return [
        "right" if all(text.lstrip("+-")[:1].isdigit() for text in column) else "left" for column in columns
    ]
