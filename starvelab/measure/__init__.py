"""Measuring: what a pipeline is run with, on any machine: samples that exist, devices, and what is found."""

from ..host import usable_cores
from .batches import PARTS
from .devices import StepDevice
from .diagnosis import Finding, diagnose
from .measurement import Measurement, comparison_row
from .quality import disturbance
from .samples import StoredSource, folder, photos
from .simulated import SimulatedClock
from .transforms import Transform, photo_transforms

__all__ = [
    "PARTS",
    "Finding",
    "Measurement",
    "SimulatedClock",
    "StepDevice",
    "StoredSource",
    "Transform",
    "comparison_row",
    "diagnose",
    "disturbance",
    "folder",
    "photo_transforms",
    "photos",
    "usable_cores",
]
