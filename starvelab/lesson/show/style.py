"""The style of figures: the color of each resource, and what tells it apart without color."""

from types import MappingProxyType
from typing import Any, TypeAlias

from ...model.resources import ACCELERATOR, CPU, LINK, RESOURCES, STORAGE

# Any: keyword arguments of matplotlib's functions, each of a type of its own.
Options: TypeAlias = dict[str, Any]

# Safe for color-blind readers, and each passes 3:1 on white and on a dark page.
COLORS = MappingProxyType({name: resource.color for name, resource in RESOURCES.items()})
# Of text that stands on these: the pair with the higher contrast.
INK = MappingProxyType({name: resource.ink for name, resource in RESOURCES.items()})
HATCHES = MappingProxyType({name: resource.hatch for name, resource in RESOURCES.items()})
DASHES = MappingProxyType({name: resource.dash for name, resource in RESOURCES.items()})
_ORANGE, _BLUE, _PINK, _GREEN = STORAGE.color, CPU.color, LINK.color, ACCELERATOR.color

# What a step of the accelerator is made of.
PART_COLORS = MappingProxyType({"compute": _GREEN, "memory": _PINK, "overhead": _ORANGE})

# For lines that are no resource: color, dash, marker.
SERIES = ((_BLUE, "-", "o"), (_ORANGE, "--", "s"), (_GREEN, "-.", "^"), (_PINK, ":", "D"))
# On a white ground.
GRAY = "#595959"
