"""Facts with their sources: hardware, drives, links, models, data sets, measured rates.

The figures stand in ``data/*.toml``, one line per fact; nothing here knows what they are for.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from .errors import InputError, MissingFigureError, UnknownNameError
from .units import Q_, Quantity, convert, format_quantity

KINDS = ("datasheet", "paper", "measured", "assumption")

# What an entry of each file may state, and in which unit; "count" is a whole number.
FIELDS: Mapping[str, Mapping[str, str]] = {
    "Hardware": {
        "peak_fp16_dense": "TFLOP/s",
        "peak_bf16_dense": "TFLOP/s",
        "peak_tf32_dense": "TFLOP/s",
        "peak_fp32_dense": "TFLOP/s",
        "memory_capacity": "GB",
        "memory_bandwidth": "GB/s",
        "link_bandwidth_each_way": "GB/s",
        "link_bandwidth_pinned_sustained": "GB/s",
        "host_cores": "count",
        "storage_bandwidth": "GB/s",
    },
    "Storage": {"bandwidth_sustained": "GB/s", "request_latency": "ms"},
    "Links": {
        "bandwidth_each_way": "GB/s",
        "bandwidth_pinned_sustained": "GB/s",
        "bandwidth_pageable_sustained": "GB/s",
    },
    "Models": {
        "macs_forward": "GMAC",
        "macs_forward_rounded": "GMAC",
        "parameters": "count",
        "layers": "count",
        "activation_size": "MB",
        "input_elements": "count",
    },
    "Datasets": {
        "sample_size": "KB",
        "sample_size_sd": "KB",
        "samples": "count",
        "decoded_elements": "count",
        "decoded_size": "GB",
        "preparation_time": "ms",
    },
}


@dataclass(frozen=True)
class Fact:
    """One figure and where it comes from.

    Attributes
    ----------
    value : quantity or int
    kind : {"datasheet", "paper", "measured", "assumption"}
    source : str
        Document, date, table or page; empty for an assumption.
    note : str
        Why an assumption has this value, or what to know about a sourced one.
    """

    value: Any
    kind: str
    source: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"A fact's kind must be one of {', '.join(KINDS)}, got {self.kind!r}. Name where it comes from.")
        if self.kind == "assumption" and not self.note:
            raise InputError(f"An assumption needs a note, got none for {self.value}. Say why it has this value.")
        if self.kind != "assumption" and not self.source:
            raise InputError(f"A fact needs its source, got none for {self.value}. Name the document, and the table in it.")

    @property
    def origin(self) -> str:
        """The source, and the note if there is one, as one line."""
        return ". ".join(part.rstrip(".") for part in (self.source, self.note) if part)


class Entry:
    """One thing of the catalogue; its figures are attributes, their sources are in `facts`.

    Raises
    ------
    MissingFigureError
        For a figure that belongs to this kind of entry but that no source gives.
    UnknownNameError
        For any other attribute; the message names the nearest one.
    """

    def __init__(self, kind: str, path: str, name: str, facts: Mapping[str, Fact]) -> None:
        self.__dict__.update(kind=kind, path=path, name=name, facts=MappingProxyType(dict(facts)))

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        facts = self.__dict__.get("facts", {})
        if attribute in facts:
            return facts[attribute].value
        fields = FIELDS[self.kind]
        if attribute in fields:
            raise MissingFigureError(
                f"{self.name} lists no {attribute}, and a figure without a source is not guessed. "
                f'Pass your own with .replace({attribute}="...").'
            )
        raise _unknown(f"{self.kind} entry {self.name}", attribute, [*fields, "name", "facts", "get", "replace"])

    def __setattr__(self, attribute: str, value: Any) -> None:
        raise InputError(
            f"A catalogue entry cannot be changed, got {self.name}.{attribute} = {value!r}. "
            f"Make your own with .replace({attribute}=...)."
        )

    def get(self, attribute: str, default: Any = None) -> Any:
        """The figure, or `default` where no source gives one."""
        fact = self.facts.get(attribute)
        return default if fact is None else fact.value

    def replace(self, *, name: str | None = None, **figures: Any) -> Entry:
        """A copy with some figures of your own, marked as assumptions.

        Examples
        --------
        >>> from starvelab import Hardware
        >>> Hardware.Cloud.T4.replace(storage_bandwidth="2 GB/s").storage_bandwidth.magnitude
        2.0
        """
        new = {
            key: Fact(_parse(self.kind, key, value), "assumption", note="given by the user")
            for key, value in figures.items()
        }
        # A measured rate belongs to the accelerator and the model as they were measured.
        changed = self.kind == "Models" or any(key.startswith(("peak_", "memory_bandwidth")) for key in new)
        path = f"{self.path} (changed)" if changed and new else self.path
        return Entry(self.kind, path, name or self.name, {**self.facts, **new})

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self.facts})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((self.kind, self.path, self.name))

    def __reduce__(self) -> Any:
        return Entry, (self.kind, self.path, self.name, dict(self.facts))

    def __repr__(self) -> str:
        lines = [f"{self.name}  ({self.kind}.{self.path})"]
        width = max((len(key) for key in self.facts), default=0)
        for key, fact in self.facts.items():
            lines.append(f"  {key:<{width}}  {_show(fact.value):<14}  {fact.kind}: {fact.origin}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(key)}</td><td>{escape(_show(fact.value))}</td><td>{fact.kind}</td>"
            f'<td style="text-align:left">{escape(fact.origin)}</td></tr>'
            for key, fact in self.facts.items()
        )
        return (
            f"<table><caption>{escape(self.name)} ({self.kind}.{self.path})</caption>"
            f"<thead><tr><th>figure</th><th>value</th><th>kind</th><th>source</th></tr></thead><tbody>{rows}</tbody></table>"
        )


class Group:
    """A named set of entries, read from its file the first time anything in it is asked for."""

    def __init__(self, kind: str, path: str = "", members: Mapping[str, Any] | None = None) -> None:
        self._kind, self._path, self._members = kind, path, members

    def _load(self) -> Mapping[str, Any]:
        if self._members is None:
            text = (files(__package__) / "data" / f"{self._kind.lower()}.toml").read_text(encoding="utf-8")
            self._members = read_group(self._kind, tomllib.loads(text))
        return self._members

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        members = self._load()
        if name not in members:
            raise _unknown(f"{self._kind}{'.' if self._path else ''}{self._path}", name, members)
        return members[name]

    def __dir__(self) -> list[str]:
        return sorted(self._load())

    def __iter__(self) -> Iterator[Any]:
        """All entries below this group, in the order of the file."""
        for member in self._load().values():
            if isinstance(member, Group):
                yield from member
            else:
                yield member

    def __repr__(self) -> str:
        return f"{self._kind}: {', '.join(entry.path for entry in self)}"


def read_group(kind: str, table: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Turn a parsed TOML table into entries and groups; a table with a ``name`` is an entry."""
    members: dict[str, Any] = {}
    for key, value in table.items():
        where = f"{path}.{key}" if path else key
        if "name" in value:
            facts = {field: _fact(kind, where, field, fact) for field, fact in value.items() if field != "name"}
            members[key] = Entry(kind, where, value["name"], facts)
        else:
            members[key] = Group(kind, where, read_group(kind, value, where))
    return members


def _fact(kind: str, where: str, field: str, fact: Mapping[str, Any]) -> Fact:
    try:
        return Fact(**{**fact, "value": _parse(kind, field, fact["value"])})
    except (InputError, UnknownNameError) as error:
        raise type(error)(f"{kind}.{where}.{field}: {error}") from None


def _parse(kind: str, field: str, value: Any) -> Any:
    fields = FIELDS[kind]
    if field not in fields:
        raise _unknown(f"A {kind} entry", field, fields)
    if fields[field] == "count":
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(f"{field} must be a whole number of at least 1, got {value!r}. Write it without a unit.")
        return value
    quantity = value if isinstance(value, Quantity) else Q_(value)
    convert(quantity, fields[field], field)
    return quantity


def _show(value: Any) -> str:
    return format_quantity(value) if isinstance(value, Quantity) else f"{value:,}"


def _unknown(where: str, name: str, known: Any) -> UnknownNameError:
    near = difflib.get_close_matches(name.lower(), [k.lower() for k in known], n=1, cutoff=0.5)
    meant = next((k for k in known if near and k.lower() == near[0]), None)
    hint = f"Did you mean {meant}?" if meant else f"There is: {', '.join(known)}."
    return UnknownNameError(f"{where} has no {name!r}. {hint}")


@dataclass(frozen=True)
class Rate:
    """A measured training rate [sample/time] of one model on one accelerator."""

    hardware: str
    model: str
    framework: str
    precision: str
    phase: str
    fact: Fact
    batch_size: int | None
    default: bool


@cache
def measured_rates() -> tuple[Rate, ...]:
    """Every measured rate of ``data/rates.toml``."""
    table = tomllib.loads((files(__package__) / "data" / "rates.toml").read_text(encoding="utf-8"))
    rates = []
    for row in table["rate"]:
        value = convert(Q_(row["value"]), "img/s", f"the rate of {row['model']} on {row['hardware']}")
        fact = Fact(value, row["kind"], row.get("source", ""), row.get("note", ""))
        keys = ("hardware", "model", "framework", "precision", "phase")
        rates.append(
            Rate(*(row[key] for key in keys), fact, row.get("batch_size"), row.get("default", False))
        )
    return tuple(rates)


def measured_rate(*, hardware: Entry, model: Entry, precision: str, phase: str, framework: str | None = None) -> Rate | None:
    """The measured rate of a model on an accelerator, or None where nobody has published one.

    Without a framework, the row that the file marks as its default.
    """
    for rate in measured_rates():
        key = (rate.hardware, rate.model, rate.precision, rate.phase)
        chosen = rate.default if framework is None else rate.framework == framework
        if chosen and key == (hardware.path, model.path, precision, phase):
            return rate
    return None


Hardware = Group("Hardware")
Storage = Group("Storage")
Links = Group("Links")
Models = Group("Models")
Datasets = Group("Datasets")
