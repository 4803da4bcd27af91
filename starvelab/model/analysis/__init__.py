"""Questions asked of a pipeline: where does it tip, how many workers, what would help, and why.

Each answer is exact where a rounded one would be wrong; none of them draws or prints.
"""

from .carry import carry_rate
from .crossover import Crossover, crossover
from .explanation import explain
from .schedule import Job, schedule
from .sensitivity import Lever, Sensitivity, sensitivity
from .sweep import Sweep, sweep
from .workers import WorkersNeeded, workers_needed

__all__ = [
    "Crossover",
    "Job",
    "Lever",
    "Sensitivity",
    "Sweep",
    "WorkersNeeded",
    "carry_rate",
    "crossover",
    "explain",
    "schedule",
    "sensitivity",
    "sweep",
    "workers_needed",
]
