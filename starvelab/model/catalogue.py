"""Facts with their sources: hardware, drives, links, models, data sets, measured rates.

The figures stand in ``data/*.toml``, one line per fact; nothing here knows what they are for.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from ..errors import InputError, MissingFigureError, UnknownNameError
from ..tables import cell, to_html
from ..units import as_quantity, positive, whole

KINDS = ("datasheet", "paper", "measured", "assumption")

# What an entry of each file may state, and in which unit; "count" is a whole number.
FIELDS: Mapping[str, Mapping[str, str]] = {
    "Hardware": {
        "peak_fp16_dense": "TFLOP/s",
        "peak_bf16_dense": "TFLOP/s",
        "peak_tf32_dense": "TFLOP/s",
        "peak_fp32_dense": "TFLOP/s",
        "matmul_bf16_sustained": "TFLOP/s",
        "memory_capacity": "GB",
        "memory_bandwidth": "GB/s",
        "link_bandwidth_each_way": "GB/s",
        "link_bandwidth_pinned_sustained": "GB/s",
        "host_cores": "count",
        "storage_bandwidth": "GB/s",
        "image_decode_rate": "img/s",
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


_EXAMPLE = {"Models": "Models.ResNet50", "Hardware": "Hardware.Cloud.A100"}
# A figure that may be nothing at all: a drive that answers at once, samples all of one size.
_MAY_BE_ZERO = ("request_latency", "sample_size_sd")


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
        raise _unknown(
            f"{self.kind} entry {self.name}", attribute, [*fields, "name", "facts", "get", "replace"]
        )

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
            key: Fact(_figure(self.kind, key, value), "assumption", note="given by the user")
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
        return facts_text(f"{self.name}  ({self.kind}.{self.path})", self.facts)

    def _repr_html_(self) -> str:
        return facts_html(f"{self.name} ({self.kind}.{self.path})", self.facts)


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


def _show(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else cell(value)


def check_entry(value: Any, kind: str, what: str) -> Entry:
    """`value` itself, if it is an entry of that file."""
    if not (isinstance(value, Entry) and value.kind == kind):
        came = f"{value.kind}.{value.path}" if isinstance(value, Entry) else f"{value!r:.80}"
        raise InputError(f"{what} must be an entry of {kind}, got {came}. Pass for example {_EXAMPLE[kind]}.")
    return value


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
            # A name from another group is more likely meant than one that only looks alike.
            below = {
                entry.path.rsplit(".", 1)[-1]: f"{self._kind}.{entry.path}" for entry in Group(self._kind)
            }
            where = f"{self._kind}.{self._path}".rstrip(".")
            raise _unknown(where, name, members, elsewhere=below)
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
            facts = {
                field: _fact(kind, where, field, fact) for field, fact in value.items() if field != "name"
            }
            members[key] = Entry(kind, where, value["name"], facts)
        else:
            members[key] = Group(kind, where, read_group(kind, value, where))
    return members


def _fact(kind: str, where: str, field: str, fact: Mapping[str, Any]) -> Fact:
    try:
        if not {"value", "kind"} <= set(fact) <= {"value", "kind", "source", "note"}:
            raise InputError(
                f"A fact has value and kind, and source or note, got {', '.join(fact)}. Check the spelling."
            )
        return Fact(**{**fact, "value": _figure(kind, field, fact["value"])})
    except (InputError, UnknownNameError) as error:
        raise type(error)(f"{kind}.{where}.{field}: {error}") from None


def _figure(kind: str, field: str, value: Any) -> Any:
    """A figure as the catalogue keeps it: a checked quantity, or a count."""
    fields = FIELDS[kind]
    if field not in fields:
        raise _unknown(f"A {kind} entry", field, fields)
    if fields[field] == "count":
        return whole(value, field)
    made = as_quantity(value, fields[field], field)
    positive(made, fields[field], field, zero=field in _MAY_BE_ZERO)
    return made


def _unknown(
    where: str, name: str, known: Iterable[str], *, elsewhere: Mapping[str, str] | None = None
) -> UnknownNameError:
    """The error for a name that nothing has, with the one that was probably meant."""
    full = {**(elsewhere or {}), **{k: k for k in known}}
    lower = {k.lower(): k for k in full}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    hint = f"Did you mean {full[lower[near[0]]]}?" if near else f"There is: {', '.join(known)}."
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
        what = f"the rate of {row['model']} on {row['hardware']}"
        value = as_quantity(row["value"], "img/s", what)
        positive(value, "img/s", what)
        fact = Fact(value, row["kind"], row.get("source", ""), row.get("note", ""))
        keys = ("hardware", "model", "framework", "precision", "phase")
        rates.append(
            Rate(*(row[key] for key in keys), fact, row.get("batch_size"), row.get("default", False))
        )
    return tuple(rates)


def measured_rate(
    *, hardware: Entry, model: Entry, precision: str, phase: str, framework: str | None = None
) -> Rate | None:
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
