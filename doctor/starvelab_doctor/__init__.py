"""One's own training job: how long it waits for data, why, and what would help.

Rooms, imports point downward only (a contract in pyproject.toml fails the build otherwise)::

    doctor                   one run of a script, and its report: `starvelab-doctor` on the command line
    compare                  two runs
    trials                   the job again, with other settings of its loader
    judging                  what would help, and by how much
    lightning | transformers | example  callbacks of frameworks | a job and its runs, recorded
    traces | watching        what a profiler's trace says | what a job does while it runs
    finding                  what was found about a job
    contents | script | shares | spans | torch_internals  a batch, a script, times
    host                     cores and memory, as the system tells them

The lab's model says what a change would bring; nothing here imports the lesson.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# The names of each module: a program that `starvelab-doctor` runs loads its libraries itself, since the
# variables that set their threads are read then. So nothing here loads NumPy before a name is used.
_PLACES = {
    "contents": ("BatchContents",),
    "finding.gpu_use": ("GpuUse",),
    "finding.job": ("JobFinding",),
    "finding.records": ("GpuWaits", "LoaderUse", "MachineUse", "RankFindings", "Waits"),
    "finding.stages": ("StageCosts",),
    "judging.advice": ("WorkerAdvice", "advise"),
    "traces.reading": ("read_trace",),
    "watching.loop": ("Watch", "watch"),
}

if TYPE_CHECKING:  # a checker is told that they are there
    from .contents import BatchContents
    from .finding.gpu_use import GpuUse
    from .finding.job import JobFinding
    from .finding.records import GpuWaits, LoaderUse, MachineUse, RankFindings, Waits
    from .finding.stages import StageCosts
    from .judging.advice import WorkerAdvice, advise
    from .traces.reading import read_trace
    from .watching.loop import Watch, watch

__all__ = [
    "BatchContents", "GpuUse", "GpuWaits", "JobFinding", "LoaderUse", "MachineUse", "RankFindings",
    "StageCosts", "Waits", "Watch", "WorkerAdvice", "advise", "read_trace", "watch",
]  # fmt: skip


def __getattr__(name: str) -> Any:  # Any: whatever is asked for
    """Load a name when it is used."""
    for module, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
