"""The lab report: one HTML file that needs nothing else, for its owner."""

from .contents import Entry, LabReport
from .measurements import keep_measurement
from .page import Notes, read_notes, render

__all__ = ["Entry", "LabReport", "Notes", "keep_measurement", "read_notes", "render"]
