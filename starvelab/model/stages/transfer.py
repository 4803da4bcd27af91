"""The copy to the accelerator over the link, beside its work or in between."""

from __future__ import annotations

from dataclasses import dataclass

from ...units import Number, Quantity, Unchecked, positive
from ..assumptions import Assumptions
from ..catalogue import Entry, bandwidth_of
from ..costs import Cost, Inputs, Line
from ..resources import ACCELERATOR, LINK
from .stage import StageModel

_REMEDY = 'Pass link=Links.PCIe4_x16 or Q_("32 GB/s").'


@dataclass(frozen=True)
class TransferInputs(Inputs):
    """Bytes of a sample as they cross the link [B], and the link's bandwidth [B/s]."""

    size: Number
    bandwidth: Number


class TransferModel(StageModel[TransferInputs]):
    """The host-to-device link, from pinned or pageable memory.

    A batch of ``b`` takes ``b size / bandwidth``. The bytes are those of the decoded tensor (224 x 224 x 3 is
    150,528 B as uint8, 602,112 B as float32), not those of the stored file. The assumptions' `link_rate` says
    whether the datasheet's peak or the measured copy rate is believed. Stops being true for many small
    copies, whose launch cost it leaves out. NVIDIA/nvbandwidth@66746a3, README, has measured pinned copies.
    """

    NAME, RESOURCE, NEEDS, OVERLAPS = "copy", LINK, ("link",), True

    @classmethod
    def resolve(
        cls,
        *,
        transferred: Number,
        link: Entry | Number,
        pinned: bool,
        copy_overlaps: bool,
        assumed: Assumptions,
    ) -> TransferInputs | None:
        """The formula's numbers from the fields of a pipeline; None for another copy."""
        if copy_overlaps is not cls.OVERLAPS:
            return None
        if isinstance(link, Entry):
            bandwidth = link_bandwidth(link, pinned=pinned, rate=assumed.link_rate)
            link = positive(bandwidth, "B/s", "link bandwidth")
        return TransferInputs(size=transferred, bandwidth=link)

    @staticmethod
    def cost(inputs: TransferInputs) -> Cost:
        """``b size / bandwidth``."""
        return Cost((Line(0, inputs.size / inputs.bandwidth),))


class SerializedCopyModel(TransferModel):
    """The same copy on the stream that computes: the link's bytes, but the accelerator waits for it."""

    NAME, RESOURCE, AWAITED, OVERLAPS = "serialized copy", ACCELERATOR, "the copy", False


def link_bandwidth(link: Unchecked, *, pinned: bool, rate: str) -> Quantity:
    """The bandwidth [data/time] of a link, of an accelerator's own link, or as it was given."""
    field = "bandwidth_" + (rate if pinned else "pageable_sustained")
    fields = {"Links": field, "Hardware": f"link_{field}"}
    return bandwidth_of(link, "link", fields, "A copy needs {}", _REMEDY)
