"""Reading from storage: can the drive supply what the accelerator asks for, and how long does a batch take.

It knows one drive with a bandwidth and a latency; not caches, not who else reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from ...errors import InputError, MissingFigureError
from ...units import Q_, Quantity, as_quantity, has_dimension, positive
from ..catalogue import Entry
from .cost import Cost, Line, longer
from .stage import Stage

_FIELD = {"Hardware": "storage_bandwidth", "Storage": "bandwidth_sustained"}


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

    supply_bw: Any
    utilization: Any
    is_stalled: Any


@dataclass(frozen=True)
class DataModel(Stage):
    """The storage device: bandwidth, and latency of each request.

    Parameters
    ----------
    assumptions : Assumptions
        `requests_in_flight` is used.

    Notes
    -----
    A batch of ``b`` samples of size ``S`` takes
    ``b max(S / bandwidth, (latency + S / bandwidth) / in_flight)``: with enough requests in flight the
    bandwidth binds, with few the latency. It stops being true where the page cache serves reads, or where
    other readers share the drive.

    References
    ----------
    Little's law for the second term; Mohan et al., PVLDB 14(5), 2021, for fetch stalls.
    """

    def solve(
        self, *, workload_data_rate: Any, hardware: Any = None, storage: Any = None, bandwidth: Any = None
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
        MissingFigureError
            If no bandwidth is given and the hardware lists none.
        InputError

        Examples
        --------
        >>> from starvelab import Hardware, Q_
        >>> check = DataModel().solve(workload_data_rate=Q_("10.9 GB/s"), hardware=Hardware.Cloud.A100)
        >>> round(check.utilization, 3), check.is_stalled
        (1.557, True)
        """
        demand = positive(_per_second(workload_data_rate), "B/s", "workload_data_rate", zero=True)
        source = storage_bandwidth(hardware=hardware, storage=storage, bandwidth=bandwidth)
        share = demand / positive(source, "B/s", "storage bandwidth")
        return DataResult(supply_bw=source, utilization=share, is_stalled=longer(share, 1))

    def cost(self, *, sample_size: Any, source: Any, figure: Any = positive) -> Cost:
        """Reading time of a batch; `source` is an entry with a drive, or a bandwidth."""
        seconds = figure(sample_size, "B", "sample_size") / figure(
            storage_bandwidth(storage=source), "B/s", "storage bandwidth"
        )
        legs = [Line(0, seconds)]
        in_flight = self.assumptions.requests_in_flight
        if in_flight < inf and isinstance(source, Entry):
            wait = figure(source.get("request_latency", Q_("0 ms")), "s", "request_latency", zero=True)
            legs.append(Line(0, (wait + seconds) / figure(in_flight, None, "requests_in_flight")))
        return Cost(tuple(legs))


def storage_bandwidth(*, hardware: Any = None, storage: Any = None, bandwidth: Any = None) -> Any:
    """The bandwidth [data/time] of whatever was named first: a figure, a drive, a host's drive."""
    given = storage if bandwidth is None else bandwidth
    if isinstance(given, str | Quantity):
        return as_quantity(given, "B/s", "storage bandwidth")
    entry = hardware if given is None else given
    remedy = 'Pass storage=Storage.NVMe_Gen4 or bandwidth=Q_("7 GB/s").'
    if entry is None:
        raise MissingFigureError(
            f"DataModel needs a storage bandwidth, and neither hardware nor storage was named. {remedy}"
        )
    field = _FIELD.get(entry.kind) if isinstance(entry, Entry) else None
    if field is None:
        came = f"{entry.kind}.{entry.path}" if isinstance(entry, Entry) else f"{entry!r:.80}"
        raise InputError(
            f"storage must be an entry of Storage or Hardware or a bandwidth, got {came}. {remedy}"
        )
    value = entry.get(field)
    if value is None:
        raise MissingFigureError(
            f"DataModel needs a storage bandwidth, and {entry.name} lists none. {remedy}"
        )
    return value


def _per_second(rate: Any) -> Any:
    """A throughput [sample/time] times a size of one sample is a data rate: the sample cancels."""
    return rate / Q_("1 sample") if has_dimension(rate, "sample * byte / second") else rate
