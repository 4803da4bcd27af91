"""The one translation of a real input pipeline to the models: to mean rates, and to a loader in time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..errors import InputError
from ..model.assumptions import TUTORIAL
from ..model.parts import Cache, Drive, Handover, Link, Samples, Workers
from ..pipeline import Pipeline as RateModel
from ..simulate import Loader as LoaderModel
from ..units import Q_
from .devices import VirtualAccelerator
from .input_pipeline import InputPipeline


@dataclass(frozen=True, kw_only=True)
class WorkerCosts:
    """What one batch costs its worker, and its bytes: what the models cannot know from the pipeline alone.

    Attributes
    ----------
    cpu_time : float
        CPU time of a batch in one worker, alone [ms].
    handover_time : float
        What the worker spends on handing the batch over [ms].
    sample_size, transfer_size : float
        Stored bytes of a sample, and its bytes on the link [B].
    cores : int or None
        Physical cores that the workers share; None for one each.
    contention : float
        Of the universal scalability law: two workers reach 2 / (1 + contention) times the rate of one.
    jitter : float
        Standard deviation over mean of a batch's time, from batch to batch.
    straggler_share, straggler_time : float
        Share of samples that take longer to read, and how much longer [ms].
    reads, copies : bool
        Whether batches are read from storage, and copied over the link.
    """

    cpu_time: float
    handover_time: float
    sample_size: float
    transfer_size: float
    cores: int | None = None
    contention: float = 0.0
    jitter: float = 0.0
    straggler_share: float = 0.0
    straggler_time: float = 0.0
    reads: bool = True
    copies: bool = True


def to_rate_model(pipe: InputPipeline, costs: WorkerCosts) -> RateModel:
    """The model of mean rates, with the simulated devices of a pipeline and the costs of its workers.

    Raises
    ------
    InputError
        If the time of a step is not known.
    """
    accelerator, batch = _simulated_accelerator(pipe), pipe.batch_size
    model = RateModel(
        batch_size=batch,
        hardware=accelerator.step_time,
        dataset=Samples(
            size=Q_(costs.sample_size, "B"),
            cpu_time=Q_(costs.cpu_time / batch, "ms"),
            transfer=Q_(costs.transfer_size, "B"),
        ),
        workers=Workers(
            max(pipe.workers, 1), cores=costs.cores, handover=Handover(Q_(costs.handover_time, "ms"))
        ),
        # A loop that prepares by itself and waits for each step does one thing after the other.
        overlap=not (pipe.workers == 0 and accelerator.in_flight == 1),
        assumptions=replace(TUTORIAL, name="this machine", contention=costs.contention),
    )
    if pipe.storage is not None and costs.reads:
        drive = Drive(
            pipe.storage.bandwidth, wait=pipe.storage.latency, cache=Cache(pipe.storage.cached_fraction)
        )
        model = model.replace(storage=drive)
    if pipe.link is not None and costs.copies:
        bytes_sent = batch * costs.transfer_size
        link = Link(
            Q_(bytes_sent / pipe.link.copy_time(bytes_sent), "B/s"),
            overlaps=pipe.link.overlapped and accelerator.in_flight != 1,
        )
        model = model.replace(link=link)
    return model


def to_loader_model(pipe: InputPipeline, costs: WorkerCosts) -> LoaderModel:
    """The loader in time, with the simulated devices of a pipeline and the costs of its workers.

    Raises
    ------
    InputError
        If the time of a step is not known.
    """
    accelerator, batch, link = _simulated_accelerator(pipe), pipe.batch_size, pipe.link
    storage = pipe.storage if costs.reads else None
    read_time = read_wait = copy_time = cached_fraction = 0.0
    if storage is not None:
        read_time = 1e3 * batch * costs.sample_size / storage.bandwidth.m_as("B/s")
        read_wait = batch * storage.latency.m_as("ms")
        cached_fraction = storage.cached_fraction
    if link is not None and costs.copies:
        copy_time = 1e3 * link.copy_time(batch * costs.transfer_size)
    # The simulation stretches work when there are more workers than cores; contention is what happens below.
    workers = max(pipe.workers, 1)
    crowding = 1 + costs.contention * (min(workers, costs.cores or workers) - 1)
    return LoaderModel(
        step_time=accelerator.step_time,
        in_flight=accelerator.in_flight,
        prepare_time=Q_((costs.cpu_time + costs.handover_time) * crowding, "ms"),
        batch_size=batch,
        workers=pipe.workers,
        prefetch=pipe.prefetch,
        in_order=pipe.in_order,
        copy_time=Q_(copy_time, "ms"),
        copy_overlaps=link is None or link.overlapped,
        read_time=Q_(read_time, "ms"),
        read_wait=Q_(read_wait, "ms"),
        cached_fraction=cached_fraction,
        cores=costs.cores,
        jitter=costs.jitter,
        straggler_share=costs.straggler_share if costs.reads else 0.0,
        straggler_time=Q_(costs.straggler_time if costs.reads else 0.0, "ms"),
    )


def _simulated_accelerator(pipe: InputPipeline) -> VirtualAccelerator:
    if not isinstance(pipe.accelerator, VirtualAccelerator):
        raise InputError(
            f"A model needs the time of a step, got {pipe.accelerator!r:.80}. "
            "Measure it, and pass accelerator=VirtualAccelerator(step_time=...)."
        )
    return pipe.accelerator
