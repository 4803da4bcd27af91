"""The first epoch, which finds nothing in memory, the later ones, and what lies between two of them."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import InputError, MissingValueError
from ...tables import TableRepr, cell, percent
from ...units import Q_, Quantity, positive, positive_int
from ..description import Description
from ..page_cache import hit_share
from ..parts import Workers
from ..step import Step
from ._boundary import boundary
from ._epoch_size import PASS_SAMPLES, samples_of_epoch
from ._point import one_point


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
        """How long that many epochs take [time], the first one included.

        Raises
        ------
        InputError
        """
        first, later = self._times
        return first + (positive_int(count, "count") - 1) * later

    @property
    def _times(self) -> tuple[Quantity, Quantity]:
        return (
            _steps_time(self.first, self.samples) + self.first_boundary,
            _steps_time(self.later, self.samples) + self.boundary,
        )

    @property
    def headers(self) -> tuple[str, ...]:
        """Of the table that shows it."""
        read = ("read from storage",) if self.held is not None else ()
        return ("epoch", "time", "at its boundary", *read, "accelerator busy", "bottleneck")

    @property
    def rows(self) -> list[list[str]]:
        """The first epoch, and each later one."""
        rows = []
        for name, step, time, more in zip(
            ("the first", "each later"),
            (self.first, self.later),
            self._times,
            (self.first_boundary, self.boundary),
            strict=True,
        ):
            steps = _steps_time(step, self.samples)
            read = [cell((step.actual_demand * steps).to("GB"))] if self.held is not None else []
            busy = percent(step.utilization * (steps / time).m_as(""))
            shown = time if time.m_as("min") >= 1 else time.to("s")
            rows.append([name, cell(shown), cell(more), *read, busy, step.bottleneck])
        return rows

    @property
    def summary(self) -> str:
        """What fits into memory, and what it is worth, in one line."""
        if self.held is None:
            return f"Between two epochs {cell(self.boundary)} are lost, as nothing is prepared then"
        if self.held >= 1:
            return "All data fits into memory, and only the first epoch reads it from storage"
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
        loses = self.held is not None and self.cached_fraction < self.held
        notes = (evicted if loses else "", self.later.note)
        return " ".join(filter(None, notes))


def epochs(
    pipeline: Description,
    *,
    memory: Quantity | str | None = None,
    samples: int | None = None,
    evicts: bool = True,
) -> Epochs:
    """What a page cache does for the first epoch and for each later one, and what is lost between them."""
    one_point(pipeline, "epochs", whatever=("storage.cache.share",) if memory is not None else ())
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
    crew = pipeline.workers if isinstance(pipeline.workers, Workers) else Workers()
    begin = float(crew.numbers["start_up"] or 0.0)
    first, later, held = pipeline, pipeline, None
    cached = float(pipeline.numbers["cached_fraction"] or 0.0)
    if memory is not None:
        held = min(1.0, positive(memory, "B", "memory") / (samples * pipeline.sizes["stored"]))
        cached = float(hit_share(held)) if evicts else held
        first, later = (pipeline.replace({"storage.cache.share": share}) for share in (0.0, cached))
    steps = samples / (pipeline.numbers["batch_size"] * pipeline.numbers["accelerators"])
    cold, warm = first.solve(), later.solve()
    return Epochs(
        samples=samples,
        held=held,
        cached_fraction=cached,
        first=cold,
        later=warm,
        first_boundary=Q_(boundary(first, cold, steps, begin), "s"),
        boundary=Q_(boundary(later, warm, steps, 0.0 if crew.persistent else begin), "s"),
    )


def _steps_time(step: Step, samples: int) -> Quantity:
    return Q_(samples / step.throughput.m_as("img/min"), "min")
