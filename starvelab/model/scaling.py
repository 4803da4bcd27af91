"""How much faster several workers prepare than one: what they share, and the cores of their host."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ceil, inf, sqrt

from ..units import Number
from .cost import Inputs, minimum
from .facts import Fact, read_data


@dataclass(frozen=True)
class WorkerScaling(Inputs):
    """A law of scaling, within the cores of a host.

    Contention and coherency are those of the workers, whatever host they run on: the two parameters of
    Gunther's universal scalability law, ``n / (1 + contention (n - 1) + coherency n (n - 1))``. Both zero is
    linear scaling. Crowding is the host's: how much longer work takes where all cores are busy, as a share.
    It grows with the share of busy cores, so the same number of workers crowds a large host less. The second
    hardware thread of a busy core adds `second_thread`, as a share of a core.

    With more workers than cores, the surplus runs on second hardware threads, at most one for each core:
    ``e = min(n, cores) + second_thread min(max(n - cores, 0), cores)`` workers' worth of cores are busy. Then
    ``S = e / (1 + contention (e - 1) + coherency e (e - 1) + crowding (e - 1) / cores)``. Past the peak of
    the universal law the speed-up stays at the peak, since nobody starts workers that slow the others down.
    """

    contention: Number
    coherency: Number
    crowding: Number = 0
    second_thread: Number = 0

    @property
    def peak_workers(self) -> Number:
        """The number of workers past which more do not help on any host; infinite if there is none."""
        if self.coherency == 0:
            return inf
        # One more worker helps the first n as long as n (n + 1) < (1 - contention) / coherency.
        return max(1, ceil(sqrt((1 - self.contention) / self.coherency + 0.25) - 0.5))

    def speedup(self, workers: Number, cores: Number | None = None) -> Number:
        """How many times one worker's rate that many reach; without `cores` each has one to itself."""
        crowding: Number = 0
        if cores is None:
            e = minimum(workers, self.peak_workers)
        else:
            surplus = minimum(workers - minimum(workers, cores), cores)
            e = minimum(minimum(workers, cores) + self.second_thread * surplus, self.peak_workers)
            # Less than one busy core crowds nobody.
            crowding = self.crowding * (e - 1) / cores
        return e / (1 + self.contention * (e - 1) + self.coherency * e * (e - 1) + crowding)


@dataclass(frozen=True)
class LoaderKind:
    """A kind of loader: how its workers scale, what one of them prepares, and where that was measured."""

    name: str
    scaling: WorkerScaling
    worker_rate: Number | None  # samples per second of one, where it differs from that of the assumptions
    object_time: Number  # seconds of the training loop for each object of a batch
    byte_time: Number  # and for each byte
    facts: dict[str, Fact]


# "torch" are the worker processes of PyTorch's DataLoader.
KINDS = ("processes", "threads", "pool", "torch")


@cache
def loader_kinds() -> dict[str, LoaderKind]:
    """Every kind of loader in ``data/loaders.toml``, by name."""
    kinds = {}
    for name, table in read_data("loaders").items():
        facts = {key: Fact(**row) for key, row in table.items()}
        values = {key: fact.value for key, fact in facts.items()}
        own = {key: values.pop(key, None) for key in ("worker_rate", "object_time", "byte_time")}
        kinds[name] = LoaderKind(name, WorkerScaling(**values), **own, facts=facts)
    return {**kinds, "torch": kinds["processes"]}
