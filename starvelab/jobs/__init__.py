"""One's own training job: how long it waits for data, why, and what would help."""

from ..measure.batches import BatchContents, packed
from .advice import LeverForecast, WorkerAdvice, advise
from .finding import JobFinding
from .gpu_use import GpuUse
from .loop import Watch, watch
from .stages import StageCosts
from .traces import read_trace

__all__ = [
    "BatchContents",
    "GpuUse",
    "JobFinding",
    "LeverForecast",
    "StageCosts",
    "Watch",
    "WorkerAdvice",
    "advise",
    "packed",
    "read_trace",
    "watch",
]
