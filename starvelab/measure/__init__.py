"""A real input pipeline on any machine: run it, take its measure, predict it, and find what starves it."""

from ..host import usable_cores
from .calibration import Calibration, calibrate, compare, predict
from .diagnosis import Finding, diagnose
from .gpu import CudaAccelerator
from .images import Samples, folder, photos
from .input_pipeline import InputPipeline
from .preparation import PARTS, Stage, photo_stages
from .record import Record
from .run import run
from .simulated import SimulatedClock
from .stand_ins import VirtualAccelerator, VirtualLink, VirtualStorage

__all__ = [
    "PARTS",
    "Calibration",
    "CudaAccelerator",
    "Finding",
    "InputPipeline",
    "Record",
    "Samples",
    "SimulatedClock",
    "Stage",
    "VirtualAccelerator",
    "VirtualLink",
    "VirtualStorage",
    "calibrate",
    "compare",
    "diagnose",
    "folder",
    "photo_stages",
    "photos",
    "predict",
    "run",
    "usable_cores",
]
