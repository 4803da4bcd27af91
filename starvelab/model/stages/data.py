"""Reading from storage: whether the drive supplies what is asked for, and how long a batch takes."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np

from ...errors import MissingValueError
from ...units import Q_, Number, Quantity, Unchecked, has_dimension, nonnegative, positive
from ..catalogue import Entry, bandwidth_of
from ..cost import Cost, Inputs, Line, as_float, exceeds, minimum
from ..resources import STORAGE, Resource
from .stage import StageModel

_FIELDS = {"Storage": "bandwidth_sustained", "Hardware": "storage_bandwidth"}
_REMEDY = 'Pass storage=Storage.NVMe_Gen4 or bandwidth=Q_("7 GB/s").'


@dataclass(frozen=True)
class DataResult:
    """The answer of `DataModel.solve`.

    Attributes
    ----------
    supply_bw : quantity [data/time]
    utilization : float or array
        Demand over supply; above 1 the drive cannot keep up.
    is_stalled : bool or array
    """

    supply_bw: Quantity
    utilization: Number
    is_stalled: Number


@dataclass(frozen=True)
class DataInputs(Inputs):
    """What reading a sample asks for, and what the drives give."""

    size: Number  # stored bytes of a sample
    bandwidth: Number  # of one drive [B/s]
    drives: Number
    latency: Number  # of a request [s]
    in_flight: Number  # requests that all drives together serve at a time; may be infinite
    samples_per_request: Number
    request_rate: Number | None  # requests that one drive serves in a second [1/s]
    cached: Number  # share of the reads that the host's memory serves
    cache_bandwidth: Number | None  # how fast it does [B/s]; None where that takes no time of its own


@dataclass(frozen=True)
class DataModel(StageModel[DataInputs]):
    """The storage device: bandwidth, and latency of each request.

    Parameters
    ----------
    assumptions : Assumptions
        `requests_in_flight` is used.

    Notes
    -----
    A batch of ``b`` samples of size ``S`` takes ``b`` times the largest of three: ``S / (d B)``, the
    bandwidth ``B`` of ``d`` drives; ``(l / k + S / B) / n``, the latency ``l`` of requests that bring ``k``
    samples each and of which ``n`` are served at a time; and ``1 / (d r k)``, the rate ``r`` of requests. A
    drive serves no more requests at a time than it has heads, slots or connections, so one spindle with 32
    requests waiting still seeks for each; twice as many drives serve twice as many. Of the reads the host's
    memory serves a share ``x`` with a bandwidth ``C``, so a sample takes ``x S / C`` and ``1 - x`` of the
    time above. It stops being true where other readers share the drive, and where the workers ask for less
    than it serves.

    References
    ----------
    Little's law for the second term; Mohan et al., PVLDB 14(5), 2021, for fetch stalls and the cache.
    """

    NAME: ClassVar[str] = "read"
    RESOURCE: ClassVar[Resource] = STORAGE

    def solve(
        self,
        *,
        workload_data_rate: Quantity,
        hardware: Entry | None = None,
        storage: Entry | Quantity | None = None,
        bandwidth: Quantity | None = None,
    ) -> DataResult:
        """Compare a demand with what the drive supplies.

        Parameters
        ----------
        workload_data_rate : quantity [data/time]
            Bytes per second the workload wants; a throughput times a size of one sample is accepted too.
        hardware : catalogue entry
            Its host's local drive is used unless `storage` or `bandwidth` is given.
        storage : catalogue entry
        bandwidth : quantity [data/time]

        Raises
        ------
        MissingValueError
            If no bandwidth is given and the hardware lists none.
        InputError

        Examples
        --------
        >>> from starvelab import Hardware, Q_
        >>> check = DataModel().solve(workload_data_rate=Q_("10.9 GB/s"), hardware=Hardware.Cloud.A100)
        >>> round(check.utilization, 3), check.is_stalled
        (1.557, True)
        """
        demanded: Unchecked = workload_data_rate
        if has_dimension(demanded, "sample * byte / second"):
            demanded = demanded / Q_(
                "1 sample"
            )  # a throughput times a size of one sample: the sample cancels
        demand = nonnegative(demanded, "B/s", "workload_data_rate")
        source = storage_bandwidth(hardware=hardware, storage=storage, bandwidth=bandwidth)
        share = demand / positive(source, "B/s", "storage bandwidth")
        return DataResult(supply_bw=source, utilization=share, is_stalled=exceeds(share, 1))

    def resolve(
        self,
        *,
        stored: Number,
        storage: Entry | Number | None,
        drives: Number = 1,
        samples_per_request: Number = 1,
        cached_fraction: Number | None = None,
        cache_bandwidth: Number | None = None,
    ) -> DataInputs | None:
        """The formula's numbers from the fields of a pipeline; None where it names no storage."""
        if storage is None:
            return None
        in_flight, latency, rate = self.assumptions.numbers["requests_in_flight"], 0.0, None
        if isinstance(storage, Entry):
            latency = storage.number("request_latency", 0.0)
            if in_flight > 1:
                latency = storage.number("queued_latency", latency)
            served = storage.number("parallel_requests")
            in_flight = in_flight if served is None or in_flight == inf else minimum(in_flight, served)
            rate = storage.number("request_rate")
            storage = positive(storage_bandwidth(storage=storage), "B/s", "storage bandwidth")
        return DataInputs(
            size=stored,
            bandwidth=storage,
            drives=drives,
            latency=latency,
            in_flight=in_flight if in_flight == inf else in_flight * drives,
            samples_per_request=samples_per_request,
            request_rate=rate,
            cached=0 if cached_fraction is None else cached_fraction,
            cache_bandwidth=cache_bandwidth,
        )

    @staticmethod
    def cost(inputs: DataInputs) -> Cost:
        """``b (x S / C + (1 - x) max(S / (d B), (l / k + S / B) / n, 1 / (d r k)))``."""
        d, k = inputs.drives, inputs.samples_per_request
        transfer = inputs.size / inputs.bandwidth
        times = [transfer / d]
        if not (np.ndim(inputs.in_flight) == 0 and inputs.in_flight == inf):
            times.append((inputs.latency / k + transfer) / inputs.in_flight)
        if inputs.request_rate is not None:
            times.append(1 / (d * inputs.request_rate * k))
        from_memory: Number = 0
        if inputs.cache_bandwidth is not None:
            from_memory = inputs.cached * inputs.size / inputs.cache_bandwidth
        return Cost(tuple(Line(0, from_memory + (1 - inputs.cached) * time) for time in times))


def storage_bandwidth(
    *, hardware: Unchecked = None, storage: Unchecked = None, bandwidth: Unchecked = None
) -> Quantity:
    """The bandwidth [data/time] of whatever was named first: a bandwidth, a drive, a host's drive."""
    named = next((one for one in (bandwidth, storage, hardware) if one is not None), None)
    needs = "DataModel needs a storage bandwidth"
    if named is None:
        raise MissingValueError(f"{needs}, and neither hardware nor storage was named. {_REMEDY}")
    return bandwidth_of(named, "storage", _FIELDS, needs, _REMEDY)


def hit_share(held: Number) -> Number:
    """Share of the reads that a page cache serves, from the second epoch on.

    Parameters
    ----------
    held : float or array
        The share of the data set that fits into the cache, above 0. From 1 on every read is served.

    Notes
    -----
    The cache fills up, and each read that misses evicts a sample. It evicts at random here. A sample comes at
    a random place of each epoch, so between its reads lie ``d`` epochs, where ``d`` is the sum of two uniform
    numbers. In that time ``(1 - h) d`` of the data set is read anew, where ``h`` is the share of hits, and a
    sample in a cache of the share ``c`` survives with ``exp(-(1 - h) d / c)``. On average over ``d`` that is

        ``h = ((1 - exp(-s)) / s)^2`` with ``s = (1 - h) / c``.

    With 35 % of the data in the cache 13.8 % of the reads are hits, so 86 % are read again. The page cache
    of Linux was measured to read 85 % again. One that evicts exactly what was used least recently would read
    93 % again (``c + (1 - c) ln(1 - c)`` are hits), and one that keeps what it has 65 %.

    References
    ----------
    Mohan et al., PVLDB 14(5), 2021, for the measurement.
    """
    held = np.asarray(held, dtype=float)
    # c = (1 - h(s)) / s falls as s grows, from 1 at s = 0: halving finds the s that belongs to c.
    low, high = np.zeros(held.shape), 1 / held
    for _ in range(64):
        s = (low + high) / 2
        too_small = (1 - _hits(s)) / s > held
        low, high = np.where(too_small, s, low), np.where(too_small, high, s)
    return as_float(np.where(held < 1, _hits((low + high) / 2), 1.0))


def _hits(s: Number) -> Number:
    return (-np.expm1(-s) / s) ** 2
