"""The resources of a training step, the names that people read for them, and the levers that relieve them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from .facts import read_data


@dataclass(frozen=True)
class Resource:
    """What stages run on."""

    name: str  # in results
    label: str  # what people read
    verb: str  # what it does with a batch, as in "reading a batch"
    done: str  # what it has done with a batch, as in "has read it"
    color: str  # in pictures; passes a contrast of 3:1 on white and on dark
    ink: str  # the color of text on `color`
    hatch: str  # how its bars differ from others without color, and `dash` its lines
    dash: str  # of SVG
    shared: bool = False  # by all accelerators of a host


STORAGE = Resource("storage", "drive", "reading", "read", "#D55E00", "black", "..", "10 4 2 4", shared=True)
CPU = Resource("CPU", "workers", "preparing", "prepared", "#0072B2", "white", "//", "8 4", shared=True)
# One thread, which receives each batch and works on it before the accelerator gets it.
LOOP = Resource("loop", "training loop", "handling", "handled", "#9467BD", "black", "--", "3 1 1 1")
LINK = Resource("link", "link", "copying", "copied", "#CC79A7", "black", "xx", "2 4")
# The accelerator's own hardware for JPEGs or video, which works beside its kernels.
DECODER = Resource("decoder", "decoder", "decoding", "decoded", "#808080", "black", "\\\\", "5 1")
ACCELERATOR = Resource("accelerator", "GPU", "computing on", "computed on", "#009E73", "black", "", "none")

# In the order in which a sample meets them, which is the order that people expect in a table or a picture.
RESOURCES: Mapping[str, Resource] = MappingProxyType(
    {resource.name: resource for resource in (STORAGE, CPU, LOOP, LINK, DECODER, ACCELERATOR)}
)
DISPLAY_ORDER = tuple(RESOURCES)
# In a tie the resource that is named first binds: the accelerator, since a tie starves nobody.
TIE_ORDER = (ACCELERATOR.name, CPU.name, STORAGE.name, LINK.name, DECODER.name, LOOP.name)
_SINGULAR = {"have": "has"}


@dataclass(frozen=True)
class Labels:
    """The names that people read for the resources of a pipeline.

    `renamed` holds those that differ: a TPU is a TPU, and a bucket is a bucket.
    """

    renamed: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> str:
        """Name a resource in a table or a picture: ``GPU``."""
        return self.renamed.get(name, RESOURCES[name].label)

    def the(self, name: str) -> str:
        """Name a resource in the middle of a sentence: ``the GPU``; no resource is ``nothing``."""
        return f"the {self[name]}" if name else "nothing"

    def does(self, name: str, verb: str) -> str:
        """Say what a resource does, from the plural of a verb: ``the GPU binds``, ``the workers bind``."""
        plural = name and self[name].endswith("s")
        return f"{self.the(name)} {verb if plural else _SINGULAR.get(verb, f'{verb}s')}"


LABELS = Labels()


def capitalized(text: str) -> str:
    """The same text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


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
    """Return the levers that relieve that part, beginning with the one to try first."""
    return tuple(lever for lever in LEVERS if part in lever.parts)
