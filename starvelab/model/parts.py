"""The parts of a pipeline: samples, storage, workers, link, accelerator, and the small values in them.

A part qualifies what stands first in it: a catalogue entry, a quantity, or a number. Where nothing is to be
qualified, a pipeline takes that alone: ``storage=Storage.NVMe_Gen4``, ``workers=8``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, TypeAlias

from .. import fields
from ..errors import InputError
from ..fields import Meaning
from ..units import Q_, Number, Quantity, Unchecked, has_dimension, positive
from .assumptions import KINDS
from .catalogue import Entry
from .cost import StepTime
from .packing import Packing as Packing
from .part import Part
from .rates import ELEMENT_BYTES
from .rates import Framework as Framework

# Bytes of one number as it crosses the link.
DTYPE_BYTES = {"uint8": 1, "float16": 2, "float32": 4}

Amount: TypeAlias = Quantity | str
Count: TypeAlias = Any  # an int, or an array of them


@dataclass(frozen=True, repr=False)
class Jitter(Part):
    """How the time of preparing scatters; simulated, and left out of account where mean rates are solved.

    Parameters
    ----------
    spread : float
        Standard deviation of a worker's time from batch to batch, as a share of it; lognormal.
    slow_share : float
        Share of the samples that take longer.
    slow_time : quantity [time]
        How much longer one of them takes: its worker sleeps, and no core works.
    """

    spread: float = fields.number(0.0, zero=True, shown="spread of the workers' time")
    slow_share: float = fields.number(0.0, zero=True, maximum=1, shown="share of slow samples")
    slow_time: Amount | None = fields.quantity("s", None, zero=True, shown="extra time of a slow sample")


@dataclass(frozen=True, repr=False)
class OnDevice(Part):
    """What input work the accelerator does itself.

    Parameters
    ----------
    time : quantity [time], optional
        What it takes for a sample in kernels, such as augmenting, or decoding where the accelerator has no
        decoder for such files.
    decoder_time : quantity [time], optional
        What the accelerator's decoder takes for a sample, while its kernels compute:
        ``Q_("1 img") / hardware.image_decode_rate`` where the catalogue knows that rate. Of several decode
        units that work side by side, such as ``hardware.video_decoders``, their time over their number.
    """

    time: Amount | None = fields.quantity(
        "s", None, zero=True, sweepable=True, stage="device_time", shown="accelerator time of a sample"
    )
    decoder_time: Amount | None = fields.quantity("s", None, sweepable=True, shown="decoder time of a sample")


@dataclass(frozen=True, repr=False)
class Samples(Part):
    """What is trained on, and what preparing a sample takes.

    Parameters
    ----------
    of : catalogue entry, optional
        A data set; that of the model, or what the assumptions say, unless given.
    size : quantity [data], optional
        Stored bytes of a sample; that of the data set or the assumptions unless given.
    cpu_time : quantity [time], optional
        What one worker takes for a sample, alone.
    transfer : str or quantity [data], optional
        How a decoded sample crosses the link: as numbers of a type ("uint8", "float16", "float32"), which is
        that of the assumptions unless given, or in so many bytes.
    on_device : OnDevice
        Input work that the accelerator does itself.
    packing : Packing, optional
        How documents of unequal length, which are these samples, become the rows that the model takes.
    jitter : Jitter
        How the worker's time scatters; read by `Pipeline.simulate`.
    source : object, optional
        Samples that can be opened, such as `starvelab.measure.photos`; read by `Pipeline.measure`.
    transforms : sequence, optional
        What a worker does to a sample of the source, in this order; read by `Pipeline.measure`.
    """

    of: Entry | None = fields.entry(None, group="Datasets", label="dataset", stage="dataset")
    size: Amount | None = fields.quantity("B", None, sweepable=True, shown="sample size")
    cpu_time: Amount | None = fields.quantity("s", None, sweepable=True, shown="CPU time of a sample")
    transfer: Amount | None = fields.quantity(
        "B", None, sweepable=True, choices=tuple(DTYPE_BYTES), shown="size on the link"
    )
    on_device: OnDevice = OnDevice()
    packing: Packing | None = None
    jitter: Jitter = Jitter()
    source: Unchecked = None
    transforms: Unchecked = None


@dataclass(frozen=True, repr=False)
class Cache(Part):
    """The host's memory in front of a drive.

    Parameters
    ----------
    share : float or array
        Of the reads that memory serves, 0 to 1. `Pipeline.epochs` says how large it is.
    bandwidth : quantity [data/time], optional
        How fast it serves them; unless given, that takes no time beside the workers' own.
    """

    share: Number = fields.number(
        0.0, zero=True, maximum=1, sweepable=True, stage="cached_fraction", shown="share in the cache"
    )
    bandwidth: Amount | None = fields.quantity(
        "B/s", None, sweepable=True, stage="cache_bandwidth", shown="bandwidth of the cache"
    )


@dataclass(frozen=True, repr=False)
class Requests(Part):
    """How samples are asked for, one request after the other or several at a time.

    Parameters
    ----------
    latency : quantity [time], optional
        From asking until the first byte comes: its worker waits, and no core works. That of the storage's
        entry unless given, for each request that a file takes there.
    samples : int or array
        How many samples one request brings: 1 where each is a file of its own, which is the default. Where
        they are packed, the bytes of a read over those of a sample: shards that are read 4 MB at a time bring
        36 images of 115 KB.
    open : int or array, optional
        How many requests each worker has open at a time; of workers of which only the rate is known, all of
        them together. As the assumptions say unless given, and 1 beside a latency of your own.
    """

    latency: Amount | None = fields.quantity(
        "s", None, zero=True, sweepable=True, stage="latency", shown="latency of a request"
    )
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
        How many such drives or spindles serve the host side by side.
    requests : Requests
        What a read waits for before its bytes come, and how many of them are under way.
    cache : Cache, optional
        What memory serves.
    read_ahead : bool
        False where each worker reads its samples itself, and waits for as long as storage takes; otherwise
        their bytes are read as soon as a batch is ordered. A run on this machine reads in its workers.
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
    """What it takes to bring a batch from its worker to the training loop.

    Parameters
    ----------
    worker : quantity [time]
        What its worker spends on joining and handing it over.
    way : quantity [time]
        How long it is under way: that delays the batch, and keeps no worker from the next one unless as many
        as `prefetch` are under way.
    loop : quantity [time]
        What the training loop's own thread spends on it, such as packing it: that overlaps with the
        accelerator as far as steps may be in flight. On receiving too, unless `objects` says what this takes.
    objects : int or array, optional
        How many tensors a batch is. Receiving them takes the loop what was measured for each object and each
        byte.
    """

    worker: Amount | None = fields.quantity(
        "s", None, zero=True, sweepable=True, stage="handover_time", shown="handing over, worker"
    )
    way: Amount | None = fields.quantity("s", None, zero=True, shown="handing over, on the way")
    loop: Amount | None = fields.quantity(
        "s", None, zero=True, sweepable=True, stage="loop_time", shown="handing over, loop"
    )
    objects: Count | None = fields.count(None, sweepable=True, shown="objects of a batch")


@dataclass(frozen=True, repr=False)
class Workers(Part):
    """The workers that prepare samples, all of the host's together.

    Parameters
    ----------
    count : int or array
        0 lets the training loop prepare its batches itself.
    rate : quantity [data/time] or [sample/time], optional
        What one worker prepares. Unless given, that of the samples, the kind of loader or the assumptions; a
        result says so where that was measured on samples of another size.
    cores : int or array, optional
        Physical cores of the host, all on which its workers may run, and not those that they keep busy: ten
        workers crowd each other on 10 cores, and hardly on 64. A vCPU is a hardware thread, so 64 vCPU are 32
        cores. Unless given, under `PUBLISHED` those of the accelerators' host, where the catalogue knows
        them; otherwise one for each worker.
    kind : {"processes", "threads", "pool", "torch"}, optional
        What they are, which decides how they scale: worker processes, threads of one Python process, in a
        build of Python with the global lock, or a pool of C++ threads such as DALI's. "torch" means the
        worker processes of PyTorch's `DataLoader`. `Pipeline.measure` runs each of them except a pool. As the
        assumptions say unless given; assumptions of your own go before it.
    prefetch : int
        Batches that each worker may have waiting or in work; PyTorch calls it `prefetch_factor`.
    in_order : bool
        Whether batches arrive in the order in which they were asked for. The mean rates that are solved
        leave this out of account.
    handover : Handover
        What it takes to bring a batch to the training loop.
    start_up : quantity [time]
        What a worker needs before it can begin its first batch; where workers start anew, ending the old
        ones belongs to it. Read by `Pipeline.simulate` and `Pipeline.epochs`.
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
        Whether the copy starts from pinned memory.
    overlaps : bool
        False where the copy runs on the stream that computes: the accelerator waits for it in each step.
    """

    of: Entry | Amount = fields.quantity("B/s", sweepable=True, group="Links", label="link", stage="link")
    pinned: bool = fields.switch(True, shown="pinned memory")
    overlaps: bool = fields.switch(True, shown="copies overlap")


@dataclass(frozen=True, repr=False)
class Host(Part):
    """What the host of an accelerator takes beside its workers.

    Parameters
    ----------
    time : quantity [time], optional
        What the training loop itself takes in each step while the accelerator has nothing to do: logging,
        metrics, waiting for a result such as ``loss.item()``. Not what the workers take, and not launching.
    busy : float or array, optional
        Share of its hardware threads that something else keeps busy, 0 to 1. Launching then takes longer as
        this and the busy workers fill the CPU; unless given, it takes what it takes on a calm host.
    """

    time: Amount | None = fields.quantity(
        "s", None, zero=True, sweepable=True, stage="host_time", shown="the loop's own time"
    )
    busy: Number | None = fields.number(
        None, zero=True, maximum=1, sweepable=True, stage="host_busy", shown="share of the host in other use"
    )


@dataclass(frozen=True, repr=False)
class Ranks(Part):
    """Hosts that train together: all their accelerators wait for each other at the end of each step.

    Parameters
    ----------
    hosts : int or array
        Each with the workers, the drive, the links and the accelerators of the pipeline.
    spread : float
        Standard deviation of what an accelerator computes in a step, from step to step and from rank to rank,
        as a share of it; lognormal, as with samples of many lengths.
    slow : float or array
        How many times as long preparing a batch takes on the slowest of the hosts.
    """

    hosts: Count = fields.count(1, sweepable=True, shown="hosts")
    spread: float = fields.number(0.0, zero=True, stage="rank_spread", shown="spread of the ranks' steps")
    slow: Number = fields.number(
        1.0, minimum=1, sweepable=True, stage="slow_rank", shown="preparing on the slowest host"
    )


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
        What one of them was measured to do with its input at hand, in samples or as the time of a step: that
        goes before any rate of the catalogue and before peak times efficiency. Or the framework whose
        published rate is meant.
    precision : {"fp16", "bf16", "tf32", "fp32"}
    step_overhead : quantity [time], optional
        Work of the accelerator in each step, on top: synchronizing several of them.
    host : Host
        What the host takes beside its workers, and what else keeps it busy.
    in_flight : int or inf
        Steps that the loop lets the accelerator have unfinished before it waits for one: 1 is
        ``loss.item()`` in every step, 2 is one step ahead, `math.inf` never waits.
    ranks : Ranks
        Hosts like this one that take their steps together.
    device : object, optional
        What trains on the batches in place of a simulated accelerator: `starvelab.measure.CudaDevice`, or a
        function of a batch, which trains for real. Read by `Pipeline.measure` and `Pipeline.diagnose`.
    """

    of: Entry | None = fields.entry(None, group="Hardware", label="hardware", stage="hardware")
    count: Count = fields.count(1, sweepable=True, stage="accelerators", shown="accelerators")
    rate: Amount | Framework | None = fields.quantity(
        "sample/s", None, sweepable=True, shown="rate of an accelerator"
    )
    precision: str = fields.choice(*ELEMENT_BYTES, default="fp16")
    step_overhead: Amount | None = fields.quantity(
        "s", None, zero=True, sweepable=True, shown="extra work in a step"
    )
    host: Host = Host()
    in_flight: float = fields.count(2, maximum=inf, shown="steps in flight")
    ranks: Ranks = Ranks()
    device: Unchecked = None

    def _read(self, name: str, value: Unchecked, meaning: Meaning) -> tuple[Unchecked, Number]:
        if name == "rate":
            if isinstance(value, str) and value[:1].isalpha():
                value = Framework(value)
            if isinstance(value, Framework):
                return value, value
            given = Q_(value) if isinstance(value, str) else value
            if has_dimension(given, "s"):
                return given, StepTime(positive(given, "s", "Accelerator.rate"))
        return super()._read(name, value, meaning)

    @property
    def framework(self) -> Framework:
        """Whose published rate is meant, where no measured one is given."""
        return self.rate if isinstance(self.rate, Framework) else Framework()
