"""How a resource looks wherever it is drawn: its colour, and what tells it apart without colour.

It draws nothing.
"""

from types import MappingProxyType

_ORANGE, _BLUE, _PINK, _GREEN = "#D55E00", "#0072B2", "#CC79A7", "#009E73"

# Safe for colour-blind readers, and each passes 3:1 on white and on a dark page.
COLOURS = MappingProxyType({"storage": _ORANGE, "CPU": _BLUE, "link": _PINK, "accelerator": _GREEN})
# Of text that stands on these: the pair with the higher contrast.
INK = MappingProxyType({"storage": "black", "CPU": "white", "link": "black", "accelerator": "black"})
HATCHES = MappingProxyType({"storage": "..", "CPU": "//", "link": "xx", "accelerator": ""})
DASHES = MappingProxyType({"storage": "-.", "CPU": "--", "link": ":", "accelerator": "-"})

# What a step of the accelerator is made of.
PART_COLOURS = MappingProxyType({"compute": _GREEN, "memory": _PINK, "overhead": _ORANGE})

# For lines that are no resource: colour, dash, marker.
SERIES = ((_BLUE, "-", "o"), (_ORANGE, "--", "s"), (_GREEN, "-.", "^"), (_PINK, ":", "D"))
# On a white ground.
GREY = "#595959"
