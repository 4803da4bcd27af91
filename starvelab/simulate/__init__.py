"""A loader in time: which worker prepares which batch when, and when the accelerator waits for one.

The mean rates are solved; here a batch that is late delays the ones behind it.
"""

from .epochs import Epochs
from .simulation import Simulation
from .timeline import Trace

__all__ = ["Epochs", "Simulation", "Trace"]
