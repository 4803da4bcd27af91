"""The lab report: one HTML file that needs nothing else, and that says of itself whether it was altered."""

from .contents import Entry, LabReport
from .measurements import keep_measurement
from .page import read_report, render
from .verifying import Verdict, verify

__all__ = ["Entry", "LabReport", "Verdict", "keep_measurement", "read_report", "render", "verify"]
