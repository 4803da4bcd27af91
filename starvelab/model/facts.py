"""A fact: one value with its kind and its source; what is made of facts; and the files with facts."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from importlib.resources import files
from typing import Any

from ..errors import InputError
from ..tables import as_sentence, cell, rows_to_frame, to_html
from ..units import Number, Quantity, Unchecked, base_number

KINDS = ("datasheet", "paper", "measured", "assumption")
_BY_THE_USER = "given by the user"


@dataclass(frozen=True)
class Fact:
    """One value and where it comes from.

    Attributes
    ----------
    value : quantity or int
    kind : {"datasheet", "paper", "measured", "assumption"}
    source : str
        Document, date, table or page; empty for an assumption.
    note : str
        Why an assumption has this value, or what to know about a sourced one.
    low, high : quantity or None
        The lowest and the highest value of the sources, if they disagree; the note names these.
    """

    value: Unchecked
    kind: str
    source: str = ""
    note: str = ""
    low: Unchecked = None
    high: Unchecked = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(
                f"A fact's kind must be one of {', '.join(KINDS)}, got {self.kind!r}. Say where it is from."
            )
        if self.kind == "assumption" and not self.note:
            raise InputError(
                f"An assumption needs a note, got none for {self.value}. Say why it has this value."
            )
        if self.kind != "assumption" and not self.source:
            raise InputError(
                f"A fact needs its source, got none for {self.value}. Name the document, and the table in it."
            )
        if (self.low is None) != (self.high is None):
            raise InputError(f"A spread has low and high, got one of them for {self.value}. Give both.")
        if self.low is not None and not (self.note and self.low <= self.value <= self.high):
            raise InputError(
                f"A spread holds the value between low and high and has a note, got {self.value} beside "
                f"{self.low} and {self.high}. Say in the note who gives which."
            )

    @classmethod
    def read(cls, row: Mapping[str, Unchecked], read: Callable[[Unchecked], Unchecked]) -> Fact:
        """Return a fact of a file; `read` converts its value and its ends."""
        if not {"value", "kind"} <= set(row) <= FIELDS:
            raise InputError(
                f"A fact has value and kind, and source or note, got {', '.join(row)}. Check the spelling."
            )
        return cls(**{key: read(made) if key in _VALUES else made for key, made in row.items()})

    @classmethod
    def of(cls, value: Unchecked, read: Callable[[Unchecked], Unchecked]) -> Fact:
        """Return a value that the user gives, converted by `read`; a fact stays as it is."""
        return value if isinstance(value, Fact) else cls(read(value), "assumption", note=_BY_THE_USER)

    @property
    def given(self) -> bool:
        """True if the user gave it."""
        return self.note == _BY_THE_USER

    @property
    def origin(self) -> str:
        """The source, and the note if there is one, as one line."""
        note = as_sentence(self.note) if self.source else self.note
        return ". ".join(part.rstrip(".") for part in (self.source, note) if part)

    @cached_property
    def number(self) -> Number:
        """The value as a plain number in base units; a count or a word as it is."""
        return base_number(self.value) if isinstance(self.value, Quantity) else self.value


FIELDS = frozenset(field.name for field in fields(Fact))
_VALUES = ("value", "low", "high")


_HEADERS = ("figure", "value", "kind", "source")
# Of an accelerator these are shown, and the others folded away.
MATTER_FIRST = ("peak_fp16_dense", "memory_capacity", "memory_bandwidth", "link_bandwidth_each_way")


class Sourced:
    """A thing that is made of facts, and is shown as a list of them: name, value, kind and origin."""

    name: str
    facts: Mapping[str, Fact]

    @property
    def place(self) -> str:
        """Where it stands, beside its name."""
        raise NotImplementedError

    def __str__(self) -> str:
        rows = [*self._rows()]
        name, value = (max((len(row[i]) for row in rows), default=0) for i in (0, 1))
        lines = (f"  {row[0]:<{name}}  {row[1]:<{value}}  {row[2]}: {row[3]}" for row in rows)
        return "\n".join((f"{self.name}  ({self.place})", *lines))

    def __repr__(self) -> str:
        return str(self)

    def to_pandas(self) -> Any:
        """Return the list as a data frame of pandas, all of it text.

        Raises
        ------
        MissingPackageError
            If pandas is not installed.
        """
        return rows_to_frame(_HEADERS, self._rows())

    def _repr_html_(self) -> str:
        headers, rows = _HEADERS, [*self._rows()]
        first = [row for row in rows if row[0] in MATTER_FIRST] or rows
        shown = _on_one_line(to_html(headers, first, caption=f"{self.name} ({self.place})"))
        others = [row for row in rows if row not in first]
        if not others:
            return shown
        summary = f'<summary style="cursor: pointer">{len(others)} more</summary>'
        return f"{shown}<details>{summary}{_on_one_line(to_html(headers, others))}</details>"

    def _rows(self) -> Iterator[tuple[str, str, str, str]]:
        for name, fact in self.facts.items():
            is_count = type(fact.value) is int
            yield name, f"{fact.value:,}" if is_count else cell(fact.value), fact.kind, fact.origin


def _on_one_line(table: str) -> str:
    """The table: no unit stands below its value, and a long name breaks behind an underscore."""
    return table.replace("<td>", '<td style="white-space: nowrap">').replace("_", "_<wbr>")


# Any: what a file holds, which each reader checks.
def read_data(name: str) -> dict[str, Any]:
    """Return what ``data/<name>.toml`` holds."""
    return tomllib.loads((files(__package__) / "data" / f"{name}.toml").read_text(encoding="utf-8"))
