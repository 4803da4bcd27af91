"""The fields of a pipeline and of its parts by their paths, such as "storage.cache.share"."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import chain

from ..errors import InputError, UnknownNameError, check_names
from ..units import Unchecked
from .assumptions import TUTORIAL, Assumptions
from .fields import Meaning, Part, first_field, meanings, values_in
from .parts import PARTS

FIELDS = ("model", "batch_size", *PARTS, "phase", "overlap", "assumptions")
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
# Which part holds a value of one's own in place of an assumption.
_IN_A_PART = {
    "sample_size": "dataset=Samples(size=...)",
    "worker_rate": "workers=Workers(rate=...)",
    "open_requests": "storage=Drive(..., requests=Requests(open=...))",
    "transfer_dtype": "dataset=Samples(transfer=...)",
}


def field_label(path: str) -> str:
    """Return what people call a field of a pipeline or a part; the name of anything else in words."""
    path = PLAIN.get(path, path)
    return _SHOWN.get(path) or path.rpartition(".")[2].replace("_", " ")


def by_path(changes: Unchecked) -> dict[str, Unchecked]:
    """Values by the paths of what they change; none where there are no changes."""
    if changes is None:
        return {}
    if not isinstance(changes, Mapping) or not all(isinstance(path, str) for path in changes):
        raise InputError(
            f"Changes are values by the paths of fields, got {changes!r:.80}. "
            'Pass for example {"workers.cores": 16}.'
        )
    return dict(changes)


def check_fields(paths: Iterable[str], assumed: Assumptions = TUTORIAL) -> None:
    """Reject what is no field of a pipeline or of one of its parts."""
    for path in paths:
        name, *below = path.split(".")
        if name not in FIELDS:
            raise _unknown_field(name, assumed)
        part, whole = PARTS.get(name), name
        for field in below:
            if part is None:
                raise UnknownNameError(f"{whole} has no fields, got {path!r}. Change {whole} itself.")
            check_names([field], [part_field.name for part_field in dataclasses.fields(part)], part.__name__)
            part, whole = NESTED.get((part, field)), f"{whole}.{field}"


def _unknown_field(name: str, assumed: Assumptions) -> UnknownNameError:
    """The error for a name that no field of a pipeline has."""
    if name in meanings(Assumptions):
        base = getattr(assumed, "name", TUTORIAL.name).partition(" ")[0]
        instead = _IN_A_PART.get(name, f"assumptions={base}.replace({name}=...)")
        hint = f"it is one of its assumptions. Pass {instead}."
        return UnknownNameError(f"A pipeline has no field {name!r}: {hint}")
    near = get_close_matches(name, FIELDS, n=1)
    parts = ", ".join(f"{field}={part.__name__}(...)" for field, part in PARTS.items())
    hint = f"Did you mean {near[0]}?" if near else f"Pass it in its part: {parts}."
    return UnknownNameError(f"A pipeline has no field {name!r}. {hint}")
