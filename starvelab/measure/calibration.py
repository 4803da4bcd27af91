"""Calibration: what one worker takes on this machine, and how several workers get in each other's way."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import check_names
from ..host import usable_cores
from ..tables import TableRepr, percent
from ..units import Q_, Quantity, Unchecked, as_quantity, check_magnitude, format_quantity, positive
from .input_pipeline import NO_STEP, Given, InputPipeline, to_pipeline
from .session import run
from .translation import WorkerCosts

# More workers would say no more about contention, and take their time to start.
MAX_WORKERS = 8


@dataclass(frozen=True, kw_only=True, repr=False)
class Calibration(TableRepr):
    """The result of `calibrate`.

    Attributes
    ----------
    loader : str
    batch_size : int
        The batch that `handover_time` belongs to.
    cpu_time : quantity [time]
        Of one sample in one worker, with everything from reading to joining.
    handover_time : quantity [time]
        Of one batch, from its worker to the training loop.
    stage_times : mapping of str to quantity [time]
        What `cpu_time` is made of.
    transfer_size : quantity [data]
        Bytes of one prepared sample.
    cores : int
        Physical cores that workers can use here.
    contention : float
        Of the universal scalability law: two workers reach 2 / (1 + contention) times the rate of one.
    jitter : float
        Standard deviation over mean of a batch's time in its worker.
    """

    loader: str
    batch_size: int
    cpu_time: Quantity
    handover_time: Quantity
    stage_times: Mapping[str, Quantity]
    transfer_size: Quantity
    cores: int
    contention: float
    jitter: float

    def replace(self, **changes: Unchecked) -> Calibration:
        """A copy with some values changed, such as the contention of another calibration."""
        check_names(changes, [f.name for f in dataclasses.fields(self)], "A calibration")
        return dataclasses.replace(self, **changes)

    def costs(self, pipe: InputPipeline) -> WorkerCosts:
        """What a batch of a pipeline costs a worker. Handing it over follows its bytes."""
        # Of a dataset nobody knows what is stored; only a simulated storage would ask, and it has none.
        stored = getattr(pipe.samples, "mean_size", self.transfer_size)
        return WorkerCosts(
            cpu_time=pipe.batch_size * self.cpu_time.m_as("ms"),
            handover_time=self.handover_time.m_as("ms") * pipe.batch_size / self.batch_size,
            sample_size=max(stored.m_as("B"), 1.0),
            transfer_size=self.transfer_size.m_as("B"),
            cores=self.cores,
            contention=self.contention,
            jitter=self.jitter,
        )

    @property
    def headers(self) -> tuple[str, str]:
        """Of the table that shows it."""
        return ("quantity", "value")

    @property
    def rows(self) -> Sequence[Sequence[object]]:
        """One row for each value, and one for each part of the CPU time."""
        return [
            ["CPU time of a sample", self.cpu_time],
            *([f"  {name}", time] for name, time in self.stage_times.items()),
            [f"handing over a batch of {self.batch_size}", self.handover_time],
            ["physical cores", self.cores],
            ["contention", self.contention],
            ["variation from batch to batch", percent(self.jitter)],
        ]

    @property
    def summary(self) -> str:
        """The rate of one worker, in one line."""
        alone = Q_(1 / self.cpu_time.m_as("s"), "img/s")
        return f"One worker ({self.loader}) prepares {format_quantity(alone)}."


def calibrate(
    pipe: Given,
    *,
    seconds: Quantity | str = "2 s",
    contention: float | None = None,
    progress: bool = True,
    **dataset: Unchecked,
) -> Calibration:
    """Measure one worker, and as many workers as there are cores.

    Whole batches are prepared in a worker of the pipeline's own kind, since single samples in the training
    loop take longer to read. Simulated storage, link and accelerator are left out: their times are known.

    Parameters
    ----------
    pipe : InputPipeline, torch DataLoader or Dataset
        No training step is needed.
    seconds : quantity [time]
        Of each of the two runs.
    contention : float, optional
        From another calibration; then only one worker is measured.
    progress : bool
    **dataset
        For a loader or a dataset: its batch_size, workers, and so on.

    Raises
    ------
    InputError, UnknownNameError, WorkerError
    """
    positive(as_quantity(seconds, "s", "seconds"), "s", "seconds")
    if contention is not None:
        check_magnitude(contention, "contention", zero=True)
    if not isinstance(pipe, InputPipeline):
        dataset |= {"step": None, "step_time": None, "accelerator": NO_STEP}
    bare = to_pipeline(pipe, dataset, function="calibrate")
    bare = bare.replace(storage=None, link=None, accelerator=NO_STEP)
    one = run(bare if bare.workers == 0 else bare.replace(workers=1), seconds=seconds, progress=progress)
    batch_times = one.trace.prepared - one.trace.prepare_start
    cores = usable_cores(physical=True)
    if contention is None:
        contention = 0.0
        if bare.workers and cores > 1:
            many = min(cores, MAX_WORKERS)
            together = run(bare.replace(workers=many), seconds=seconds, progress=progress)
            speedup = float((together.throughput / one.throughput).m_as(""))
            contention = float(np.clip((many / speedup - 1) / (many - 1), 0, 1))
    return Calibration(
        loader=bare.loader,
        batch_size=bare.batch_size,
        cpu_time=Q_(float(np.median(batch_times)) / bare.batch_size, "ms"),
        handover_time=Q_(max(0.0, one.period.m_as("ms") - float(np.mean(batch_times))), "ms"),
        stage_times=one.stage_times,
        transfer_size=Q_(float(bare.batch_bytes / bare.batch_size), "B"),
        cores=cores,
        contention=float(contention),
        jitter=float(np.std(batch_times) / np.mean(batch_times)),
    )
