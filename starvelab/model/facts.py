"""A fact: one value with its kind and its source, how a list of facts is shown, and the files with facts."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

from ..errors import InputError
from ..tables import cell, to_html
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
        Between which values the sources lie, where they disagree; the note says which these are.
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
    def of(cls, value: Unchecked) -> Fact:
        """A value that the user gives; a fact is taken as it is."""
        return value if isinstance(value, Fact) else cls(value, "assumption", note=_BY_THE_USER)

    @property
    def given(self) -> bool:
        """True if the user gave it."""
        return self.note == _BY_THE_USER

    @property
    def origin(self) -> str:
        """The source, and the note if there is one, as one line."""
        return ". ".join(part.rstrip(".") for part in (self.source, self.note) if part)

    @cached_property
    def number(self) -> Number:
        """The value as a plain number in base units; a count or a word as it is."""
        return base_number(self.value) if isinstance(self.value, Quantity) else self.value


def facts_text(title: str, facts: Mapping[str, Fact]) -> str:
    """Facts under a title: name, value, kind and origin, one a line."""
    shown = {key: _show(fact.value) for key, fact in facts.items()}
    name, value = (max(map(len, texts), default=0) for texts in (shown, shown.values()))
    rows = (
        f"  {key:<{name}}  {shown[key]:<{value}}  {fact.kind}: {fact.origin}" for key, fact in facts.items()
    )
    return "\n".join((title, *rows))


def facts_html(title: str, facts: Mapping[str, Fact]) -> str:
    """The same as a table for the notebook."""
    rows = [(key, _show(fact.value), fact.kind, fact.origin) for key, fact in facts.items()]
    return to_html(("figure", "value", "kind", "source"), rows, caption=title)


def _show(value: Unchecked) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else cell(value)


# Any: what a file holds, which each reader checks.
def read_data(name: str) -> dict[str, Any]:
    """What ``data/<name>.toml`` holds."""
    return tomllib.loads((files(__package__) / "data" / f"{name}.toml").read_text(encoding="utf-8"))
