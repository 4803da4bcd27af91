"""What a result says below it: which of its values nobody measured, and what the pipeline leaves open."""

from __future__ import annotations

from math import inf

import numpy as np

from ...units import Q_, Number, Quantity, base_number, format_quantity
from ..catalogue import Entry, described
from ..description import Description
from ..groups import Datasets
from ..resources import ACCELERATOR, CPU, STORAGE
from ..stages import TransformationModel
from ..stages.transformation import ASSUMED, OF_PROCESS, decodes, takes_images, times_the_size
from ..step import Step

# Below how many milliseconds what a loop does itself is a tenth of a step or more.
_SHORT_STEP = 10
# Up to how many workers it hardly matters which cores they run on.
_FEW_WORKERS = 2
_PASS = "Pass Samples(cpu_time=...) for your own."


def remarks(pipeline: Description, step: Step) -> tuple[str, ...]:
    """Say what of a step nobody measured, and what the pipeline leaves open."""
    return (
        _assumed_time(pipeline, step),
        _assumed_requests(pipeline, step),
        _loop_time(pipeline, step),
        foreign_samples(pipeline),
        foreign_rate(pipeline),
    )


def _assumed_time(pipeline: Description, step: Step) -> str:
    """Say that the accelerator's time is extrapolated or assumed."""
    chip = step.labels[ACCELERATOR.name]
    if step.basis.startswith(("extrapolated", "measured with")):
        return f"The {chip}'s time is {step.basis.partition(':')[0]}."
    if pipeline.assumptions.measured_rates and not step.basis.startswith("measured"):
        return f"The {chip}'s time is assumed: {step.basis}, for want of a measured rate."
    return ""


def _loop_time(pipeline: Description, step: Step) -> str:
    """Say that the loop's own time is left out, where storage feeds steps as short as that."""
    short = np.ndim(step.utilization) == 0 and step.step_time.m_as("ms") < _SHORT_STEP
    fed = short and step.bottleneck == ACCELERATOR.name and pipeline.storage is not None
    if not fed or not pipeline.assumptions.measured_rates or pipeline.hardware.host.time is not None:
        return ""
    return (
        "The loop's own time in a step is left out: on steps of 3.5 ms fed from storage it came to "
        "1.1 to 1.5 ms (CosmoFlow, MLPerf Storage). Pass Host(time=...)."
    )


def _assumed_requests(pipeline: Description, step: Step) -> str:
    """Say what one request is taken to bring, and how many are taken to be open, where that matters."""
    drive, slowest = pipeline.storage, step.bottleneck
    if drive is None or np.ndim(step.utilization):
        return ""
    opened = drive.requests.open is not None or pipeline.assumptions.open_requests == inf
    if isinstance(pipeline.workers, Quantity):
        if opened or pipeline.solve({"storage.requests.open": 1}).throughput >= 0.95 * step.throughput:
            return ""
        open_unknown = "Nobody knows how many requests are open, so their latency is left out"
        return f"{open_unknown}: pass Requests(open=...)."
    waits = slowest == CPU.name and pipeline.numbers["read_wait"] is not None
    if drive.requests.samples != 1 or not (waits or slowest == STORAGE.name):
        return ""
    packed = pipeline.solve({"storage.requests.samples": 2}).resource_times
    if packed[slowest] > 0.9 * step.resource_times[slowest]:
        return ""
    one_sample = (
        "Each request reads one sample, a file of its own: of packed ones pass Requests(samples=...)."
    )
    one_open = " Each worker has one request open: of more pass Requests(open=...)."
    return one_sample if opened or not waits else one_sample + one_open


def foreign_samples(pipeline: Description) -> str:
    """Say that the samples are those of the assumptions although the model takes others."""
    fitting, model = pipeline.fitting, pipeline.model
    if model is None or fitting is None or pipeline.samples is not None:
        return ""
    if pipeline.dataset.size is not None:
        return ""
    return (
        f"The samples of {format_quantity(pipeline.size)} are those of the assumptions: pass "
        f"dataset={described(fitting)} for those of {model.name}."
    )


def foreign_rate(pipeline: Description) -> str:
    """Say that what a worker prepares was measured on other samples, or that nobody named the cores."""
    inputs = TransformationModel.among(pipeline.inputs)
    workers, cores = inputs.workers, ""
    without_cores = inputs.cores is None and inputs.scaling.crowding
    if without_cores and workers is not None and np.max(workers) > _FEW_WORKERS:
        cores = "Each worker is taken to have a core to itself: pass Workers(cores=...), as a host has them."
    return " ".join(filter(None, (cores, _measured_elsewhere(pipeline, inputs.basis))))


def _measured_elsewhere(pipeline: Description, basis: Entry | str) -> str:
    """Say on what a worker's rate was measured, where that was not on such samples."""
    stored, other = pipeline.numbers["stored"], _spoken(pipeline.numbers["stored"])
    if basis == OF_PROCESS:
        return (
            f"What a thread of a pool prepares was measured on {Datasets.ImageNet.name} alone: here it is "
            f"taken to prepare what a worker process does. {_PASS}"
        )
    if basis == ASSUMED:
        size, rate = pipeline.assumptions.sample_size, pipeline.assumptions.worker_rate
        measured_on = f"neither on samples of {format_quantity(size)} nor of {other}"
        assumed = (
            f"That a worker prepares {format_quantity(rate)} is assumed, and was measured {measured_on}."
        )
        return "" if _are_alike(stored / base_number(size)) else f"{assumed} {_PASS}"
    if not isinstance(basis, Entry) or _are_alike(times_the_size(basis, stored)):
        return ""
    measured = format_quantity(basis.get("sample_size"))
    said = f"samples of {measured}, and says nothing of {other}."
    if decodes(basis, takes_images(pipeline.samples, pipeline.model)):
        said = f"images of {measured}, and of {other} is extrapolated: decoding goes with the bytes."
    return f"What a worker prepares was measured on {said} {_PASS}"


def _are_alike(ratio: Number) -> bool:
    """True if sizes differ by no more than a hundredth, which is less than what a worker takes scatters."""
    return bool(np.all(np.abs(ratio - 1) <= 0.01))


def _spoken(stored: Number) -> str:
    """A size as people write it; sizes that are swept are not listed."""
    if np.ndim(stored):
        return "other sizes"
    return format_quantity(Q_(float(stored), "B").to("MB" if stored >= 1e6 else "KB"))
