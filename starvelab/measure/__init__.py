"""Measuring, on any machine: samples that exist, loaders, devices, and what a run finds."""

from ..host import usable_cores
from .batches import PARTS
from .diagnosis import Finding, diagnose
from .measurement import Measurement, comparison_row
from .quality import disturbance
from .samples import StoredSource, photos
from .simulated import SimulatedClock
from .transforms import Transform, photo_transforms

__all__ = [
    "PARTS",
    "Finding",
    "Measurement",
    "SimulatedClock",
    "StoredSource",
    "Transform",
    "comparison_row",
    "diagnose",
    "disturbance",
    "photo_transforms",
    "photos",
    "usable_cores",
]
