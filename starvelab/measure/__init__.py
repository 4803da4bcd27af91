"""A real input pipeline on any machine: run it, take its measure, predict it, and find what starves it."""

from .._aliases import renamed
from ..host import usable_cores
from .calibration import Calibration, calibrate, compare, predict
from .diagnosis import Finding, diagnose
from .gpu import CudaAccelerator
from .images import Samples, folder, photos
from .input_pipeline import InputPipeline
from .preparation import PARTS, Transform, photo_transforms
from .record import Record
from .run import run
from .simulated import SimulatedClock
from .stand_ins import VirtualAccelerator, VirtualLink, VirtualStorage
from .traces.reading import read_trace
from .watching.finding import JobFinding
from .watching.gpu_use import GpuUse
from .watching.loop import Watch, watch

__all__ = [
    "PARTS",
    "Calibration",
    "CudaAccelerator",
    "Finding",
    "GpuUse",
    "InputPipeline",
    "JobFinding",
    "Record",
    "Samples",
    "SimulatedClock",
    "Transform",
    "VirtualAccelerator",
    "VirtualLink",
    "VirtualStorage",
    "Watch",
    "calibrate",
    "compare",
    "diagnose",
    "folder",
    "photo_transforms",
    "photos",
    "predict",
    "read_trace",
    "run",
    "usable_cores",
    "watch",
]

__getattr__ = renamed(__name__, {"Stage": "Transform", "photo_stages": "photo_transforms"})
