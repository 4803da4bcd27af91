"""A loader in time: which worker prepares which batch when, and when the accelerator waits for one.

The pipeline knows averages; here a batch that is late delays the ones behind it.
"""

from .loader import Loader
from .simulation import Simulation, simulate
from .trace import Trace

__all__ = ["Loader", "Simulation", "Trace", "simulate"]
