"""One's own training job: how long it waits for data, why, and what would help."""

from .advice import WorkerAdvice, advise
from .finding import JobFinding
from .gpu_use import GpuUse
from .job_levers import LeverForecast
from .loop import Watch, watch
from .stages import StageCosts
from .traces.reading import read_trace

__all__ = [
    "GpuUse",
    "JobFinding",
    "LeverForecast",
    "StageCosts",
    "Watch",
    "WorkerAdvice",
    "advise",
    "read_trace",
    "watch",
]
