"""Questions asked of a pipeline: where does it tip, how many workers, what would help, what is paid, and why.

Each answer is exact where a rounded one would be wrong; none of them draws or prints.
"""

from ..rates import extrapolate_rate
from ._bill import Bill, bill
from ._crossover import Crossover, crossover
from ._explain import explain
from ._sweep import Sweep, sweep
from ._workers_needed import WorkersNeeded, workers_needed

__all__ = [
    "Bill", "Crossover", "Sweep", "WorkersNeeded", "bill", "crossover", "explain",
    "extrapolate_rate", "sweep", "workers_needed",
]  # fmt: skip
