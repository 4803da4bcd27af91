"""Reading from storage: whether the drive supplies what is asked for, and how long a batch takes."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import ClassVar

from ...errors import InputError, MissingValueError
from ...units import Q_, Number, Quantity, Unchecked, as_quantity, has_dimension, nonnegative, positive
from ..catalogue import Entry, described
from ..cost import Cost, Line, exceeds
from ..inputs import Inputs
from ..resources import STORAGE, Resource
from .stage import StageModel

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

    supply_bw: Quantity
    utilization: Number
    is_stalled: Number


@dataclass(frozen=True)
class DataInputs(Inputs):
    """Bytes of a sample, bandwidth [B/s] and latency [s] of the drive, and its requests at once."""

    size: Number
    bandwidth: Number
    latency: Number
    in_flight: Number


@dataclass(frozen=True)
class DataModel(StageModel[DataInputs]):
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
        demand = nonnegative(_per_second(workload_data_rate), "B/s", "workload_data_rate")
        source = storage_bandwidth(hardware=hardware, storage=storage, bandwidth=bandwidth)
        share = demand / positive(source, "B/s", "storage bandwidth")
        return DataResult(supply_bw=source, utilization=share, is_stalled=exceeds(share, 1))

    def resolve(self, *, stored: Number, storage: Entry | Number | None) -> DataInputs | None:
        """The formula's numbers from the fields of a pipeline; None where it names no storage."""
        if storage is None:
            return None
        latency = 0.0
        if isinstance(storage, Entry):
            latency = nonnegative(storage.get("request_latency", Q_("0 ms")), "s", "request_latency")
            storage = positive(storage_bandwidth(storage=storage), "B/s", "storage bandwidth")
        return DataInputs(stored, storage, latency, self.assumptions.requests_in_flight)

    @staticmethod
    def cost(inputs: DataInputs) -> Cost:
        """``b max(size / bandwidth, (latency + size / bandwidth) / in_flight)``."""
        transfer = inputs.size / inputs.bandwidth
        if inputs.in_flight == inf:
            return Cost((Line(0, transfer),))
        return Cost((Line(0, transfer), Line(0, (inputs.latency + transfer) / inputs.in_flight)))


def storage_bandwidth(
    *, hardware: Unchecked = None, storage: Unchecked = None, bandwidth: Unchecked = None
) -> Quantity:
    """The bandwidth [data/time] of whatever was named first: a bandwidth, a drive, a host's drive."""
    given = storage if bandwidth is None else bandwidth
    if isinstance(given, str | Quantity):
        return as_quantity(given, "B/s", "storage bandwidth")
    entry = hardware if given is None else given
    remedy = 'Pass storage=Storage.NVMe_Gen4 or bandwidth=Q_("7 GB/s").'
    if entry is None:
        raise MissingValueError(
            f"DataModel needs a storage bandwidth, and neither hardware nor storage was named. {remedy}"
        )
    field = _FIELD.get(entry.kind) if isinstance(entry, Entry) else None
    if field is None:
        raise InputError(
            "storage must be an entry of Storage or Hardware or a bandwidth, got "
            f"{described(entry)}. {remedy}"
        )
    value: Quantity | None = entry.get(field)
    if value is None:
        raise MissingValueError(f"DataModel needs a storage bandwidth, and {entry.name} lists none. {remedy}")
    return value


def _per_second(rate: Unchecked) -> Unchecked:
    """A throughput [sample/time] times a size of one sample is a data rate: the sample cancels."""
    return rate / Q_("1 sample") if has_dimension(rate, "sample * byte / second") else rate
