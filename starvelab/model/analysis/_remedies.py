"""What makes a pipeline faster: changes that were tried, each with what it would bring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import TypeAlias

from ...errors import MissingValueError
from ...tables import count_of
from ...units import Q_, Quantity, Unchecked, format_number
from ..costs import exceeds
from ..description import Description
from ..parts import Workers
from ..resources import ACCELERATOR, CPU, STORAGE
from ..stages import SingleNodeModel
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
    workers, count = pipeline.workers, needed.workers or MAX_WORKERS
    if pipeline.alone:
        yield "start a worker", {"workers": 1}
    so_many = "many more workers" if needed.workers is None else count_of(count, "worker")
    if count > workers.count:
        yield f"start {so_many}", {"workers": count}
    if needed.workers is None:
        yield "use a host with more cores", {"workers": count, "workers.cores": count}
    if workers.kind == "threads":
        yield "use worker processes, which share no lock", {"workers.kind": "processes"}


def _of_preparing(pipeline: Description, step: Step) -> _Changes:
    workers, samples, half = pipeline.workers, pipeline.dataset, "prepare half as much for each sample"
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
    more = "more of " if pipeline.numbers["cached_fraction"] else ""
    kept = (1 + float(pipeline.numbers["cached_fraction"] or 0)) / 2
    yield "store half the bytes for each sample", {"dataset.size": pipeline.size / 2}
    several = {"storage.requests.samples": 2 * drive.requests.samples}
    yield "read twice as many samples with each request", several
    yield "open twice as many requests", {"storage.requests.open": 2 * min(reads.open, MAX_WORKERS)}
    yield f"keep {more}them in memory", {"storage.cache.share": kept}
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
    yield "send half the bytes for each sample", {"dataset.transfer": pipeline.transferred / 2}
    if not pipeline.link.runs_beside:
        beside = {"link.pinned": True, "link.overlaps": True}
        yield "copy from pinned memory on a stream of its own", beside


def _of_accelerator(pipeline: Description, step: Step) -> _Changes:
    hardware, on_device = pipeline.hardware, pipeline.dataset.on_device
    for name, work in (("time", "input work"), ("decoder_time", "decoding")):
        time = getattr(on_device, name)
        if time is not None:
            yield f"leave half of its {work} to the workers", {f"dataset.on_device.{name}": Q_(time) / 2}
    if isfinite(steps := hardware.in_flight):
        yield f"let {steps + 1} steps be in flight", {"hardware.in_flight": steps + 1}
    yield "use twice the batch, which takes more memory", {"batch_size": 2 * pipeline.batch_size}
    if hardware.precision in ("fp32", "tf32"):
        yield "use half precision", {"hardware.precision": "fp16"}
    if hardware.ranks.spread:
        yield "halve the spread of the ranks' steps", {"hardware.ranks.spread": hardware.ranks.spread / 2}
    if (
        launch_wait(SingleNodeModel.among(pipeline.inputs), step.batch_size) > 0
    ):  # a faster accelerator launches no faster
        compiled = {"hardware.rate": hardware.framework.replace(compiled=True)}
        yield "compile the step, which is then launched once", compiled
    elif step.cause != "overhead":
        twice = 2 * step.batch_size / step.stage_times[SingleNodeModel.NAME] * Q_("1 img")
        yield f"use a {step.labels[ACCELERATOR.name]} that is twice as fast", {"hardware.rate": twice}
