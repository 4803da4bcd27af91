"""A loader and its training loop, described by times for one batch.

It knows what each part takes, and the rate that mean times alone would allow; not what happens when.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from ..errors import InputError, check_names
from ..tables import cell
from ..units import Q_, as_quantity, check_magnitude, positive, whole

_TIMES = (
    "step_time",
    "prepare_time",
    "copy_time",
    "handover_time",
    "fetch_time",
    "start_up",
    "read_time",
    "read_wait",
    "straggler_time",
)
_COUNTS = ("batch_size", "prefetch")
_SWITCHES = ("in_order", "copy_overlaps")


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
        Before a worker can begin its first batch; the training loop itself needs none.
    read_time : quantity [time]
        What a batch occupies the storage that all workers share; reads are served one after the other.
    read_wait : quantity [time]
        Latency of storage: the worker sleeps through it and occupies nothing.
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
    >>> loader.but(workers=3).prefetch
    2
    """

    step_time: Any
    prepare_time: Any
    batch_size: Any = 32
    workers: Any = 2
    prefetch: Any = 2
    in_order: bool = True
    in_flight: Any = 2
    copy_time: Any = "0 ms"
    copy_overlaps: bool = True
    handover_time: Any = "0 ms"
    fetch_time: Any = "0 ms"
    start_up: Any = "0 ms"
    read_time: Any = "0 ms"
    read_wait: Any = "0 ms"
    cores: Any = None
    jitter: Any = 0.0
    straggler_share: Any = 0.0
    straggler_time: Any = "0 ms"

    def __post_init__(self) -> None:
        for name in _TIMES:
            time = as_quantity(getattr(self, name), "ms", name)
            self._keep(name, time, positive(time, "ms", name, zero=name != "step_time"))
        for name in _COUNTS:
            self._count(name)
        if _is_zero(self.workers):
            object.__setattr__(self, "workers", 0)
        else:
            self._count("workers")
        if self.in_flight != inf:
            self._count("in_flight")
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise InputError(
                    f"{name} must be True or False, got {getattr(self, name)!r:.80}. Pass one of these."
                )
        if self.cores is not None:
            self._keep("cores", check_magnitude(self.cores, "cores"))
        for name in ("jitter", "straggler_share"):
            self._keep(name, check_magnitude(getattr(self, name), name, zero=True))
        if self.straggler_share > 1:
            raise InputError(
                f"straggler_share must be a share up to 1, got {self.straggler_share:g}. "
                "Write 0.01 for 1 % of the samples."
            )

    def _count(self, name: str) -> None:
        self._keep(name, whole(getattr(self, name), name))

    def _keep(self, name: str, value: Any, number: Any = None) -> None:
        """Store a field as it was read, if it is one figure."""
        if np.ndim(value if number is None else number):
            raise InputError(
                f"A loader has one {name}, got an array. Make one for each value with loader.but({name}=...)."
            )
        object.__setattr__(self, name, value)

    def but(self, **changes: Any) -> Loader:
        """A copy with some fields changed.

        Raises
        ------
        InputError, UnknownNameError
        """
        check_names(changes, [field.name for field in dataclasses.fields(self)], "A loader")
        return dataclasses.replace(self, **changes)

    def ms(self, name: str) -> float:
        """A field that is a time, as a plain number of milliseconds."""
        return float(getattr(self, name).m_as("ms"))

    @property
    def stretch(self) -> float:
        """How many times longer CPU work takes when all workers share the cores."""
        return 1.0 if self.cores is None else max(1.0, self.workers / self.cores)

    @property
    def straggling(self) -> Any:
        """How much longer a batch takes on average because of slow samples [time]."""
        return self.batch_size * self.straggler_share * self.straggler_time

    @property
    def mean_rate(self) -> Any:
        """The throughput that mean times alone allow [sample/time], which no order of events exceeds.

        Notes
        -----
        The largest of: a step (with its copy where that cannot overlap), the copy, fetching, a worker's
        batch over the number of workers, the shared read, the whole way of a batch over the batches that may
        be under way, and the loop's own round over the steps in flight.
        """
        step, copy, fetch = (self.ms(name) for name in ("step_time", "copy_time", "fetch_time"))
        read = self.ms("read_time")
        work = read + self.ms("read_wait") + self.stretch * self.ms("prepare_time")
        work += float(self.straggling.m_as("ms"))
        way = work + self.ms("handover_time") + fetch
        device = step if self.copy_overlaps else step + copy
        if self.workers == 0:
            period = max(device, copy, way, (way + copy + step) / self.in_flight)
        else:
            period = max(
                device,
                copy,
                fetch,
                read,
                work / self.workers,
                way / (self.workers * self.prefetch),
                (fetch + copy + step) / self.in_flight,
            )
        return Q_(1000 * self.batch_size / period, "img/s")

    @property
    def mean_utilization(self) -> float:
        """Busy share of the accelerator at `mean_rate`."""
        return float((self.mean_rate.m_as("img/s") / self.batch_size) * self.ms("step_time") / 1000)

    def __repr__(self) -> str:
        fields = [f for f in dataclasses.fields(self) if f.default is dataclasses.MISSING or self._given(f)]
        return f"Loader({', '.join(f'{f.name}={_shown(getattr(self, f.name))}' for f in fields)})"

    def _given(self, field: Any) -> bool:
        value = getattr(self, field.name)
        return self.ms(field.name) > 0 if field.name in _TIMES else value != field.default


def _is_zero(value: Any) -> bool:
    return not isinstance(value, bool | str) and np.ndim(value) == 0 and value == 0


def _shown(value: Any) -> str:
    return f'"{cell(value)}"' if hasattr(value, "magnitude") else repr(value)
