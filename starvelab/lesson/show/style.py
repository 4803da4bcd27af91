"""The style of figures: the color of each resource, and what tells it apart without color."""

from types import MappingProxyType
from typing import Any, TypeAlias

from ..._aliases import renamed

# Any: keyword arguments of matplotlib's functions, each of a type of its own.
Options: TypeAlias = dict[str, Any]

_ORANGE, _BLUE, _PINK, _GREEN = "#D55E00", "#0072B2", "#CC79A7", "#009E73"

# Safe for color-blind readers, and each passes 3:1 on white and on a dark page.
COLORS = MappingProxyType({"storage": _ORANGE, "CPU": _BLUE, "link": _PINK, "accelerator": _GREEN})
# Of text that stands on these: the pair with the higher contrast.
INK = MappingProxyType({"storage": "black", "CPU": "white", "link": "black", "accelerator": "black"})
HATCHES = MappingProxyType({"storage": "..", "CPU": "//", "link": "xx", "accelerator": ""})
DASHES = MappingProxyType({"storage": "-.", "CPU": "--", "link": ":", "accelerator": "-"})

# What a step of the accelerator is made of.
PART_COLORS = MappingProxyType({"compute": _GREEN, "memory": _PINK, "overhead": _ORANGE})

# For lines that are no resource: color, dash, marker.
SERIES = ((_BLUE, "-", "o"), (_ORANGE, "--", "s"), (_GREEN, "-.", "^"), (_PINK, ":", "D"))
# On a white ground.
GRAY = "#595959"

__getattr__ = renamed(__name__, {"COLOURS": "COLORS"})
