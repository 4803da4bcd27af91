"""A busy host: launching takes longer as its CPU fills, and grows faster near the end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from ...units import Number
from ..cost import Inputs, minimum
from ..facts import Fact, read_data
from .transformation import TransformationInputs, TransformationModel


@cache
def busy_launches() -> dict[str, Fact]:
    """The two constants of `slowdown`, fitted on every other reading of a published curve."""
    return {name: Fact(**row) for name, row in read_data("rates")["busy_host"].items()}


def slowdown(use: Number) -> Number:
    """How many times as long launching takes at that share of the CPU in use: ``1 + cost use^power``."""
    law = busy_launches()
    return 1 + law["cost"].value * np.asarray(use, dtype=float) ** law["power"].value


@dataclass(frozen=True)
class BusyHost(Inputs):
    """What keeps the hardware threads of a host busy: others, and workers for their part of a step.

    Of ``n`` workers ``min(n, threads) / threads`` are busy for the CPU's time of a batch out of each step. So
    a step that launches set, ``launches slowdown(use(step))``, has one length, between those of no busy
    worker and of all.
    """

    others: Number
    workers: Number  # as a share of the threads
    fixed: Number  # seconds in which they are busy, for each batch
    per_sample: Number

    def use(self, batch: Number, step: Number) -> Number:
        """The share of the CPU that is in use in a step of that length."""
        busy = np.minimum((self.fixed + self.per_sample * batch) / step, 1.0)
        return np.minimum(self.others + self.workers * busy, 1.0)

    @property
    def full(self) -> Number:
        """How many times as long launching takes while all workers are busy."""
        return slowdown(np.minimum(self.others + self.workers, 1.0))


def busy_host(others: Number, transform: TransformationInputs, accelerators: Number) -> BusyHost:
    """Return what is known of a host's CPU: of workers without known cores, only what the others take."""
    if transform.workers is None or transform.threads is None:
        return BusyHost(others, 0.0, 0.0, 0.0)
    threads = transform.threads
    busy = TransformationModel.cost(transform).pieces[0]  # without waits for storage
    share = minimum(transform.workers, threads) / threads
    return BusyHost(others, share, busy.fixed * accelerators, busy.per_sample * accelerators)
