"""What a notebook shows: tables and sentences, figures with their tables, and SVG for explorers."""

from .lesson.notices import fold, say, table
from .lesson.show import svg
from .lesson.show.comparison import side_by_side
from .lesson.show.plots import labeled_bars, over_workers, stage_bars
from .lesson.show.timelines import loader_timeline, trace_timeline

__all__ = [
    "fold",
    "labeled_bars",
    "loader_timeline",
    "over_workers",
    "say",
    "side_by_side",
    "stage_bars",
    "svg",
    "table",
    "trace_timeline",
]
