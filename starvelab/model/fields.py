"""What a description is made of: parts, whose fields say in their metadata what they may hold.

Descriptions are dataclasses (the parts of a pipeline, a set of assumptions). Whatever checks, converts or
lists their fields reads this metadata.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, ClassVar, NamedTuple, Self, get_args, get_type_hints

import numpy as np

from ..errors import InputError, check_arguments, check_choice, check_flag, check_names, own_errors
from ..tables import cell
from ..units import (
    Q_,
    Number,
    Quantity,
    Unchecked,
    as_quantity,
    check_magnitude,
    format_quantity,
    has_dimension,
    positive,
    positive_int,
)
from .catalogue import Entry, check_entry, described
from .equality import EqualByFields


class SupplyRate(NamedTuple):
    """A rate of preparing in base units, and whether it counts bytes (otherwise it counts samples)."""

    number: Number
    of_bytes: bool


@dataclass(frozen=True)
class Meaning:
    """Describe one field: its kind, the base unit of a quantity, and what values it takes.

    A kind is "quantity", "supply" (a rate in samples or in bytes), "count", "number" (without a unit),
    "choice" (one of a few words), "text", "switch" or "entry". A range has both ends included; an infinite
    maximum allows infinity itself.
    """

    kind: str
    unit: str = ""
    zero: bool = False  # zero is allowed; of a count only as one value
    minimum: float = 0.0
    maximum: float | None = None
    choices: tuple[str, ...] = ()  # words that it may be; in place of a quantity
    sweepable: bool = False  # the field may be an array
    group: str = ""  # of the catalogue
    label: str = ""  # what an error message calls it, where that is not the field of its part
    shown: str = ""  # what people call it in a table or beside a control, where its own name does not say
    stage: str = ""  # what the stages of the model call it, where that is not the field's own name
    reader: Callable[[Unchecked, str], tuple[Unchecked, Number]] | None = None  # in place of `read`

    def read(self, value: Unchecked, name: str) -> tuple[Unchecked, Number]:
        """The value as a description keeps it, and as a plain number in base units."""
        if self.reader is not None:
            return self.reader(value, name)
        if self.kind == "quantity" and not (isinstance(value, str) and value in self.choices):
            quantity = as_quantity(value, self.unit, name)
            return quantity, positive(quantity, self.unit, name, zero=self.zero)
        if self.kind == "count":
            if self.zero and not isinstance(value, str) and np.iterable(value) and 0 in value:
                raise InputError(f"{name}=0 is solved by itself, got it among several values. Leave it out.")
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            special = (self.zero and whole and value == 0) or (
                self.maximum == inf and type(value) is float and value == inf
            )
            return value, value if special else positive_int(value, name)
        if self.kind == "number":
            return value, self._in_range(value, name)
        if self.kind == "switch" and not isinstance(value, bool):
            check_flag(value, name)
        if self.kind == "choice":
            check_choice(value, self.choices, name)
        return value, value

    def _in_range(self, value: Unchecked, name: str) -> Number:
        if self.maximum == inf and value == inf:
            return inf
        number = check_magnitude(value, name, zero=self.zero)
        if self.maximum == 1 and np.any(number > 1):
            raise InputError(f"{name} must be a share up to 1, got {value}. Write 0.5 for 50 %.")
        if np.any(number < self.minimum):
            least = f"{self.minimum:g}"
            raise InputError(f"{name} must be {least} or more, got {value}. Pass {least} or more.")
        return number


def read_supply(value: Unchecked, name: str) -> tuple[Quantity, SupplyRate]:
    """A rate of preparing as a quantity and in base units: samples [sample/time] or bytes [data/time]."""
    rate = Q_(value) if isinstance(value, str) else value
    for unit in ("sample/s", "B/s"):
        if has_dimension(rate, unit):
            return rate, SupplyRate(positive(rate, unit, name), unit == "B/s")
    came = format_quantity(rate) if isinstance(rate, Quantity) else f"{value!r:.80}"
    raise InputError(
        f"{name} must be a rate in samples or in bytes, got {came}. "
        'Write for example Q_("100 img/s") or Q_("250 MB/s").'
    )


# Any: these stand where a dataclass has its default, which may be of any type; the rest are of `Meaning`.
def _field(kind: str, default: Any = dataclasses.MISSING, **rest: Any) -> Any:
    """A field of a description that holds one kind of value, with its default."""
    return dataclasses.field(default=default, metadata={"meaning": Meaning(kind, **rest)})


supply = partial(_field, "supply", reader=read_supply)
count, number, switch, entry, text = (
    partial(_field, kind) for kind in ("count", "number", "switch", "entry", "text")
)


def quantity(unit: str, default: Any = dataclasses.MISSING, **rest: Any) -> Any:
    """A field with a unit, named by its base unit: "s", "B", "B/s" or "sample/s"."""
    return _field("quantity", default, unit=unit, **rest)


def seconds(**rest: Any) -> Any:
    """A time, which may be zero or an array; by default it is not given."""
    return quantity("s", None, zero=True, sweepable=True, **rest)


def choice(*choices: str, default: Any = dataclasses.MISSING, **rest: Any) -> Any:
    """A field with one of a few words."""
    return _field("choice", default, choices=choices, **rest)


_MEANINGS: dict[type, Mapping[str, Meaning]] = {}  # a checker takes no class of these for hashable


def meanings(description: type) -> Mapping[str, Meaning]:
    """The meaning of each field of a description that has one, by name."""
    if description not in _MEANINGS:
        metadata = {field.name: field.metadata.get("meaning") for field in dataclasses.fields(description)}
        _MEANINGS[description] = {name: meaning for name, meaning in metadata.items() if meaning is not None}
    return _MEANINGS[description]


def shape_of(value: Unchecked) -> tuple[int, ...]:
    """The shape of what a field holds; () for one value, whatever it is."""
    if value is None or type(value) is int or not np.iterable(value):
        return ()
    held: Unchecked = getattr(value, "magnitude", value)
    try:
        return np.shape(held)
    except (ValueError, AttributeError):  # rows of unequal length, which no field holds
        return ()


class _SignatureOfInit:
    """The signature of a class as its fields give it, whatever `__new__` takes."""

    def __get__(self, _: object, owner: type) -> inspect.Signature:
        signature = inspect.signature(owner.__init__)  # type: ignore[misc]
        return signature.replace(parameters=[*signature.parameters.values()][1:])


@dataclass(frozen=True)
class Part(EqualByFields):
    """What all parts share: fields that are read once, a copy with changes, and a short representation."""

    __signature__: ClassVar = _SignatureOfInit()

    def __new__(cls, *values: Unchecked, **fields: Unchecked) -> Self:
        """Reject a field that this part does not have, or has twice, and say which one was meant."""
        if values or not fields.keys() <= {name for name, *_ in _fields(cls)}:
            names = [name for name, *_ in _fields(cls)]
            check_names(fields, names, cls.__name__)
            if len(values) > len(names) or fields.keys() & names[: len(values)]:
                check_arguments(cls, values, fields)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        named: dict[str, Number] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        for name, default, meaning, held in _fields(type(self)):
            value = number = getattr(self, name)
            if held is not None and value is not default and not isinstance(value, held):
                raise not_described(f"{type(self).__name__}.{name}", held, value)
            if meaning is not None:
                if value is not default:
                    value, number = self._read(name, value, meaning)
                    object.__setattr__(self, name, value)
                    if meaning.sweepable and (shape := shape_of(value)):
                        shapes[name] = shape
                named[meaning.stage or name] = number
            if isinstance(value, Part):
                named |= value.named
                shapes |= {f"{name}.{path}": shape for path, shape in value.shapes.items()}
        self.__dict__.update(named=named, shapes=shapes)

    # Each field in base units, by what the stages of the model call it, with those of the values in it. What
    # has no unit stays as it is.
    named: ClassVar[Mapping[str, Number]]
    # Of the fields that are arrays, by their path in it.
    shapes: ClassVar[Mapping[str, tuple[int, ...]]]

    def _read(self, name: str, value: Unchecked, meaning: Meaning) -> tuple[Unchecked, Number]:
        """A field as it is kept, and in base units."""
        label = meaning.label or f"{type(self).__name__}.{name}"
        if meaning.kind == "entry" or (meaning.group and is_name(value)):
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

    @own_errors
    def replace(self, **changes: Unchecked) -> Self:
        """A copy with some fields changed."""
        check_names(changes, [name for name, *_ in _fields(type(self))], type(self).__name__)
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
    """True if a field differs from its default."""
    if value is default or type(value) is not type(default):
        return value is not default
    return bool(value.given if isinstance(value, Part) else value != default)


def is_name(value: Unchecked) -> bool:
    """True for a text without a number, such as "NVMe_Gen4", which names an entry and no quantity."""
    return isinstance(value, str) and value.replace(".", "").isidentifier()


def not_described(name: str, part: type[Part], value: Unchecked) -> InputError:
    """The error for a value that a part, or a small value in it, is not made of."""
    made, field = part.__name__, name.rpartition(".")[2]
    return InputError(f"{name} is described by {made}, got {value!r:.80}. Pass {field}={made}(...).")


_FIELDS: dict[type, tuple[tuple[str, Any, Any, Any], ...]] = {}


def _fields(part: type) -> tuple[tuple[str, Any, Any, Any], ...]:
    """Name, default and meaning of each field of a part, and the part that it is, if it is a small value."""
    if part not in _FIELDS:
        kinds, values = meanings(part), values_in(part)
        _FIELDS[part] = tuple(
            (f.name, f.default, kinds.get(f.name), values.get(f.name)) for f in dataclasses.fields(part)
        )
    return _FIELDS[part]


def values_in(part: type) -> dict[str, type[Part]]:
    """The fields of a part that are small values with fields of their own, and what these values are."""
    return {
        name: value
        for name, hint in get_type_hints(part).items()
        for value in (hint, *get_args(hint))
        if name not in meanings(part) and isinstance(value, type) and issubclass(value, Part)
    }


def first_field(part: type[Part]) -> str:
    """The field of a part that a plain value replaces."""
    return _fields(part)[0][0]


def short(value: Unchecked) -> str:
    """A value as it stands in a representation."""
    if isinstance(value, Entry):
        return described(value)
    if isinstance(value, Part):
        return repr(value)
    return f'"{cell(value)}"' if isinstance(value, Quantity) and not shape_of(value) else f"{value!r:.80}"
