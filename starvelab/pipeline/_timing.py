"""The times of a loader, batch by batch, that a pipeline comes to: the one translation for its simulation."""

from __future__ import annotations

from ..model.analysis._point import one_point
from ..model.description import Description
from ..model.parts import Workers
from ..model.resources import ACCELERATOR, CPU, DECODER, LINK, STORAGE
from ..model.solver import by_resource
from ..model.stages import SerializedCopyModel
from ..simulate import Loader
from ..units import Q_, Quantity


def loader_of(pipeline: Description, *, epoch_batches: int | None = None) -> Loader:
    """The workers, the storage, the copy and the step of a pipeline, in times for one batch.

    Notes
    -----
    Several accelerators take their steps together, so a batch is that of all of them. The law by which
    workers share cores has been applied to their CPU time, and a decoder behind the link counts as part of
    it. A loop that waits for each step, or in which nothing overlaps, prepares and copies in turn.
    """
    one_point(pipeline, "simulate")
    numbers, step = pipeline.numbers, pipeline.solve()
    batch = int(numbers["batch_size"] * numbers["accelerators"])
    stages = {name: cost.at(numbers["batch_size"]) for name, cost in pipeline.costs().items()}
    resources = by_resource(stages)
    crew = Workers(1) if isinstance(pipeline.workers, Quantity) else pipeline.workers
    side_by_side = 1 if pipeline.in_turn else max(1, crew.count)
    missed = 1 - (numbers["cached_fraction"] or 0.0)
    # What memory serves has been taken off; where one thing follows the other, all is one time.
    wait = 0.0 if pipeline.in_turn else batch * (numbers["read_wait"] or 0.0)
    prepare = max(0.0, side_by_side * resources[CPU.name] - wait)
    # Of a loop without workers, reading is part of what it waits for; of workers that read, too.
    ahead = pipeline.storage is None or pipeline.storage.read_ahead
    read = 0.0 if pipeline.alone and not pipeline.in_turn else resources.get(STORAGE.name, 0.0)
    if not ahead and not pipeline.in_turn:
        wait -= read
    # Memory that takes time of its own, or serves everything, leaves nothing to chance.
    chance = missed if missed > 0 and numbers["cache_bandwidth"] is None else 1.0
    copies = [resources.get(name, 0.0) for name in (LINK.name, DECODER.name)]
    copy = sum(copies) if pipeline.in_turn else max(copies)
    # Beside a decoder, a copy for which the accelerator waits is part of its step.
    in_turn = 0.0 if copy else stages.get(SerializedCopyModel.NAME, 0.0)
    own = resources[ACCELERATOR.name] - in_turn
    busy = float(step.utilization * step.step_time.m_as("s")) / own
    jitter = pipeline.dataset.jitter
    return Loader(
        batch_size=batch,
        step_time=Q_(own, "s"),
        busy_share=min(1.0, busy),
        prepare_time=Q_(prepare, "s"),
        workers=0 if pipeline.in_turn else crew.count,
        prefetch=crew.prefetch,
        in_order=crew.in_order,
        in_flight=1 if pipeline.in_turn else pipeline.hardware.in_flight,
        copy_time=Q_(in_turn or copy, "s"),
        copy_overlaps=not in_turn,
        handover_time=crew.handover.way or Q_("0 s"),
        fetch_time=crew.handover.loop or Q_("0 s"),
        start_up=crew.start_up or Q_("0 s"),
        persistent_workers=crew.persistent,
        epoch_batches=epoch_batches,
        read_time=Q_(read / chance, "s"),
        read_wait=Q_(max(0.0, wait) / chance, "s"),
        cached_fraction=1 - chance,
        read_ahead=ahead,
        jitter=jitter.spread,
        straggler_share=jitter.slow_share,
        straggler_time=jitter.slow_time or Q_("0 s"),
    )
