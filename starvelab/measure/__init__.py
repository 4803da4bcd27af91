"""Measuring: a real input pipeline is run, calibrated, predicted and diagnosed, on any machine."""

from .._aliases import renamed
from ..host import usable_cores
from ._run import run
from .advice import WorkerAdvice, advise
from .calibration import Calibration, calibrate
from .devices import VirtualAccelerator, VirtualLink, VirtualStorage
from .diagnosis import Finding, diagnose
from .forecast import compare, predict
from .gpu import CudaAccelerator
from .input_pipeline import InputPipeline
from .job_levers import LeverForecast
from .measurement import Measurement
from .protocols import PARTS
from .samples import Samples, folder, photos
from .simulated import SimulatedClock
from .traces.reading import read_trace
from .transforms import Transform, photo_transforms
from .watching.finding import JobFinding
from .watching.gpu_use import GpuUse
from .watching.loop import Watch, watch
from .watching.stages import StageCosts

__all__ = [
    "PARTS",
    "Calibration",
    "CudaAccelerator",
    "Finding",
    "GpuUse",
    "InputPipeline",
    "JobFinding",
    "LeverForecast",
    "Measurement",
    "Samples",
    "SimulatedClock",
    "StageCosts",
    "Transform",
    "VirtualAccelerator",
    "VirtualLink",
    "VirtualStorage",
    "Watch",
    "WorkerAdvice",
    "advise",
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

__getattr__ = renamed(
    __name__, {"Record": "Measurement", "Stage": "Transform", "photo_stages": "photo_transforms"}
)
