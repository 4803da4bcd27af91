"""What a notebook shows: tables in text, figures with their tables, and SVG for explorers.

Only `plots` and `loader_lanes` load matplotlib, and only when a plot is asked for.
"""

from importlib import import_module
from typing import Any

from ..._aliases import renamed
from .text import info, say, table

_PLOTS = ("over_batch", "over_workers", "roofline", "stage_bars", "timeline")

__all__ = [
    "info",
    "loader_timeline",
    "over_batch",
    "over_workers",
    "roofline",
    "say",
    "stage_bars",
    "svg",
    "table",
    "timeline",
]


_renamed = renamed(__name__, {"looks": "style", "picture": "figure"})


def __getattr__(name: str) -> Any:  # Any: a function or a module
    if name in _PLOTS:
        return getattr(import_module(f"{__name__}.plots"), name)
    if name == "loader_timeline":
        return import_module(f"{__name__}.loader_lanes").loader_timeline
    if name in ("svg", "plots", "figure", "style", "loader_lanes"):
        return import_module(f"{__name__}.{name}")
    return _renamed(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
