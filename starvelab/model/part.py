"""What the parts of a pipeline share: fields that are read once, a copy with changes, a representation."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, get_args, get_type_hints

from ..errors import InputError, check_names
from ..fields import Kind, Meaning, meanings, shape_of
from ..tables import cell
from ..units import Number, Quantity, Unchecked
from .catalogue import Entry, check_entry, described


@dataclass(frozen=True)
class Part:
    """What all parts share: fields that are read once, a copy with changes, and a short representation."""

    def __post_init__(self) -> None:
        numbers: dict[str, Number] = {}
        named: dict[str, Number] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        for name, default, meaning, held in _fields(type(self)):
            value = numbers[name] = getattr(self, name)
            if held is not None and value is not default and not isinstance(value, held):
                raise not_described(f"{type(self).__name__}.{name}", held, value)
            if meaning is not None:
                if value is not default:
                    kept, numbers[name] = self._read(name, value, meaning)
                    object.__setattr__(self, name, kept)
                    if meaning.sweepable and (shape := shape_of(kept)):
                        shapes[name] = shape
                named[meaning.stage or name] = numbers[name]
            elif isinstance(value, Part):
                named |= value.named
                shapes |= {f"{name}.{path}": shape for path, shape in value.shapes.items()}
        self.__dict__.update(numbers=numbers, named=named, shapes=shapes)

    # Each field in base units, by its name, and by what the stages of the model call it, with those of the
    # values in it. What has no unit stays as it is.
    numbers: ClassVar[Mapping[str, Number]]
    named: ClassVar[Mapping[str, Number]]
    # Of the fields that are arrays, by their path in it.
    shapes: ClassVar[Mapping[str, tuple[int, ...]]]

    def _read(self, name: str, value: Unchecked, meaning: Meaning) -> tuple[Unchecked, Number]:
        """A field as it is kept, and in base units."""
        label = meaning.label or f"{type(self).__name__}.{name}"
        if meaning.kind is Kind.ENTRY or (meaning.group and is_name(value)):
            return check_entry(value, meaning.group, label), value
        if isinstance(value, Entry):
            if name == "of":
                return value, value
            entry = described(value)
            raise InputError(
                f"{label} must be a quantity, got {entry}. Pass one of its values: {entry}.<name>."
            )
        if not meaning.sweepable and shape_of(value):
            raise InputError(f"{label} is one value, got an array. Make one pipeline for each.")
        return meaning.read(value, label)

    def replace(self, **changes: Unchecked) -> Self:
        """A copy with some fields changed."""
        check_names(changes, [field.name for field in dataclasses.fields(self)], type(self).__name__)
        return dataclasses.replace(self, **changes)

    @property
    def given(self) -> dict[str, Unchecked]:
        """The fields that differ from their defaults, by name."""
        return {n: v for n, default, *_ in _fields(type(self)) if differs(v := getattr(self, n), default)}

    def __repr__(self) -> str:
        first = first_field(type(self))
        shown = (f"{'' if name == first else f'{name}='}{short(v)}" for name, v in self.given.items())
        return f"{type(self).__name__}({', '.join(shown)})"


def differs(value: Unchecked, default: Unchecked) -> bool:
    """True if a field is not what it is unless given."""
    if value is default or type(value) is not type(default):
        return value is not default
    return bool(value.given if isinstance(value, Part) else value != default)


def is_name(value: Unchecked) -> bool:
    """True of a text without a number, such as "NVMe_Gen4", which names an entry and no quantity."""
    return isinstance(value, str) and value.replace(".", "").isidentifier()


def not_described(name: str, part: type[Part], value: Unchecked) -> InputError:
    """The error for a value that a part, or a small value in it, is not made of."""
    made, field = part.__name__, name.rpartition(".")[2]
    return InputError(f"{name} is described by {made}, got {value!r:.80}. Pass {field}={made}(...).")


_FIELDS: dict[type, tuple[tuple[str, Any, Any, Any], ...]] = {}


def _fields(part: type) -> tuple[tuple[str, Any, Any, Any], ...]:
    """Name, default and meaning of each field of a part, and the part that it is, if it is a small value."""
    if part not in _FIELDS:
        known, values = meanings(part), values_in(part)
        _FIELDS[part] = tuple(
            (f.name, f.default, known.get(f.name), values.get(f.name)) for f in dataclasses.fields(part)
        )
    return _FIELDS[part]


def values_in(part: type) -> dict[str, type[Part]]:
    """The fields of a part that are small values with fields of their own, and what these values are."""
    return {
        name: one
        for name, hint in get_type_hints(part).items()
        for one in (hint, *get_args(hint))
        if name not in meanings(part) and isinstance(one, type) and issubclass(one, Part)
    }


def first_field(part: type[Part]) -> str:
    """The field of a part for which a plain value stands."""
    return _fields(part)[0][0]


def short(value: Unchecked) -> str:
    """A value as it stands in a representation."""
    if isinstance(value, Entry):
        return described(value)
    if isinstance(value, Part):
        return repr(value)
    return f'"{cell(value)}"' if isinstance(value, Quantity) and not shape_of(value) else f"{value!r:.80}"
