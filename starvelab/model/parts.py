"""The parts of a pipeline: samples, storage, workers, link, accelerator, and the small values in them.

A part qualifies what stands first in it: a catalogue entry, a quantity, or a number. Where nothing is to be
qualified, a pipeline takes that alone: ``storage=Storage.NVMe_Gen4``, ``workers=8``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, TypeAlias

from ..errors import InputError, own_errors
from ..units import Q_, Amount, Number, Unchecked, has_dimension, positive
from . import fields
from .assumptions import KINDS
from .catalogue import Entry
from .costs import StepTime
from .fields import Part
from .rates import ELEMENT_BYTES
from .rates import Framework as Framework
from .samples import Jitter as Jitter
from .samples import OnDevice as OnDevice
from .samples import Samples as Samples

Count: TypeAlias = Any  # an int, or an array of them


@dataclass(frozen=True, repr=False)
class Cache(Part):
    """The host's memory in front of a drive.

    Parameters
    ----------
    share : float or array
        Share of the reads that memory serves, 0 to 1; `Pipeline.epochs` computes it. Serving them takes no
        time besides the workers' own.
    """

    share: Number = fields.number(
        0.0, zero=True, maximum=1, sweepable=True, stage="cached_fraction", shown="share in the cache"
    )


@dataclass(frozen=True, repr=False)
class Requests(Part):
    """How samples are asked for, one request after the other or several at a time.

    Parameters
    ----------
    latency : quantity [time], optional
        From the request to its first byte: the worker waits, and no core works. By default that of the
        storage's entry, for each request that a file takes there.
    samples : int or array
        Samples in one request: 1 if each is a file of its own, which is the default. If they are packed, the
        bytes of a read divided by those of a sample: shards that are read 4 MB at a time bring 36 images of
        115 KB.
    open : int or array, optional
        Requests that each worker has open at a time; or all workers together, if only their rate is known. By
        default as the assumptions say, and 1 beside a latency of your own.
    """

    latency: Amount | None = fields.seconds(stage="latency", shown="latency of a request")
    samples: Count = fields.count(1, sweepable=True, stage="samples_per_request", shown="samples a request")
    open: Count | None = fields.count(None, sweepable=True, stage="open_requests", shown="open requests")


@dataclass(frozen=True, repr=False)
class Drive(Part):
    """Storage, and how it is read.

    Parameters
    ----------
    of : catalogue entry or quantity [data/time], optional
        The drive, or its bandwidth. Without it only the latency of its requests limits reading.
    count : int or array
        Drives or spindles that serve the host side by side.
    requests : Requests
        How samples are requested, and how long the bytes take to come.
    cache : Cache, optional
        The reads that memory serves.
    read_ahead : bool
        False if each worker reads its samples itself, and waits for as long as storage takes; otherwise their
        bytes are read as soon as a batch is ordered. A run on this machine reads in its workers.
    """

    of: Entry | Amount | None = fields.quantity(
        "B/s", None, sweepable=True, group="Storage", label="storage", stage="storage"
    )
    count: Count = fields.count(1, sweepable=True, stage="drives", shown="drives")
    requests: Requests = Requests()
    cache: Cache | None = None
    read_ahead: bool = fields.switch(True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.of is None and self.requests.latency is None:
            raise InputError(
                "A Drive is a catalogue entry, a bandwidth, or the latency of its requests, got none of "
                "them. Pass for example Drive(Storage.NVMe_Gen4, count=4)."
            )


@dataclass(frozen=True, repr=False)
class Handover(Part):
    """The time to bring a batch from its worker to the training loop.

    Parameters
    ----------
    worker : quantity [time]
        Time of its worker to join the batch and hand it over.
    way : quantity [time]
        Time on the way, which delays the batch. Its worker begins the next one meanwhile, unless as many as
        `prefetch` are under way.
    loop : quantity [time]
        Time of the training loop's own thread, for example to pack the batch, which overlaps with the
        accelerator as far as steps may be in flight. It includes receiving, unless `objects` is given.
    objects : int or array, optional
        Tensors in a batch. The loop receives them in the time that was measured for each object and each
        byte.
    pickled : bool
        True if a batch is not of tensors, but for example a list of arrays: worker processes pickle it into a
        pipe, and the loop unpickles it, in the time measured for each byte.
    """

    worker: Amount | None = fields.seconds(stage="handover_time", shown="handing over, worker")
    way: Amount | None = fields.quantity("s", None, zero=True, shown="handing over, on the way")
    loop: Amount | None = fields.seconds(stage="loop_time", shown="handing over, loop")
    objects: Count | None = fields.count(None, sweepable=True, shown="objects of a batch")
    pickled: bool = fields.switch(False, shown="pickled batches")


@dataclass(frozen=True, repr=False)
class Workers(Part):
    """The workers that prepare samples, all of the host's together.

    Parameters
    ----------
    count : int or array
        0 lets the training loop prepare its batches itself.
    rate : quantity [data/time] or [sample/time], optional
        Rate of one worker. By default that of the samples, the kind of loader or the assumptions; a result
        says if it was measured on samples of another size.
    cores : int or array, optional
        Physical cores of the host on which its workers may run, whether busy or not: ten workers crowd each
        other on 10 cores, and hardly on 64. A vCPU is a hardware thread, so 64 vCPU are 32 cores. By default,
        under `PUBLISHED`, those of the accelerators' host, if the catalogue has them; otherwise one for each
        worker.
    kind : {"processes", "threads", "pool", "torch"}, optional
        The kind of workers decides how they scale: processes, threads of one Python process with the global
        lock, or a pool of C++ threads such as DALI's. "torch" means the worker processes of PyTorch's
        `DataLoader`. `Pipeline.measure` runs each of them except a pool. By default as the assumptions say;
        assumptions of your own come before it.
    prefetch : int
        Batches that each worker may have waiting or in work; PyTorch calls it `prefetch_factor`.
    in_order : bool
        True if batches arrive in the order in which they were asked for. `Pipeline.solve` ignores this.
    handover : Handover
        The time to bring a batch to the training loop.
    start_up : quantity [time]
        Time of a worker before it begins its first batch; if workers start anew, it includes ending the old
        ones. Read by `Pipeline.simulate` and `Pipeline.epochs`.
    persistent : bool
        False starts the workers anew for each epoch, as PyTorch does unless it is told otherwise. Read by
        `Pipeline.simulate` and `Pipeline.epochs`.
    """

    count: Count = fields.count(8, zero=True, sweepable=True, label="workers", stage="workers")
    rate: Amount | None = fields.supply(None, sweepable=True, stage="worker_rate", shown="rate of a worker")
    cores: Count | None = fields.count(None, sweepable=True, shown="CPU cores")
    kind: str | None = fields.choice(*KINDS, default=None, stage="loader", shown="kind of workers")
    prefetch: int = fields.count(2, shown="prefetched batches")
    in_order: bool = fields.switch(True, shown="batches in order")
    handover: Handover = Handover()
    start_up: Amount | None = fields.quantity("s", None, zero=True, shown="start-up of a worker")
    persistent: bool = fields.switch(False, shown="persistent workers")


@dataclass(frozen=True, repr=False)
class Link(Part):
    """The link between host and accelerator, and how a batch is copied over it.

    Parameters
    ----------
    of : catalogue entry or quantity [data/time]
        An entry of Links, an accelerator (its own link), or a bandwidth.
    pinned : bool
        True if the copy starts from pinned memory. Otherwise copy and step take turns.
    overlaps : bool
        False if the copy runs on the stream that computes: the accelerator waits for it in each step.
    """

    of: Entry | Amount = fields.quantity("B/s", sweepable=True, group="Links", label="link", stage="link")
    pinned: bool = fields.switch(True, shown="pinned memory")
    overlaps: bool = fields.switch(True, shown="copies overlap")

    @property
    def runs_beside(self) -> bool:
        """True if a copy runs beside a step: with pinned memory and a stream of its own."""
        return self.pinned and self.overlaps


Link.__init__ = own_errors(Link.__init__)  # type: ignore[method-assign]  # it needs a value


@dataclass(frozen=True, repr=False)
class Host(Part):
    """The time that the host of an accelerator takes besides its workers.

    Parameters
    ----------
    time : quantity [time], optional
        Time of the training loop itself in each step while the accelerator has nothing to do: logging,
        metrics, waiting for a result such as ``loss.item()``. It includes neither workers nor launching.
    """

    time: Amount | None = fields.seconds(stage="host_time", shown="the loop's own time")


@dataclass(frozen=True, repr=False)
class Ranks(Part):
    """Hosts that train together: all their accelerators wait for each other at the end of each step.

    Parameters
    ----------
    hosts : int or array
        Each with the workers, the drive, the links and the accelerators of the pipeline.
    spread : float, optional
        Standard deviation of an accelerator's time in a step, from step to step and from rank to rank, as a
        share of it; lognormal, as with samples of many lengths.
    slow : float or array
        How many times as long preparing a batch takes on the slowest of the hosts.
    """

    hosts: Count = fields.count(1, sweepable=True, shown="hosts")
    spread: float | None = fields.number(
        None, zero=True, stage="rank_spread", shown="spread of the ranks' steps"
    )
    slow: Number = fields.number(
        1.0, minimum=1, sweepable=True, stage="slow_rank", shown="preparing on the slowest host"
    )


def _read_rate(value: Unchecked, name: str) -> tuple[Unchecked, Number]:
    """A measured rate, the time of a step, or the framework whose published rate is meant."""
    if isinstance(value, str) and value[:1].isalpha():
        value = Framework(value)
    if isinstance(value, Framework):
        return value, None
    rate = Q_(value) if isinstance(value, str) else value
    if has_dimension(rate, "s"):
        return rate, StepTime(positive(rate, "s", name))
    return rate, positive(rate, "sample/s", name)


@dataclass(frozen=True, repr=False)
class Accelerator(Part):
    """One accelerator, or several on one host, and the training loop that drives them.

    Parameters
    ----------
    of : catalogue entry, optional
        Not needed beside a measured `rate`.
    count : int or array
        How many of them share the host's workers, cores and drive. Each has a link of its own, and all take
        their steps together.
    rate : quantity [sample/time] or [time], Framework or str, optional
        Rate of one of them, measured with its input at hand, in samples or as the time of a step: it comes
        before any rate of the catalogue and before peak times efficiency. Or the framework whose published
        rate to take.
    precision : {"fp16", "bf16", "tf32", "fp32"}
    step_overhead : quantity [time], optional
        Extra work of the accelerator in each step, such as synchronizing several of them.
    host : Host
        The time that the host takes besides its workers.
    in_flight : int or inf
        Steps that the loop lets the accelerator have unfinished before it waits for one: 1 is
        ``loss.item()`` in every step, 2 is one step ahead, `math.inf` never waits.
    ranks : Ranks
        Hosts like this one that take their steps together.
    device : object, optional
        A function of a batch that trains for real, in place of a simulated accelerator. Read by
        `Pipeline.measure` and `Pipeline.diagnose`.
    """

    of: Entry | None = fields.entry(None, group="Hardware", label="hardware", stage="hardware")
    count: Count = fields.count(1, sweepable=True, stage="accelerators", shown="GPUs")
    rate: Amount | Framework | None = fields.quantity(
        "sample/s", None, reader=_read_rate, sweepable=True, stage="accelerator_rate", shown="rate of a GPU"
    )
    precision: str = fields.choice(*ELEMENT_BYTES, default="fp16")
    step_overhead: Amount | None = fields.seconds(shown="extra work in a step")
    host: Host = Host()
    in_flight: float = fields.count(2, maximum=inf, shown="steps in flight")
    ranks: Ranks = Ranks()
    device: Unchecked = None

    @property
    def framework(self) -> Framework:
        """Whose published rate to take, if no measured one is given."""
        return self.rate if isinstance(self.rate, Framework) else Framework()


# What each field of a pipeline is made of where something else than a part is given for it.
PARTS: Mapping[str, type[Part]] = {
    "dataset": Samples,
    "storage": Drive,
    "workers": Workers,
    "link": Link,
    "hardware": Accelerator,
}
