"""What a result says below it: which of its values nobody measured, and what the pipeline leaves open."""

from __future__ import annotations

from math import inf

import numpy as np

from ...units import Q_, Number, Quantity, base_number, format_quantity
from ..catalogue import Entry, described
from ..description import Description
from ..resources import ACCELERATOR, CPU, STORAGE
from ..stages import TransformationModel
from ..stages.transformation import ASSUMED, OF_PROCESS, times_the_size
from ..step import Step

# Below how many milliseconds what a loop does itself is a tenth of a step or more.
_SHORT_STEP = 10
# Up to how many workers it hardly matters which cores they run on.
_FEW_WORKERS = 2
# Sizes that differ by less than what a worker takes scatters.
_ALIKE = 0.01
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
        "Each request reads one sample, a file of its own: for packed samples pass Requests(samples=...)."
    )
    one_open = " Each worker has one request open: for more pass Requests(open=...)."
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
    """Say of which samples the time of a worker is known, where these are others."""
    stored, known, ratio = pipeline.numbers["stored"], "measured", 1.0
    if basis == OF_PROCESS:
        return f"A thread of a pool is taken to prepare what was measured of a worker process. {_PASS}"
    if basis == ASSUMED:
        size, known = pipeline.assumptions.sample_size, "assumed"
        ratio = stored / base_number(size)
    elif isinstance(basis, Entry):
        size, ratio = basis.get("sample_size"), times_the_size(basis, stored)
    if np.all(np.abs(ratio - 1) <= _ALIKE):
        return ""
    of = f"samples of {format_quantity(size)}, and is carried over to those of {_spoken(stored)}"
    return f"The rate of a worker was {known} on {of}. {_PASS}"


def _spoken(stored: Number) -> str:
    """A size as people write it; sizes that are swept are not listed."""
    if np.ndim(stored):
        return "other sizes"
    return format_quantity(Q_(float(stored), "B").to("MB" if stored >= 1e6 else "KB"))
