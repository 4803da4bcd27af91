"""The first epoch, which finds nothing in memory, the later ones, and what lies between two of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from ...errors import InputError, MissingValueError
from ...tables import Share, TableRepr, cell, percent
from ...units import Q_, Number, Quantity, Unchecked, positive, positive_int
from ..description import Description, check_asked
from ..resources import ACCELERATOR, CPU, DECODER, LINK, LOOP, STORAGE
from ..stages.data import hit_share
from ..step import Step

PASS_SAMPLES = "Pass samples=1_281_167, or dataset=Datasets.ImageNet to the pipeline."


@dataclass(frozen=True, repr=False)
class Epochs(TableRepr):
    """The answer of `epochs`.

    Attributes
    ----------
    samples : int
        Of an epoch.
    held : float or None
        The share of the data set that fits into memory, 0 to 1; None where no memory was given.
    cached_fraction : float
        The share of the reads that memory serves in a later epoch.
    first, later : Step
        A step of the first epoch, and of each epoch after it.
    first_boundary, boundary : quantity [time]
        How much longer the first epoch, and each epoch after it, takes than its steps: nothing is prepared
        when it begins.
    """

    samples: int
    held: float | None
    cached_fraction: float
    first: Step
    later: Step
    first_boundary: Quantity
    boundary: Quantity

    def time(self, count: int) -> Quantity:
        """How long that many epochs take [time], the first one included."""
        first, later = self._times
        whole: Quantity = first + (positive_int(count, "count") - 1) * later
        return whole

    @property
    def _times(self) -> tuple[Quantity, Quantity]:
        steps = (
            Q_(self.samples / step.throughput.m_as("img/min"), "min") for step in (self.first, self.later)
        )
        return next(steps) + self.first_boundary, next(steps) + self.boundary

    @property
    def headers(self) -> tuple[str, ...]:
        """Of the table that shows it."""
        read = (f"read from {self.later.labels.the(STORAGE.name)}",) if self.held is not None else ()
        busy = f"{self.later.labels[ACCELERATOR.name]} busy"
        return ("epoch", "time", "at its boundary", *read, busy, "binds")

    @property
    def rows(self) -> list[list[Unchecked]]:
        """The first epoch, and each later one."""
        rows: list[list[Unchecked]] = []
        both = ((self.first, self.first_boundary), (self.later, self.boundary))
        for name, (step, lost), time in zip(("the first", "each later"), both, self._times, strict=True):
            steps = time - lost
            read = [(step.actual_demand * steps).to("GB")] if self.held is not None else []
            busy = Share(step.utilization * (steps / time).m_as(""))
            shown = time if time.m_as("min") >= 1 else time.to("s")
            rows.append([name, shown, lost, *read, busy, step.labels[step.bottleneck]])
        return rows

    @property
    def summary(self) -> str:
        """What fits into memory, and what it is worth, in one line."""
        if self.held is None:
            return f"Between two epochs {cell(self.boundary)} are lost, as nothing is prepared then"
        if self.held >= 1:
            store = self.later.labels.the(STORAGE.name)
            return f"All data fits into memory, and only the first epoch reads it from {store}"
        return (
            f"{percent(self.held)} of the data fits into memory, which serves "
            f"{percent(self.cached_fraction)} of the reads from the second epoch on"
        )

    @property
    def note(self) -> str:
        """Below the table: what eviction takes, and why the step cannot run, if it cannot."""
        evicted = (
            "The page cache evicts samples before they are read again. One that keeps what it has would "
            f"serve {percent(self.held or 0)}: pass evicts=False."
        )
        kept = self.held is None or self.cached_fraction >= self.held
        return " ".join(filter(None, ("" if kept else evicted, self.later.note)))


def epochs(
    pipeline: Description,
    *,
    memory: Quantity | str | None = None,
    samples: int | None = None,
    evicts: bool = True,
) -> Epochs:
    """Return what a page cache does for the first epoch and each later one, and what is lost between them.

    Parameters
    ----------
    memory : quantity [data], optional
        What the host has left for its page cache; without it each epoch is like the others.
    samples : int, optional
        Of an epoch; those of the pipeline's data set unless given.
    evicts : bool
        False for a cache that keeps the samples it has, however many others are read.

    Raises
    ------
    InputError
    MissingValueError
        If the samples of an epoch are not known.

    Notes
    -----
    The first epoch reads each sample once and finds none of them in memory. A later one finds the share
    that `starvelab.model.stages.data.hit_share` derives. At the boundary of an epoch the queue is empty,
    and the loop is ahead of the accelerator as far as steps may be in flight:
    `starvelab.model.analysis._epochs` has the rule, and `Pipeline.simulate` follows it batch by batch. Stops
    being true where several jobs share the memory, and where one epoch is prepared while another one still
    runs, as DALI does.

    Examples
    --------
    >>> from starvelab import Datasets, Hardware, Models, Pipeline, Workers
    >>> trained = {"model": Models.ResNet50, "dataset": Datasets.ImageNet, "storage": "200 MB/s"}
    >>> pipeline = Pipeline(hardware=Hardware.Cloud.A100, **trained)
    >>> found = pipeline.epochs(memory="51.4 GB")
    >>> round(found.held, 3), round(found.cached_fraction, 3)
    (0.35, 0.138)
    >>> slow_start = pipeline.replace(workers=Workers(64, start_up="2 s"), storage=None)
    >>> print(slow_start.epochs().summary)
    Between two epochs 3.549 s are lost, as nothing is prepared then
    """
    given = ("storage.cache.share",) if memory is not None else ()
    check_asked(pipeline, "epochs", whatever=given, one_host=True)
    if memory is not None and pipeline.storage is None:
        raise InputError(
            "The page cache serves reads from a drive, got a pipeline without storage. "
            "Pass storage=Storage.NVMe_Gen4, or no memory."
        )
    samples = samples_of_epoch(pipeline, samples)
    if samples is None:
        raise MissingValueError(
            "epochs needs the samples of an epoch, and the pipeline names no data set of a known size. "
            f"{PASS_SAMPLES}"
        )
    accelerators = pipeline.numbers["accelerators"]
    if samples < pipeline.numbers["batch_size"] * accelerators:  # then an epoch is one batch of what there is
        pipeline = pipeline.replace(batch_size=ceil(samples / accelerators))
    begin = float(pipeline.numbers["start_up"] or 0.0)
    first, later, held = pipeline, pipeline, None
    if memory is None:
        cached = float(pipeline.numbers["cached_fraction"] or 0.0)
    else:
        held = min(1.0, positive(memory, "B", "memory") / (samples * pipeline.sizes["stored"]))
        cached = float(hit_share(held)) if evicts else held
        first, later = (pipeline.replace({"storage.cache.share": share}) for share in (0.0, cached))
    steps = samples / (pipeline.numbers["batch_size"] * accelerators)
    cold, warm = first.solve(), later.solve()
    return Epochs(
        samples=samples, held=held, cached_fraction=cached, first=cold, later=warm,
        first_boundary=Q_(_boundary(first, cold, steps, begin), "s"),
        boundary=Q_(_boundary(later, warm, steps, 0.0 if pipeline.numbers["persistent"] else begin), "s"),
    )  # fmt: skip


def _boundary(pipeline: Description, step: Step, steps: float, start_up: float) -> float:
    """How much longer an epoch of so many steps takes than these, whose workers need `start_up` [s].

    The loop asks for an epoch when it has the last batch of the one before, and at most ``d - 1`` steps are
    unfinished, where ``d`` may be in flight. Each resource needs its time for all steps, and waits for what
    comes before its first one or after its last one. With a worker's time ``T`` for a batch and the batch's
    way to the loop, workers ``W`` of each accelerator, ``q`` batches that they may have waiting or in work,
    and times ``s``, ``r``, ``c`` and ``l`` of a step, a read, a copy and the loop's own thread, the first
    batch is prepared from ``b = max(start_up, r)`` on, and passes all in ``p = b + T + l + c + s``. Then
    ``n`` steps take the longest of::

        n s + max(0, p - d s) / ceil(d / n), and so for c
        b + ceil(n / W) T + what the loop needs for the last round
        n r + T + l, and where n > q at least b + T + (n - q) r + T + l
        b + T + l (n mod d) + floor(n / d) max(d l, l + c + s)

    Workers that read themselves have the read in ``T``, and begin with it: then ``b`` is ``start_up``, and
    the third row is ``start_up + n r + T - r + l``. Without workers nothing is prepared ahead, and nothing
    is lost. A decoder behind the link adds to what the first batch passes, and a row like that of the link.

    The batches of a round are there together, and the loop receives them one step after another: of ``k`` in
    the last round that is ``l + c + s + (k - d) max(s, c)``, and only ``k l`` of fewer than ``d``. With one
    batch ahead of each worker, that one is read and received before the next.

    The threads of a pool prepare one batch together: then W is 1. So it is where only the CPU's supply as a
    whole is known.
    """
    if pipeline.alone:
        return 0.0
    if not step.overlap:  # nothing is prepared ahead of any step
        return start_up
    seconds = {name: float(time.m_as("s")) for name, time in step.resource_times.items()}
    own, cpu = seconds[ACCELERATOR.name], seconds[CPU.name]
    read = seconds.get(STORAGE.name, 0.0)
    loop = seconds.get(LOOP.name, 0.0)
    copy, decode = seconds.get(LINK.name, 0.0), seconds.get(DECODER.name, 0.0)
    together = pipeline.numbers["cpu_throughput"] is not None or pipeline.numbers["loader"] == "pool"
    workers = 1.0 if together else max(1.0, float(pipeline.numbers["workers"] / step.accelerators))
    if steps < workers:  # the others have nothing to do, and take nobody's core
        workers = float(ceil(steps - 1e-9))
        fewer = pipeline.solve(workers=int(workers) * step.accelerators)
        cpu = float(fewer.resource_times[CPU.name].m_as("s"))
    batch = workers * cpu
    # A share of a round that is left by rounding is none.
    rounds = ceil(steps / workers - 1e-9)
    last = steps - (rounds - 1) * workers
    free = min(pipeline.hardware.in_flight, 1e9)  # steps that the loop waits for none of; without end for all
    passes, slowest = copy + decode + own, max(own, copy, decode)
    receiving = max(loop + (passes + (last - free) * slowest if last >= free else 0.0), last * loop)
    ahead, way = pipeline.numbers["prefetch"], pipeline.numbers["way"] or 0.0
    if pipeline.workers_read:
        begins, read_first = start_up, 0.0
        reads = start_up + (steps - 1) * read + batch
    else:
        begins, more, read_first = max(start_up, read), steps - workers * ahead, read
        reads = max(steps * read, begins + batch + more * read if more > 0 else 0.0) + batch
    one_by_one = (rounds - 1) * (read_first + way + loop) if ahead == 1 else 0.0
    through, epochs_ahead = begins + batch + way + loop + passes, ceil(free / steps - 1e-9)
    full, left = divmod(steps, free)
    takes = (
        *(steps * each + max(0.0, through - free * each) / epochs_ahead for each in (own, copy, decode)),
        begins + rounds * batch + one_by_one + way + receiving,
        reads + way + loop + (passes if free == 1 else 0.0),
        begins + batch + way + left * loop + full * max(free * loop, loop + max(copy, decode) + own),
    )
    return max(0.0, max(takes) - steps * float(step.step_time.m_as("s")))


def samples_of_epoch(pipeline: Description, given: Unchecked) -> Number:
    """As given, or as the pipeline's data set has them; None where nobody says."""
    if given is not None:
        return positive_int(given, "samples")
    return None if pipeline.samples is None else pipeline.samples.get("samples")
