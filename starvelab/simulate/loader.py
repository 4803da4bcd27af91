"""A loader and its training loop in times for one batch, and the rate that mean times alone allow."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from math import inf
from typing import Self

import numpy as np

from ..errors import InputError, check_names
from ..fields import Given, Kind, count, meanings, number, quantity, shape_of, switch
from ..tables import cell
from ..units import Q_, Number, Quantity, Unchecked, magnitude_in, positive_int


@dataclass(frozen=True, kw_only=True)
class Loader:
    """Workers that prepare batches, the order in which they arrive, and the loop that trains on them.

    Every time is for one batch and may be text: ``step_time="20 ms"``.

    Parameters
    ----------
    step_time : quantity [time]
        What the accelerator computes for.
    prepare_time : quantity [time]
        One worker's own CPU time, on average.
    batch_size : int
    workers : int
        0 lets the training loop prepare its batches itself.
    prefetch : int
        Batches that each worker may have waiting or in work; PyTorch calls it `prefetch_factor`.
    in_order : bool
        Whether batches arrive in the order in which they were asked for.
    in_flight : int or inf
        Steps that the loop lets the accelerator have unfinished before it waits for one: 1 is
        ``loss.item()`` in every step, 2 is one step ahead, `math.inf` never waits.
    copy_time : quantity [time]
        To the accelerator.
    copy_overlaps : bool
        Whether a copy may run while the accelerator computes; otherwise it takes its turn between steps.
    handover_time : quantity [time]
        On the way from a worker to the loop. It delays a batch and keeps no worker from the next one: what
        keeps the worker busy belongs to `prepare_time`.
    fetch_time : quantity [time]
        What the loop itself spends on receiving a batch.
    start_up : quantity [time]
        Before a worker can begin its first batch; the training loop itself needs none. Where workers start
        anew, ending the old ones belongs to it.
    epoch_batches : int, optional
        Batches of an epoch; a run of one epoch unless given. No index of the next epoch is sent before the
        loop has asked for its first batch, so the queue is empty then.
    persistent_workers : bool
        False starts the workers anew for each epoch, as PyTorch does unless it is told otherwise.
    read_time : quantity [time]
        What a batch occupies the storage that all workers share; reads are served one after the other.
    read_wait : quantity [time]
        Latency of storage: the worker sleeps through it and occupies nothing.
    cached_fraction : float
        Share of the samples that the host's memory serves, which takes neither of these two.
    read_ahead : bool
        Whether samples are read as soon as a batch is ordered; otherwise its worker reads them, and waits.
    busy_share : float
        What share of `step_time` the accelerator works.
    cores : float, optional
        Physical cores. With more workers than that, the CPU time of each is stretched.
    jitter : float
        Standard deviation of `prepare_time` from batch to batch, as a share of it; lognormal.
    straggler_share : float
        Share of samples that take longer.
    straggler_time : quantity [time]
        How much longer one of them takes: a sleep, not CPU time.

    Raises
    ------
    InputError

    Examples
    --------
    >>> loader = Loader(step_time="20 ms", prepare_time="50 ms", workers=2)
    >>> round(loader.mean_rate.m_as("img/s"))
    1280
    >>> loader.replace(workers=3).prefetch
    2
    """

    step_time: Given = quantity("s")
    prepare_time: Given = quantity("s", zero=True)
    batch_size: int = count(32)
    workers: int = 2
    prefetch: int = count(2)
    in_order: bool = switch(True)
    in_flight: float = 2
    copy_time: Given = quantity("s", "0 ms", zero=True)
    copy_overlaps: bool = switch(True)
    handover_time: Given = quantity("s", "0 ms", zero=True)
    fetch_time: Given = quantity("s", "0 ms", zero=True)
    start_up: Given = quantity("s", "0 ms", zero=True)
    epoch_batches: int | None = count(None)
    persistent_workers: bool = switch(False)
    read_time: Given = quantity("s", "0 ms", zero=True)
    read_wait: Given = quantity("s", "0 ms", zero=True)
    cached_fraction: float = number(0.0, zero=True, maximum=1)
    read_ahead: bool = switch(False)
    busy_share: float = number(1.0, maximum=1)
    cores: float | None = number(None)
    jitter: float = number(0.0, zero=True)
    straggler_share: float = number(0.0, zero=True, maximum=1)
    straggler_time: Given = quantity("s", "0 ms", zero=True)

    def __post_init__(self) -> None:
        for name, meaning in meanings(Loader).items():
            value = getattr(self, name)
            if name in ("cores", "epoch_batches") and value is None:
                continue
            kept, plain = meaning.read(value, name)
            self._keep(name, kept if meaning.kind is Kind.QUANTITY else plain)
        # These two have a value of their own beside whole numbers: nobody, and no limit.
        if _is_zero(self.workers):
            object.__setattr__(self, "workers", 0)
        else:
            self._keep("workers", positive_int(self.workers, "workers"))
        if self.in_flight != inf:
            self._keep("in_flight", positive_int(self.in_flight, "in_flight"))

    def _keep(self, name: str, value: Number) -> None:
        """Store a field as it was read, if it is one value."""
        if shape_of(value):
            raise InputError(
                f"A loader has one {name}, got an array. "
                f"Make one for each value with loader.replace({name}=...)."
            )
        object.__setattr__(self, name, value)

    def replace(self, **changes: Unchecked) -> Self:
        """A copy with some fields changed.

        Raises
        ------
        InputError, UnknownNameError
        """
        check_names(changes, [field.name for field in dataclasses.fields(self)], "A loader")
        return dataclasses.replace(self, **changes)

    def ms(self, name: str) -> float:
        """A field that is a time, as a plain number of milliseconds."""
        return float(magnitude_in(getattr(self, name), "ms"))

    @property
    def stretch(self) -> float:
        """How many times longer CPU work takes when all workers share the cores."""
        return 1.0 if self.cores is None else max(1.0, self.workers / self.cores)

    @property
    def mean_delay(self) -> Quantity:
        """How much longer a batch takes on average because of slow samples [time]."""
        delay: Quantity = self.batch_size * self.straggler_share * self.straggler_time
        return delay

    @property
    def mean_rate(self) -> Quantity:
        """The throughput that mean times alone allow [sample/time], which no order of events exceeds.

        Notes
        -----
        The largest of: a step (with its copy where that cannot overlap), the copy, fetching, a worker's
        batch over the number of workers, the shared read, the whole way of a batch over the batches that may
        be under way, and the loop's own round over the steps in flight. What a boundary of epochs takes is
        not in it: `starvelab.epochs` says that.
        """
        step, copy, fetch = (self.ms(name) for name in ("step_time", "copy_time", "fetch_time"))
        missed = 1 - self.cached_fraction
        read = missed * self.ms("read_time")
        work = missed * self.ms("read_wait") + self.stretch * self.ms("prepare_time")
        work += float(self.mean_delay.m_as("ms"))
        ahead = read if self.read_ahead and self.workers > 0 else 0.0
        work += read - ahead
        way = ahead + work + self.ms("handover_time") + fetch
        device = step if self.copy_overlaps else step + copy
        if self.workers == 0:
            period = max(device, copy, way, (way + copy + step) / self.in_flight)
        else:
            ours, depth = work / self.workers, self.workers * self.prefetch
            period = max(device, copy, fetch, read, ours, way / depth, (fetch + copy + step) / self.in_flight)
        return Q_(1000 * self.batch_size / period, "img/s")

    @property
    def mean_utilization(self) -> float:
        """Busy share of the accelerator at `mean_rate`."""
        return float((self.mean_rate.m_as("img/s") / self.batch_size) * self.ms("step_time") / 1000)

    def __repr__(self) -> str:
        given = (
            field.name
            for field in dataclasses.fields(self)
            if field.default is dataclasses.MISSING or self._differs(field.name, field.default)
        )
        return f"Loader({', '.join(f'{name}={_short(getattr(self, name))}' for name in given)})"

    def _differs(self, name: str, default: Unchecked) -> bool:
        value = getattr(self, name)
        return self.ms(name) > 0 if isinstance(value, Quantity) else bool(value != default)


def _is_zero(value: Unchecked) -> bool:
    return not isinstance(value, bool | str) and np.ndim(value) == 0 and value == 0


def _short(value: Unchecked) -> str:
    return f'"{cell(value)}"' if isinstance(value, Quantity) else repr(value)
