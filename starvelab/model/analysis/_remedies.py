"""What makes a pipeline faster: changes that were tried, each with what it would bring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import TypeAlias

from ...errors import MissingValueError
from ...tables import percent
from ...units import Q_, Quantity, Unchecked, format_number
from ..costs import StepTime, exceeds
from ..description import Description
from ..parts import Workers
from ..resources import ACCELERATOR, CPU, STORAGE
from ..stages import SingleNodeModel, TransformationModel
from ..stages.single_node import launch_wait
from ..step import Step
from ._workers_needed import MAX_WORKERS, WorkersNeeded

# What is said of a change, and the fields that it changes.
_Changes: TypeAlias = Iterator[tuple[str, Mapping[str, Unchecked]]]
# How many times the samples a second a change must bring to be advice, and how many changes are named.
_MIN_GAIN = 1.005
_MOST = 4


def remedies(pipeline: Description, step: Step, needed: WorkersNeeded | None) -> str:
    """Say which changes bring more samples a second, each tried alone, the best of them first."""
    gains = {}
    for remedy, changes in _changes(pipeline, step, needed):
        try:
            changed = pipeline.solve(changes)
        except MissingValueError:  # nobody knows of such a change what it brings
            continue
        gain = (changed.throughput / step.throughput).m_as("")
        if exceeds(gain, _MIN_GAIN) and (changed.feasible or not step.feasible):
            gains[f"{remedy} ({format_number(gain, 3)} times)"] = gain
    best = sorted(gains, key=gains.__getitem__, reverse=True)[:_MOST]
    each = "Each of these alone brings" if len(best) > 1 else "This brings"
    return f"{each} more samples a second: {', '.join(best)}." if best else ""


def _changes(pipeline: Description, step: Step, needed: WorkersNeeded | None) -> _Changes:
    """Yield what may help any pipeline that has such a part, whatever binds: a solve tells."""
    if not pipeline.overlap:
        yield "prefetch batches, so that the slowest resource alone sets the step", {"overlap": True}
    if needed is not None:
        yield from _of_workers(pipeline, needed)
    yield from _of_preparing(pipeline, step)
    yield from _of_storage(pipeline, step)
    yield from _of_loop(pipeline)
    yield from _of_link(pipeline)
    yield from _of_accelerator(pipeline, step)


def _of_workers(pipeline: Description, needed: WorkersNeeded) -> _Changes:
    """Yield more workers: as many as are needed, or as the host of the accelerators has cores for."""
    workers, hardware, limits = pipeline.workers, pipeline.hardware.of, {}
    cores, count = TransformationModel.among(pipeline.inputs).cores, needed.workers or 2 * workers.count or 1
    if hardware is not None and not needed.feasible:  # its drive and its link limit what they bring
        if pipeline.storage is None and hardware.number("storage_bandwidth") is not None:
            limits["storage"] = hardware
        if pipeline.link is None and hardware.number("link_bandwidth_each_way") is not None:
            limits["link"] = hardware
        if cores is None and hardware.number("host_cores") is not None:
            count = min(count, hardware.number("host_cores") * pipeline.hardware.count)
    if pipeline.alone:
        yield "start a worker", {"workers": 1}
    if count > max(1, workers.count):
        yield f"start {count} workers", {"workers": count, **limits}
    if needed.workers is None and cores is not None:
        twice = {"workers": 2 * max(1, workers.count), "workers.cores": 2 * cores}
        yield "use a host with twice the cores, and twice the workers", {**twice, **limits}
    if workers.kind == "threads":
        yield "use worker processes, which share no lock", {"workers.kind": "processes"}


def _of_preparing(pipeline: Description, step: Step) -> _Changes:
    workers, samples, half = pipeline.workers, pipeline.dataset, "halve the CPU work for each sample"
    if isinstance(workers, Quantity):
        yield half, {"workers": 2 * workers}
    elif workers.rate is not None:
        yield half, {"workers.rate": 2 * Q_(workers.rate)}
    elif samples.cpu_time is not None:
        yield half, {"dataset.cpu_time": Q_(samples.cpu_time) / 2}
    else:
        alone = {"workers.handover.worker": "0 s", "hardware.ranks.slow": 1, "workers": 1, "storage": None}
        time = pipeline.solve(alone).resource_times[CPU.name] / step.batch_size / step.accelerators
        yield half, {"dataset.cpu_time": time / 2}
    if pipeline.hardware.ranks.slow > 1:
        yield "bring the slowest host to the pace of the others", {"hardware.ranks.slow": 1}


def _of_storage(pipeline: Description, step: Step) -> _Changes:
    drive, reads, store = pipeline.storage, pipeline.reads, step.labels[STORAGE.name]
    if drive is None or reads is None:
        return
    kept = (1 + float(pipeline.numbers["cached_fraction"] or 0)) / 2
    yield "halve the stored bytes of each sample", {"dataset.size": pipeline.size / 2}
    several = {"storage.requests.samples": 2 * drive.requests.samples}
    yield "read twice as many samples with each request", several
    yield "open twice as many requests at a time", {"storage.requests.open": 2 * min(reads.open, MAX_WORKERS)}
    yield f"keep {percent(kept, 0)} of the samples in memory", {"storage.cache.share": kept}
    yield f"read from twice as many {store}s", {"storage.count": 2 * drive.count}


def _of_loop(pipeline: Description) -> _Changes:
    """Yield what takes work out of the loop's thread, or lets more batches be under way."""
    if not isinstance(pipeline.workers, Workers):
        return
    handover, more = pipeline.workers.handover, pipeline.workers.prefetch + 1
    yield f"let each worker prefetch {more} batches", {"workers.prefetch": more}
    if handover.loop is not None:
        work = Q_(handover.worker or "0 s") + Q_(handover.loop)
        moved = {"workers.handover.loop": "0 s", "workers.handover.worker": work}
        yield "move the training loop's own work into the workers", moved
    if handover.objects is not None and handover.objects > 1:
        packed = {"workers.handover.objects": 1}
        yield f"pack the {handover.objects} objects of a batch into one", packed


def _of_link(pipeline: Description) -> _Changes:
    if pipeline.link is None:
        return
    yield "halve the bytes of each sample on the link", {"dataset.transfer": pipeline.transferred / 2}
    if not pipeline.link.runs_beside:
        beside = {"link.pinned": True, "link.overlaps": True}
        yield "copy from pinned memory on a stream of its own", beside


def _of_accelerator(pipeline: Description, step: Step) -> _Changes:
    hardware, on_device = pipeline.hardware, pipeline.dataset.on_device
    chip = step.labels[ACCELERATOR.name]
    for name, work in (("time", f"the {chip}'s input work"), ("decoder_time", "the decoding")):
        time = getattr(on_device, name)
        if time is not None:
            yield f"let the workers do half of {work}", {f"dataset.on_device.{name}": Q_(time) / 2}
    if isfinite(steps := hardware.in_flight):
        yield f"let {steps + 1} steps be in flight", {"hardware.in_flight": steps + 1}
    timed = isinstance(pipeline.numbers["accelerator_rate"], StepTime)
    if step.bottleneck == ACCELERATOR.name and not timed:  # given times are known of one batch size alone
        yield "double the batch size, which takes more memory", {"batch_size": 2 * pipeline.batch_size}
    if hardware.precision in ("fp32", "tf32"):
        yield "use half precision", {"hardware.precision": "fp16"}
    if hardware.ranks.spread:
        yield "halve the spread of the steps' times", {"hardware.ranks.spread": hardware.ranks.spread / 2}
    # A faster accelerator launches no faster.
    if launch_wait(SingleNodeModel.among(pipeline.inputs), step.batch_size) > 0:
        compiled = {"hardware.rate": hardware.framework.replace(compiled=True)}
        yield "compile the step, which is then launched once", compiled
    elif step.cause != "overhead":
        twice = 2 * step.batch_size / step.stage_times[SingleNodeModel.NAME] * Q_("1 img")
        yield f"use a {chip} that is twice as fast", {"hardware.rate": twice}
