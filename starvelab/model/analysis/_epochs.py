"""The first epoch, which finds nothing in memory, and the later ones, which find what the page cache kept."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import InputError, MissingValueError
from ...tables import TableRepr, cell, percent
from ...units import Q_, Quantity, positive, positive_int
from ..page_cache import hit_share
from ..pipeline import Pipeline
from ..step import Step
from ._epoch_size import PASS_SAMPLES, samples_of_epoch
from ._point import one_point


@dataclass(frozen=True, repr=False)
class Epochs(TableRepr):
    """The answer of `epochs`.

    Attributes
    ----------
    samples : int
        Of an epoch.
    held : float
        The share of the data set that fits into memory, 0 to 1.
    cached_fraction : float
        The share of the reads that memory serves in a later epoch.
    first, later : Step
        A step of the first epoch, and of each epoch after it.
    """

    samples: int
    held: float
    cached_fraction: float
    first: Step
    later: Step

    def time(self, count: int) -> Quantity:
        """How long that many epochs take [time], the first one included.

        Raises
        ------
        InputError
        """
        after = positive_int(count, "count") - 1
        return _epoch_time(self.first, self.samples) + after * _epoch_time(self.later, self.samples)

    @property
    def headers(self) -> tuple[str, ...]:
        """Of the table that shows it."""
        return ("epoch", "time", "read from storage", "accelerator busy", "bottleneck")

    @property
    def rows(self) -> list[list[str]]:
        """The first epoch, and each later one."""
        return [
            [
                name,
                cell(_epoch_time(step, self.samples)),
                cell((step.actual_demand * _epoch_time(step, self.samples)).to("GB")),
                percent(step.utilization),
                step.bottleneck,
            ]
            for name, step in (("the first", self.first), ("each later", self.later))
        ]

    @property
    def summary(self) -> str:
        """What fits into memory, and what it is worth, in one line."""
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
            f"serve {percent(self.held)}: pass evicts=False."
        )
        notes = (evicted if self.cached_fraction < self.held else "", self.later.infeasible_reason)
        return " ".join(filter(None, notes))


def epochs(
    pipeline: Pipeline, *, memory: Quantity | str, samples: int | None = None, evicts: bool = True
) -> Epochs:
    """What a page cache does for the first epoch and for each later one.

    Parameters
    ----------
    pipeline : Pipeline
        At one point and with storage. Its `cached_fraction` does not matter.
    memory : quantity [data]
        What the host has left for its page cache.
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
    The first epoch reads each sample once and finds none of them in memory. A later one finds the share that
    `starvelab.model.page_cache.hit_share` derives. Stops being true where several jobs share the memory,
    and between epochs, where workers start anew.

    Examples
    --------
    >>> from starvelab import Datasets, Hardware, Models, Pipeline
    >>> pipeline = Pipeline(
    ...     model=Models.ResNet50, hardware=Hardware.Cloud.A100, dataset=Datasets.ImageNet, storage="200 MB/s"
    ... )
    >>> found = epochs(pipeline, memory="51.4 GB")
    >>> round(found.held, 3), round(found.cached_fraction, 3)
    (0.35, 0.138)
    """
    one_point(pipeline, "epochs", whatever=("cached_fraction",))
    if pipeline.storage is None:
        raise InputError(
            "epochs looks at reads from a drive, got a pipeline without storage. "
            "Pass storage=Storage.NVMe_Gen4."
        )
    samples = samples_of_epoch(pipeline, samples)
    if samples is None:
        raise MissingValueError(
            "epochs needs the samples of an epoch, and the pipeline names no data set of a known size. "
            f"{PASS_SAMPLES}"
        )
    held = min(1.0, positive(memory, "B", "memory") / (samples * pipeline.sizes["stored"]))
    cached = float(hit_share(held)) if evicts else held
    first, later = (pipeline.solve(cached_fraction=share) for share in (0.0, cached))
    return Epochs(samples=samples, held=held, cached_fraction=cached, first=first, later=later)


def _epoch_time(step: Step, samples: int) -> Quantity:
    return Q_(samples / step.throughput.m_as("img/min"), "min")
