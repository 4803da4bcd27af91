"""Samples: the training data, and the time to prepare one."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InputError
from ..units import Amount, Unchecked
from . import fields
from .catalogue import Entry, dataset_of
from .fields import Part

# Bytes of one number as it crosses the link.
DTYPE_BYTES = {"uint8": 1, "float16": 2, "float32": 4}


@dataclass(frozen=True, repr=False)
class Jitter(Part):
    """How the time of preparing scatters; simulated, and ignored by `Pipeline.solve`.

    Parameters
    ----------
    spread : float
        Standard deviation of a worker's time from batch to batch, as a share of it; lognormal.
    slow_share : float
        Share of the samples that take longer.
    slow_time : quantity [time]
        How much longer one of them takes: its worker sleeps, and no core works.
    """

    spread: float = fields.number(0.0, zero=True, shown="spread of the workers' time")
    slow_share: float = fields.number(0.0, zero=True, maximum=1, shown="share of slow samples")
    slow_time: Amount | None = fields.quantity("s", None, zero=True, shown="extra time of a slow sample")


@dataclass(frozen=True, repr=False)
class OnDevice(Part):
    """Input work that the accelerator does itself.

    Parameters
    ----------
    time : quantity [time], optional
        Time of its kernels for a sample, for example to augment, or to decode if the accelerator has no
        decoder for such files.
    decoder_time : quantity [time], optional
        Time of the accelerator's decoder for a sample, while its kernels compute:
        ``Q_("1 img") / hardware.image_decode_rate`` if the catalogue has that rate. Of several decode units
        that work side by side, such as ``hardware.video_decoders``, their time divided by their number.
    """

    time: Amount | None = fields.seconds(stage="device_time", shown="GPU time of a sample")
    decoder_time: Amount | None = fields.quantity("s", None, sweepable=True, shown="decoder time of a sample")


@dataclass(frozen=True, repr=False)
class Samples(Part):
    """The training data, and the time to prepare a sample.

    Parameters
    ----------
    of : catalogue entry, optional
        A data set; by default that of the model or of the assumptions.
    size : quantity [data], optional
        Stored bytes of a sample; by default those of the data set or of the assumptions.
    cpu_time : quantity [time], optional
        Time of one worker, alone, for a sample.
    transfer : str or quantity [data], optional
        How a decoded sample crosses the link: as numbers of a type ("uint8", "float16", "float32"), by
        default that of the assumptions, or as a number of bytes.
    on_device : OnDevice
        Input work that the accelerator does itself.
    jitter : Jitter
        How the worker's time scatters; read by `Pipeline.simulate`.
    source : object, optional
        Samples that can be opened, such as `starvelab.measure.photos`; read by `Pipeline.measure`.
    transforms : sequence, optional
        What a worker does to a sample of the source, in this order; read by `Pipeline.measure`.
    """

    of: Entry | None = fields.entry(None, group="Datasets", label="dataset", stage="dataset")
    size: Amount | None = fields.quantity("B", None, sweepable=True, shown="sample size")
    cpu_time: Amount | None = fields.quantity("s", None, sweepable=True, shown="CPU time of a sample")
    transfer: Amount | None = fields.quantity(
        "B", None, sweepable=True, choices=tuple(DTYPE_BYTES), shown="size on the link"
    )
    on_device: OnDevice = OnDevice()
    jitter: Jitter = Jitter()
    source: Unchecked = None
    transforms: Unchecked = None


def check_fit(model: Entry, samples: Entry) -> None:
    """Reject samples that the model does not take: of another size, or of another content."""
    taken, decoded = model.get("input_elements"), samples.get("decoded_elements")
    fitting, content = dataset_of(model), samples.get("content")
    wanted = content if fitting is None else fitting.get("content")
    if None not in (taken, decoded):
        if taken != decoded:
            change = "decoded_elements=..."
            raise _not_taken(model, f"{taken} numbers a sample", samples, f"{decoded}", change)
    elif content not in (None, wanted):
        raise _not_taken(model, wanted, samples, content, f'content="{wanted}"')


def _not_taken(model: Entry, takes: str, samples: Entry, gives: str, change: str) -> InputError:
    """Return the error for a data set that does not fit a model."""
    return InputError(
        f"model and dataset must belong together, got {model.name}, which takes {takes}, and {samples.name}, "
        f"which gives {gives}. Pass one that fits, or your own with .replace({change})."
    )
