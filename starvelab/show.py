"""What a notebook shows: tables in text, figures with their tables, and SVG for explorers."""

from .lesson.show import svg
from .lesson.show.bars import labeled_bars
from .lesson.show.curves import over_batch, over_workers
from .lesson.show.loader_lanes import loader_timeline
from .lesson.show.overview import whole_pipeline
from .lesson.show.plots import roofline, stage_bars, timeline
from .lesson.show.text import info, say, table
from .lesson.show.trace_lanes import trace_timeline

__all__ = [
    "info",
    "labeled_bars",
    "loader_timeline",
    "over_batch",
    "over_workers",
    "roofline",
    "say",
    "stage_bars",
    "svg",
    "table",
    "timeline",
    "trace_timeline",
    "whole_pipeline",
]
