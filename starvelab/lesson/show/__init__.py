"""What a notebook shows: tables in text, figures with their tables, and SVG for explorers.

Only the modules that draw figures load matplotlib, and only when a figure is asked for.
"""

from importlib import import_module
from typing import Any

from ..._aliases import renamed
from .text import info, say, table

# The figures, each with the module that draws it.
FIGURES = {
    "labeled_bars": "bars",
    "loader_timeline": "loader_lanes",
    "over_batch": "curves",
    "over_workers": "curves",
    "roofline": "plots",
    "stage_bars": "plots",
    "timeline": "plots",
    "trace_timeline": "trace_lanes",
    "whole_pipeline": "overview",
}

__all__ = ["info", "say", "svg", "table", *FIGURES]


_renamed = renamed(__name__, {"looks": "style", "picture": "figure"})


def __getattr__(name: str) -> Any:  # Any: a function or a module
    if name in FIGURES:
        return getattr(import_module(f"{__name__}.{FIGURES[name]}"), name)
    if name in ("svg", "figure", "style", *FIGURES.values()):
        return import_module(f"{__name__}.{name}")
    return _renamed(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
