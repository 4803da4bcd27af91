"""The fields of a pipeline by their paths, such as ``workers.cores``: whose they are, and how one changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from itertools import chain

from ..errors import InputError
from ..fields import Meaning, read_supply
from ..units import Quantity, Unchecked
from .catalogue import Entry
from .part import Part, first_field, is_name, not_described, values_in
from .parts import Accelerator, Drive, Link, Samples, Workers

# What each field of a pipeline is made of where something else than a part is given for it.
PARTS: Mapping[str, type[Part]] = {
    "dataset": Samples,
    "storage": Drive,
    "workers": Workers,
    "link": Link,
    "hardware": Accelerator,
}


NESTED: Mapping[tuple[type[Part], str], type[Part]] = {
    (part, name): value for part in PARTS.values() for name, value in values_in(part).items()
}

# A field that a plain value stands for goes by the name of its part: "workers", not "workers.count".
PLAIN = {f"{name}.{first_field(part)}": name for name, part in PARTS.items()}


def _walk(part: type[Part], path: str) -> Iterator[tuple[str, Meaning, Unchecked]]:
    """The path in a pipeline of each field of a part and of the values in it, its meaning and its default."""
    for field in dataclasses.fields(part):
        if (part, field.name) in NESTED:
            yield from _walk(NESTED[part, field.name], f"{path}.{field.name}")
        elif "meaning" in field.metadata:
            yield f"{path}.{field.name}", field.metadata["meaning"], field.default


PATHS = [*chain.from_iterable(_walk(part, name) for name, part in PARTS.items())]
# The fields that may be arrays.
SWEEPABLE = ("batch_size", *(PLAIN.get(path, path) for path, meaning, _ in PATHS if meaning.sweepable))
_SHOWN = {PLAIN.get(path, path): meaning.shown for path, meaning, _ in PATHS}


def field_label(path: str) -> str:
    """Return what people call a field of a pipeline or a part; the name of anything else in words."""
    path = PLAIN.get(path, path)
    return _SHOWN.get(path) or path.rpartition(".")[2].replace("_", " ")


def part_of(name: str, value: Unchecked) -> Part | Quantity:
    """Return the part that a field is made of: the part itself, or one of which a plain value is first."""
    part = PARTS[name]
    if isinstance(value, part):
        return value
    if isinstance(value, Part):
        raise not_described(name, part, value)
    if name == "workers" and isinstance(value, str | Quantity):
        return read_supply(value, "workers")[0]
    if name == "hardware" and not (isinstance(value, Entry) or is_name(value)):
        return Accelerator(rate=value)
    return part(**{first_field(part): value})


def changed(name: str, current: Unchecked, field: str, value: Unchecked) -> Unchecked:
    """A field of a pipeline after a change of it, or of a field of its part."""
    part = PARTS.get(name)
    if part is None or (not field and (value is None or isinstance(value, Part))):
        return value
    made = current if isinstance(current, part) else None
    if not field:
        if made is None or (name == "workers" and isinstance(value, str | Quantity)):
            return part_of(name, value)
        first = "rate" if name == "hardware" and not isinstance(value, Entry) else first_field(part)
        return made.replace(**{first: value})
    field, _, inner = field.partition(".")
    if inner:
        held = None if made is None else getattr(made, field)
        nested = NESTED[part, field]
        value = nested(**{inner: value}) if held is None else held.replace(**{inner: value})
    if made is not None:
        return made.replace(**{field: value})
    if first_field(part) == field or (part, field) == (Drive, "requests"):
        return part(**{field: value})
    raise InputError(
        f"{name}.{field} qualifies a part that the pipeline does not have. "
        f"Pass {name}={part.__name__}(..., {field}=...)."
    )
