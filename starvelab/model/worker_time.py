"""What one worker takes for a sample where the pipeline does not say, and on which samples that was measured.

Decoding an image goes with its bytes; what follows the crop takes the same time at any size. Of other
samples this was not measured: their time stays what it is, and a note says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..units import Q_, Number, base_number, format_quantity
from .assumptions import Assumptions
from .catalogue import Datasets, Entry, dataset_of
from .cost import as_float
from .scaling import LoaderKind

_PASS = "Pass Samples(cpu_time=...) for your own."


@dataclass(frozen=True)
class WorkerTime:
    """The time of a sample on one worker.

    Attributes
    ----------
    amount, rate
        A sample takes ``amount / rate`` [s].
    note : str
        That it was measured on other samples, and what became of it; "" where it was measured on these.
    """

    amount: Number
    rate: Number
    note: str = ""


def worker_time(
    assumed: Assumptions,
    stored: Number,
    *,
    samples: Entry | None = None,
    images: bool = True,
    kind: LoaderKind | None = None,
) -> WorkerTime:
    """The time of a sample of so many stored bytes, as its data set, the loader or the assumptions have it.

    What the user gave goes first, to the data set and then to the assumptions. A pool was measured on
    ImageNet, so its rate goes before what a worker process takes for the same images, but not for others.
    """
    own = None if samples is None else samples.facts.get("preparation_time")
    pool, rate = None if kind is None else kind.worker_rate, assumed.supply
    if assumed.given("worker_rate") and not (own is not None and own.given):
        return WorkerTime(stored if rate.of_bytes else 1, rate.number)
    if samples is not None and own is not None and (own.given or pool is None or not _is_imagenet(samples)):
        seconds = own.number + samples.number("collation_time", 0.0)
        if own.given:
            return WorkerTime(seconds, 1)
        listed = next((entry for entry in Datasets if entry.path == samples.path), samples)
        times, note = _times_those_of(listed, stored, images)
        if pool is not None:
            note = (
                f"What a thread of a pool prepares was measured on {Datasets.ImageNet.name} alone: here it "
                f"is taken to prepare what a worker process does. {_PASS}"
            )
        return WorkerTime(seconds * times, 1, note)
    if pool is None and rate.of_bytes:
        return WorkerTime(stored, rate.number, _note_of_bytes(assumed, stored))
    times, note = _times_those_of(Datasets.ImageNet, stored, images)
    return WorkerTime(times, rate.number if pool is None else pool, note)


def takes_images(samples: Entry | None, model: Entry | None) -> bool:
    """Whether samples are images as ImageNet's, which are decoded and cropped."""
    return _is_imagenet(samples) or _is_imagenet(None if model is None else dataset_of(model))


def _is_imagenet(samples: Entry | None) -> bool:
    return samples is not None and samples.path == "ImageNet"


def _times_those_of(measured: Entry, stored: Number, images: bool) -> tuple[Number, str]:
    """How many times the work of the samples that were measured these take, and a note where they differ."""
    fact = measured.facts["sample_size"]
    ends = (fact.value,) if fact.low is None else (fact.low, fact.high)
    larger = stored / np.clip(stored, base_number(ends[0]), base_number(ends[-1]))
    if _are_alike(larger, 1):
        return 1, ""
    size = format_quantity(fact.value)
    if not images or "decoding_time" not in measured.facts:
        return 1, (
            f"What a worker prepares was measured on samples of {size}, and says nothing of "
            f"{_spoken(stored)}. {_PASS}"
        )
    whole = measured.number("preparation_time") + measured.number("collation_time", 0.0)
    return as_float(1 + measured.number("decoding_time") / whole * (larger - 1)), (
        f"What a worker prepares was measured on images of {size}, and of {_spoken(stored)} is "
        f"extrapolated: decoding goes with the bytes. {_PASS}"
    )


def _note_of_bytes(assumed: Assumptions, stored: Number) -> str:
    """That a rate in bytes was assumed for one size; "" for that size."""
    size = assumed.sample_size
    if _are_alike(stored, base_number(size)):
        return ""
    return (
        f"That a worker prepares {format_quantity(assumed.worker_rate)} is assumed, and was measured neither "
        f"on samples of {format_quantity(size)} nor of {_spoken(stored)}. {_PASS}"
    )


def _are_alike(sizes: Number, others: Number) -> bool:
    return bool(np.all(np.abs(sizes - others) <= 1e-9 * others))


def _spoken(stored: Number) -> str:
    """A size as people write it; sizes that are swept are not listed."""
    if np.ndim(stored):
        return "other sizes"
    return format_quantity(Q_(float(stored), "B").to("MB" if stored >= 1e6 else "KB"))
