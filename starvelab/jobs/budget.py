"""How much of the time may go into measuring: what is not paid for yet waits for its turn."""

from __future__ import annotations

import time
from collections.abc import Callable


class Budget:
    """Says when the next measurement may be made, so that all of them stay below a share of the time.

    Parameters
    ----------
    share : float
        Of the time since this budget was made, 0 to 1.
    cost : float
        Seconds that the first measurement is expected to take; later ones are expected to take what the
        one before took.
    clock : callable
        Seconds that pass.
    """

    def __init__(self, share: float, cost: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.share, self.expected, self.clock = share, cost, clock
        self.begun, self.spent = clock(), 0.0

    def allows(self) -> bool:
        """Whether the time that passed pays for one more measurement."""
        return self.spent + self.expected <= self.share * (self.clock() - self.begun)

    def spend(self, cost: float) -> None:
        """A measurement took so many seconds."""
        self.spent += cost
        self.expected = cost
