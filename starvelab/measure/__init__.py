"""Measuring: a real input pipeline is run, calibrated, predicted and diagnosed, on any machine."""

from ..host import usable_cores
from .calibration import Calibration, calibrate
from .datasets import DatasetSource
from .devices import CudaDevice, VirtualAccelerator, VirtualLink, VirtualStorage
from .diagnosis import Finding, diagnose
from .forecast import compare, predict
from .input_pipeline import InputPipeline
from .measurement import Measurement, comparison_row, disturbance
from .protocols import PARTS
from .samples import ImageSource, folder, photos
from .session import run
from .simulated import SimulatedClock
from .training_step import StepDevice
from .transforms import Transform, photo_transforms

__all__ = [
    "PARTS",
    "Calibration",
    "CudaDevice",
    "DatasetSource",
    "Finding",
    "ImageSource",
    "InputPipeline",
    "Measurement",
    "SimulatedClock",
    "StepDevice",
    "Transform",
    "VirtualAccelerator",
    "VirtualLink",
    "VirtualStorage",
    "calibrate",
    "compare",
    "comparison_row",
    "diagnose",
    "disturbance",
    "folder",
    "photo_transforms",
    "photos",
    "predict",
    "run",
    "usable_cores",
]
