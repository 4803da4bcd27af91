"""A solved pipeline as the times from which a simulation starts."""

from __future__ import annotations

from ..model.description import Description, check_asked
from ..model.parts import Workers
from ..model.resources import ACCELERATOR, CPU, DECODER, LINK, LOOP, STORAGE
from ..model.solver import BatchTimes
from ..model.stages import BarrierModel, DeviceInputModel, SerializedCopyModel, SingleNodeModel
from ..units import Q_, Quantity, positive_int
from .timeline import LoaderInputs

_MS = Q_("1 ms").units  # a unit that goes by its name is looked up anew for each quantity


def inputs_of(pipeline: Description, epoch_batches: int | None) -> LoaderInputs:
    """Put workers, storage, copy and step into times for one batch of all accelerators."""
    check_asked(pipeline, "simulate")
    numbers, step = pipeline.numbers, pipeline.solve()
    batch = int(step.batch_size * step.accelerators)
    ms = {name: float(t.m_as(_MS)) for name, t in {**step.stage_times, **step.resource_times}.items()}
    workers = Workers(1) if isinstance(pipeline.workers, Quantity) else pipeline.workers

    def in_ms(name: str) -> float:
        """A time that a part has, in milliseconds; 0 where it has none."""
        return 1e3 * (numbers[name] or 0.0)

    side_by_side = 1 if pipeline.in_turn else max(1, workers.count)
    # What memory serves has been taken off; where one thing follows the other, all is one time.
    wait = 0.0 if pipeline.in_turn else batch * 1e3 * (numbers["read_wait"] or 0.0)
    prepare = max(0.0, side_by_side * ms[CPU.name] - wait)
    # What a loop without workers waits for holds its reads; so it is with workers that read themselves,
    # whose reads are followed one by one.
    ahead = pipeline.storage is None or pipeline.storage.read_ahead
    read = 0.0 if pipeline.alone and not pipeline.in_turn else ms.get(STORAGE.name, 0.0)
    if not ahead and not pipeline.in_turn:
        wait -= read
    # Which samples memory serves is drawn, unless it serves all of them.
    chance = 1 - (numbers["cached_fraction"] or 0.0) or 1.0
    copies = [ms.get(name, 0.0) for name in (LINK.name, DECODER.name)]
    copy = sum(copies) if pipeline.in_turn else max(copies)
    # Beside a decoder, a copy for which the accelerator waits is part of its step.
    waited_for = 0.0 if copy else ms.get(SerializedCopyModel.NAME, 0.0)
    barrier = ms.get(BarrierModel.NAME, 0.0)
    accelerator_time = ms[ACCELERATOR.name] - waited_for - barrier
    times = {name: ms[name] for name in step.resource_times}
    late = batch * (numbers["slow_share"] or 0.0) * in_ms("slow_time")  # which the mean rates leave out
    times[CPU.name] += late / side_by_side
    rule = BatchTimes.of(times, {**numbers, "way": in_ms("way")})
    unchanged = ("prefetch", "in_order", "persistent", "spread", "slow_share", "slow_rank")
    return LoaderInputs(
        batch_size=batch, step_time=accelerator_time,
        copy_time=waited_for or copy, copy_overlaps=not waited_for,
        busy_share=min(1.0, float(step.utilization * step.step_time.m_as("ms")) / accelerator_time),
        in_flight=1 if pipeline.in_turn else pipeline.hardware.in_flight,
        workers=0 if pipeline.in_turn else workers.count, prepare_time=prepare, read_ahead=ahead,
        read_time=read / chance, read_wait=max(0.0, wait) / chance, cached_share=1 - chance,
        epoch_batches=None if epoch_batches is None else positive_int(epoch_batches, "epoch_batches"),
        start_up=in_ms("start_up"), slow_time=in_ms("slow_time"), handover_loop=ms.get(LOOP.name, 0.0),
        handover_way=0.0 if pipeline.alone or pipeline.in_turn else in_ms("way"),
        ranks=numbers["hosts"], rank_spread=numbers["rank_spread"] or 0.0,
        rank_devices=numbers["accelerators"], barrier=barrier,
        mean_period=rule.step if step.overlap else sum(times.values()),
        scattered=sum(ms.get(name, 0.0) for name in (SingleNodeModel.NAME, DeviceInputModel.NAME)),
        **{name: numbers[name] for name in unchanged},
    )  # fmt: skip
