"""Preparing samples on the CPU (decode, crop, augment, normalize) with workers on so many cores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import InputError
from ...units import Q_, Number, Quantity, base_number, format_quantity, positive, positive_int
from ..assumptions import Assumptions, LoaderKind, WorkerScaling, loader_kinds
from ..catalogue import Entry, dataset_of
from ..fields import SupplyRate, read_supply
from ..groups import Datasets
from ..resources import CPU, Cost, Inputs, Line, as_float, exceeds
from .stage import StageModel

_PASS = "Pass Samples(cpu_time=...) for your own."

# Up to how many workers it hardly matters which cores they run on.
FEW_WORKERS = 2
_A_CORE_EACH = "Each worker is taken to have a core to itself: pass Workers(cores=...), as a host has them."


@dataclass(frozen=True)
class TransformationResult:
    """The answer of `TransformationModel.solve`: times of a batch, and what they make of the accelerator."""

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
    note: str = ""  # that the rate was measured on other samples, or that nobody named the cores

    @property
    def threads(self) -> Number:
        """The hardware threads of the host; None where its cores are not known."""
        return None if self.cores is None else self.cores * (2 if self.scaling.second_thread else 1)


class TransformationModel(StageModel[TransformationInputs]):
    """The CPU workers: a batch takes what it costs one of them over how many, or how many cores, there are.

    Parameters
    ----------
    assumptions : Assumptions
        `worker_rate`, `contention` and `coherency` are used where a pipeline counts its workers.

    Notes
    -----
    A rate in bytes per second says that cost follows the stored size. It follows the pixels: a rate in images
    per second is the safer figure, and for images of another size than those that were measured it is
    carried on by the bytes to decode. With ``c`` the CPU time of a sample, ``h`` the hand-over of a
    batch, ``r`` the wait for a read, ``n`` workers, and ``S`` their speed-up over one, with and without a
    limit of cores, a batch of ``b`` takes ``max((c b + h) / S(n, cores), (c b + h) / S(n) + r b / n)``: the
    cores bind, or the workers, who wait as well. Stops being true where single slow samples hold up whole
    batches.

    References
    ----------
    Bachkaniwala et al., IISWC 2024 (Lotus), Table II and section V-D, for measured rates and scaling.
    """

    NAME, RESOURCE = "transform", CPU

    def solve(
        self,
        *,
        batch_size: Number,
        accelerator_step_time: Quantity,
        cpu_throughput: Quantity,
        sample_size_bytes: Quantity | None = None,
    ) -> TransformationResult:
        """Set the time to prepare a batch beside the accelerator's time to use it.

        Parameters
        ----------
        batch_size : int or array
        accelerator_step_time : quantity [time]
        cpu_throughput : quantity [data/time] or [sample/time]
            What all workers supply together.
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
        inputs = self.resolve(stored=size, workers=1, cpu_throughput=supply)
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

    def resolve(
        self,
        *,
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
        images: bool = True,
        slow_rank: Number = 1.0,
    ) -> TransformationInputs:
        """The formula's numbers from the fields of a pipeline."""
        for name, value in (("Samples.cpu_time", cpu_time), ("Requests.latency", latency)):
            if cpu_throughput is not None and value is not None:
                raise InputError(
                    f"{name} is that of one worker, got it with what all workers supply together. "
                    "Pass workers=8 instead."
                )
        if cpu_time is not None and worker_rate is not None:
            raise InputError(
                "One worker's speed is Workers.rate or Samples.cpu_time, got both. Pass one of them."
            )
        kind = None if loader is None else loader_kinds()[loader]
        if cores is None and hardware is not None and self.assumptions.numbers["host_cores"]:
            for_each = hardware.number("host_cores")
            cores = None if for_each is None else for_each * accelerators
        note = ""
        if cpu_time is not None:
            amount, rate = cpu_time, 1
        elif supply := cpu_throughput or worker_rate:
            amount, rate = _share(supply, stored)
        else:
            amount, rate, note = _worker_time(self.assumptions, stored, samples, images, kind)
        scaling = self.assumptions.scaling_of(kind)
        if cpu_throughput is None:
            spread = "workers_time" if cores is not None else "workers_time_without_cores"
            if (off := self.assumptions.numbers[spread]) != 1:
                amount = amount * np.where(workers > 1, off, 1.0)
            if cores is None and scaling.crowding and np.max(workers) > FEW_WORKERS:
                note = f"{_A_CORE_EACH} {note}".rstrip()
        return TransformationInputs(
            amount=amount * slow_rank, rate=rate, cores=cores, read_wait=read_wait, note=note,
            workers=None if cpu_throughput is not None else workers,
            handover=0 if handover_time is None else handover_time * slow_rank,
            scaling=scaling,
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


def _share(rate: SupplyRate, stored: Number | None) -> tuple[Number, Number]:
    """Return what a sample takes of a rate, and the rate: one of its samples, or so many of its bytes."""
    if not rate.of_bytes:
        return 1, rate.number
    if stored is None:
        raise InputError(
            "A cpu_throughput in bytes needs the size of a sample, got none. Pass it, or a rate in img/s."
        )
    return stored, rate.number


def _worker_time(
    assumed: Assumptions, stored: Number, samples: Entry | None, images: bool, kind: LoaderKind | None
) -> tuple[Number, Number, str]:
    """The time of a sample on one worker: an amount over a rate [s], and a note where others were measured.

    What the user gave goes first. A pool's rate goes before a worker process's on ImageNet, where it was
    measured, and not elsewhere.
    """
    own = None if samples is None else samples.facts.get("preparation_time")
    pool, rate = None if kind is None else kind.worker_rate, assumed.numbers["worker_rate"]
    own_given = own is not None and own.given
    if assumed.given("worker_rate") and not own_given:
        return stored if rate.of_bytes else 1, rate.number, ""
    if samples is not None and own is not None and (own_given or pool is None or not _is_imagenet(samples)):
        seconds = own.number + samples.number("collation_time", 0.0)
        if own_given:
            return seconds, 1, ""
        listed = next((entry for entry in Datasets if entry.path == samples.path), samples)
        times, note = _times_those_of(listed, stored, images)
        if pool is not None:
            note = (
                f"What a thread of a pool prepares was measured on {Datasets.ImageNet.name} alone: here it "
                f"is taken to prepare what a worker process does. {_PASS}"
            )
        return seconds * times, 1, note
    if pool is None and rate.of_bytes:
        size = assumed.sample_size
        if _are_alike(stored, base_number(size)):
            return stored, rate.number, ""
        note = (
            f"That a worker prepares {format_quantity(assumed.worker_rate)} is assumed, and was measured "
            f"neither on samples of {format_quantity(size)} nor of {_spoken(stored)}. {_PASS}"
        )
        return stored, rate.number, note
    times, note = _times_those_of(Datasets.ImageNet, stored, images)
    return times, rate.number if pool is None else pool, note


def takes_images(samples: Entry | None, model: Entry | None) -> bool:
    """True if samples are images as ImageNet's, which are decoded and cropped."""
    return _is_imagenet(samples) or _is_imagenet(None if model is None else dataset_of(model))


def _is_imagenet(samples: Entry | None) -> bool:
    return samples is not None and samples.path == "ImageNet"


def _times_those_of(measured: Entry, stored: Number, images: bool) -> tuple[Number, str]:
    """How many times the work of the samples that were measured these take, and a note where they differ."""
    fact = measured.facts["sample_size"]
    ends = (fact.value,) if fact.low is None else (fact.low, fact.high)
    larger = stored / np.clip(stored, base_number(ends[0]), base_number(ends[-1]))
    decoded, times = images and "decoding_time" in measured.facts, 1
    if decoded:
        whole = measured.number("preparation_time") + measured.number("collation_time", 0.0)
        times = as_float(1 + measured.number("decoding_time") / whole * (larger - 1))
    if _are_alike(larger, 1):
        return times, ""
    size, other = format_quantity(fact.value), _spoken(stored)
    said = f"samples of {size}, and says nothing of {other}."
    if decoded:
        said = f"images of {size}, and of {other} is extrapolated: decoding goes with the bytes."
    return times, f"What a worker prepares was measured on {said} {_PASS}"


def _are_alike(sizes: Number, others: Number) -> bool:
    """True if sizes differ by no more than a hundredth, which is less than what a worker takes scatters."""
    return bool(np.all(np.abs(sizes - others) <= 0.01 * others))


def _spoken(stored: Number) -> str:
    """A size as people write it; sizes that are swept are not listed."""
    if np.ndim(stored):
        return "other sizes"
    return format_quantity(Q_(float(stored), "B").to("MB" if stored >= 1e6 else "KB"))
