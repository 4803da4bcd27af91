"""Preparing samples on the CPU (decode, crop, augment, normalize) with workers on so many cores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import InputError, own_errors
from ...units import Q_, Number, Quantity, base_number, positive, positive_int
from ..assumptions import Assumptions, LoaderKind, loader_kinds
from ..catalogue import Entry, dataset_of
from ..costs import Cost, Inputs, Line, WorkerScaling, as_float, exceeds
from ..fields import SupplyRate, read_supply
from ..groups import Datasets
from ..resources import CPU
from .stage import StageModel

# Where the time of a sample comes from, if not from what was measured of a data set.
GIVEN, ASSUMED, OF_PROCESS = "given", "assumed", "a thread of a pool, taken for a worker process"


@dataclass(frozen=True)
class TransformationResult:
    """The result of `TransformationModel.solve`: times of a batch, and what they make of the accelerator."""

    transform_time: Quantity
    accelerator_step_time: Quantity
    is_bottleneck: Number  # the CPU takes longer than the accelerator; a tie is no bottleneck
    accelerator_utilization: Number
    slowdown_factor: Number  # step time over the accelerator's own


@dataclass(frozen=True)
class TransformationInputs(Inputs):
    """What a sample needs of a rate, and the workers who supply it."""

    amount: Number  # over the rate it is the time of one worker [s]: 1 over samples, bytes over bytes,
    rate: Number  # each in a second, or CPU seconds over 1
    workers: Number | None  # None where the rate is that of all of them together
    cores: Number | None  # None where each worker has its own
    handover: Number  # seconds of a worker for each batch
    read_wait: Number | None  # seconds of a worker for each sample without a core
    scaling: WorkerScaling
    basis: Entry | str  # the data set on which the rate was measured, or one of the three words above


class TransformationModel(StageModel[TransformationInputs]):
    """The CPU workers: a batch takes the time of one of them, divided by the workers or by the cores.

    Parameters
    ----------
    assumptions : Assumptions
        `worker_rate`, `contention` and `coherency` are used where a pipeline counts its workers.

    Notes
    -----
    A rate in bytes per second says that cost follows the stored size. In fact it follows the pixels: a rate
    in images per second is safer, and for images of another size than the measured ones it is scaled by the
    bytes to decode. With ``c`` the CPU time of a sample, ``h`` the hand-over of a batch, ``r`` the wait for a
    read, ``n`` workers, and ``S`` their speed-up over one, with and without a limit of cores, a batch of
    ``b`` takes ``max((c b + h) / S(n, cores), (c b + h) / S(n) + r b / n)``: the cores bind, or the workers,
    who wait as well. Stops being true where single slow samples hold up whole batches.

    References
    ----------
    Bachkaniwala et al., IISWC 2024 (Lotus), Table II and section V-D, for measured rates and scaling.
    """

    NAME, RESOURCE = "transform", CPU

    @own_errors
    def solve(
        self,
        *,
        batch_size: Number,
        accelerator_step_time: Quantity,
        cpu_throughput: Quantity,
        sample_size_bytes: Quantity | None = None,
    ) -> TransformationResult:
        """Compare the time to prepare a batch with the accelerator's time to use it.

        Parameters
        ----------
        batch_size : int or array
        accelerator_step_time : quantity [time]
        cpu_throughput : quantity [data/time] or [sample/time]
            Rate of all workers together.
        sample_size_bytes : quantity [data]
            Stored size of one sample; not needed for a rate in samples.

        Raises
        ------
        InputError

        Examples
        --------
        >>> from starvelab import Q_
        >>> wall = TransformationModel().solve(batch_size=64, sample_size_bytes=Q_("500 KB"),
        ...     cpu_throughput=Q_("2 GB/s"), accelerator_step_time=Q_("8 ms"))
        >>> wall.transform_time.to("ms").magnitude, wall.accelerator_utilization, wall.is_bottleneck
        (16.0, 0.5, True)
        """
        batch = positive_int(batch_size, "batch_size")
        size = None if sample_size_bytes is None else positive(sample_size_bytes, "B", "sample_size_bytes")
        supply = read_supply(cpu_throughput, "cpu_throughput")[1]
        inputs = self.resolve(assumed=self.assumptions, stored=size, workers=1, cpu_throughput=supply)
        cpu = self.cost(inputs).at(batch) * 1e3
        device = positive(accelerator_step_time, "ms", "accelerator_step_time")
        step = np.maximum(cpu, device)
        return TransformationResult(
            transform_time=Q_(cpu, "ms"),
            accelerator_step_time=Q_(device, "ms"),
            is_bottleneck=exceeds(cpu, device),
            accelerator_utilization=as_float(device / step),
            slowdown_factor=as_float(step / device),
        )

    @staticmethod
    def resolve(
        *,
        assumed: Assumptions,
        stored: Number | None,
        workers: Number,
        cpu_throughput: SupplyRate | None = None,
        worker_rate: SupplyRate | None = None,
        cpu_time: Number | None = None,
        cores: Number | None = None,
        latency: Number | None = None,
        read_wait: Number | None = None,
        handover_time: Number | None = None,
        loader: str | None = None,
        hardware: Entry | None = None,
        accelerators: Number = 1,
        samples: Entry | None = None,
        model: Entry | None = None,
        slow_rank: Number = 1.0,
        pickled: bool | None = False,
        transferred: Number = 0.0,
    ) -> TransformationInputs:
        """The formula's numbers from the fields of a pipeline."""
        kind = None if loader is None else loader_kinds()[loader]
        if cpu_throughput is not None:
            for name, value in (("Samples.cpu_time", cpu_time), ("Requests.latency", latency)):
                if value is not None:
                    raise InputError(
                        f"{name} is that of one worker, got it with what all workers supply together. "
                        "Pass workers=8 instead."
                    )
            amount, rate, basis = _share(cpu_throughput, stored)
        elif cpu_time is not None:
            if worker_rate is not None:
                raise InputError(
                    "One worker's speed is Workers.rate or Samples.cpu_time, got both. Pass one of them."
                )
            amount, rate, basis = cpu_time, 1, GIVEN
        elif worker_rate is not None:
            amount, rate, basis = _share(worker_rate, stored)
        else:
            amount, rate, basis = _worker_time(assumed, stored, samples, model, kind)
        if cores is None and hardware is not None and assumed.numbers["host_cores"]:
            cores_each = hardware.number("host_cores")
            cores = None if cores_each is None else cores_each * accelerators
        if pickled and (kind is None or kind.byte_time):
            amount = amount + rate * transferred / assumed.numbers["pickling_bandwidth"]
        longer = assumed.numbers["workers_time" if cores is not None else "workers_time_without_cores"]
        if longer != 1 and cpu_throughput is None:
            amount = amount * np.where(workers > 1, longer, 1.0)
        return TransformationInputs(
            amount=amount * slow_rank, rate=rate, cores=cores, read_wait=read_wait, basis=basis,
            workers=None if cpu_throughput is not None else workers,
            handover=0 if handover_time is None else handover_time * slow_rank,
            scaling=assumed.scaling if kind is None else assumed.scaling_of(kind),
        )  # fmt: skip

    @staticmethod
    def cost(inputs: TransformationInputs) -> Cost:
        """``max((c b + h) / S(n, cores), (c b + h) / S(n) + r b / n)``, with ``c = amount / rate``."""
        c, h, n = inputs.amount / inputs.rate, inputs.handover, inputs.workers
        if n is None:
            return Cost((Line(0, c),))
        speedup = inputs.scaling.speedup(n, inputs.cores)
        on_cores = Line(h / speedup, c / speedup)
        if inputs.read_wait is None:
            return Cost((on_cores,))
        # A worker that waits leaves its core to others, but prepares nothing else meanwhile.
        speedup = inputs.scaling.speedup(n)
        return Cost((on_cores, Line(h / speedup, c / speedup + inputs.read_wait / n)))


def _share(rate: SupplyRate, stored: Number | None) -> tuple[Number, Number, Entry | str]:
    """Return what a sample takes of a given rate, one of its samples or so many bytes, and the rate."""
    if not rate.of_bytes:
        return 1, rate.number, GIVEN
    if stored is None:
        raise InputError(
            "A cpu_throughput in bytes needs the size of a sample, got none. Pass it, or a rate in img/s."
        )
    return stored, rate.number, GIVEN


def _worker_time(
    assumed: Assumptions,
    stored: Number,
    samples: Entry | None,
    model: Entry | None,
    kind: LoaderKind | None,
) -> tuple[Number, Number, Entry | str]:
    """Return the time of a sample on one worker, as an amount over a rate [s], and its basis.

    What the user gave goes first. A pool's rate goes before a worker process's on ImageNet, where it was
    measured, and not elsewhere.
    """
    taken = None if samples is None else samples.facts.get("preparation_time")
    pool, rate = None if kind is None else kind.worker_rate, assumed.numbers["worker_rate"]
    if "worker_rate" in assumed.given and not (taken and taken.given):
        return _share(rate, stored)
    if samples is not None and taken is not None:
        seconds = taken.number + samples.number("collation_time", 0.0)
        if taken.given:
            return seconds, 1, GIVEN
        if pool is None or not _is_imagenet(samples):
            listed = next((entry for entry in Datasets if entry.path == samples.path), samples)
            times = _times_the_work(listed, stored, _takes_images(samples, model))
            return seconds * times, 1, listed if pool is None else OF_PROCESS
    if pool is None and rate.of_bytes:
        return stored, rate.number, ASSUMED
    times = _times_the_work(Datasets.ImageNet, stored, _takes_images(samples, model))
    return times, rate.number if pool is None else pool, Datasets.ImageNet


def _takes_images(samples: Entry | None, model: Entry | None) -> bool:
    """True if samples are images as ImageNet's, which are decoded and cropped."""
    return _is_imagenet(samples) or _is_imagenet(None if model is None else dataset_of(model))


def _is_imagenet(samples: Entry | None) -> bool:
    return samples is not None and samples.path == "ImageNet"


def _times_the_work(measured: Entry, stored: Number, images: bool) -> Number:
    """Return how many times the work of the samples that were measured samples of another size take."""
    if not images or "decoding_time" not in measured.facts:
        return 1
    whole = measured.number("preparation_time") + measured.number("collation_time", 0.0)
    return as_float(1 + measured.number("decoding_time") / whole * (times_the_size(measured, stored) - 1))


def times_the_size(measured: Entry, stored: Number) -> Number:
    """Return how many times the size of those that were measured samples have."""
    fact = measured.facts["sample_size"]
    ends = (fact.value,) if fact.low is None else (fact.low, fact.high)
    return stored / np.clip(stored, base_number(ends[0]), base_number(ends[-1]))
