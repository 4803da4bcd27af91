"""Measuring: a real input pipeline is run, calibrated, predicted and diagnosed, on any machine."""

from ..host import usable_cores
from ._run import run
from .calibration import Calibration, calibrate
from .devices import VirtualAccelerator, VirtualLink, VirtualStorage
from .diagnosis import Finding, diagnose
from .forecast import compare, predict
from .gpu import CudaAccelerator
from .input_pipeline import InputPipeline
from .measurement import Measurement
from .protocols import PARTS
from .samples import Samples, folder, photos
from .simulated import SimulatedClock
from .transforms import Transform, photo_transforms

__all__ = [
    "PARTS",
    "Calibration",
    "CudaAccelerator",
    "Finding",
    "InputPipeline",
    "Measurement",
    "Samples",
    "SimulatedClock",
    "Transform",
    "VirtualAccelerator",
    "VirtualLink",
    "VirtualStorage",
    "calibrate",
    "compare",
    "diagnose",
    "folder",
    "photo_transforms",
    "photos",
    "predict",
    "run",
    "usable_cores",
]
