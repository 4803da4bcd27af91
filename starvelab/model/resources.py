"""The resources of a training step, and the levers: what can be changed about its input, and why it works."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .facts import read_data


@dataclass(frozen=True)
class Resource:
    """What stages run on."""

    name: str  # in results and tables
    label: str  # in the middle of a sentence
    verb: str  # what it does with a batch, as in "reading a batch"
    done: str  # what it has done with a batch, as in "has read it"
    color: str  # in pictures; passes a contrast of 3:1 on white and on dark
    ink: str  # the color of text on `color`
    hatch: str  # how its bars differ from others without color, and `dash` its lines
    dash: str | tuple[int, tuple[int, ...]]
    shared: bool = False  # by all accelerators of a host


STORAGE = Resource("storage", "storage", "reading", "read", "#D55E00", "black", "..", "-.", shared=True)
CPU = Resource("CPU", "the CPU", "preparing", "prepared", "#0072B2", "white", "//", "--", shared=True)
# One thread, which receives each batch and works on it before the accelerator gets it.
LOOP = Resource(
    "loop", "the training loop", "handling", "handled", "#9467BD", "black", "--", (0, (3, 1, 1, 1))
)
LINK = Resource("link", "the link", "copying", "copied", "#CC79A7", "black", "xx", ":")
# The accelerator's own hardware for JPEGs or video, which works beside its kernels.
DECODER = Resource("decoder", "the decoder", "decoding", "decoded", "#808080", "black", "\\\\", (0, (5, 1)))
ACCELERATOR = Resource(
    "accelerator", "the accelerator", "computing on", "computed on", "#009E73", "black", "", "-"
)

# In the order in which a sample meets them, which is the order that people expect in a table or a picture.
RESOURCES: Mapping[str, Resource] = MappingProxyType(
    {resource.name: resource for resource in (STORAGE, CPU, LOOP, LINK, DECODER, ACCELERATOR)}
)
DISPLAY_ORDER = tuple(RESOURCES)
# In a tie the resource that is named first binds: the accelerator, since a tie starves nobody.
TIE_ORDER = (ACCELERATOR.name, CPU.name, STORAGE.name, LINK.name, DECODER.name, LOOP.name)
# How a sentence calls a resource, and no resource at all.
LABELS: Mapping[str, str] = MappingProxyType(
    {"": "nothing", **{resource.name: resource.label for resource in RESOURCES.values()}}
)


def capitalized(name: str) -> str:
    """How a sentence that begins with a resource calls it."""
    label = RESOURCES[name].label
    return label[0].upper() + label[1:]


@dataclass(frozen=True)
class Advice:
    """One thing to change, how to tell that it is the one, and why it works."""

    name: str
    parts: tuple[str, ...]  # of an input pipeline that it relieves: read, decode, transform, collate, ...
    diagnose: str
    change: str
    why: str


LEVERS = tuple(Advice(**{**row, "parts": tuple(row["parts"])}) for row in read_data("levers")["lever"])


def levers_for(part: str) -> tuple[Advice, ...]:
    """Those that relieve that part, the first to try first."""
    return tuple(lever for lever in LEVERS if part in lever.parts)
