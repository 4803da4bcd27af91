"""The catalogue: hardware, drives, links, models and data sets, each an entry of facts with their sources.

The facts are in ``data/*.toml``, one line each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..errors import InputError, MissingValueError, UnknownNameError, check_text, own_errors, unknown_name
from ..units import Number, Quantity, Unchecked, as_quantity, checked_quantity, positive_int
from .facts import Fact, Sourced, read_data

# What an entry of each file may state, by its unit; "count" is a whole number, "counts" several of them,
# "word" a text.
_BY_UNIT = {
    "Hardware": {
        "word": "family",
        "TFLOP/s": "peak_fp16_dense peak_bf16_dense peak_tf32_dense peak_fp32_dense matmul_bf16_sustained",
        "GB": "memory_capacity",
        "GB/s": "memory_bandwidth link_bandwidth_each_way link_bandwidth_pinned_sustained storage_bandwidth",
        "count": "host_cores video_decoders",
        "img/s": "image_decode_rate",
    },
    "Storage": {
        "GB/s": "bandwidth_sustained",
        "MB/s": "request_bandwidth",
        "ms": "request_latency queued_latency",
        "count": "parallel_requests requests_per_file",
        "Hz": "request_rate",
        "USD": "million_requests_price",
    },
    "Links": {"GB/s": "bandwidth_each_way bandwidth_pinned_sustained bandwidth_pageable_sustained"},
    "Models": {
        "word": "family",
        "GMAC": "macs_forward macs_forward_rounded",
        "count": "parameters layers input_elements",
        "MB": "activation_size",
    },
    "Datasets": {
        "word": "content",
        "KB": "sample_size sample_size_sd",
        "count": "samples decoded_elements tokens tokens_sd",
        "GB": "decoded_size",
        "ms": "preparation_time decoding_time collation_time",
        "counts": "token_quantiles",
    },
}
FIELDS: Mapping[str, Mapping[str, str]] = {
    kind: {name: unit for unit, names in units.items() for name in names.split()}
    for kind, units in _BY_UNIT.items()
}
_EXAMPLE = {"Datasets": "ImageNet", "Models": "ResNet50", "Hardware": "Cloud.A100"}
_EXAMPLE |= {"Storage": "NVMe_Gen4", "Links": "PCIe4_x16"}
_WORDS = {"family": "Ampere", "content": "images"}
# What may be zero: a drive that answers at once, samples all of one size.
_MAY_BE_ZERO = ("request_latency", "sample_size_sd")


class Entry(Sourced):
    """One entry of the catalogue; its values are attributes, their sources are in `facts`.

    Raises
    ------
    MissingValueError
        For a value that belongs to this kind of entry but that no source gives.
    UnknownNameError
        For any other attribute; the message names the nearest one.
    """

    kind: str
    path: str

    def __init__(self, kind: str, path: str, name: str, facts: Mapping[str, Fact]) -> None:
        self.__dict__.update(kind=kind, path=path, name=name, facts=MappingProxyType(dict(facts)))

    if not TYPE_CHECKING:  # a checker reads in groups.pyi what each kind of entry has, and reports any other

        def __getattr__(self, attribute: str) -> Quantity | int | str | tuple[int, ...]:
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            facts, fields = self.__dict__.get("facts", {}), FIELDS[self.kind]
            if attribute in facts:
                return facts[attribute].value
            if attribute in fields:
                raise MissingValueError(
                    f"{self.name} lists no {attribute}, and a value without a source is not guessed. "
                    f'Pass your own with .replace({attribute}="...").'
                )
            names = [*fields, "name", "facts", "get", "replace"]
            raise unknown_name(f"{self.kind} entry {self.name} has no {attribute!r}.", attribute, names)

    def __setattr__(self, attribute: str, value: Unchecked) -> None:
        raise InputError(
            f"A catalogue entry cannot be changed, got {self.name}.{attribute} = {value!r}. "
            f"Make your own with .replace({attribute}=...)."
        )

    # Any: a quantity, a count or a word, as the name of the field says.
    def get(self, attribute: str, default: Unchecked = None) -> Any:
        """The value, or `default` where no source gives one."""
        fact = self.facts.get(attribute)
        return default if fact is None else fact.value

    def number(self, attribute: str, default: Number = None) -> Number:
        """The value as a plain number in base units, or `default` where no source gives one."""
        fact = self.facts.get(attribute)
        return default if fact is None else fact.number

    def needed(self, attribute: str) -> Number:
        """The value as a plain number, or the attribute's error if no source gives it."""
        return self.facts[attribute].number if attribute in self.facts else getattr(self, attribute)

    @own_errors
    def replace(self, *, name: str | None = None, **values: Unchecked) -> Self:
        """A copy with some values of your own, marked as assumptions.

        Examples
        --------
        >>> from starvelab import Hardware
        >>> Hardware.Cloud.T4.replace(storage_bandwidth="2 GB/s").storage_bandwidth.magnitude
        2.0
        """
        if name is not None:
            check_text(name, "name")
        new = {key: Fact.of(value, partial(_read, self.kind, key)) for key, value in values.items()}
        # A measured rate belongs to the accelerator and the model as they were measured.
        changed = self.kind == "Models" or any(key.startswith(("peak_", "memory_bandwidth")) for key in new)
        path = f"{self.path} (changed)" if changed and new else self.path
        return type(self)(self.kind, path, name or self.name, {**self.facts, **new})

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self.facts})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((self.kind, self.path, self.name))

    def __reduce__(self) -> tuple[type[Entry], tuple[str, str, str, dict[str, Fact]]]:
        return Entry, (self.kind, self.path, self.name, dict(self.facts))

    @property
    def place(self) -> str:
        """The names under which it stands in the catalogue."""
        return f"{self.kind}.{self.path}"


def check_entry(value: Unchecked, kind: str, what: str) -> Entry:
    """`value` itself, if it is an entry of that file."""
    if not (isinstance(value, Entry) and value.kind == kind):
        raise InputError(
            f"{what} must be an entry of {kind}, got {described(value)}. "
            f"Pass for example {kind}.{_EXAMPLE[kind]}."
        )
    return value


@cache
def entry_at(kind: str, path: str) -> Entry:
    """The entry of a file at a path: ``entry_at("Hardware", "Cloud.A100")``."""
    return {entry.path: entry for entry in Group(kind)}[path]


@lru_cache
def dataset_of(model: Entry) -> Entry | None:
    """The data set whose samples, as they are handed to a model, have the size that this model takes."""
    taken = model.get("input_elements")
    datasets = Group("Datasets") if taken is not None else ()
    return next((entry for entry in datasets if entry.get("decoded_elements") == taken), None)


def described(value: Unchecked) -> str:
    """A value as an error message names it: an entry by its place in the catalogue."""
    return value.place if isinstance(value, Entry) else f"{value!r:.80}"


def bandwidth_of(value: Unchecked, what: str, fields: Mapping[str, str], needs: str, remedy: str) -> Quantity:
    """A bandwidth [data/time] as it was given, or the field of an entry that its kind has."""
    if isinstance(value, str | Quantity):
        return as_quantity(value, "B/s", f"{what} bandwidth")
    field = fields.get(value.kind) if isinstance(value, Entry) else None
    if field is None:
        kinds = " or ".join(fields)
        raise InputError(
            f"{what} must be an entry of {kinds} or a bandwidth, got {described(value)}. {remedy}"
        )
    bandwidth: Quantity | None = value.get(field)
    if bandwidth is None:
        raise MissingValueError(f"{needs.format(field)}, and {value.name} lists none. {remedy}")
    return bandwidth


@cache
def _members_of(kind: str) -> Members:
    return read_group(kind, read_data(kind.lower()))


class Group:
    """A named set of entries, read from its file the first time anything in it is asked for."""

    def __init__(self, kind: str, path: str = "", members: Members | None = None) -> None:
        self._kind, self._path, self._members = kind, path, members

    def _load(self) -> Members:
        if self._members is None:
            self._members = _members_of(self._kind)
        self.__dict__.update(self._members)  # attributes from now on
        return self._members

    if not TYPE_CHECKING:  # a checker reads the names in groups.pyi, and reports any other

        def __getattr__(self, name: str) -> Entry | Group:
            if name.startswith("_"):
                raise AttributeError(name)
            members = self._load()
            if name not in members:
                # A name from another group is more likely meant than one that only looks alike.
                below = {entry.path.rsplit(".", 1)[-1]: entry.place for entry in Group(self._kind)}
                where = f"{self._kind}.{self._path}".rstrip(".")
                raise unknown_name(f"{where} has no {name!r}.", name, members, below)
            return members[name]

    def __dir__(self) -> list[str]:
        return sorted(self._load())

    def __iter__(self) -> Iterator[Entry]:
        """All entries below this group, in the order of the file."""
        for member in self._load().values():
            if isinstance(member, Group):
                yield from member
            else:
                yield member

    def __repr__(self) -> str:
        return f"{self._kind}: {', '.join(entry.path for entry in self)}"


def read_group(kind: str, table: Mapping[str, Unchecked], path: str = "") -> dict[str, Entry | Group]:
    """Turn a parsed TOML table into entries and groups; a table with a ``name`` is an entry."""
    members: dict[str, Entry | Group] = {}
    for key, value in table.items():
        where = f"{path}.{key}" if path else key
        if "name" in value:
            rows = {field: row for field, row in value.items() if field != "name"}
            facts = {field: _fact(kind, where, field, row) for field, row in rows.items()}
            members[key] = Entry(kind, where, value["name"], facts)
        else:
            members[key] = Group(kind, where, read_group(kind, value, where))
    return members


def _fact(kind: str, where: str, field: str, row: Mapping[str, Unchecked]) -> Fact:
    try:
        return Fact.read(row, partial(_read, kind, field))
    except (InputError, UnknownNameError) as error:
        raise type(error)(f"{kind}.{where}.{field}: {error}") from None


def _read(kind: str, field: str, value: Unchecked) -> Quantity | int | str | tuple[int, ...]:
    """A value as the catalogue keeps it: a checked quantity, a count, several of them, or a word."""
    if field not in FIELDS[kind]:
        raise unknown_name(f"A {kind} entry has no {field!r}.", field, FIELDS[kind])
    unit = FIELDS[kind][field]
    if unit == "word":
        if not isinstance(value, str) or not value:
            raise InputError(
                f'{field} must be a word, got {value!r:.80}. Pass for example "{_WORDS[field]}".'
            )
        return value
    if unit == "count":
        return int(positive_int(value, field))
    if unit == "counts":
        numbers = positive_int([*value] if isinstance(value, tuple) else value, field)
        if np.ndim(numbers) != 1 or np.any(np.diff(numbers) < 0):
            raise InputError(f"{field} must be whole numbers that rise, got {value!r:.80}. Sort them.")
        return tuple(numbers.tolist())
    return checked_quantity(value, unit, field, zero=field in _MAY_BE_ZERO)


Members = Mapping[str, "Entry | Group"]
