"""Reading from storage: whether the drive supplies what is asked for, and how long a batch takes."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from ...errors import MissingValueError, own_errors
from ...units import Q_, Number, Quantity, Unchecked, has_dimension, nonnegative, positive
from ..assumptions import Assumptions
from ..catalogue import Entry, bandwidth_of
from ..costs import Cost, Inputs, Line, as_float, exceeds, maximum, minimum
from ..fields import SupplyRate
from ..resources import STORAGE
from .stage import StageModel

_FIELDS = {"Storage": "bandwidth_sustained", "Hardware": "storage_bandwidth"}
_REMEDY = 'Pass storage=Storage.NVMe_Gen4 or bandwidth=Q_("7 GB/s").'


@dataclass(frozen=True)
class DataResult:
    """The result of `DataModel.solve`: the supply, and demand as a share of it; above 1 the drive stalls."""

    supply_bw: Quantity
    utilization: Number
    is_stalled: Number


@dataclass(frozen=True)
class DataInputs(Inputs):
    """What reading a sample asks for, and what the drives give."""

    size: Number  # stored bytes of a sample
    bandwidth: Number  # of one drive [B/s]
    request_bandwidth: Number | None  # of one request, where the drive has more [B/s]
    drives: Number
    latency: Number  # of a request alone [s]
    queued_latency: Number  # and of one behind others, which the drive may reorder [s]
    open: Number  # requests that each worker has open; infinite where they hide the latency
    served: Number  # requests that all drives together serve at a time; may be infinite
    samples_per_request: Number
    request_rate: Number | None  # requests that one drive serves in a second [1/s]
    cached: Number  # share of the reads that the host's memory serves


class DataModel(StageModel[DataInputs]):
    """The storage device: bandwidth, and latency of each request.

    Parameters
    ----------
    assumptions : Assumptions
        `open_requests` is used.

    Notes
    -----
    A request takes its latency ``l`` and then its bytes at ``R``, and brings ``k`` samples of size ``S``. A
    worker that has ``o`` of them open waits ``(l / k + S / R) / o`` for a sample before it can prepare it
    (`wait`): more workers shorten that, more cores do not. If ``R`` is not known, the bytes of one request
    come as fast as the drive reads, ahead of the workers. What all workers share is ``d`` drives: a batch of
    ``b`` samples takes ``b`` times the largest of ``S / (d B)``, their bandwidth or the network's;
    ``(l / k + S / R) / n``, where they serve ``n`` requests at a time; and ``1 / (d r k)``, the rate ``r`` of
    requests. So there are as many requests under way as the workers have open, or as the drives serve: one
    spindle with 32 requests waiting still seeks for each. The host's memory serves a share ``x`` of the
    reads, so a sample takes ``1 - x`` of the time above. It stops being true where other readers share the
    drive.

    References
    ----------
    Little's law for the requests under way; Mohan et al., PVLDB 14(5), 2021, for fetch stalls and the cache.
    """

    NAME, RESOURCE, NEEDS = "read", STORAGE, ("storage",)

    @own_errors
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
            demanded = demanded / Q_("1 sample")  # a throughput times a size of one sample
        demand = nonnegative(demanded, "B/s", "workload_data_rate")
        source = storage_bandwidth(hardware=hardware, storage=storage, bandwidth=bandwidth)
        share = demand / positive(source, "B/s", "storage bandwidth")
        return DataResult(supply_bw=source, utilization=share, is_stalled=exceeds(share, 1))

    @staticmethod
    def resolve(
        *,
        assumed: Assumptions,
        stored: Number,
        storage: Entry | Number,
        drives: Number = 1,
        latency: Number | None = None,
        samples_per_request: Number | None = None,
        open_requests: Number | None = None,
        cached_fraction: Number | None = None,
        cpu_throughput: SupplyRate | None = None,
    ) -> DataInputs:
        """The formula's numbers from the fields of a pipeline."""
        together = inf if cpu_throughput is None or open_requests is None else open_requests
        if open_requests is None:
            open_requests = assumed.numbers["open_requests"] if latency is None else 1
        alone = queued = 0.0 if latency is None else latency
        served = rate = request_bandwidth = None
        if isinstance(storage, Entry):
            if latency is None:
                alone = storage.number("request_latency", 0.0)
                queued = storage.number("queued_latency", alone)
            served = None if _hides(open_requests) else storage.number("parallel_requests")
            rate, request_bandwidth = storage.number("request_rate"), storage.number("request_bandwidth")
            of_file = storage.number("requests_per_file", 1)
            alone, queued, rate = of_file * alone, of_file * queued, None if rate is None else rate / of_file
            storage = storage.number(_FIELDS.get(storage.kind, "")) or positive(
                storage_bandwidth(storage=storage), "B/s", "storage bandwidth"
            )
        return DataInputs(
            size=stored, bandwidth=storage, request_bandwidth=request_bandwidth, request_rate=rate,
            drives=drives, latency=alone, queued_latency=queued, open=open_requests,
            served=together if served is None else minimum(served * drives, together),
            samples_per_request=1 if samples_per_request is None else samples_per_request,
            cached=0 if cached_fraction is None else cached_fraction,
        )  # fmt: skip

    @staticmethod
    def cost(inputs: DataInputs) -> Cost:
        """``b (1 - x) max(S / (d B), (l / k + S / R) / n, 1 / (d r k))``."""
        terms = DataModel.terms(inputs).values()
        return Cost(tuple(Line(0, (1 - inputs.cached) * time) for time in terms))

    @staticmethod
    def terms(inputs: DataInputs) -> dict[str, Number]:
        """What a sample that is read takes of the drives [s], by what may limit them."""
        d, k = inputs.drives, inputs.samples_per_request
        times = {"its bandwidth": inputs.size / inputs.bandwidth / d}
        if not _hides(inputs.served):
            request = inputs.queued_latency / k + inputs.size / (inputs.request_bandwidth or inputs.bandwidth)
            times["the time its requests take"] = request / inputs.served
        if inputs.request_rate is not None:
            times["its requests a second"] = 1 / (d * inputs.request_rate * k)
        return times

    @classmethod
    def wait(cls, inputs: DataInputs, *, reads: bool) -> Number:
        """``(1 - x) (l / k + S / R) / o`` [s]; a worker that `reads` itself waits for the drive as well."""
        size, request_bandwidth = inputs.size, inputs.request_bandwidth
        under_way = minimum(inputs.open, inputs.served)
        latency, transfer = inputs.latency / inputs.samples_per_request / under_way, 0.0
        if request_bandwidth is not None:
            transfer = size / request_bandwidth / under_way
        elif reads:
            transfer = size / inputs.bandwidth / inputs.drives
        waits = (1 - inputs.cached) * (latency + transfer)
        return maximum((waits, cls.cost(inputs).limit)) if reads else waits


def _hides(requests: Number) -> bool:
    """True if so many requests at a time hide their latency."""
    return np.ndim(requests) == 0 and bool(requests == inf)


def storage_bandwidth(
    *, hardware: Unchecked = None, storage: Unchecked = None, bandwidth: Unchecked = None
) -> Quantity:
    """The bandwidth [data/time] of whatever was named first: a bandwidth, a drive, a host's drive."""
    named = next((source for source in (bandwidth, storage, hardware) if source is not None), None)
    needs = "DataModel needs a storage bandwidth"
    if named is None:
        raise MissingValueError(f"{needs}, and neither hardware nor storage was named. {_REMEDY}")
    return bandwidth_of(named, "storage", _FIELDS, needs, _REMEDY)


@own_errors
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
    sample in a cache of the share ``c`` survives with probability ``exp(-(1 - h) d / c)``. On average over
    ``d`` that is

        ``h = ((1 - exp(-s)) / s)^2`` with ``s = (1 - h) / c``.

    With 35 % of the data in the cache 13.8 % of the reads are hits, so 86 % are read again. The page cache
    of Linux was measured to read 85 % again. One that evicts exactly what was used least recently would read
    93 % again (``c + (1 - c) ln(1 - c)`` are hits), and one that keeps what it has 65 %.

    References
    ----------
    Mohan et al., PVLDB 14(5), 2021, for the measurement.
    """
    # Beyond these, nothing or everything is held.
    held = np.clip(np.asarray(positive(held, None, "held"), dtype=float), 1e-12, 2.0)
    # c = (1 - h(s)) / s falls as s grows, from 1 at s = 0: halving finds the s that belongs to c.
    low, high = np.zeros(held.shape), 1 / held
    for _ in range(64):
        s = (low + high) / 2
        too_small = (1 - _hits(s)) / s > held
        low, high = np.where(too_small, s, low), np.where(too_small, high, s)
    return as_float(np.where(held < 1, _hits((low + high) / 2), 1.0))


def _hits(s: Number) -> Number:
    return (-np.expm1(-s) / s) ** 2
